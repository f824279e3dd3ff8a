// tictactoe.h: three in a row on 3x3.
//
// Actions: square = row * 3 + column, row 0 on top; names a1 (bottom left) to c3 (top right).
// Observation (2, 3, 3):
//   plane 0: 1 where the player to move has a mark.
//   plane 1: 1 where the opponent has one.
// Symmetries: the eight of the square.
#pragma once

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

class TicTacToeRules {
 public:
  static constexpr const char* kName = "tictactoe";
  static constexpr int32_t kNumPlayers = 2;

  struct State {
    uint32_t mine;      // bit = square: marks of the player to move (in a finished game: who would be)
    uint32_t occupied;  // marks of both
    int32_t to_play;    // 0, 1 or kTerminal
    int32_t winner;     // 0, 1 or kNobody
  };
  static_assert(sizeof(State) == 16);

  explicit TicTacToeRules(const GameOptions& options) { OptionReader(kName, options).finish(); }

  GameOptions options() const { return {}; }
  int32_t num_actions() const { return 9; }
  int32_t num_symmetries() const { return SquareBoard::kNumSymmetries; }
  std::vector<ObservationPart> observation() const { return {{"board", {2, 3, 3}}}; }

  State initial_state() const { return {.mine = 0, .occupied = 0, .to_play = 0, .winner = kNobody}; }

  int32_t to_play(const State& state) const { return state.to_play; }

  int32_t legal_actions(const State& state, int32_t* actions) const {
    return state.to_play == kTerminal ? 0 : write_indices(~state.occupied & kFull, 0, actions);
  }

  void apply(State& state, int32_t action) const {
    const uint32_t mover = state.mine | (1u << action);
    bool is_won = false;
    for (const uint32_t line : kLines) is_won |= (mover & line) == line;

    state.occupied |= 1u << action;
    state.mine = state.occupied ^ mover;
    state.winner = is_won ? state.to_play : kNobody;
    state.to_play = is_won || state.occupied == kFull ? kTerminal : 1 - state.to_play;
  }

  void returns(const State& state, float* values) const { write_returns(state.winner, values); }

  void observe(const State& state, float* row) const {
    planes_.write(state.mine, row);
    planes_.write(state.mine ^ state.occupied, row + 9);
  }

  // Whose turn it is follows from the number of marks: x has as many as o, or one more.
  void hash(const State& state, uint64_t* hash) const {
    Hasher hasher;
    hasher.add(uint64_t{state.mine} << 32 | state.occupied);
    hasher.finish(hash);
  }

  void symmetry(int32_t index, int32_t* actions, int32_t* observation) const {
    board_.write_symmetry(index, 1, actions);
    board_.write_symmetry(index, 2, observation);
  }

  std::string render(const State& state) const {
    const bool is_x_next = count_bits(state.occupied) % 2 == 0;
    const uint32_t crosses = is_x_next ? state.mine : state.mine ^ state.occupied;
    std::string cells(9, kEmptyMark);
    for (uint32_t square = 0; square < 9; ++square) {
      if ((state.occupied >> square & 1) != 0) cells[square] = kPlayerMarks[(crosses >> square & 1) != 0 ? 0 : 1];
    }
    return board_.draw(cells, status_line(state.to_play, state.winner));
  }

  std::string action_name(int32_t action) const { return board_.square_name(action); }
  size_t parse_action(std::string_view text, int32_t* action) const { return board_.parse_square(text, action); }

 private:
  static constexpr uint32_t kFull = 0b111'111'111;
  static constexpr uint32_t kLines[] = {0b000'000'111, 0b000'111'000, 0b111'000'000, 0b001'001'001,
                                        0b010'010'010, 0b100'100'100, 0b100'010'001, 0b001'010'100};

  SquareBoard board_{3, SquareBoard::RowNumbers::kFromBottom};
  PlaneWriter planes_ = PlaneWriter::in_order(9);
};

}  // namespace windrow
