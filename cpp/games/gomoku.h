// gomoku.h: five in a row.
//
// Options: size (15), from 5 to 20; rule: "freestyle" (five or more in a row win) or "standard" (exactly five win, an
// overline of six or more does not). A full board without a winner is a draw.
// Actions: square = row * size + column, row 0 on top; names such as h8, the centre of 15x15.
// Observation (2, size, size):
//   plane 0: 1 where the player to move has a stone.
//   plane 1: 1 where the opponent has one.
// Symmetries: the eight of the square.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bits.h"
#include "builtin.h"
#include "hash.h"
#include "option_reader.h"
#include "square_board.h"
#include "two_player.h"

namespace windrow {

class GomokuRules {
 public:
  static constexpr const char* kName = "gomoku";
  static constexpr int32_t kNumPlayers = 2;
  static constexpr int32_t kMaxSize = 20;
  static constexpr int32_t kWords = (kMaxSize * kMaxSize + 63) / 64;

  struct State {
    uint64_t stones[2][kWords];  // by player; square s is bit s % 64 of word s / 64
    int32_t num_stones;          // of both; its lowest bit is the player to move (in a finished game: who would be)
    int16_t to_play;             // 0, 1 or kTerminal
    int16_t winner;              // 0, 1 or kNobody
  };
  static_assert(sizeof(State) == 120);

  explicit GomokuRules(const GameOptions& options) : GomokuRules(OptionReader(kName, options)) {}

  GameOptions options() const { return {{"size", int64_t{board_.size()}}, {"rule", std::string(kRules[rule_])}}; }
  int32_t num_actions() const { return board_.num_squares(); }
  int32_t num_symmetries() const { return SquareBoard::kNumSymmetries; }
  std::vector<ObservationPart> observation() const { return {{"board", {2, board_.size(), board_.size()}}}; }

  State initial_state() const { return {.stones = {}, .num_stones = 0, .to_play = 0, .winner = kNobody}; }

  int32_t to_play(const State& state) const { return state.to_play; }

  int32_t legal_actions(const State& state, int32_t* actions) const {
    if (state.to_play == kTerminal) return 0;
    int32_t count = 0;
    for (int32_t word = 0; word < num_words_; ++word) {
      const uint64_t empty = ~(state.stones[0][word] | state.stones[1][word]) & board_cells_[word];
      count += write_indices(empty, word * 64, actions + count);
    }
    return count;
  }

  void apply(State& state, int32_t square) const {
    const int32_t mover = state.num_stones & 1;
    uint64_t* stones = state.stones[mover];
    stones[square / 64] |= uint64_t{1} << (square % 64);
    ++state.num_stones;
    const bool is_won = makes_five(stones, square);
    const bool is_over = is_won || state.num_stones == board_.num_squares();
    state.winner = static_cast<int16_t>(is_won ? mover : kNobody);
    state.to_play = static_cast<int16_t>(is_over ? kTerminal : 1 - mover);
  }

  void returns(const State& state, float* values) const { write_returns(state.winner, values); }

  void observe(const State& state, float* row) const {
    const int32_t mover = state.num_stones & 1;
    for (const int32_t player : {mover, 1 - mover}) {
      for (int32_t first = 0; first < board_.num_squares(); first += 64) {
        const int32_t num_cells = std::min(64, board_.num_squares() - first);
        planes_.write_some(state.stones[player][first / 64], num_cells, row + first);
      }
      row += board_.num_squares();
    }
  }

  // Whose turn it is follows from the number of stones.
  void hash(const State& state, uint64_t* hash) const {
    Hasher hasher;
    for (const auto& stones : state.stones) {
      for (int32_t word = 0; word < num_words_; ++word) hasher.add(stones[word]);
    }
    hasher.finish(hash);
  }

  void symmetry(int32_t index, int32_t* actions, int32_t* observation) const {
    board_.write_symmetry(index, 1, actions);
    board_.write_symmetry(index, 2, observation);
  }

  std::string render(const State& state) const {
    std::string cells(static_cast<size_t>(board_.num_squares()), kEmptyMark);
    for (int32_t square = 0; square < board_.num_squares(); ++square) {
      for (const int32_t player : {0, 1}) {
        if (has_stone(state.stones[player], square)) cells[static_cast<size_t>(square)] = kPlayerMarks[player];
      }
    }
    return board_.draw(cells, status_line(state.to_play, state.winner));
  }

  std::string action_name(int32_t action) const { return board_.square_name(action); }
  size_t parse_action(std::string_view text, int32_t* action) const { return board_.parse_square(text, action); }

 private:
  static constexpr std::string_view kRules[] = {"freestyle", "standard"};
  static constexpr int32_t kStandard = 1;
  static constexpr int32_t kLine = 5;

  explicit GomokuRules(OptionReader reader)
      : board_(reader.integer("size", {.standard = 15, .min = kLine, .max = kMaxSize}),
               SquareBoard::RowNumbers::kFromBottom),
        rule_(reader.choice("rule", {kRules[0], kRules[1]})),
        num_words_((board_.num_squares() + 63) / 64) {
    reader.finish();
    for (int32_t square = 0; square < board_.num_squares(); ++square) {
      board_cells_[square / 64] |= uint64_t{1} << (square % 64);
    }
  }

  static bool has_stone(const uint64_t* stones, int32_t square) {
    return (stones[square / 64] >> (square % 64) & 1) != 0;
  }

  // Only lines through `square` can be new, so only those are looked at.
  bool makes_five(const uint64_t* stones, int32_t square) const {
    const int32_t row = square / board_.size();
    const int32_t column = square % board_.size();
    bool is_five = false;
    for (const auto& [down, right] : {Step{0, 1}, Step{1, 0}, Step{1, 1}, Step{1, -1}}) {
      const int32_t length =
          1 + run_length(stones, row, column, {down, right}) + run_length(stones, row, column, {-down, -right});
      is_five |= rule_ == kStandard ? length == kLine : length >= kLine;
    }
    return is_five;
  }

  struct Step {
    int32_t down;
    int32_t right;
  };

  // How many stones follow each other after (row, column). Counts at most five: more is an overline whatever lies
  // beyond.
  int32_t run_length(const uint64_t* stones, int32_t row, int32_t column, Step step) const {
    int32_t length = 0;
    while (length < kLine) {
      row += step.down;
      column += step.right;
      if (row < 0 || row >= board_.size() || column < 0 || column >= board_.size()) break;
      if (!has_stone(stones, row * board_.size() + column)) break;
      ++length;
    }
    return length;
  }

  SquareBoard board_;
  int32_t rule_;
  int32_t num_words_;
  uint64_t board_cells_[kWords] = {};  // which bits are squares: all but the tail of the last word
  PlaneWriter planes_ = PlaneWriter::in_order(64);
};

}  // namespace windrow
