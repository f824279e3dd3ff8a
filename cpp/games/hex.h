// hex.h: Hex, the game of connection.
//
// Options: size (11), from 3 to 19; swap ("off"), or "on": instead of her first move the second player may take over
// the first stone. It then lies on the cell mirrored at the long diagonal and is hers, so that both keep their sides.
// x (player 0) moves first and wins with a chain from the top row to the bottom row, o with one from the left column
// to the right one. Exactly one of them succeeds: there are no draws.
// Actions: cell = row * size + column, row 0 on top; names such as f6, rows numbered from the top; with swap, one more,
// "swap".
// Observation (4, size, size):
//   plane 0: 1 where the player to move has a stone.
//   plane 1: 1 where the opponent has one.
//   plane 2: 1 everywhere if the player to move is x.
//   plane 3: 1 everywhere if it is o.
// Symmetries: the half turn, and two that exchange the players: the reflections at both diagonals, which turn the sides
// of x into those of o. The board is seen by the player to move, so they exchange planes 2 and 3 and no others.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "builtin.h"
#include "hash.h"
#include "option_reader.h"
#include "square_board.h"
#include "two_player.h"
#include "wide_bits.h"

namespace windrow {

inline constexpr OptionReader::IntegerRange kHexSizes = {.standard = 11, .min = 3, .max = 19};

// Boards of up to kLargest * kLargest cells; smaller ones have smaller states.
template <int32_t kLargest>
class HexRules {
 public:
  static constexpr const char* kName = "hex";
  static constexpr int32_t kNumPlayers = 2;
  static constexpr int32_t kWords = (kLargest * kLargest + 63) / 64;
  using Bits = WideBits<kWords>;

  struct State {
    Bits stones[2];  // by player
    Bits chains[2];  // of the stones, those with a chain to the player's first side: the top, or the left
    int16_t to_play;
    int16_t winner;
    int32_t mover;  // the player to move; in a finished game the one who would be
  };
  static_assert(sizeof(State) == 32 * kWords + 8);

  explicit HexRules(const GameOptions& options) : HexRules(OptionReader(kName, options)) {}

  GameOptions options() const {
    return {{"size", int64_t{board_.size()}}, {"swap", std::string(kSwapWords[has_swap_ ? 1 : 0])}};
  }
  int32_t num_actions() const { return board_.num_cells() + (has_swap_ ? 1 : 0); }
  int32_t num_symmetries() const { return 4; }
  std::vector<ObservationPart> observation() const { return {{"board", {4, board_.size(), board_.size()}}}; }

  State initial_state() const { return {.stones = {}, .chains = {}, .to_play = 0, .winner = kNobody, .mover = 0}; }

  int32_t to_play(const State& state) const { return state.to_play; }

  int32_t legal_actions(const State& state, int32_t* actions) const {
    if (state.to_play == kTerminal) return 0;
    const int32_t count = (board_.cells() - (state.stones[0] | state.stones[1])).write_cells(actions);
    if (!may_swap(state)) return count;
    actions[count] = board_.num_cells();
    return count + 1;
  }

  void apply(State& state, int32_t action) const {
    const int32_t mover = state.mover & 1;
    if (action == board_.num_cells()) {
      take_over(state);
    } else {
      place(state, mover, action);
    }
    const bool is_won = (state.chains[mover] & goal_[mover]).any();
    state.winner = static_cast<int16_t>(is_won ? mover : kNobody);
    state.to_play = static_cast<int16_t>(is_won ? kTerminal : 1 - mover);
    state.mover = 1 - mover;
  }

  void returns(const State& state, float* values) const { write_returns(state.winner, values); }

  void observe(const State& state, float* row) const {
    const int32_t mover = state.mover & 1, plane = board_.num_cells();
    board_.write_plane(state.stones[mover], row);
    board_.write_plane(state.stones[1 - mover], row + plane);
    board_.fill_plane(mover == 0 ? 1.0f : 0.0f, row + 2 * plane);
    board_.fill_plane(mover == 1 ? 1.0f : 0.0f, row + 3 * plane);
  }

  void hash(const State& state, uint64_t* hash) const {
    Hasher hasher;
    for (const Bits& stones : state.stones) {
      for (const uint64_t word : stones.words) hasher.add(word);
    }
    hasher.add(static_cast<uint64_t>(state.mover));  // after a swap stones alone do not tell whose turn it is
    hasher.finish(hash);
  }

  // Bits of the index: 1 turns the board by half a circle, 2 reflects it at the long diagonal and exchanges the
  // players.
  void symmetry(int32_t index, int32_t* actions, int32_t* observation) const {
    const int32_t cells = board_.num_cells(), last = cells - 1, size = board_.size();
    for (int32_t cell = 0; cell < cells; ++cell) {
      int32_t source = (index & 2) != 0 ? cell % size * size + cell / size : cell;
      if ((index & 1) != 0) source = last - source;
      actions[cell] = source;
      for (int32_t plane = 0; plane < 4; ++plane) {
        const int32_t source_plane = plane >= 2 && (index & 2) != 0 ? 5 - plane : plane;
        observation[plane * cells + cell] = source_plane * cells + source;
      }
    }
    if (has_swap_) actions[cells] = cells;
  }

  std::string render(const State& state) const {
    std::string cells(static_cast<size_t>(board_.num_cells()), kEmptyMark);
    for (int32_t cell = 0; cell < board_.num_cells(); ++cell) {
      for (const int32_t player : {0, 1}) {
        if (state.stones[player].has(cell)) cells[static_cast<size_t>(cell)] = kPlayerMarks[player];
      }
    }
    return names_.draw_slanted(cells, status_line(state.to_play, state.winner));
  }

  std::string action_name(int32_t action) const {
    return action == board_.num_cells() ? std::string(kSwap) : names_.square_name(action);
  }
  size_t parse_action(std::string_view text, int32_t* action) const {
    if (has_swap_ && starts_with_word(text, kSwap)) {
      *action = board_.num_cells();
      return kSwap.size();
    }
    return names_.parse_square(text, action);
  }

 private:
  static constexpr std::string_view kSwap = "swap";
  static constexpr std::string_view kSwapWords[] = {"off", "on"};

  explicit HexRules(OptionReader reader)
      : HexRules(reader.integer("size", kHexSizes), reader.choice("swap", {kSwapWords[0], kSwapWords[1]}) != 0) {
    reader.finish();
  }
  HexRules(int32_t size, bool has_swap)
      : has_swap_(has_swap),
        board_(size),
        names_(size, SquareBoard::RowNumbers::kFromTop),
        start_{board_.top(), board_.left()},
        goal_{board_.bottom(), board_.right()} {}

  bool may_swap(const State& state) const {
    return has_swap_ && state.mover == 1 && state.stones[0].any() && !state.stones[0].several() &&
           !state.stones[1].any();
  }

  void take_over(State& state) const {
    const int32_t cell = state.stones[0].first(), size = board_.size();
    state.stones[0] = state.chains[0] = {};
    place(state, 1, cell % size * size + cell / size % size);
  }

  // Every stone becomes part of `chains` once in a game, so that all moves of a game cost one flood fill.
  void place(State& state, int32_t player, int32_t cell) const {
    Bits& chains = state.chains[player];
    state.stones[player].set(cell);
    const Bits stone = Bits::of(cell);
    if (!((board_.hex_neighbours(stone) & chains) | (stone & start_[player])).any()) return;
    const Bits free = state.stones[player] - chains;
    for (Bits grown = stone; grown.any(); grown = board_.hex_neighbours(grown) & (free - chains)) chains |= grown;
  }

  bool has_swap_;
  WideBoard<kWords> board_;
  SquareBoard names_;
  Bits start_[2], goal_[2];  // by player: the cells of his first and of his second side
};

// The rules for the board's size.
std::unique_ptr<NamedGame> make_hex(const GameOptions& options);

}  // namespace windrow
