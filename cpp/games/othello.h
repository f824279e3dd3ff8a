// othello.h: Othello (Reversi with the crossed start) on 8x8.
//
// Actions: square = row * 8 + column, row 0 on top; names such as d3, rows numbered from the top. There is no pass
// action: when the opponent cannot move the same player moves again, and when neither can the game is over. More
// discs win; equal numbers are a draw.
// Player 0 (x) is Black and moves first, with discs on d5 and e4.
// Observation (2, 8, 8):
//   plane 0: 1 where the player to move has a disc.
//   plane 1: 1 where the opponent has one.
// Symmetries: the eight of the square. The rules have all of them, the first position only four.
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

class OthelloRules {
 public:
  static constexpr const char* kName = "othello";
  static constexpr int32_t kNumPlayers = 2;

  struct State {
    uint64_t mine;    // bit = square: discs of `viewer`
    uint64_t theirs;  // discs of the other player
    uint64_t moves;   // where the player to move may go; kept, because whoever made the last move needed it as well
    int32_t to_play;  // 0, 1 or kTerminal
    // The player to move; 0 in a finished game, so that equal final boards are equal states whoever moved last.
    int32_t viewer;
  };
  static_assert(sizeof(State) == 32);

  explicit OthelloRules(const GameOptions& options) { OptionReader(kName, options).finish(); }

  GameOptions options() const { return {}; }
  int32_t num_actions() const { return 64; }
  int32_t num_symmetries() const { return SquareBoard::kNumSymmetries; }
  std::vector<ObservationPart> observation() const { return {{"board", {2, 8, 8}}}; }

  State initial_state() const {
    const uint64_t black = bit(4, 3) | bit(3, 4);  // d5 e4
    const uint64_t white = bit(3, 3) | bit(4, 4);  // d4 e5
    return {.mine = black, .theirs = white, .moves = find_moves(black, white), .to_play = 0, .viewer = 0};
  }

  int32_t to_play(const State& state) const { return state.to_play; }

  int32_t legal_actions(const State& state, int32_t* actions) const { return write_indices(state.moves, 0, actions); }

  void apply(State& state, int32_t square) const {
    const uint64_t disc = uint64_t{1} << square;
    const uint64_t flips = find_flips(state.mine, state.theirs, disc);
    const uint64_t mover = state.mine | disc | flips;
    const uint64_t other = state.theirs & ~flips;
    const int32_t player = state.viewer;

    if (const uint64_t replies = find_moves(other, mover); replies != 0) {
      state = {.mine = other, .theirs = mover, .moves = replies, .to_play = 1 - player, .viewer = 1 - player};
    } else if (const uint64_t again = find_moves(mover, other); again != 0) {
      state = {.mine = mover, .theirs = other, .moves = again, .to_play = player, .viewer = player};
    } else {
      const bool is_black = player == 0;
      state = {.mine = is_black ? mover : other,
               .theirs = is_black ? other : mover,
               .moves = 0,
               .to_play = kTerminal,
               .viewer = 0};
    }
  }

  void returns(const State& state, float* values) const { write_returns(leader(state), values); }

  void observe(const State& state, float* row) const {
    planes_.write(state.mine, row);
    planes_.write(state.theirs, row + 64);
  }

  void hash(const State& state, uint64_t* hash) const {
    Hasher hasher;
    hasher.add(state.mine);
    hasher.add(state.theirs);
    hasher.add(static_cast<uint64_t>(state.viewer));  // passes: discs alone do not tell whose turn it is
    hasher.finish(hash);
  }

  void symmetry(int32_t index, int32_t* actions, int32_t* observation) const {
    board_.write_symmetry(index, 1, actions);
    board_.write_symmetry(index, 2, observation);
  }

  std::string render(const State& state) const {
    std::string cells(64, kEmptyMark);
    const bool is_black = state.viewer == 0;
    for (uint32_t square = 0; square < 64; ++square) {
      if ((state.mine >> square & 1) != 0) cells[square] = kPlayerMarks[is_black ? 0 : 1];
      if ((state.theirs >> square & 1) != 0) cells[square] = kPlayerMarks[is_black ? 1 : 0];
    }
    return board_.draw(cells, status_line(state.to_play, leader(state)));
  }

  std::string action_name(int32_t action) const { return board_.square_name(action); }
  size_t parse_action(std::string_view text, int32_t* action) const { return board_.parse_square(text, action); }

 private:
  static constexpr uint64_t bit(int32_t row, int32_t column) { return uint64_t{1} << (row * 8 + column); }

  // Discs that can be enclosed along a row or diagonal: those off the left and right edge. Leaving out the edge also
  // keeps a shift from running over it into the next row.
  static constexpr uint64_t kInner = 0x7e7e7e7e7e7e7e7eu;

  // Towards higher squares for a positive distance, towards lower ones for a negative one.
  template <int kDistance>
  static uint64_t shift(uint64_t bits) {
    if constexpr (kDistance > 0) {
      return bits << kDistance;
    } else {
      return bits >> -kDistance;
    }
  }

  // The discs of `enclosable` that follow `from` without a gap in one direction; at most six fit. After the first two
  // steps whole pairs are added at once: `pairs` are discs whose neighbour towards `from` is enclosable too.
  template <int kDistance>
  static uint64_t follow(uint64_t from, uint64_t enclosable) {
    uint64_t reached = shift<kDistance>(from) & enclosable;
    reached |= shift<kDistance>(reached) & enclosable;
    const uint64_t pairs = shift<kDistance>(enclosable) & enclosable;
    reached |= shift<2 * kDistance>(reached) & pairs;
    reached |= shift<2 * kDistance>(reached) & pairs;
    return reached;
  }

  // Squares, empty or not, that enclose something between themselves and `mine` in one direction.
  template <int kDistance>
  static uint64_t enclosing(uint64_t mine, uint64_t enclosable) {
    return shift<kDistance>(follow<kDistance>(mine, enclosable));
  }

  static uint64_t find_moves(uint64_t mine, uint64_t theirs) {
    const uint64_t inner = theirs & kInner;
    const uint64_t ends = enclosing<1>(mine, inner) | enclosing<-1>(mine, inner) |    // rows
                          enclosing<8>(mine, theirs) | enclosing<-8>(mine, theirs) |  // columns
                          enclosing<9>(mine, inner) | enclosing<-9>(mine, inner) |    // diagonals
                          enclosing<7>(mine, inner) | enclosing<-7>(mine, inner);
    return ends & ~(mine | theirs);
  }

  // What a new disc turns over in one direction: the discs that follow it, if one of `mine` follows those.
  template <int kDistance>
  static uint64_t enclosed(uint64_t mine, uint64_t enclosable, uint64_t disc) {
    const uint64_t between = follow<kDistance>(disc, enclosable);
    const bool is_closed = (shift<kDistance>(between) & mine) != 0;
    return is_closed ? between : 0;
  }

  static uint64_t find_flips(uint64_t mine, uint64_t theirs, uint64_t disc) {
    const uint64_t inner = theirs & kInner;
    return enclosed<1>(mine, inner, disc) | enclosed<-1>(mine, inner, disc) |    // rows
           enclosed<8>(mine, theirs, disc) | enclosed<-8>(mine, theirs, disc) |  // columns
           enclosed<9>(mine, inner, disc) | enclosed<-9>(mine, inner, disc) |    // diagonals
           enclosed<7>(mine, inner, disc) | enclosed<-7>(mine, inner, disc);
  }

  // Who has more discs.
  static int32_t leader(const State& state) {
    const int32_t lead = count_bits(state.mine) - count_bits(state.theirs);
    if (lead == 0) return kNobody;
    return lead > 0 ? state.viewer : 1 - state.viewer;
  }

  SquareBoard board_{8, SquareBoard::RowNumbers::kFromTop};
  PlaneWriter planes_ = PlaneWriter::in_order(64);
};

}  // namespace windrow
