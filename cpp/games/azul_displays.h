// azul_displays.h: Azul's factory displays as numbers from 0 to 125, and whole deals as numbers of 63 bits.
//
// A display holds at most 4 tiles of 5 colours. There are C(9, 4) = 126 such heaps, numbered in the order of their
// counts (blue, yellow, red, black, white), so 0 is the empty display and 125 has four blue tiles. Displays are
// interchangeable: a deal lays them out in descending order, so that equal deals are equal bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace windrow::azul {

inline constexpr int32_t kNumColours = 5;
inline constexpr int32_t kTilesPerColour = 20;
inline constexpr int32_t kDisplayTiles = 4;
inline constexpr int32_t kMaxDisplays = 9;
inline constexpr int32_t kNumHeaps = 126;
// Where a move may put its tiles: the five pattern lines, and the floor line.
inline constexpr int32_t kNumDestinations = 6;
inline constexpr int32_t kFloor = 5;

// How many tiles of each colour.
using Tiles = std::array<int32_t, kNumColours>;

inline constexpr int32_t count_tiles(const Tiles& tiles) {
  return tiles[0] + tiles[1] + tiles[2] + tiles[3] + tiles[4];
}

// The heaps by number. Tables have 128 rows, of which the last two are empty: whatever 7 bits say, nothing is read
// from outside.
struct HeapTable {
  static constexpr int32_t kRows = 128;
  static constexpr int32_t kNumCodes = 5 * 5 * 5 * 5 * 5;
  // What one tile of each colour adds to a heap's code: its counts as the digits of a number to the base 5.
  static constexpr int32_t kCodeOfTile[kNumColours] = {625, 125, 25, 5, 1};

  uint8_t counts[kRows][8] = {};  // by colour; 8, so that a row is one word
  // The moves that take from the heap, before anybody asks where the tiles may go: bit colour * 6 + destination.
  uint32_t moves[kRows] = {};
  uint8_t sizes[kRows] = {};
  uint8_t number_of_code[kNumCodes] = {};  // meaningless where a code stands for more than 4 tiles

  constexpr HeapTable() {
    int32_t number = 0;
    for (int32_t code = 0; code < kNumCodes; ++code) {
      Tiles tiles{};
      for (size_t colour = 0; colour < kNumColours; ++colour) tiles[colour] = code / kCodeOfTile[colour] % 5;
      if (count_tiles(tiles) > kDisplayTiles) continue;
      for (size_t colour = 0; colour < kNumColours; ++colour) {
        counts[number][colour] = static_cast<uint8_t>(tiles[colour]);
        if (tiles[colour] > 0) moves[number] |= 0b111111u << (kNumDestinations * colour);
      }
      sizes[number] = static_cast<uint8_t>(count_tiles(tiles));
      number_of_code[code] = static_cast<uint8_t>(number++);
    }
  }
};
inline constexpr HeapTable kHeaps;
static_assert(kHeaps.counts[kNumHeaps - 1][0] == kDisplayTiles && kHeaps.sizes[kNumHeaps] == 0);

// A deal: the number of the heap on every display, in descending order; displays that are not in the game are empty.
// As an outcome of chance it is 9 x 7 bits, the first display lowest.
struct Deal {
  std::array<uint8_t, kMaxDisplays> heaps{};

  static Deal from_outcome(int64_t outcome) {
    Deal deal;
    for (uint8_t& heap : deal.heaps) {
      heap = static_cast<uint8_t>(outcome & 127);
      outcome >>= 7;
    }
    return deal;
  }

  int64_t to_outcome() const {
    int64_t outcome = 0;
    for (size_t i = heaps.size(); i-- > 0;) outcome = outcome << 7 | heaps[i];
    return outcome;
  }

  void sort() { std::sort(heaps.begin(), heaps.end(), std::greater<>()); }
  bool is_sorted() const { return std::is_sorted(heaps.begin(), heaps.end(), std::greater<>()); }

  Tiles tiles() const {
    Tiles total{};
    for (const uint8_t heap : heaps) {
      for (size_t colour = 0; colour < kNumColours; ++colour) total[colour] += kHeaps.counts[heap][colour];
    }
    return total;
  }
};

// SplitMix64 (Steele, Lea, Flood, 2014): every seed, also 0, 1, 2, ..., begins a sequence of its own.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}

  // One of 0 .. count - 1, all equally likely: a product that falls into the short remainder of 2^32 / count is drawn
  // again (Lemire, 2019).
  uint32_t below(uint32_t count) {
    uint64_t product = (next() >> 32) * count;
    if (static_cast<uint32_t>(product) < count) {
      const uint32_t remainder = -count % count;
      while (static_cast<uint32_t>(product) < remainder) product = (next() >> 32) * count;
    }
    return static_cast<uint32_t>(product >> 32);
  }

 private:
  uint64_t next() {
    uint64_t word = state_ += 0x9e3779b97f4a7c15u;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
  }

  uint64_t state_;
};

}  // namespace windrow::azul
