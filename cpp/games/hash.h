// hash.h: 128 bits that tell positions apart.
//
// Two 64-bit lanes absorb the same words; each absorbs under its own odd multiplier and the second also takes in the
// first, so a collision has to happen in both at once. Depends on the words alone: equal on every machine and in
// every process.
#pragma once

#include <bit>
#include <cstdint>

namespace windrow {

class Hasher {
 public:
  void add(uint64_t word) {
    low_ = mix(std::rotl(low_, 27) + word * 0x9fb21c651e98df25u);
    high_ = mix(std::rotl(high_, 31) ^ (word * 0xd6e8feb86659fd93u + low_));
  }

  void finish(uint64_t* hash) const {
    hash[0] = mix(low_ + std::rotl(high_, 17));
    hash[1] = mix(high_ ^ std::rotl(low_, 41));
  }

 private:
  // A bijection of 64 bits in which every input bit reaches every output bit: two rounds of multiplying (bits move
  // up) and shifting (bits move down).
  static uint64_t mix(uint64_t word) {
    word = (word ^ (word >> 32)) * 0xbea225f9eb34556du;
    word = (word ^ (word >> 29)) * 0xe9846af9b1a615d1u;
    return word ^ (word >> 32);
  }

  // Digits of pi and e: no structure, nothing hidden.
  uint64_t low_ = 0x243f6a8885a308d3u;
  uint64_t high_ = 0xb7e151628aed2a6bu;
};

}  // namespace windrow
