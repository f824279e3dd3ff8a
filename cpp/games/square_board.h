// square_board.h: the geometry of a square board: names of squares, its eight symmetries, its picture.
//
// Square = row * size + column, row 0 on top. Columns are lettered from the left starting with a (in Go, where players
// leave out i, kWithoutI does so too); rows are numbered from 1, from the top or from the bottom as the game's players
// do:
//
//     kFromBottom        kFromTop
//     3 . . .              a b c
//     2 . . .            1 . . .
//     1 . . .            2 . . .
//       a b c            3 . . .
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace windrow {

class SquareBoard {
 public:
  enum class RowNumbers { kFromTop, kFromBottom };

  enum class Letters { kAll, kWithoutI };

  static constexpr int32_t kNumSymmetries = 8;

  // `size` is at most 25: one letter a column.
  SquareBoard(int32_t size, RowNumbers row_numbers, Letters letters = Letters::kAll)
      : size_(size), row_numbers_(row_numbers), letters_(letters) {}

  int32_t size() const { return size_; }
  int32_t num_squares() const { return size_ * size_; }

  std::string square_name(int32_t square) const;

  // Reads one square name, in either case, from the front of `text`; returns how many characters it took, 0 if there
  // is no name. All digits that follow the letter belong to the name, so "a16" is not "a1" followed by a 6.
  size_t parse_square(std::string_view text, int32_t* square) const;

  // Writes symmetry `index` of `num_planes` planes over the board: the image shows at i what was at permutation[i].
  // One plane is what a policy over squares needs. Bits of the index: 1 swaps left and right, 2 swaps top and bottom,
  // 4 then swaps rows and columns.
  void write_symmetry(int32_t index, int32_t num_planes, int32_t* permutation) const;

  // `cells` holds one mark a square; `status` becomes the last line.
  std::string draw(std::string_view cells, std::string_view status) const { return draw(cells, status, 0); }
  // The same of a board of hexagons: every row begins one character further to the right than the one above.
  std::string draw_slanted(std::string_view cells, std::string_view status) const { return draw(cells, status, 1); }

 private:
  std::string draw(std::string_view cells, std::string_view status, size_t slant) const;
  int32_t row_number(int32_t row) const { return row_numbers_ == RowNumbers::kFromTop ? row + 1 : size_ - row; }

  char letter(int32_t column) const {
    return static_cast<char>('a' + column + (letters_ == Letters::kWithoutI && column >= 'i' - 'a' ? 1 : 0));
  }

  int32_t size_;
  RowNumbers row_numbers_;
  Letters letters_;
};

// Whether a text begins with a word in small letters, such as "pass", in either case.
bool starts_with_word(std::string_view text, std::string_view word);

}  // namespace windrow
