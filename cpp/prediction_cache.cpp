// prediction_cache.cpp: the ring, its chains, and the way in and out.
#include "prediction_cache.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace windrow {

namespace {

constexpr uint32_t kNowhere = 0;
// Of a shard's bytes, the share that its table takes: one bucket of 4 bytes for every 64.
constexpr size_t kBytesPerBucket = 64;
constexpr size_t kMinShardBytes = size_t{1} << 14;
constexpr size_t kMaxShards = 64;

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
  return x ^ (x >> 32);
}

// Half precision: 1 bit of sign, 5 of exponent, 10 of mantissa. Rounds to nearest, ties to even; numbers too large
// become the largest there is, so that what is finite stays finite.
uint16_t to_half(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  bits &= 0x7FFFFFFFu;
  if (bits >= 0x7F800000u) return sign | (bits > 0x7F800000u ? 0x7E00u : 0x7C00u);  // NaN, infinity
  if (bits >= 0x477FF000u) return sign | 0x7BFFu;
  float magnitude;
  std::memcpy(&magnitude, &bits, sizeof magnitude);
  // Below 2^-14 numbers are multiples of 2^-24.
  if (magnitude < 0x1p-14f) {
    return sign | static_cast<uint16_t>((magnitude * 0x1p24f + 12582912.0f) - 12582912.0f);
  }
  bits += 0xFFFu + ((bits >> 13) & 1u);
  return sign | static_cast<uint16_t>((bits >> 13) - (112u << 10));
}

float from_half(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16, rest = half & 0x7FFFu;
  uint32_t bits = rest >= 0x7C00u ? (rest << 13) + (224u << 23) : (rest + (112u << 10)) << 13;
  if (rest < 0x400u) {
    const float magnitude = static_cast<float>(rest) * 0x1p-24f;
    std::memcpy(&bits, &magnitude, sizeof bits);
  }
  bits |= sign;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

}  // namespace

PositionKey make_key(const uint64_t hash[2], uint64_t version) {
  return {mix(hash[0] + version * 0x9E3779B97F4A7C15u), mix(hash[1] + version * 0xC2B2AE3D27D4EB4Fu)};
}

// In the ring, followed by its priors and padded to 8 bytes.
struct PredictionCache::Entry {
  PositionKey key;
  uint32_t next;   // in the chain, towards older ones; as Shard::at
  uint32_t words;  // size in the ring, header included, in 8 bytes
  float value;     // for the player to move
  uint16_t count;
  bool was_used;  // asked for since it came, or came back
  bool is_wrap;   // not an entry: the rest of the ring up to its end
};

// Positions in the ring count words of 8 bytes from 1, so that 0 can mean nowhere.
class PredictionCache::Shard {
 public:
  Shard(std::byte* memory, size_t bytes)
      : num_buckets_(std::max<size_t>(bytes / kBytesPerBucket, 1)),
        table_(reinterpret_cast<uint32_t*>(memory)),
        ring_(reinterpret_cast<uint64_t*>(memory) + (num_buckets_ + 1) / 2),
        num_words_(std::min<size_t>(bytes / 8 - (num_buckets_ + 1) / 2, 0xFFFFFFF0u)) {
    mark_live(memory, bytes);
  }

  bool find(PositionKey key, int32_t count, bool half_precision, float* priors, float* value) {
    const std::lock_guard lock(mutex_);
    Entry* entry = look_up(key);
    if (entry == nullptr || entry->count != count) {
      ++counters_.misses;
      return false;
    }
    ++counters_.hits;
    entry->was_used = true;
    *value = entry->value;
    const std::byte* stored = reinterpret_cast<const std::byte*>(entry + 1);
    if (half_precision) {
      for (int32_t i = 0; i < count; ++i) {
        uint16_t half;
        std::memcpy(&half, stored + i * sizeof half, sizeof half);
        priors[i] = from_half(half);
      }
    } else if (count > 0) {
      std::memcpy(priors, stored, static_cast<size_t>(count) * sizeof(float));
    }
    return true;
  }

  void insert(PositionKey key, int32_t count, bool half_precision, const float* priors, float value) {
    const size_t size = static_cast<size_t>(count) * (half_precision ? sizeof(uint16_t) : sizeof(float));
    const size_t words = (sizeof(Entry) + size + 7) / 8;
    if (2 * words > num_words_ || count > UINT16_MAX) return;
    const std::lock_guard lock(mutex_);
    if (look_up(key) != nullptr) return;
    Entry& entry = *make_room(words);
    entry = {key, kNowhere, static_cast<uint32_t>(words), value, static_cast<uint16_t>(count), false, false};
    std::byte* stored = reinterpret_cast<std::byte*>(&entry + 1);
    if (half_precision) {
      for (int32_t i = 0; i < count; ++i) {
        const uint16_t half = to_half(priors[i]);
        std::memcpy(stored + i * sizeof half, &half, sizeof half);
      }
    } else if (size > 0) {
      std::memcpy(stored, priors, size);
    }
    link(entry);
    ++counters_.insertions;
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    std::fill_n(table_, num_buckets_, kNowhere);
    head_ = tail_ = used_words_ = 0;
    counters_.entries = 0;
  }

  void add_to(CacheCounters& total) const {
    const std::lock_guard lock(mutex_);
    total.hits += counters_.hits;
    total.misses += counters_.misses;
    total.insertions += counters_.insertions;
    total.evictions += counters_.evictions;
    total.second_chances += counters_.second_chances;
    total.mistaken += counters_.mistaken;
    total.entries += counters_.entries;
    total.bytes += used_words_ * 8 + num_buckets_ * sizeof(uint32_t);
  }

 private:
  Entry* at(uint32_t position) { return reinterpret_cast<Entry*>(ring_ + (position - 1)); }
  uint32_t position_of(const Entry& entry) const {
    return static_cast<uint32_t>(reinterpret_cast<const uint64_t*>(&entry) - ring_) + 1;
  }
  uint32_t& bucket_of(PositionKey key) { return table_[key.place % num_buckets_]; }

  Entry* look_up(PositionKey key) {
    for (uint32_t position = bucket_of(key); position != kNowhere; position = at(position)->next) {
      Entry* entry = at(position);
      if (entry->key == key) return entry;
      if (entry->key.place == key.place) ++counters_.mistaken;
    }
    return nullptr;
  }

  void link(Entry& entry) {
    uint32_t& bucket = bucket_of(entry.key);
    entry.next = bucket;
    bucket = position_of(entry);
    ++counters_.entries;
  }

  void unlink(const Entry& entry) {
    const uint32_t position = position_of(entry);
    uint32_t* link = &bucket_of(entry.key);
    while (*link != position) link = &at(*link)->next;
    *link = entry.next;
    --counters_.entries;
  }

  // A free run of `words` at the head. What is in its way goes, or moves to the head itself.
  Entry* make_room(size_t words) {
    for (;;) {
      // What the entry needs, or, if it does not fit before the end of the ring, the rest that stays empty.
      const size_t rest = num_words_ - head_;
      if (num_words_ - used_words_ < std::min(words, rest)) {
        drop_oldest();
        continue;
      }
      Entry* entry = at(static_cast<uint32_t>(head_ + 1));
      if (words <= rest) {
        advance(head_, words);
        used_words_ += words;
        return entry;
      }
      if (rest * 8 >= sizeof(Entry)) *entry = {{}, kNowhere, static_cast<uint32_t>(rest), 0.0f, 0, false, true};
      used_words_ += rest;
      head_ = 0;
    }
  }

  void drop_oldest() {
    // Fewer words than an entry needs at the end of the ring carry no mark.
    const size_t rest = num_words_ - tail_;
    if (rest * 8 < sizeof(Entry)) {
      used_words_ -= rest;
      tail_ = 0;
      return;
    }
    Entry* oldest = at(static_cast<uint32_t>(tail_ + 1));
    const size_t words = oldest->words;
    if (oldest->is_wrap) {
      used_words_ -= words;
      tail_ = 0;
      return;
    }
    unlink(*oldest);
    ++counters_.evictions;
    used_words_ -= words;
    advance(tail_, words);
    if (!oldest->was_used) return;
    // Its own place has just become free, and entries are only dropped while the head is not behind the tail: so there
    // is room at the head. The two may overlap.
    Entry* again = at(static_cast<uint32_t>(head_ + 1));
    std::memmove(again, oldest, words * 8);
    again->was_used = false;
    advance(head_, words);
    used_words_ += words;
    link(*again);
    --counters_.evictions;
    ++counters_.second_chances;
  }

  void advance(size_t& place, size_t words) const {
    place += words;
    if (place == num_words_) place = 0;
  }

  const size_t num_buckets_;
  uint32_t* const table_;
  uint64_t* const ring_;
  const size_t num_words_;

  mutable std::mutex mutex_;  // guards all below, and what the pointers point to
  size_t head_ = 0;           // where the next entry goes
  size_t tail_ = 0;           // where the oldest lies
  size_t used_words_ = 0;
  CacheCounters counters_;
};

PredictionCache::PredictionCache(size_t max_bytes, bool half_precision, int32_t place_bits, bool is_canonical)
    : max_bytes_(max_bytes),
      half_precision_(half_precision),
      is_canonical_(is_canonical),
      place_mask_(place_bits == 64 ? ~uint64_t{0} : (uint64_t{1} << (place_bits & 63)) - 1) {
  if (max_bytes < kMinShardBytes) {
    throw std::invalid_argument("a prediction cache needs at least " + std::to_string(kMinShardBytes) + " bytes");
  }
  if (place_bits < 0 || place_bits > 64) throw std::invalid_argument("place_bits must be from 0 to 64");
  const size_t num_shards = std::clamp<size_t>(max_bytes / (size_t{1} << 18), 1, kMaxShards);
  memory_ = std::make_unique<Reservation>(static_cast<int32_t>(num_shards), max_bytes / num_shards);
  for (size_t i = 0; i < num_shards; ++i) {
    shards_.push_back(std::make_unique<Shard>(memory_->slice(static_cast<int32_t>(i)), memory_->slice_bytes()));
  }
}

PredictionCache::~PredictionCache() = default;

// The shard is chosen by the check, so that truncated places do not all meet in one shard.
PredictionCache::Shard& PredictionCache::shard_of(PositionKey key) const {
  return *shards_[(key.check >> 40) % shards_.size()];
}

bool PredictionCache::find(PositionKey key, int32_t count, float* priors, float* value) {
  return shard_of(key).find(truncated(key), count, half_precision_, priors, value);
}

void PredictionCache::insert(PositionKey key, int32_t count, const float* priors, float value) {
  shard_of(key).insert(truncated(key), count, half_precision_, priors, value);
}

void PredictionCache::clear() {
  for (const std::unique_ptr<Shard>& shard : shards_) shard->clear();
}

CacheCounters PredictionCache::counters() const {
  CacheCounters total;
  for (const std::unique_ptr<Shard>& shard : shards_) shard->add_to(total);
  return total;
}

}  // namespace windrow
