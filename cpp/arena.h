// arena.h: the memory of a forest: one reservation of address space, cut into an equal slice per tree.
//
//   reservation  | tree 0 ..........| tree 1 ..........| tree 2 ..........|
//                  used ^    quota ^
//
// The operating system hands out pages as they are first touched, so a reservation costs nothing until it is used,
// a tree never moves while it grows, and the process cannot take more than `max_memory` for trees. A slice that is
// full is full: its search ends with what it has. Equal slices, rather than one shared pool, keep a search that meets
// its limit independent of the other trees and of the number of threads.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace windrow {

// Everything in a slice starts on a cache line; positions in a slice are counted in lines.
inline constexpr size_t kLineBytes = 64;

inline size_t to_lines(size_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes; }

// Tells AddressSanitizer which part of a slice holds live data; costs nothing in other builds.
inline void mark_live([[maybe_unused]] const std::byte* begin, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
#endif
}
inline void mark_dead([[maybe_unused]] const std::byte* begin, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_POISON_MEMORY_REGION(begin, bytes);
#endif
}

class Reservation {
 public:
  Reservation(int32_t num_slices, size_t slice_bytes)
      : slice_bytes_(odd_lines(slice_bytes / kLineBytes) * kLineBytes),
        total_bytes_(slice_bytes_ * static_cast<size_t>(num_slices)) {
    void* memory =
        mmap(nullptr, total_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::runtime_error("cannot reserve " + std::to_string(total_bytes_) +
                               " bytes of address space; set the limit lower");
    }
    base_ = static_cast<std::byte*>(memory);
    mark_dead(base_, total_bytes_);
  }
  ~Reservation() {
    if (base_ == nullptr) return;
    mark_live(base_, total_bytes_);
    munmap(base_, total_bytes_);
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  std::byte* slice(int32_t index) const { return base_ + slice_bytes_ * static_cast<size_t>(index); }
  size_t slice_bytes() const { return slice_bytes_; }

 private:
  // Slices of an odd number of lines begin in different sets of the caches. At a stride of a power of two all roots
  // would meet in the same few sets, which costs an eighth of the speed.
  static size_t odd_lines(size_t lines) { return lines > 64 && lines % 2 == 0 ? lines - 1 : lines; }

  size_t slice_bytes_;
  size_t total_bytes_;
  std::byte* base_ = nullptr;
};

}  // namespace windrow
