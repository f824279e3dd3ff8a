#include "square_board.h"

#include <algorithm>

namespace windrow {

namespace {

// Not std::tolower: that depends on the process' locale.
char to_small(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

}  // namespace

std::string SquareBoard::square_name(int32_t square) const {
  return letter(square % size_) + std::to_string(row_number(square / size_));
}

size_t SquareBoard::parse_square(std::string_view text, int32_t* square) const {
  if (text.empty()) return 0;
  int32_t column = 0;
  while (column < size_ && letter(column) != to_small(text[0])) ++column;
  if (column == size_) return 0;

  size_t end = 1;
  int32_t number = 0;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') {
    if (number == 0 && text[end] == '0') return 0;  // a row is written without leading zeros, and none is called 0
    number = number * 10 + (text[end] - '0');
    if (number > size_) return 0;
    ++end;
  }
  if (number == 0) return 0;

  const int32_t row = row_numbers_ == RowNumbers::kFromTop ? number - 1 : size_ - number;
  *square = row * size_ + column;
  return end;
}

void SquareBoard::write_symmetry(int32_t index, int32_t num_planes, int32_t* permutation) const {
  for (int32_t plane = 0; plane < num_planes; ++plane) {
    const int32_t first = plane * num_squares();
    for (int32_t row = 0; row < size_; ++row) {
      for (int32_t column = 0; column < size_; ++column) {
        int32_t source_row = (index & 4) != 0 ? column : row;
        int32_t source_column = (index & 4) != 0 ? row : column;
        if ((index & 1) != 0) source_column = size_ - 1 - source_column;
        if ((index & 2) != 0) source_row = size_ - 1 - source_row;
        permutation[first + row * size_ + column] = first + source_row * size_ + source_column;
      }
    }
  }
}

std::string SquareBoard::draw(std::string_view cells, std::string_view status, size_t slant) const {
  const size_t margin = std::to_string(size_).size();
  std::string letters(margin, ' ');
  for (int32_t column = 0; column < size_; ++column) letters += {' ', letter(column)};
  letters += '\n';

  std::string text;
  if (row_numbers_ == RowNumbers::kFromTop) text += letters;
  for (int32_t row = 0; row < size_; ++row) {
    const std::string number = std::to_string(row_number(row));
    text.append(margin - number.size() + slant * static_cast<size_t>(row), ' ').append(number);
    for (int32_t column = 0; column < size_; ++column) {
      text += {' ', cells[static_cast<size_t>(row * size_ + column)]};
    }
    text += '\n';
  }
  if (row_numbers_ == RowNumbers::kFromBottom) text += letters;
  return text.append(status);
}

bool starts_with_word(std::string_view text, std::string_view word) {
  return text.size() >= word.size() && std::equal(word.begin(), word.end(), text.begin(),
                                                  [](char small, char letter) { return small == to_small(letter); });
}

}  // namespace windrow
