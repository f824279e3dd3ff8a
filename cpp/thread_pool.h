// thread_pool.h: runs one function over a range of trees on several threads.
//
// The caller works too, so a pool of one thread has no threads at all. Every thread has its own share of the range, the
// same in every job over that range, so that a tree stays in the cache of one core; work is taken in small pieces, and
// whoever is done with its share helps with the others', since trees of unequal depth take unequal time. Nobody waits
// for a worker that has not come: one that wakes up late finds the job closed, so a job never takes longer than the
// caller alone would need. A round of a search comes as several jobs within microseconds, less than it takes to wake a
// thread, so workers spin for a moment before they sleep. How long is the user's choice: while a GPU evaluates, cores
// have nothing better to do, and waking many threads takes longer than the work they are woken for.
//
// A fork of the process has the pool but none of its threads: there the caller works alone.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace windrow {

// fn(begin, end) for disjoint pieces that cover [0, count).
using Piece = std::function<void(int32_t begin, int32_t end)>;

// The threads of a pool, the caller's among them, and all they share.
class Crew {
 public:
  // Longer than the gaps within a round, shorter than any network on the same cores.
  static constexpr std::chrono::microseconds kShortSpin{50};

  Crew(int32_t num_threads, std::chrono::microseconds spin_time)
      : shares_(static_cast<size_t>(num_threads)), spin_time_(spin_time) {
    try {
      for (int32_t i = 1; i < num_threads; ++i) workers_.emplace_back([this, i] { work(i); });
    } catch (...) {  // a thread could not be made: those that were must end before this object does
      close();
      throw;
    }
  }
  ~Crew() { close(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int32_t num_threads() const { return static_cast<int32_t>(shares_.size()); }

  // As ThreadPool::for_each.
  void for_each(int32_t count, int32_t piece_size, const Piece& fn) {
    {
      const std::lock_guard lock(mutex_);
      fn_ = &fn;
      piece_size_ = piece_size;
      const int64_t num_shares = static_cast<int64_t>(shares_.size());
      for (int64_t i = 0; i < num_shares; ++i) {
        shares_[static_cast<size_t>(i)].next.store(static_cast<int32_t>(count * i / num_shares),
                                                   std::memory_order_relaxed);
        shares_[static_cast<size_t>(i)].end = static_cast<int32_t>(count * (i + 1) / num_shares);
      }
      error_ = nullptr;
      is_open_ = true;
      job_.fetch_add(1, std::memory_order_release);
      if (num_asleep_ > 0) wake_.notify_all();
    }
    run_pieces(0);
    std::unique_lock lock(mutex_);
    is_open_ = false;
    if (num_inside_.load(std::memory_order_acquire) > 0) {
      lock.unlock();
      const auto is_empty = [this] { return num_inside_.load(std::memory_order_acquire) == 0; };
      const bool was_short = spin_until(is_empty, kShortSpin);
      lock.lock();
      if (!was_short) done_.wait(lock, is_empty);
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  template <class Condition>
  static bool spin_until(const Condition& is_true, std::chrono::microseconds how_long) {
    const auto end = std::chrono::steady_clock::now() + how_long;
    do {
      for (int32_t i = 0; i < 64; ++i) {
        if (is_true()) return true;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
      }
    } while (std::chrono::steady_clock::now() < end);
    return is_true();
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      is_closing_.store(true, std::memory_order_relaxed);
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void work(int32_t index) {
    int64_t last_job = 0;
    const auto is_wanted = [&] {
      return job_.load(std::memory_order_acquire) != last_job || is_closing_.load(std::memory_order_relaxed);
    };
    for (;;) {
      const bool was_soon = spin_until(is_wanted, spin_time_);
      {
        std::unique_lock lock(mutex_);
        if (!was_soon) {
          ++num_asleep_;
          wake_.wait(lock, is_wanted);
          --num_asleep_;
        }
        if (is_closing_.load(std::memory_order_relaxed)) return;
        last_job = job_.load(std::memory_order_relaxed);
        if (!is_open_) continue;
        num_inside_.fetch_add(1, std::memory_order_relaxed);
      }
      run_pieces(index);
      const std::lock_guard lock(mutex_);
      if (num_inside_.fetch_sub(1, std::memory_order_release) == 1) done_.notify_one();
    }
  }

  // Thread `index` works off its own share, then what is left of the next ones.
  void run_pieces(int32_t index) {
    const size_t num_shares = shares_.size();
    for (size_t i = 0; i < num_shares; ++i) {
      Share& share = shares_[(static_cast<size_t>(index) + i) % num_shares];
      for (;;) {
        const int32_t begin = share.next.fetch_add(piece_size_, std::memory_order_relaxed);
        if (begin >= share.end) break;
        try {
          (*fn_)(begin, begin + piece_size_ < share.end ? begin + piece_size_ : share.end);
        } catch (...) {
          const std::lock_guard lock(mutex_);
          if (!error_) error_ = std::current_exception();
          for (Share& any : shares_) any.next.store(any.end, std::memory_order_relaxed);
        }
      }
    }
  }

  // On a cache line of its own, since all threads write to theirs all the time.
  struct alignas(64) Share {
    std::atomic<int32_t> next{0};  // the piece to take
    int32_t end = 0;
  };

  std::vector<Share> shares_;
  const std::chrono::microseconds spin_time_;
  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;

  // Written by the caller under the mutex while no worker is inside; read by those inside.
  const Piece* fn_ = nullptr;
  int32_t piece_size_ = 1;

  // Guarded by the mutex.
  bool is_open_ = false;  // whether workers may come in
  int32_t num_asleep_ = 0;
  std::exception_ptr error_;

  // Changed under the mutex; read anywhere.
  std::atomic<int64_t> job_{0};
  std::atomic<int32_t> num_inside_{0};
  std::atomic<bool> is_closing_{false};
};

class ThreadPool {
 public:
  explicit ThreadPool(int32_t num_threads, std::chrono::microseconds spin_time = Crew::kShortSpin)
      : crew_(num_threads > 1 ? std::make_unique<Crew>(num_threads, spin_time) : nullptr) {}
  ~ThreadPool() {
    // What threads of another process hold or wait for cannot be given back here: it is left as it is.
    if (is_forked()) static_cast<void>(crew_.release());
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int32_t num_threads() const { return crew_ == nullptr ? 1 : crew_->num_threads(); }

  // Blocks until every piece has run. The first exception thrown by a piece is thrown here, after all have ended;
  // pieces not yet begun by then are left out. One caller at a time.
  void for_each(int32_t count, int32_t piece_size, const Piece& fn) {
    if (crew_ == nullptr || count <= piece_size || is_forked()) {
      if (count > 0) fn(0, count);
      return;
    }
    crew_->for_each(count, piece_size, fn);
  }

 private:
  bool is_forked() const { return getpid() != owner_; }

  std::unique_ptr<Crew> crew_;  // null: the caller alone
  const pid_t owner_ = getpid();
};

}  // namespace windrow
