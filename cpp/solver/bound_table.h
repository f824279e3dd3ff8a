// bound_table.h: what a solver has found out about positions, in a fixed number of bytes.
//
// Buckets of one cache line, eight entries of one word each:
//
//   | tag (up to 46 bits) | generation 2 | work 4 | upper + 32: 6 | lower + 32: 6 |
//
// A key is mixed by a function that can be undone; its upper bits choose the bucket, the others are the tag. So an
// entry is never taken for another position's. When a bucket is full the entry goes that took least work to find out,
// those of earlier generations first. Pages are given by the operating system as they are touched.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace windrow {

class BoundTable {
 public:
  // The score of a position lies in [lower, upper], which lies in [-31, 31].
  struct Bounds {
    int32_t lower;
    int32_t upper;
  };
  // Where a key belongs.
  struct Place {
    uint64_t* bucket;
    uint64_t tag;  // in its position in an entry
  };

  // For keys of `key_bits` bits; takes the largest power of two that is at most `max_bytes`.
  BoundTable(int32_t key_bits, size_t max_bytes)
      : key_mask_(~uint64_t{0} >> (64 - key_bits)), half_bits_(key_bits / 2), num_bytes_(std::bit_floor(max_bytes)) {
    const int32_t bucket_bits = std::min(std::countr_zero(num_bytes_ / kBucketBytes), key_bits - 1);
    if (num_bytes_ < kBucketBytes || key_bits - bucket_bits > kMaxTagBits) {
      const int32_t min_bits = std::max(key_bits - kMaxTagBits, 0);
      throw std::invalid_argument("max_memory must be at least " + std::to_string(kBucketBytes << min_bits) +
                                  " bytes for this board, not " + std::to_string(max_bytes));
    }
    tag_bits_ = key_bits - bucket_bits;
    void* memory =
        mmap(nullptr, num_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::runtime_error("cannot reserve " + std::to_string(num_bytes_) +
                               " bytes of address space; set max_memory lower");
    }
#if defined(MADV_HUGEPAGE)
    // Questions go all over the table: with small pages most of them would miss the processor's table of pages too.
    madvise(memory, num_bytes_, MADV_HUGEPAGE);
#endif
    words_ = static_cast<uint64_t*>(memory);
  }
  ~BoundTable() { munmap(words_, num_bytes_); }
  BoundTable(const BoundTable&) = delete;
  BoundTable& operator=(const BoundTable&) = delete;

  // Entries made before this are the first to go.
  void next_generation() { generation_ = (generation_ + 1) % 4; }

  // The place of a key, asked from memory ahead of its use.
  Place place(uint64_t key) const {
    key = (key * 0x9e3779b97f4a7c15u) & key_mask_;
    key ^= key >> half_bits_;
    key = (key * 0xbf58476d1ce4e5b9u) & key_mask_;
    uint64_t* bucket = words_ + (key >> tag_bits_) * kNumWays;
    __builtin_prefetch(bucket);
    return {bucket, key << (64 - tag_bits_) >> (64 - tag_bits_) << kTagShift};
  }

  // Narrows `bounds` to what is known.
  static void narrow(const Place& place, Bounds& bounds) {
    if (const uint64_t* entry = find(place)) {
      bounds.lower = std::max(bounds.lower, lower_of(*entry));
      bounds.upper = std::min(bounds.upper, upper_of(*entry));
    }
  }
  // The upper bound, or `otherwise`.
  static int32_t upper_bound(const Place& place, int32_t otherwise) {
    const uint64_t* entry = find(place);
    return entry != nullptr ? upper_of(*entry) : otherwise;
  }

  // Remembers bounds, which include all that was known; `num_nodes` is what it took to find them.
  void store(const Place& place, const Bounds& bounds, uint64_t num_nodes) {
    const uint64_t work = std::min<uint64_t>(static_cast<uint64_t>(std::bit_width(num_nodes)) / 2, 15);
    uint64_t* entry = find(place);
    if (entry == nullptr) {
      entry = std::min_element(place.bucket, place.bucket + kNumWays,
                               [this](uint64_t a, uint64_t b) { return worth(a) < worth(b); });
    }
    *entry = place.tag | generation_ << kGenerationShift | work << kWorkShift |
             static_cast<uint64_t>(bounds.upper + kOffset) << kUpperShift |
             static_cast<uint64_t>(bounds.lower + kOffset);
  }

 private:
  static constexpr int32_t kNumWays = 8;
  static constexpr size_t kBucketBytes = kNumWays * sizeof(uint64_t);
  static constexpr int32_t kOffset = 32;
  static constexpr int32_t kUpperShift = 6, kWorkShift = 12, kGenerationShift = 16, kTagShift = 18;
  static constexpr int32_t kMaxTagBits = 64 - kTagShift;

  static int32_t lower_of(uint64_t entry) { return static_cast<int32_t>(entry & 63) - kOffset; }
  static int32_t upper_of(uint64_t entry) { return static_cast<int32_t>(entry >> kUpperShift & 63) - kOffset; }
  // An empty entry, 0, is worth nothing.
  uint64_t worth(uint64_t entry) const {
    return (entry >> kGenerationShift & 3) == generation_ ? 1 + (entry >> kWorkShift & 15) : entry != 0;
  }
  static uint64_t* find(const Place& place) {
    for (int32_t i = 0; i < kNumWays; ++i) {
      // No entry is 0: lower + 32 is at least 1.
      const uint64_t entry = place.bucket[i];
      if (entry >> kTagShift << kTagShift == place.tag && entry != 0) return place.bucket + i;
    }
    return nullptr;
  }

  const uint64_t key_mask_;
  const int32_t half_bits_;
  const size_t num_bytes_;
  int32_t tag_bits_ = 0;
  uint64_t* words_ = nullptr;
  uint64_t generation_ = 0;
};

}  // namespace windrow
