// wide_bits.h: sets of up to 64 * kWords cells of a square board, and their neighbours.
//
// Cell = row * size + column is bit cell % 64 of word cell / 64, without gaps between the rows.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "bits.h"

namespace windrow {

template <int32_t kWords>
struct WideBits {
  uint64_t words[kWords];

  static WideBits of(int32_t cell) {
    WideBits bits = {};
    bits.set(cell);
    return bits;
  }

  bool has(int32_t cell) const { return (words[cell / 64] >> (cell % 64) & 1) != 0; }
  void set(int32_t cell) { words[cell / 64] |= uint64_t{1} << (cell % 64); }

  bool any() const {
    uint64_t all = 0;
    for (const uint64_t word : words) all |= word;
    return all != 0;
  }
  // Whether there are at least two.
  bool several() const {
    uint64_t seen = 0, more = 0;
    for (const uint64_t word : words) {
      more |= word & (word - 1);     // a second one in this word
      more |= seen != 0 ? word : 0;  // one in this word, and one before
      seen |= word;
    }
    return more != 0;
  }
  int32_t count() const {
    int32_t count = 0;
    for (const uint64_t word : words) count += count_bits(word);
    return count;
  }
  // The lowest of them; there must be one.
  int32_t first() const {
    int32_t index = 0;
    while (index < kWords - 1 && words[index] == 0) ++index;
    return index * 64 + std::countr_zero(words[index]);
  }
  void drop_first() {
    int32_t index = 0;
    while (index < kWords - 1 && words[index] == 0) ++index;
    words[index] &= words[index] - 1;
  }
  // Writes their cells, ascending; returns how many.
  int32_t write_cells(int32_t* cells) const {
    int32_t count = 0;
    for (int32_t index = 0; index < kWords; ++index) {
      count += write_indices(words[index], index * 64, cells + count);
    }
    return count;
  }

  friend WideBits operator&(const WideBits& a, const WideBits& b) {
    WideBits result;
    for (int32_t i = 0; i < kWords; ++i) result.words[i] = a.words[i] & b.words[i];
    return result;
  }
  friend WideBits operator|(const WideBits& a, const WideBits& b) {
    WideBits result;
    for (int32_t i = 0; i < kWords; ++i) result.words[i] = a.words[i] | b.words[i];
    return result;
  }
  // Those of `a` that are not in `b`.
  friend WideBits operator-(const WideBits& a, const WideBits& b) {
    WideBits result;
    for (int32_t i = 0; i < kWords; ++i) result.words[i] = a.words[i] & ~b.words[i];
    return result;
  }
  WideBits& operator|=(const WideBits& other) { return *this = *this | other; }
  WideBits& operator-=(const WideBits& other) { return *this = *this - other; }
  bool operator==(const WideBits& other) const {
    uint64_t difference = 0;
    for (int32_t i = 0; i < kWords; ++i) difference |= words[i] ^ other.words[i];
    return difference == 0;
  }

  // Moved to higher or lower cells; `distance` is from 1 to 63.
  WideBits up(int32_t distance) const {
    WideBits result;
    result.words[0] = words[0] << distance;
    for (int32_t i = 1; i < kWords; ++i) {
      result.words[i] = words[i] << distance | words[i - 1] >> (64 - distance);
    }
    return result;
  }
  WideBits down(int32_t distance) const {
    WideBits result;
    for (int32_t i = 0; i + 1 < kWords; ++i) {
      result.words[i] = words[i] >> distance | words[i + 1] << (64 - distance);
    }
    result.words[kWords - 1] = words[kWords - 1] >> distance;
    return result;
  }
};

// A square board of such cells.
template <int32_t kWords>
class WideBoard {
 public:
  using Bits = WideBits<kWords>;

  explicit WideBoard(int32_t size) : size_(size), num_cells_(size * size) {
    for (int32_t cell = 0; cell < num_cells_; ++cell) {
      cells_.set(cell);
      if (cell % size != 0) not_left_.set(cell);
      if (cell % size != size - 1) not_right_.set(cell);
      if (cell < size) top_.set(cell);
      if (cell >= num_cells_ - size) bottom_.set(cell);
    }
  }

  int32_t size() const { return size_; }
  int32_t num_cells() const { return num_cells_; }
  const Bits& cells() const { return cells_; }
  const Bits& top() const { return top_; }
  const Bits& bottom() const { return bottom_; }
  Bits left() const { return cells_ - not_left_; }
  Bits right() const { return cells_ - not_right_; }

  // The cells above, below, left and right of `bits`; some of `bits` may be among them.
  Bits neighbours(const Bits& bits) const {
    return ((bits.up(1) & not_left_) | (bits.down(1) & not_right_) | bits.up(size_) | bits.down(size_)) & cells_;
  }
  // The six of a board of hexagons, whose rows each begin half a cell further to the right than the one above: those
  // four, the one above to the right, and the one below to the left.
  Bits hex_neighbours(const Bits& bits) const {
    const Bits from_left = bits & not_left_, from_right = bits & not_right_;
    return (from_right.up(1) | from_left.down(1) | bits.up(size_) | bits.down(size_) | from_left.up(size_ - 1) |
            from_right.down(size_ - 1)) &
           cells_;
  }

  // 1 where there is one of `bits`, in [num_cells] floats.
  void write_plane(const Bits& bits, float* plane) const {
    int32_t cell = 0;
    for (; cell + 8 <= num_cells_; cell += 8) {
      const uint64_t byte = bits.words[cell / 64] >> (cell % 64) & 255;
      std::memcpy(plane + cell, kFloatsOfByte[byte].data(), 8 * sizeof(float));
    }
    for (; cell < num_cells_; ++cell) plane[cell] = bits.has(cell) ? 1.0f : 0.0f;
  }
  void fill_plane(float value, float* plane) const { std::fill_n(plane, num_cells_, value); }

 private:
  // Eight cells at once: a search writes many planes for every leaf, and this is several times faster than bit by bit.
  static constexpr std::array<std::array<float, 8>, 256> kFloatsOfByte = [] {
    std::array<std::array<float, 8>, 256> table = {};
    for (uint32_t byte = 0; byte < 256; ++byte) {
      for (uint32_t bit = 0; bit < 8; ++bit) table[byte][bit] = (byte >> bit & 1) != 0 ? 1.0f : 0.0f;
    }
    return table;
  }();

  int32_t size_, num_cells_;
  Bits cells_ = {}, not_left_ = {}, not_right_ = {}, top_ = {}, bottom_ = {};
};

}  // namespace windrow
