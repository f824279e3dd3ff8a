// thread_pool.h: runs one function over a range of trees on several threads.
//
// The caller works too, so a pool of one thread has no threads at all. Work is handed out in small pieces through one
// counter, since trees of unequal depth take unequal time. Between jobs the workers sleep.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace windrow {

class ThreadPool {
 public:
  // fn(begin, end) for disjoint pieces that cover [0, count).
  using Piece = std::function<void(int32_t begin, int32_t end)>;

  explicit ThreadPool(int32_t num_threads) {
    try {
      for (int32_t i = 1; i < num_threads; ++i) workers_.emplace_back([this] { work(); });
    } catch (...) {  // a thread could not be made: those that were must end before this object does
      close();
      throw;
    }
  }
  ~ThreadPool() { close(); }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int32_t num_threads() const { return static_cast<int32_t>(workers_.size()) + 1; }

  // Blocks until every piece has run. The first exception thrown by a piece is thrown here, after all have ended;
  // pieces not yet begun by then are left out. One caller at a time.
  void for_each(int32_t count, int32_t piece_size, const Piece& fn) {
    if (workers_.empty() || count <= piece_size) {
      if (count > 0) fn(0, count);
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      fn_ = &fn;
      count_ = count;
      piece_size_ = piece_size;
      next_.store(0, std::memory_order_relaxed);
      error_ = nullptr;
      num_working_ = static_cast<int32_t>(workers_.size());
      ++job_;
    }
    wake_.notify_all();
    run_pieces();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return num_working_ == 0; });
    fn_ = nullptr;
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void close() {
    {
      const std::lock_guard lock(mutex_);
      is_closing_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void work() {
    int64_t last_job = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return is_closing_ || job_ != last_job; });
        if (is_closing_) return;
        last_job = job_;
      }
      run_pieces();
      const std::lock_guard lock(mutex_);
      if (--num_working_ == 0) done_.notify_one();
    }
  }

  void run_pieces() {
    for (;;) {
      const int32_t begin = next_.fetch_add(piece_size_, std::memory_order_relaxed);
      if (begin >= count_) return;
      try {
        (*fn_)(begin, begin + piece_size_ < count_ ? begin + piece_size_ : count_);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        next_.store(count_, std::memory_order_relaxed);
      }
    }
  }

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;

  // Written under the mutex while no worker runs; read by workers after they saw the job under the mutex.
  const Piece* fn_ = nullptr;
  int32_t count_ = 0;
  int32_t piece_size_ = 1;

  // Guarded by the mutex.
  int64_t job_ = 0;
  int32_t num_working_ = 0;
  bool is_closing_ = false;
  std::exception_ptr error_;

  std::atomic<int32_t> next_{0};
};

}  // namespace windrow
