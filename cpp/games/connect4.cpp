#include "connect4.h"

#include <algorithm>
#include <stdexcept>

#include "option_reader.h"

namespace windrow {

Connect4Rules::Sizes Connect4Rules::read_sizes(const GameOptions& options) {
  OptionReader reader(kName, options);
  Sizes sizes{};
  sizes.rows = reader.integer("rows", {.standard = 6, .min = kMinSide, .max = kMaxRows});
  sizes.columns = reader.integer("columns", {.standard = 7, .min = kMinSide, .max = kMaxColumns});
  const int32_t longest = std::max(sizes.rows, sizes.columns);
  sizes.connect = reader.integer("connect", {.standard = std::min(4, longest), .min = 2, .max = longest});
  reader.finish();

  const int32_t num_bits = (sizes.rows + 1) * sizes.columns;
  if (num_bits > 64) {
    throw std::invalid_argument("connect4: (rows + 1) * columns must be at most 64, not " + std::to_string(num_bits) +
                                "; with columns=" + std::to_string(sizes.columns) + " rows can be at most " +
                                std::to_string(64 / sizes.columns - 1));
  }
  return sizes;
}

Connect4Rules::Connect4Rules(const Sizes& sizes)
    : rows_(sizes.rows),
      columns_(sizes.columns),
      connect_(sizes.connect),
      num_cells_(sizes.rows * sizes.columns),
      planes_(top_row_first(sizes.rows, sizes.columns)) {
  const int32_t column_bits = rows_ + 1;
  for (int32_t column = 0; column < columns_; ++column) {
    bottom_cell_[column] = uint64_t{1} << (column * column_bits);
    top_cell_[column] = bottom_cell_[column] << (rows_ - 1);
    column_cells_[column] = bottom_cell_[column] * ((uint64_t{1} << rows_) - 1);
    full_ |= column_cells_[column];
  }

  // Up, right, right and down, right and up. A direction that is too short for a line is switched off: its runs start
  // as zero and its shifts stay zero, since a shift of 64 or more has no meaning.
  const int32_t stride[kNumDirections] = {1, column_bits, column_bits - 1, column_bits + 1};
  const bool is_tall = rows_ >= connect_;
  const bool is_wide = columns_ >= connect_;
  const bool fits[kNumDirections] = {is_tall, is_wide, is_tall && is_wide, is_tall && is_wide};
  for (int32_t d = 0; d < kNumDirections; ++d) fits_[d] = fits[d] ? ~uint64_t{0} : 0;
  for (int32_t length = 1; length < connect_; ++num_doublings_) {
    const int32_t step = std::min(length, connect_ - length);
    for (int32_t d = 0; d < kNumDirections; ++d) shift_[num_doublings_][d] = fits[d] ? stride[d] * step : 0;
    length += step;
  }
}

PlaneWriter Connect4Rules::top_row_first(int32_t rows, int32_t columns) {
  std::vector<int32_t> bit_of_cell;
  for (int32_t height = rows - 1; height >= 0; --height) {
    for (int32_t column = 0; column < columns; ++column) bit_of_cell.push_back(column * (rows + 1) + height);
  }
  return PlaneWriter(bit_of_cell);
}

GameOptions Connect4Rules::options() const {
  return {{"rows", int64_t{rows_}}, {"columns", int64_t{columns_}}, {"connect", int64_t{connect_}}};
}

void Connect4Rules::symmetry(int32_t index, int32_t* actions, int32_t* observation) const {
  const bool is_mirror = index == 1;
  for (int32_t column = 0; column < columns_; ++column) actions[column] = is_mirror ? columns_ - 1 - column : column;
  for (int32_t row = 0; row < 2 * rows_; ++row) {
    for (int32_t column = 0; column < columns_; ++column) {
      observation[row * columns_ + column] = row * columns_ + actions[column];
    }
  }
}

std::string Connect4Rules::render(const State& state) const {
  const bool is_x_next = count_bits(state.occupied) % 2 == 0;
  const uint64_t crosses = is_x_next ? state.mine : state.mine ^ state.occupied;
  const size_t width = std::to_string(columns_).size();
  std::string text;
  const auto add = [&](int32_t column, std::string_view word) {
    text.append(width - word.size() + (column > 0 ? 1 : 0), ' ').append(word);
    if (column == columns_ - 1) text += '\n';
  };
  for (int32_t height = rows_ - 1; height >= 0; --height) {
    for (int32_t column = 0; column < columns_; ++column) {
      const uint64_t cell = bottom_cell_[column] << height;
      const bool is_empty = (state.occupied & cell) == 0;
      const char mark = is_empty ? kEmptyMark : kPlayerMarks[(crosses & cell) != 0 ? 0 : 1];
      add(column, std::string_view(&mark, 1));
    }
  }
  for (int32_t column = 0; column < columns_; ++column) add(column, action_name(column));
  return text.append(status_line(state.to_play, state.winner));
}

size_t Connect4Rules::parse_action(std::string_view text, int32_t* action) const {
  const size_t longest_name = columns_ < 10 ? 1 : text.size();
  size_t end = 0;
  int32_t number = 0;
  while (end < text.size() && end < longest_name && text[end] >= '0' && text[end] <= '9') {
    number = number * 10 + (text[end] - '0');
    if (number < 1 || number > columns_) return 0;
    ++end;
  }
  if (end > 0) *action = number - 1;
  return end;
}

}  // namespace windrow
