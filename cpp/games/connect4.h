// connect4.h: drop a stone into a column; `connect` in a row, column or diagonal wins.
//
// Options: rows (6), columns (7), connect (4, less on a board too small for it); (rows + 1) * columns is at most 64.
// Actions: column from the left; names count from 1. With ten columns or more, names in a string of moves need a
// separator ("1 12 3"): all digits that stand together are one name.
// Observation (2, rows, columns), top row first:
//   plane 0: 1 where the player to move has a stone.
//   plane 1: 1 where the opponent has one.
// Symmetries: the identity and the mirror image.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bits.h"
#include "builtin.h"
#include "hash.h"
#include "two_player.h"

namespace windrow {

// Bits of a word for 6 rows and 7 columns. The extra bit on top of each column is never set, so that shifting along a
// line cannot run from one column into the next:
//
//      6 13 20 27 34 41 48
//     ---------------------
//      5 12 19 26 33 40 47
//      4 11 18 25 32 39 46
//      3 10 17 24 31 38 45
//      2  9 16 23 30 37 44
//      1  8 15 22 29 36 43
//      0  7 14 21 28 35 42
class Connect4Rules {
 public:
  static constexpr const char* kName = "connect4";
  static constexpr int32_t kNumPlayers = 2;

  struct State {
    uint64_t mine;      // stones of the player to move (in a finished game: who would be)
    uint64_t occupied;  // stones of both
    int32_t to_play;    // 0, 1 or kTerminal
    int32_t winner;     // 0, 1 or kNobody
  };
  static_assert(sizeof(State) == 24);

  explicit Connect4Rules(const GameOptions& options) : Connect4Rules(read_sizes(options)) {}

  GameOptions options() const;
  int32_t num_actions() const { return columns_; }
  int32_t num_symmetries() const { return 2; }
  std::vector<ObservationPart> observation() const { return {{"board", {2, rows_, columns_}}}; }

  State initial_state() const { return {.mine = 0, .occupied = 0, .to_play = 0, .winner = kNobody}; }

  int32_t to_play(const State& state) const { return state.to_play; }

  // Writes every column and steps on only past the open ones: no branch for the processor to mispredict.
  int32_t legal_actions(const State& state, int32_t* actions) const {
    int32_t count = 0;
    for (int32_t column = 0; column < columns_; ++column) {
      actions[count] = column;
      count += (state.occupied & top_cell_[column]) == 0 ? 1 : 0;
    }
    return state.to_play == kTerminal ? 0 : count;
  }

  void apply(State& state, int32_t column) const {
    // Adding the bottom cell carries through the stones of the column into its lowest empty cell.
    const uint64_t stone = (state.occupied + bottom_cell_[column]) & column_cells_[column];
    const uint64_t mover = state.mine | stone;
    const bool is_won = has_line(mover);

    state.occupied |= stone;
    state.mine = state.occupied ^ mover;
    state.winner = is_won ? state.to_play : kNobody;
    state.to_play = (is_won | (state.occupied == full_)) ? kTerminal : 1 - state.to_play;
  }

  void returns(const State& state, float* values) const { write_returns(state.winner, values); }

  void observe(const State& state, float* row) const {
    planes_.write(state.mine, row);
    planes_.write(state.mine ^ state.occupied, row + num_cells_);
  }

  // Whose turn it is follows from the number of stones.
  void hash(const State& state, uint64_t* hash) const {
    Hasher hasher;
    hasher.add(state.mine);
    hasher.add(state.occupied);
    hasher.finish(hash);
  }

  void symmetry(int32_t index, int32_t* actions, int32_t* observation) const;
  std::string render(const State& state) const;
  std::string action_name(int32_t action) const { return std::to_string(action + 1); }
  size_t parse_action(std::string_view text, int32_t* action) const;

 private:
  struct Sizes {
    int32_t rows;
    int32_t columns;
    int32_t connect;
  };
  static Sizes read_sizes(const GameOptions& options);
  explicit Connect4Rules(const Sizes& sizes);

  // The shortest board has two rows: 21 columns of 3 bits. The narrowest has two columns: 31 rows.
  static constexpr int32_t kMinSide = 2;
  static constexpr int32_t kMaxColumns = 64 / (kMinSide + 1);
  static constexpr int32_t kMaxRows = 64 / kMinSide - 1;
  static constexpr int32_t kNumDirections = 4;
  static constexpr int32_t kMaxDoublings = 5;  // enough for `connect` up to 32

  // Bit i of runs[d] says that a run of stones in direction d starts at cell i. Runs of 2 are two runs of 1 that
  // touch, runs of 4 two runs of 2, and so on; the last step may overlap.
  bool has_line(uint64_t stones) const {
    uint64_t runs[kNumDirections];
    for (int32_t d = 0; d < kNumDirections; ++d) runs[d] = stones & fits_[d];
    for (int32_t step = 0; step < num_doublings_; ++step) {
      for (int32_t d = 0; d < kNumDirections; ++d) runs[d] &= runs[d] >> shift_[step][d];
    }
    return (runs[0] | runs[1] | runs[2] | runs[3]) != 0;
  }

  static PlaneWriter top_row_first(int32_t rows, int32_t columns);

  const int32_t rows_;
  const int32_t columns_;
  const int32_t connect_;
  const int32_t num_cells_;
  int32_t num_doublings_ = 0;
  int32_t shift_[kMaxDoublings][kNumDirections] = {};
  uint64_t fits_[kNumDirections] = {};  // all ones, or zero for a direction in which the board is too short
  uint64_t full_ = 0;
  uint64_t bottom_cell_[kMaxColumns] = {};
  uint64_t top_cell_[kMaxColumns] = {};
  uint64_t column_cells_[kMaxColumns] = {};
  PlaneWriter planes_;
};

}  // namespace windrow
