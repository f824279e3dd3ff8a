// dice.h: random choices that are the same on every machine (unlike std::uniform_int_distribution).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <span>

namespace windrow {

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}

  uint64_t bits() { return engine_(); }
  // In [0, count).
  int32_t below(int64_t count) { return static_cast<int32_t>(engine_() % static_cast<uint64_t>(count)); }
  bool one_in(int64_t count) { return below(count) == 0; }
  // In [0, 1).
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  template <class T>
  T one_of(std::initializer_list<T> items) {
    return items.begin()[below(static_cast<int64_t>(items.size()))];
  }
  template <class T>
  T one_of(std::span<const T> items) {
    return items[static_cast<size_t>(below(static_cast<int64_t>(items.size())))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace windrow
