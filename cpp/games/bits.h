// bits.h: sets of cells as bits of a word, and how they become numbers.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace windrow {

// How many bits are set. Plain arithmetic on purpose: without a flag for newer processors std::popcount is a call.
inline int32_t count_bits(uint64_t bits) {
  bits -= (bits >> 1) & 0x5555555555555555u;
  bits = (bits & 0x3333333333333333u) + ((bits >> 2) & 0x3333333333333333u);
  bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return static_cast<int32_t>((bits * 0x0101010101010101u) >> 56);
}

// Writes `first` + the index of every set bit, ascending; returns how many.
inline int32_t write_indices(uint64_t bits, int32_t first, int32_t* indices) {
  int32_t count = 0;
  for (; bits != 0; bits &= bits - 1) indices[count++] = first + std::countr_zero(bits);
  return count;
}

// Shows words of up to 64 cells as planes of zeros and ones.
//
// Each half of the word is tested against a table, rather than shifted bit by bit: tests of 32-bit lanes are what
// the oldest x86-64 can do four at a time, shifts by different amounts are not. A search writes one row per leaf, so
// this must be compiled with -O3: it is four times slower where the compiler does not turn the loop into vectors.
class PlaneWriter {
 public:
  // Cell i of the plane shows bit bit_of_cell[i] of the word; at most 64 cells.
  explicit PlaneWriter(std::span<const int32_t> bit_of_cell) {
    for (const int32_t bit : bit_of_cell) {
      const uint64_t mask = uint64_t{1} << bit;
      low_[num_cells_] = static_cast<uint32_t>(mask);
      high_[num_cells_] = static_cast<uint32_t>(mask >> 32);
      ++num_cells_;
    }
  }

  // Cell i shows bit i.
  static PlaneWriter in_order(int32_t num_cells) {
    int32_t bits[64];
    for (int32_t cell = 0; cell < num_cells; ++cell) bits[cell] = cell;
    return PlaneWriter(std::span<const int32_t>(bits, static_cast<size_t>(num_cells)));
  }

  void write(uint64_t word, float* plane) const { write_some(word, num_cells_, plane); }

  // The first `num_cells` cells only.
  void write_some(uint64_t word, int32_t num_cells, float* plane) const {
    const uint32_t low = static_cast<uint32_t>(word);
    const uint32_t high = static_cast<uint32_t>(word >> 32);
    for (int32_t cell = 0; cell < num_cells; ++cell) {
      plane[cell] = ((low & low_[cell]) | (high & high_[cell])) != 0 ? 1.0f : 0.0f;
    }
  }

 private:
  int32_t num_cells_ = 0;
  uint32_t low_[64] = {};
  uint32_t high_[64] = {};
};

}  // namespace windrow
