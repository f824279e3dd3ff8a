// connect4_board.h: what can be said about a Connect-4 position without playing on.
//
// Cells are the bits of games/connect4.h: columns of `stride` = rows + 1 bits, the top one never set. Four in line win.
#pragma once

#include <bit>
#include <cstdint>

namespace windrow {

// With kStride > 0 the shifts are constants, and a solver does little else than shift; 0 leaves the stride open until
// the program runs.
template <int32_t kStride>
class Connect4Board {
 public:
  Connect4Board(int32_t rows, int32_t columns)
      : rows_(rows), columns_(columns), num_cells_(rows * columns), is_wide_(columns >= 4) {
    for (int32_t column = 0; column < columns; ++column) {
      bottom_ |= uint64_t{1} << (column * stride());
      full_ |= column_cells(column);
      for (int32_t row = 0; row < rows; row += 2) even_rows_ |= uint64_t{1} << (column * stride() + row);
    }
  }

  int32_t columns() const { return columns_; }
  int32_t num_cells() const { return num_cells_; }
  uint64_t full() const { return full_; }
  uint64_t even_rows() const { return even_rows_; }  // counted from 0 at the bottom
  uint64_t column_cells(int32_t column) const { return ((uint64_t{1} << rows_) - 1) << (column * stride()); }

  // The lowest empty cell of every column that has one.
  uint64_t playable(uint64_t occupied) const { return (occupied + bottom_) & full_; }

  // Cells of the board that complete a line of `stones`; some may be occupied.
  uint64_t line_ends(uint64_t stones) const {
    uint64_t found = (stones << 1) & (stones << 2) & (stones << 3);
    if (is_wide_) {
      found |= line_ends_along(stones, stride()) | line_ends_along(stones, stride() - 1) |
               line_ends_along(stones, stride() + 1);
    }
    return found & full_;
  }

  bool has_line(uint64_t stones) const {
    const uint64_t pairs = stones & (stones >> 1);
    uint64_t found = pairs & (pairs >> 2);
    if (is_wide_) {
      found |= lines_along(stones, stride()) | lines_along(stones, stride() - 1) | lines_along(stones, stride() + 1);
    }
    return found != 0;
  }

  // What an opponent gets at least who answers every move on the cell above it, against a player to move who cannot win
  // at once: -1 if that beats the player to move, 0 if it keeps them from winning, 1 if it shows nothing.
  //
  //   odd_columns: all cells of the columns that hold an odd number of stones.
  //   their_ends: the empty cells that complete a line of the opponent.
  //
  // Count the empty cells of a column from below: the player to move gets the first, the third, ..., the opponent the
  // second, the fourth, ... . The opponent can do so where the number of empty cells is even, or where one of their
  // cells completes a line: the column is not played beyond it. The other columns, which have one cell too many, can be
  // taken in pairs: when the player to move takes the lowest empty cell of one, the opponent takes that of the other,
  // and then both go on as above. (L. V. Allis, "A knowledge-based approach of Connect-Four", 1988, calls these rules
  // claimeven and baseinverse.)
  //
  // If the player to move has no line even with all cells they may get, they do not win. If the opponent has a
  // completing cell, or a line with all cells they are sure of, they win, because in the end every cell is filled.
  int32_t follow_up_bound(uint64_t mine, uint64_t occupied, uint64_t odd_columns, uint64_t their_ends) const {
    const uint64_t empty = full_ ^ occupied;
    const uint64_t first_third = empty & (even_rows_ ^ odd_columns);
    const uint64_t wins = their_ends & ~first_third;
    uint64_t unpaired = empty & (rows_ % 2 == 0 ? odd_columns : ~odd_columns);
    uint64_t closed = 0;  // completing cells and what is above them
    for (uint64_t rest = wins; rest != 0;) {
      const uint64_t lowest = rest & -rest;
      const uint64_t column = column_of(lowest);
      closed |= column & -lowest;
      unpaired &= ~column;
      rest &= ~column;
    }

    uint64_t my_cells = first_third & ~closed;
    uint64_t their_cells = empty ^ first_third;
    if (unpaired == 0) {
      if (has_line(mine | my_cells)) return 1;
    } else {
      const uint64_t lowest_cells = unpaired & (occupied + bottom_);
      const int32_t num_unpaired = std::popcount(lowest_cells);
      if (num_unpaired % 2 != 0) return 1;
      // Above the lowest cells the roles are changed.
      my_cells = (my_cells & ~unpaired) | (their_cells & unpaired);
      their_cells = (their_cells & ~unpaired) | (first_third & unpaired & ~lowest_cells);
      if (has_line(mine | my_cells | lowest_cells)) {
        // Of each pair they get one cell only. With one pair that is easily looked at more closely.
        if (num_unpaired > 2) return 1;
        const uint64_t one = lowest_cells & -lowest_cells;
        if (has_line(mine | my_cells | one) || has_line(mine | my_cells | (lowest_cells ^ one))) return 1;
      }
    }
    return wins != 0 || has_line((mine ^ occupied) | their_cells) ? -1 : 0;
  }

  // A number of (rows + 1) * columns bits that no other position of this board has.
  uint64_t key(uint64_t mine, uint64_t occupied) const { return mine + occupied + bottom_; }
  // The key of the mirror image: every column has its own bits of a key.
  uint64_t mirrored(uint64_t key) const {
    const uint64_t column = (uint64_t{1} << stride()) - 1;
    uint64_t image = 0;
    for (int32_t i = 0; i < columns_; ++i) {
      image = (image << stride()) | (key & column);
      key >>= stride();
    }
    return image;
  }

 private:
  int32_t stride() const {
    if constexpr (kStride > 0) return kStride;
    return rows_ + 1;
  }

  static uint64_t line_ends_along(uint64_t stones, int32_t step) {
    const uint64_t up = (stones << step) & (stones << 2 * step);
    const uint64_t down = (stones >> step) & (stones >> 2 * step);
    return (up & ((stones << 3 * step) | (stones >> step))) | (down & ((stones << step) | (stones >> 3 * step)));
  }
  static uint64_t lines_along(uint64_t stones, int32_t step) {
    const uint64_t pairs = stones & (stones >> step);
    return pairs & (pairs >> 2 * step);
  }
  uint64_t column_of(uint64_t cell) const { return column_cells(std::countr_zero(cell) / stride()); }

  const int32_t rows_;
  const int32_t columns_;
  const int32_t num_cells_;
  const bool is_wide_;  // narrower boards have upright lines only; their other shifts could reach 64
  uint64_t bottom_ = 0;
  uint64_t full_ = 0;
  uint64_t even_rows_ = 0;
};

}  // namespace windrow
