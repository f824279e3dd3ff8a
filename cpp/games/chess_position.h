// chess_position.h: a position of chess, and all legal moves in it.
//
// A position is seen by the player to move, whose pieces stand on ranks 1 and 2 when the game begins: for Black the
// board is turned upside down (files stay where they are). So there is one set of rules, and no colour in it.
//
// Only legal moves are generated. The pieces that give check and those that are pinned are found first; they say which
// squares the other pieces may go to. Only an en passant capture is tried out, because it empties two squares of a line
// at once.
//
// Castling is the king's move onto its own rook (e1h1), in chess as in Chess960.
#pragma once

#include <array>
#include <cstdint>

#include "bits.h"
#include "chess_attacks.h"

namespace windrow::chess {

// As the bits of a square in the three `kinds` of a position say; 7 does not occur.
inline constexpr int32_t kNothing = 0, kPawn = 1, kKnight = 2, kBishop = 3, kRook = 4, kQueen = 5, kKing = 6;

struct Move {
  int32_t from, to;
  int32_t promotion;  // the new piece; kNothing if no pawn arrives at the last rank
};

struct Position {
  Squares own;       // pieces of the player to move
  Squares kinds[3];  // what stands on a square, bit by bit
  uint8_t rights;    // files of own rooks that may still castle, all on rank 1
  uint8_t their_rights;
  uint8_t en_passant;  // 1 + the file of a pawn that can be taken en passant, by a legal move; otherwise 0
  uint8_t clock;       // half-moves since the last capture or pawn move
  uint16_t plies;      // half-moves since White's first move, counted up to 65,535
  uint8_t side;        // 0 White, 1 Black
  uint8_t spare;       // 0 here; chess.h counts in it

  Squares occupied() const { return kinds[0] | kinds[1] | kinds[2]; }
  Squares pawns() const { return kinds[0] & ~kinds[1] & ~kinds[2]; }
  Squares knights() const { return kinds[1] & ~kinds[0] & ~kinds[2]; }
  Squares bishops() const { return kinds[0] & kinds[1] & ~kinds[2]; }
  Squares rooks() const { return kinds[2] & ~kinds[0] & ~kinds[1]; }
  Squares queens() const { return kinds[0] & kinds[2] & ~kinds[1]; }
  Squares kings() const { return kinds[1] & kinds[2] & ~kinds[0]; }
  Squares diagonal_movers() const { return kinds[0] & (kinds[1] ^ kinds[2]); }  // bishops and queens
  Squares straight_movers() const { return kinds[2] & ~kinds[1]; }              // rooks and queens

  int32_t kind_at(int32_t square) const {
    return static_cast<int32_t>((kinds[0] >> square & 1) | (kinds[1] >> square & 1) << 1 |
                                (kinds[2] >> square & 1) << 2);
  }
  void put(Squares squares, int32_t kind) {
    for (int32_t i = 0; i < 3; ++i) {
      if ((kind >> i & 1) != 0) kinds[i] |= squares;
    }
  }
};
static_assert(sizeof(Position) == 40);

// What stands in the way of moving freely.
struct Threats {
  int32_t king;      // its square
  Squares checkers;  // pieces that give check
  Squares pinned;    // own pieces that may move only along their line with the king
  Squares attacked;  // where the king may not go: what the opponent attacks once the king has left its square
  Squares targets;   // where other pieces must go: anywhere, or to end the check
};

// Pieces of the opponent that attack `square` while the squares of `occupied` are; of `theirs` only.
inline Squares attackers(const Position& position, int32_t square, Squares occupied, Squares theirs) {
  return theirs &
         ((knight_attacks(square) & position.knights()) | (attacks_of_pawns_up(bit(square)) & position.pawns()) |
          (king_attacks(square) & position.kings()) | (rook_attacks(square, occupied) & position.straight_movers()) |
          (bishop_attacks(square, occupied) & position.diagonal_movers()));
}

inline Threats find_threats(const Position& position) {
  const Squares occupied = position.occupied();
  const Squares theirs = occupied & ~position.own;
  const Squares king = position.kings() & position.own;
  const Squares straight = position.straight_movers() & theirs, diagonal = position.diagonal_movers() & theirs;
  Threats threats{.king = first_square(king), .checkers = 0, .pinned = 0, .attacked = 0, .targets = ~Squares{0}};

  threats.checkers = (knight_attacks(threats.king) & position.knights() & theirs) |
                     (attacks_of_pawns_up(king) & position.pawns() & theirs);
  for (Squares rest = (rook_lines(threats.king) & straight) | (bishop_lines(threats.king) & diagonal); rest != 0;
       rest &= rest - 1) {
    const Squares in_between = between(threats.king, first_square(rest)) & occupied;
    if (in_between == 0) {
      threats.checkers |= rest & -rest;
    } else if ((in_between & (in_between - 1)) == 0) {
      threats.pinned |= in_between & position.own;
    }
  }
  if (threats.checkers != 0) {
    const bool is_double = (threats.checkers & (threats.checkers - 1)) != 0;
    threats.targets = is_double ? 0 : threats.checkers | between(threats.king, first_square(threats.checkers));
  }

  const Squares without_king = occupied & ~king;
  Squares attacked = attacks_of_pawns_down(position.pawns() & theirs);
  for (Squares rest = position.knights() & theirs; rest != 0; rest &= rest - 1) {
    attacked |= knight_attacks(first_square(rest));
  }
  for (Squares rest = straight; rest != 0; rest &= rest - 1) {
    attacked |= rook_attacks(first_square(rest), without_king);
  }
  for (Squares rest = diagonal; rest != 0; rest &= rest - 1) {
    attacked |= bishop_attacks(first_square(rest), without_king);
  }
  threats.attacked = attacked | king_attacks(first_square(position.kings() & theirs));
  return threats;
}

// The rooks with which the king may castle.
Squares castling_targets(const Position& position, const Threats& threats);

// Own pawns that may take en passant on `file`, and do not leave the king in check.
Squares en_passant_takers(const Position& position, int32_t file);

inline int32_t en_passant_file(const Position& position) { return (position.en_passant - 1) & 7; }

// Calls `visit(from, targets)` for every own piece that can move, with all squares it can move to; stops if that
// answers true. Pawns that arrive at rank 8 promote there.
template <class Visit>
bool visit_moves(const Position& position, const Threats& threats, const Visit& visit) {
  const Squares occupied = position.occupied();
  const Squares own = position.own & occupied;
  const Squares theirs = occupied & ~own;
  const auto offer = [&](Squares piece, Squares targets) {
    if ((piece & threats.pinned) != 0) targets &= line_through(threats.king, piece);
    return targets != 0 && visit(first_square(piece), targets);
  };

  Squares king_targets = king_attacks(threats.king) & ~own & ~threats.attacked;
  if (position.rights != 0) king_targets |= castling_targets(position, threats);
  if (king_targets != 0 && (position.kings() & own) != 0 && visit(threats.king, king_targets)) return true;
  if (threats.targets == 0) return false;

  const Squares free = threats.targets & ~own;
  for (Squares rest = position.knights() & own & ~threats.pinned; rest != 0; rest &= rest - 1) {
    const int32_t from = first_square(rest);
    const Squares targets = knight_attacks(from) & free;
    if (targets != 0 && visit(from, targets)) return true;
  }
  // A queen moves as a bishop and as a rook, but is visited once.
  for (Squares rest = position.bishops() & own; rest != 0; rest &= rest - 1) {
    if (offer(rest & -rest, bishop_attacks(first_square(rest), occupied) & free)) return true;
  }
  for (Squares rest = position.rooks() & own; rest != 0; rest &= rest - 1) {
    if (offer(rest & -rest, rook_attacks(first_square(rest), occupied) & free)) return true;
  }
  for (Squares rest = position.queens() & own; rest != 0; rest &= rest - 1) {
    const int32_t from = first_square(rest);
    const Squares targets = (bishop_attacks(from, occupied) | rook_attacks(from, occupied)) & free;
    if (offer(rest & -rest, targets)) return true;
  }
  const Squares takers = position.en_passant != 0 ? en_passant_takers(position, en_passant_file(position)) : 0;
  for (Squares rest = position.pawns() & own; rest != 0; rest &= rest - 1) {
    const Squares pawn = rest & -rest;
    const Squares step = pawn << 8 & ~occupied;
    const Squares leap = (step & kRank1 << 16) << 8 & ~occupied;
    Squares targets = (step | leap | (attacks_of_pawns_up(pawn) & theirs)) & threats.targets;
    if ((pawn & threats.pinned) != 0) targets &= line_through(threats.king, pawn);
    if ((pawn & takers) != 0) targets |= bit(40 + en_passant_file(position));
    if (targets != 0 && visit(first_square(pawn), targets)) return true;
  }
  return false;
}

inline bool has_moves(const Position& position, const Threats& threats) {
  return visit_moves(position, threats, [](int32_t, Squares) { return true; });
}

// Plays a legal move; afterwards the position is seen by the other player. Answers whether the move can be undone by
// moves: whether it is no capture, no pawn move and no castling, and takes no right away.
bool play(Position& position, const Move& move);

// The rooks and the king of the start position with this number in Chess960 (0 to 959; 518 is that of chess), which
// White begins.
Position start_position(int32_t number);

// Sequences of `depth` legal moves; draws end nothing.
uint64_t count_sequences(const Position& position, int32_t depth);

// Whether no sequence of moves can lead to mate: bare kings, with one knight, or with bishops on squares of one colour.
bool is_dead(const Position& position);

}  // namespace windrow::chess
