// chess.h: chess by the rules of FIDE as programs apply them, and Chess960.
//
// Options: variant: "standard" or "chess960"; position: the number of the start position in Chess960, 0 to 959 (518,
// the default, is that of chess, and the only one of the standard variant).
//
// The game is drawn at once by stalemate, by insufficient material (bare kings, one knight or one bishop more, or any
// number of bishops on squares of one colour), after 100 half-moves without capture or pawn move, and at the third
// occurrence of a position: nobody has to claim a draw. Mate comes before all of them. Positions are equal if the same
// player is to move and can make the same moves: equal boards and castling rights, and equal en passant captures, of
// which only legal ones count.
//
// Actions: 1,858, numbered as by lc0 (chess_moves.h), seen by the player to move: Black's e7e5 is e2e4, and castling is
//   the king's move onto its own rook. Names are the moves of UCI, as `move_name` and `parse_move` know them: turned
//   for Black, promotions to a knight with their n, castling as e1g1 except in Chess960. `action_name`, which knows no
//   position, shows the squares as White sees them.
// Player 0 is White.
// Observation (16, 8, 8), seen by the player to move, whose home rank is the bottom row; files are not turned.
//   planes 0 to 5:  own pawns, knights, bishops, rooks, queens, king.
//   planes 6 to 11: the opponent's.
//   plane 12:       rooks of both players that may still castle.
//   plane 13:       the square on which a pawn can be taken en passant.
//   plane 14:       1 everywhere if the position has occurred before (once: the third time is a draw).
//   plane 15:       half-moves since the last capture or pawn move, divided by 100, everywhere.
// Symmetries: none but the identity: left and right differ by castling.
//
// A state remembers the moves since the last one that cannot be undone, 2 bytes each. Taking them back one by one
// compares positions exactly, in a quarter of the bytes that hashes of 64 bits would take.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "builtin.h"
#include "chess_moves.h"
#include "chess_position.h"
#include "hash.h"
#include "two_player.h"

namespace windrow {

class ChessRules {
 public:
  static constexpr const char* kName = "chess";
  static constexpr int32_t kNumPlayers = 2;
  static constexpr int32_t kMaxClock = 100;
  static constexpr int32_t kMaxRun = kMaxClock - 1;

  enum Ending : uint8_t { kNotOver, kMate, kStalemate, kDead, kFiftyMoves, kThreefold };

  struct State {
    // Seen by the player to move, or who would be if the game were not over. `spare` says how many of `run` there are.
    chess::Position position;
    // The moves since the last capture, pawn move, castling, loss of a right or chance to take en passant, oldest
    // first, as their players saw them: from | to << 6 | piece << 12. Zeros follow.
    uint16_t run[kMaxRun];
    uint8_t repetitions;  // how often the position has occurred before: 0, 1 or 2
    uint8_t ending;
  };
  static_assert(sizeof(State) == 240);

  explicit ChessRules(const GameOptions& options);

  GameOptions options() const;
  int32_t num_actions() const { return chess::kNumMoves; }
  // The largest number known for a position that can occur.
  int32_t max_legal_actions() const { return kMaxLegal; }
  int32_t num_symmetries() const { return 1; }
  std::vector<ObservationPart> observation() const { return {{"board", {kNumPlanes, 8, 8}}}; }

  State initial_state() const {
    State state{};
    state.position = start_;
    return state;
  }

  int32_t to_play(const State& state) const { return state.ending != kNotOver ? kTerminal : state.position.side & 1; }

  int32_t legal_actions(const State& state, int32_t* actions) const;
  void apply(State& state, int32_t action) const;

  void returns(const State& state, float* values) const {
    write_returns(state.ending == kMate ? 1 - (state.position.side & 1) : kNobody, values);
  }

  void observe(const State& state, float* row) const;

  // Covers what is observed and who is to move; not the moves that may lead to a repetition.
  void hash(const State& state, uint64_t* hash) const;

  void symmetry(int32_t, int32_t* actions, int32_t* observation) const;
  std::string render(const State& state) const;
  std::string action_name(int32_t action) const;
  size_t parse_action(std::string_view text, int32_t* action) const;
  std::string move_name(const State& state, int32_t action) const;
  size_t parse_move(const State& state, std::string_view text, int32_t* action) const;

  uint64_t count_sequences(const State& state, int32_t depth) const {
    return chess::count_sequences(state.position, depth);
  }

 private:
  static constexpr std::string_view kVariants[] = {"standard", "chess960"};
  static constexpr int32_t kStandard = 0;
  static constexpr int32_t kUsualStart = 518;
  static constexpr int32_t kMaxLegal = 218;
  static constexpr int32_t kNumPlanes = 16;

  static chess::Move move_of(const chess::Position& position, int32_t action) {
    chess::Move move = chess::move_of_number(action);
    if (move.to >= 56 && move.promotion == chess::kNothing && position.kind_at(move.from) == chess::kPawn) {
      move.promotion = chess::kKnight;
    }
    return move;
  }

  int32_t variant_;
  int32_t number_;
  chess::Position start_;
  PlaneWriter planes_;
};

}  // namespace windrow
