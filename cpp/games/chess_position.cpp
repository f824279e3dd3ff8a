#include "chess_position.h"

#include <algorithm>
#include <utility>

namespace windrow::chess {

namespace {

constexpr Squares kLightSquares = 0x55aa55aa55aa55aau;

// Where king and rook stand after castling with a rook of `rook_file`.
struct Castled {
  int32_t king, rook;
};
Castled castled(int32_t king_file, int32_t rook_file) {
  return rook_file > king_file ? Castled{.king = 6, .rook = 5} : Castled{.king = 2, .rook = 3};
}

uint64_t count_moves(const Position& position) {
  uint64_t count = 0;
  const Squares promoting = position.pawns() & position.own & kRank1 << 48;
  visit_moves(position, find_threats(position), [&](int32_t from, Squares targets) {
    const int32_t num_targets = std::popcount(targets);
    count += static_cast<uint64_t>((promoting >> from & 1) != 0 ? 4 * num_targets : num_targets);
    return false;
  });
  return count;
}

}  // namespace

Squares castling_targets(const Position& position, const Threats& threats) {
  const Squares occupied = position.occupied();
  const int32_t king = threats.king;
  if (threats.checkers != 0 || king > 7) return 0;
  Squares targets = 0;
  for (Squares rest = position.rights & position.rooks() & position.own; rest != 0; rest &= rest - 1) {
    const int32_t rook = first_square(rest);
    const Castled to = castled(king, rook);
    const Squares kings_way = between(king, to.king) | bit(to.king);
    const Squares rooks_way = between(rook, to.rook) | bit(to.rook);
    const Squares others = occupied & ~(bit(king) | bit(rook));
    if (((kings_way | rooks_way) & others) != 0 || (kings_way & threats.attacked) != 0) continue;
    // In Chess960 the rook may have stood between the king's new square and an attacker.
    const Squares attackers_on_rank = position.straight_movers() & occupied & ~position.own;
    if ((rank_attacks(to.king, others | bit(to.rook)) & attackers_on_rank) != 0) continue;
    targets |= bit(rook);
  }
  return targets;
}

Squares en_passant_takers(const Position& position, int32_t file) {
  const int32_t target = 40 + file;
  const Squares taken = bit(target - 8);
  const Squares occupied = position.occupied();
  const Squares theirs = occupied & ~position.own & ~taken;
  const int32_t king = first_square(position.kings() & position.own);
  Squares takers = 0;
  for (Squares rest = attacks_of_pawns_down(bit(target)) & position.pawns() & position.own; rest != 0;
       rest &= rest - 1) {
    const Squares pawn = rest & -rest;
    const Squares after = (occupied & ~(pawn | taken)) | bit(target);
    if (attackers(position, king, after, theirs) == 0) takers |= pawn;
  }
  return takers;
}

bool play(Position& position, const Move& move) {
  const Squares from = bit(move.from), to = bit(move.to);
  const int32_t kind = position.kind_at(move.from);
  const Squares occupied = position.occupied();
  const Squares theirs = occupied & ~position.own;
  const uint8_t rights = position.rights, their_rights = position.their_rights;
  const bool is_castling = kind == kKing && (position.own & to) != 0;
  const bool is_clearing = kind == kPawn || (theirs & to) != 0;
  int32_t leapt = -1;  // file of a pawn that has gone two squares

  Squares own = position.own;
  if (is_castling) {
    const Castled after = castled(move.from & 7, move.to & 7);
    const Squares gone = from | to;
    for (Squares& kinds : position.kinds) kinds &= ~gone;
    position.put(bit(after.king), kKing);
    position.put(bit(after.rook), kRook);
    own = (own & ~gone) | bit(after.king) | bit(after.rook);
  } else {
    Squares cleared = from | to;
    if (kind == kPawn) {
      if (position.en_passant != 0 && move.to == 40 + en_passant_file(position)) cleared |= to >> 8;
      if (move.to - move.from == 16) leapt = move.to & 7;
    }
    for (Squares& kinds : position.kinds) kinds &= ~cleared;
    position.put(to, move.promotion != kNothing ? move.promotion : kind);
    own = (own & ~from) | to;
    position.their_rights = static_cast<uint8_t>(their_rights & ~(to >> 56));
  }
  position.rights = kind == kKing ? 0 : static_cast<uint8_t>(rights & ~from);

  const bool is_reversible =
      !is_clearing && !is_castling && position.rights == rights && position.their_rights == their_rights;
  position.clock = is_clearing ? 0 : static_cast<uint8_t>(std::min(position.clock + 1, 255));
  position.plies = static_cast<uint16_t>(std::min(position.plies + 1, 65535));
  position.side ^= 1;
  position.own = turned(position.occupied() & ~own);
  for (Squares& kinds : position.kinds) kinds = turned(kinds);
  std::swap(position.rights, position.their_rights);
  position.en_passant = 0;
  if (leapt >= 0 && en_passant_takers(position, leapt) != 0) position.en_passant = static_cast<uint8_t>(leapt + 1);
  return is_reversible;
}

Position start_position(int32_t number) {
  // Scharnagl's numbering: the light-squared bishop, the dark-squared one, the queen among the free files, the knights
  // among those, and rook, king, rook on the three that are left.
  std::array<int32_t, 8> kinds{};
  const auto nth_free = [&](int32_t n) {
    size_t file = 0;
    while (kinds[file] != kNothing || n-- > 0) ++file;
    return file;
  };
  constexpr std::array<std::array<int32_t, 2>, 10> kKnights = {
      {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 2}, {1, 3}, {1, 4}, {2, 3}, {2, 4}, {3, 4}}};
  kinds[static_cast<size_t>(number % 4 * 2 + 1)] = kBishop;
  kinds[static_cast<size_t>(number / 4 % 4 * 2)] = kBishop;
  kinds[nth_free(number / 16 % 6)] = kQueen;
  const auto& knights = kKnights[static_cast<size_t>(number / 96)];
  const size_t first = nth_free(knights[0]), second = nth_free(knights[1]);
  kinds[first] = kinds[second] = kKnight;
  for (const int32_t kind : {kRook, kKing, kRook}) kinds[nth_free(0)] = kind;

  Position position{};
  for (int32_t file = 0; file < 8; ++file) {
    const int32_t kind = kinds[static_cast<size_t>(file)];
    position.put(bit(file) | bit(56 + file), kind);
    if (kind == kRook) position.rights = static_cast<uint8_t>(position.rights | 1 << file);
  }
  position.put(kRank1 << 8 | kRank1 << 48, kPawn);
  position.own = kRank1 | kRank1 << 8;
  position.their_rights = position.rights;
  return position;
}

uint64_t count_sequences(const Position& position, int32_t depth) {
  if (depth <= 0) return 1;
  if (depth == 1) return count_moves(position);
  uint64_t count = 0;
  const Squares promoting = position.pawns() & position.own & kRank1 << 48;
  visit_moves(position, find_threats(position), [&](int32_t from, Squares targets) {
    const bool is_promotion = (promoting >> from & 1) != 0;
    for (; targets != 0; targets &= targets - 1) {
      for (int32_t piece = is_promotion ? kKnight : kNothing; piece <= (is_promotion ? kQueen : kNothing); ++piece) {
        Position next = position;
        play(next, {.from = from, .to = first_square(targets), .promotion = piece});
        count += count_sequences(next, depth - 1);
      }
    }
    return false;
  });
  return count;
}

bool is_dead(const Position& position) {
  if ((position.pawns() | position.straight_movers()) != 0) return false;
  const Squares knights = position.knights(), bishops = position.bishops();
  if (knights != 0) return bishops == 0 && (knights & (knights - 1)) == 0;
  return (bishops & kLightSquares) == 0 || (bishops & ~kLightSquares) == 0;
}

}  // namespace windrow::chess
