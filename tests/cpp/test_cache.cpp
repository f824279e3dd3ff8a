// test_cache.cpp: the prediction cache alone. What comes out is what went in, in no more bytes than were allowed.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "arena.h"
#include "check.h"
#include "dice.h"
#include "prediction_cache.h"

using namespace windrow;

namespace {

constexpr size_t kOneShard = size_t{1} << 14;  // the smallest cache
constexpr int32_t kHeaderBytes = 32;

struct Prediction {
  std::vector<float> priors;
  float value = 0.0f;
};

uint64_t scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

PositionKey key_of(uint64_t number, uint64_t version = 0) {
  const uint64_t hash[2] = {scramble(number), scramble(number + 0x9e3779b97f4a7c15u)};
  return make_key(hash, version);
}

// What is known about a position follows from its number: nothing has to be written down to check an answer.
int32_t count_of(uint64_t number, int32_t max_count) {
  return static_cast<int32_t>(scramble(number ^ 77) % static_cast<uint64_t>(max_count + 1));
}

Prediction empty_prediction(int32_t count, float filling) {
  Prediction made{{}, filling};
  made.priors.reserve(static_cast<size_t>(count) + 1);  // even no priors at all have an address
  made.priors.assign(static_cast<size_t>(count), filling);
  return made;
}

Prediction prediction_of(uint64_t number, int32_t count) {
  Prediction made = empty_prediction(count, 0.0f);
  for (size_t i = 0; i < made.priors.size(); ++i) {
    made.priors[i] = static_cast<float>(scramble(number * 1009 + i) >> 40) * 0x1p-24f;
  }
  made.value = static_cast<float>(static_cast<int32_t>(scramble(number ^ 5) >> 40)) * 0x1p-23f - 1.0f;
  return made;
}

void insert(PredictionCache& cache, uint64_t number, int32_t count, uint64_t version = 0) {
  const Prediction made = prediction_of(number, count);
  cache.insert(key_of(number, version), count, made.priors.data(), made.value);
}

// Whether it is found; if so it must be right to the last bit, and if not, nothing may have been written.
bool find(PredictionCache& cache, uint64_t number, int32_t count, uint64_t version = 0) {
  constexpr float kUntouched = -7.0f;
  Prediction found = empty_prediction(count, kUntouched);
  const Prediction want = prediction_of(number, count);
  if (!cache.find(key_of(number, version), count, found.priors.data(), &found.value)) {
    check(std::count(found.priors.begin(), found.priors.end(), kUntouched) == count && found.value == kUntouched,
          "a miss has written something");
    return false;
  }
  check(std::memcmp(&found.value, &want.value, sizeof(float)) == 0, "another value comes out than went in");
  check(count == 0 || std::memcmp(found.priors.data(), want.priors.data(), found.priors.size() * sizeof(float)) == 0,
        "other priors come out than went in");
  return true;
}

// --- The geometry of a cache of one shard, as prediction_cache.cpp has it ----------------------------------------

size_t shard_bytes(size_t max_bytes) { return Reservation(1, max_bytes).slice_bytes(); }
size_t num_buckets(size_t max_bytes) { return shard_bytes(max_bytes) / 64; }
size_t ring_words(size_t max_bytes) { return shard_bytes(max_bytes) / 8 - (num_buckets(max_bytes) + 1) / 2; }
size_t words_of(int32_t count, size_t prior_bytes = sizeof(float)) {
  return (kHeaderBytes + static_cast<size_t>(count) * prior_bytes + 7) / 8;
}

// --- Tests -------------------------------------------------------------------------------------------------------

void test_limits_of_construction() {
  scene() = "construction";
  check_throws<std::invalid_argument>([] { PredictionCache(kOneShard - 1, false); }, "a cache of too few bytes");
  check_throws<std::invalid_argument>([] { PredictionCache(0, false); }, "a cache of no bytes");
  for (const size_t max_bytes : {kOneShard, kOneShard + 1, kOneShard + 63, size_t{1} << 18, (size_t{1} << 18) * 3 + 5,
                                 (size_t{1} << 24) + 999}) {
    const PredictionCache cache(max_bytes, false);
    check(cache.max_bytes() == max_bytes, "max_bytes is not what was asked for");
    check(cache.counters().bytes <= max_bytes && cache.counters().entries == 0, "an empty cache is not empty");
  }
}

// Entries of one size: the ring holds as many as fit, the last ones, and its end leaves any remainder.
void test_ring_of_equal_sizes() {
  std::set<size_t> remainders;
  for (size_t extra = 0; extra < 12; ++extra) {
    const size_t max_bytes = kOneShard + 64 * extra + extra % 3;
    for (int32_t count = 0; count <= 90; ++count) {
      scene() = std::to_string(max_bytes) + " bytes, " + std::to_string(count) + " priors";
      PredictionCache cache(max_bytes, false);
      const size_t words = words_of(count), capacity = ring_words(max_bytes) / words;
      remainders.insert(ring_words(max_bytes) % words);
      const uint64_t num_inserted = 3 * capacity + capacity / 2;
      for (uint64_t i = 0; i < num_inserted; ++i) {
        insert(cache, i, count);
        check(cache.counters().bytes <= max_bytes, "more bytes than allowed");
      }
      const CacheCounters counters = cache.counters();
      check(static_cast<size_t>(counters.entries) == capacity, "the ring does not hold what would fit");
      check(counters.insertions == static_cast<int64_t>(num_inserted), "insertions are not counted");
      check(counters.evictions == counters.insertions - counters.entries, "evictions are not counted");
      for (uint64_t i = 0; i < num_inserted; ++i) {
        check(find(cache, i, count) == (i >= num_inserted - capacity), "it is not the oldest that went");
      }
    }
  }
  for (size_t words = 0; words <= 4; ++words) check(remainders.contains(words), "a remainder was never left");
}

// Sizes mixed at random, nothing asked for in between: what is there is a run of the latest, with no gap, and takes
// all bytes but those of the unused end of the ring.
void test_ring_of_mixed_sizes() {
  Dice dice(1);
  for (int32_t run = 0; run < 60; ++run) {
    const size_t max_bytes = kOneShard + 64 * static_cast<size_t>(dice.below(200));
    const int32_t max_count = dice.one_of({3, 9, 40, 225, 900});
    scene() = std::to_string(max_bytes) + " bytes, up to " + std::to_string(max_count) + " priors, run " +
              std::to_string(run);
    PredictionCache cache(max_bytes, false);
    const uint64_t num_inserted = 200 + static_cast<uint64_t>(dice.below(3000));
    for (uint64_t i = 0; i < num_inserted; ++i) {
      insert(cache, i, count_of(i, max_count));
      check(cache.counters().bytes <= max_bytes, "more bytes than allowed");
    }
    size_t bytes = num_buckets(max_bytes) * sizeof(uint32_t);
    int64_t num_found = 0;
    for (uint64_t i = 0; i < num_inserted; ++i) {
      const bool is_there = find(cache, i, count_of(i, max_count));
      check(is_there || num_found == 0, "something went before what was older");
      if (!is_there) continue;
      ++num_found;
      bytes += 8 * words_of(count_of(i, max_count));
    }
    const CacheCounters counters = cache.counters();
    const size_t largest = 8 * words_of(max_count);
    check(counters.entries == num_found, "entries are not counted");
    check(counters.bytes >= bytes && counters.bytes < bytes + largest, "bytes are not the entries and the table");
    const bool is_full = counters.evictions > 0;
    check(!is_full || bytes + 2 * largest + 64 > max_bytes, "entries went while there was room");
  }
}

// Everything at once: sizes, questions, repeated inserts, truncated places, several shards, clearing.
void test_random_use() {
  Dice dice(2);
  for (int32_t run = 0; run < 50; ++run) {
    const size_t max_bytes = dice.one_of({kOneShard, kOneShard + 192, size_t{1} << 17, (size_t{1} << 19) + 777});
    const int32_t max_count = dice.one_of({1, 7, 33, 225, 700}), place_bits = dice.one_of({0, 1, 3, 8, 16, 64});
    const int64_t num_positions = dice.one_of({20, 300, 5000});
    scene() = std::to_string(max_bytes) + " bytes, up to " + std::to_string(max_count) + " priors, " +
              std::to_string(place_bits) + " bits, " + std::to_string(num_positions) + " positions";
    PredictionCache cache(max_bytes, false, place_bits);
    int64_t num_hits = 0, num_misses = 0;
    for (int32_t step = 0; step < 6000; ++step) {
      const uint64_t number = static_cast<uint64_t>(dice.below(num_positions));
      const int32_t count = count_of(number, max_count);
      if (dice.one_in(2)) {
        insert(cache, number, count);
        const bool is_there = find(cache, number, count);
        check(is_there, "what was just inserted is not there");
        ++num_hits;
      } else {
        ++(find(cache, number, count) ? num_hits : num_misses);
      }
      if (dice.one_in(2000)) cache.clear();
      if (step % 100 == 0) check(cache.counters().bytes <= max_bytes, "more bytes than allowed");
    }
    const CacheCounters counters = cache.counters();
    check(counters.hits == num_hits && counters.misses == num_misses, "questions are not counted");
    check(counters.entries >= 0 && counters.entries <= num_positions, "entries are not counted");
    if (place_bits <= 3) check(counters.mistaken > 0, "no position was ever mistaken for another");
  }
}

void test_refusals() {
  scene() = "refusals";
  PredictionCache cache(kOneShard, false);
  const int32_t largest = static_cast<int32_t>((ring_words(kOneShard) / 2 * 8 - kHeaderBytes) / sizeof(float));
  insert(cache, 1, largest);
  check(find(cache, 1, largest), "an entry of half the ring is refused");
  insert(cache, 2, largest + 2);
  check(!find(cache, 2, largest + 2) && cache.counters().insertions == 1, "an entry of more than half is taken");
  check(find(cache, 1, largest), "a refused entry has pushed another out");
  for (uint64_t i = 10; i < 40; ++i) {  // two of these fit only just, or only one, as the ring goes round
    insert(cache, i, largest - static_cast<int32_t>(i % 3));
    check(find(cache, i, largest - static_cast<int32_t>(i % 3)), "a large entry is not there");
    check(cache.counters().bytes <= kOneShard, "more bytes than allowed");
  }
  PredictionCache half(kOneShard, true);
  insert(half, 3, largest + 2);
  check(half.counters().insertions == 1, "in half precision it takes half the room");
}

// A position that has another number of legal actions is another position.
void test_other_count_is_a_miss() {
  scene() = "other counts";
  PredictionCache cache(kOneShard, false);
  insert(cache, 1, 7);
  for (const int32_t count : {0, 6, 8, 7 + 65536}) check(!find(cache, 1, count), "found with another count");
  check(cache.counters().misses == 4 && cache.counters().hits == 0, "not counted as misses");
  check(find(cache, 1, 7), "questions with another count have changed the entry");
}

void test_first_answer_stays() {
  scene() = "inserted twice";
  PredictionCache cache(kOneShard, false);
  insert(cache, 1, 4);
  const float other[] = {0.0f, 0.0f, 0.0f, 1.0f};
  cache.insert(key_of(1), 4, other, 0.5f);
  check(find(cache, 1, 4), "it is gone");
  check(cache.counters().insertions == 1 && cache.counters().entries == 1, "it is there twice");
}

// Whatever the number of bits that say where to look: another version never answers.
void test_versions() {
  for (const int32_t place_bits : {64, 32, 8, 4, 1, 0}) {
    scene() = "versions, " + std::to_string(place_bits) + " bits";
    PredictionCache cache(kOneShard, false, place_bits);
    for (uint64_t i = 0; i < 20; ++i) insert(cache, i, 7, 1);
    for (uint64_t i = 0; i < 20; ++i) {
      check(find(cache, i, 7, 1), "not there under its own version");
      for (const uint64_t version : {0, 2, 3, 1 << 20}) {
        check(!find(cache, i, 7, version), "there under another version");
      }
    }
  }
}

// Places that are cut to a few bits collide all the time; the rest of the hash tells positions apart.
void test_truncated_places() {
  for (int32_t place_bits = 0; place_bits <= 8; ++place_bits) {
    scene() = std::to_string(place_bits) + " bits";
    PredictionCache cache(size_t{1} << 16, false, place_bits);
    for (uint64_t i = 0; i < 500; ++i) insert(cache, i, 5);
    const int64_t while_inserting = cache.counters().mistaken;
    check(while_inserting > 0, "inserts met no other position");
    for (uint64_t i = 0; i < 500; ++i) check(find(cache, i, 5), "it is lost among others");
    for (uint64_t i = 500; i < 1000; ++i) check(!find(cache, i, 5), "another position's entry is given");
    check(cache.counters().mistaken > while_inserting, "mistaken positions are not counted");
  }
}

void test_clear() {
  scene() = "clear";
  PredictionCache cache((size_t{1} << 18) * 4, false);
  const size_t empty = cache.counters().bytes;
  for (int32_t round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 60'000; ++i) insert(cache, i, 7);
    check(cache.counters().evictions > 0, "the ring has not gone round");
    cache.clear();
    check(cache.counters().entries == 0 && cache.counters().bytes == empty, "a cleared cache is not empty");
    for (uint64_t i = 59'000; i < 60'000; ++i) check(!find(cache, i, 7), "it is there after clear");
  }
  insert(cache, 1, 7);
  check(find(cache, 1, 7), "after clear nothing is remembered");
}

// A hot set that is asked for now and then outlives a stream of others many times the size of the cache. The control,
// in which nobody asks, is what first-in first-out would do: there it is gone after one turn of the ring.
void test_second_chances() {
  constexpr uint64_t kHot = 60, kFirstCold = 1000;
  constexpr int32_t kCount = 7;
  const size_t capacity = ring_words(kOneShard) / words_of(kCount);
  for (const bool is_asked_for : {true, false}) {
    scene() = is_asked_for ? "a hot set" : "a set nobody asks for";
    PredictionCache cache(kOneShard, false);
    for (uint64_t i = 0; i < kHot; ++i) insert(cache, i, kCount);
    for (uint64_t i = 0; i < 20 * capacity; ++i) {
      if (is_asked_for && i % (capacity / 4) == 0) {
        for (uint64_t hot = 0; hot < kHot; ++hot) find(cache, hot, kCount);
      }
      insert(cache, kFirstCold + i, kCount);
    }
    uint64_t num_left = 0;
    for (uint64_t hot = 0; hot < kHot; ++hot) num_left += find(cache, hot, kCount);
    const CacheCounters counters = cache.counters();
    if (is_asked_for) {
      check(num_left == kHot, "of a hot set only " + std::to_string(num_left) + " are left");
      check(counters.second_chances > 0, "second chances are not counted");
    } else {
      check(num_left == 0 && counters.second_chances == 0, "what nobody asked for stayed");
    }
  }
}

// The same with entries of many sizes, asked for at every step, so that some come round when the head is at the end of
// the ring and there is no room for them before it: of those that were asked for none may go.
void test_second_chances_at_the_end_of_the_ring() {
  constexpr uint64_t kFirstCold = 100'000;
  constexpr int32_t kMaxCount = 60;
  Dice dice(4);
  for (int32_t run = 0; run < 20; ++run) {
    const uint64_t first_hot = dice.bits() >> 8, num_hot = 3 + static_cast<uint64_t>(dice.below(20));
    scene() = std::to_string(num_hot) + " hot entries from " + std::to_string(first_hot);
    PredictionCache cache(kOneShard + 64 * static_cast<size_t>(dice.below(50)), false);
    for (uint64_t i = first_hot; i < first_hot + num_hot; ++i) insert(cache, i, count_of(i, kMaxCount));
    for (uint64_t i = kFirstCold; i < kFirstCold + 2000; ++i) {
      uint64_t num_left = 0;
      for (uint64_t hot = first_hot; hot < first_hot + num_hot; ++hot) {
        num_left += find(cache, hot, count_of(hot, kMaxCount));
      }
      check(num_left == num_hot, "one that was asked for is gone after " + std::to_string(i - kFirstCold) + " others");
      insert(cache, i, count_of(i, kMaxCount));
    }
  }
}

// If all entries were asked for, one still has to go.
void test_everything_is_hot() {
  scene() = "everything is hot";
  PredictionCache cache(kOneShard, false);
  for (uint64_t i = 0; i < 3000; ++i) {
    insert(cache, i, count_of(i, 40));
    for (uint64_t back = 0; back <= std::min<uint64_t>(i, 400); ++back) find(cache, i - back, count_of(i - back, 40));
    check(find(cache, i, count_of(i, 40)), "what was just inserted is not there");
    check(cache.counters().bytes <= kOneShard, "more bytes than allowed");
  }
}

// --- Half precision ----------------------------------------------------------------------------------------------

// By the definition of the format, for numbers in [0, 1].
double half_to_double(uint32_t half) {
  const uint32_t exponent = half >> 10, fraction = half & 0x3FF;
  if (exponent == 0) return std::ldexp(fraction, -24);
  return std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
}

float through_half(PredictionCache& cache, float prior) {
  static uint64_t number = 0;
  ++number;
  float found = -1.0f, value = 0.0f;
  cache.insert(key_of(number), 1, &prior, 0.0f);
  check(cache.find(key_of(number), 1, &found, &value), "it is not there");
  return found;
}

void test_half_precision() {
  PredictionCache cache(kOneShard, true);
  constexpr uint32_t kOne = 0x3C00;
  for (uint32_t half = 0; half <= kOne; ++half) {
    scene() = "half " + std::to_string(half);
    const double exact = half_to_double(half);
    check(static_cast<double>(through_half(cache, static_cast<float>(exact))) == exact, "not exact");
    if (half == kOne) break;
    // Between two neighbours the nearer one is right, in the middle the even one.
    const double next = half_to_double(half + 1);
    const float middle = static_cast<float>((exact + next) / 2);  // has one more bit than a half: exact too
    const double even = half % 2 == 0 ? exact : next;
    check(static_cast<double>(through_half(cache, middle)) == even, "a tie does not go to the even one");
    check(static_cast<double>(through_half(cache, std::nextafter(middle, 0.0f))) == exact, "not rounded down");
    check(static_cast<double>(through_half(cache, std::nextafter(middle, 2.0f))) == next, "not rounded up");
  }
  Dice dice(3);
  for (int32_t i = 0; i < 20'000; ++i) {
    // All magnitudes, tiny ones and those that only float has among them.
    const float x = std::bit_cast<float>(static_cast<uint32_t>(dice.below((127 << 23) + 1)));
    scene() = "number " + std::to_string(x);
    const float rounded = through_half(cache, x);
    check(std::fabs(rounded - x) <= std::max(x * 0x1p-11f, 0x1p-25f), "too far from what went in");
  }
}

// Values keep all their bits, and rows of any length stay rows.
void test_half_precision_rows() {
  scene() = "rows in half precision";
  PredictionCache cache(kOneShard, true);
  for (uint64_t number = 0; number < 3000; ++number) {
    const int32_t count = count_of(number, 90);
    Prediction made = prediction_of(number, count), found = prediction_of(0, count);
    for (float& prior : made.priors) prior = std::floor(prior * 1024.0f) / 1024.0f;  // exact in 11 bits
    cache.insert(key_of(number), count, made.priors.data(), made.value);
    check(cache.find(key_of(number), count, found.priors.data(), &found.value), "it is not there");
    check(found.value == made.value && found.priors == made.priors, "something else comes out than went in");
    check(cache.counters().bytes <= kOneShard, "more bytes than allowed");
  }
}

}  // namespace

int main() {
  test_limits_of_construction();
  test_ring_of_equal_sizes();
  test_ring_of_mixed_sizes();
  test_random_use();
  test_refusals();
  test_other_count_is_a_miss();
  test_first_answer_stays();
  test_truncated_places();
  test_clear();
  test_second_chances();
  test_everything_is_hot();
  test_half_precision();
  test_half_precision_rows();
  test_second_chances_at_the_end_of_the_ring();
  test_versions();
}
