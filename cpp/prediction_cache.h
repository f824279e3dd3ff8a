// prediction_cache.h: what the evaluator said about positions it has seen, in a fixed number of bytes.
//
// Sharded by key, each shard behind its own lock. A shard is a ring of entries in the order they came and a table of
// chains into it:
//
//   table  [ bucket -> newest entry of its chain ]          ring  | oldest .. newest |  free  |
//                                                                  tail ^       head ^
//
// When the ring is full the oldest entry must go; if it was asked for since it came, it goes back to the front instead,
// once (CLOCK, as second-chance FIFO). Entries have different sizes and the ring has no holes, so the limit on bytes is
// kept exactly. All memory is reserved at the start and touched only as it fills.
//
// An entry is found by one half of a 128-bit hash and recognized by the other, so two positions that share the first
// half are told apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "arena.h"

namespace windrow {

struct PositionKey {
  uint64_t place;  // where to look
  uint64_t check;  // what must be found there
  bool operator==(const PositionKey&) const = default;
};

// The key of a position under one version of the network: another version is another key.
PositionKey make_key(const uint64_t hash[2], uint64_t version);

struct CacheCounters {
  int64_t hits = 0;
  int64_t misses = 0;
  int64_t insertions = 0;
  int64_t evictions = 0;
  int64_t second_chances = 0;
  int64_t mistaken = 0;  // entries in the right place whose check was another position's
  int64_t entries = 0;
  size_t bytes = 0;  // of entries and table
};

class PredictionCache {
 public:
  // At most `max_bytes` for everything. `half_precision` stores priors in 16 bits. `place_bits` < 64 makes places
  // collide, which tests want. `is_canonical` asks the search for one key for all images of a position under the game's
  // symmetries (canonical.h).
  PredictionCache(size_t max_bytes, bool half_precision, int32_t place_bits = 64, bool is_canonical = false);
  ~PredictionCache();
  PredictionCache(const PredictionCache&) = delete;
  PredictionCache& operator=(const PredictionCache&) = delete;

  // Copies what is known about a position of `count` legal actions: true, or nothing is written.
  bool find(PositionKey key, int32_t count, float* priors, float* value);
  // Remembers it. A position that is there already is left as it is; one that is larger than a shard is not taken.
  void insert(PositionKey key, int32_t count, const float* priors, float value);
  void clear();

  CacheCounters counters() const;
  size_t max_bytes() const { return max_bytes_; }
  bool is_canonical() const { return is_canonical_; }

 private:
  struct Entry;
  class Shard;

  PositionKey truncated(PositionKey key) const { return {key.place & place_mask_, key.check}; }
  Shard& shard_of(PositionKey key) const;

  size_t max_bytes_;
  bool half_precision_;
  bool is_canonical_;
  uint64_t place_mask_;
  std::unique_ptr<Reservation> memory_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace windrow
