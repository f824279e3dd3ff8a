// chess_attacks.h: which squares the pieces of chess attack.
//
// A set of squares is a word: a1 is bit 0, b1 bit 1, ... h8 bit 63. Files, diagonals and antidiagonals are looked
// along by subtraction (o - 2r, "hyperbola quintessence"): a borrow runs from the piece to the first piece in its
// way, and for the other direction in the word with its bytes reversed. A rank is one byte and reads a table. All
// tables together have 36 KB. Magic multiplication needs 840 KB, which would push the trees out of the cache.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace windrow::chess {

using Squares = uint64_t;

inline constexpr Squares kFileA = 0x0101010101010101u;
inline constexpr Squares kFileH = kFileA << 7;
inline constexpr Squares kRank1 = 0xff;

constexpr Squares bit(int32_t square) { return Squares{1} << square; }
// The square with the lowest bit; a1 for the empty set, which real positions never ask for.
inline int32_t first_square(Squares squares) { return std::countr_zero(squares) & 63; }

// The board as the other player sees it: rank 1 becomes rank 8.
inline Squares turned(Squares squares) { return __builtin_bswap64(squares); }

namespace detail {

struct Tables {
  std::array<Squares, 64> knight, king;
  // Lines through a square, without the square itself.
  std::array<Squares, 64> file, rank, diagonal, antidiagonal;
  // Squares strictly between two squares on one line; otherwise none.
  std::array<std::array<Squares, 64>, 64> between;
  // Attacks along a rank, by the file of the piece and the six inner squares of the rank.
  std::array<std::array<uint8_t, 64>, 8> along_rank;
};

constexpr bool is_on_board(int32_t file, int32_t rank) { return file >= 0 && file < 8 && rank >= 0 && rank < 8; }

constexpr Tables make_tables() {
  Tables tables{};
  constexpr int32_t kKnight[8][2] = {{1, 2}, {2, 1}, {2, -1}, {1, -2}, {-1, -2}, {-2, -1}, {-2, 1}, {-1, 2}};
  constexpr int32_t kKing[8][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, -1}, {1, -1}, {-1, 1}};
  for (int32_t square = 0; square < 64; ++square) {
    const size_t from = static_cast<size_t>(square);
    const int32_t file = square % 8, rank = square / 8;
    Squares* const lines[4] = {&tables.rank[from], &tables.file[from], &tables.diagonal[from],
                               &tables.antidiagonal[from]};
    for (int32_t i = 0; i < 8; ++i) {
      const int32_t knight_file = file + kKnight[i][0], knight_rank = rank + kKnight[i][1];
      if (is_on_board(knight_file, knight_rank)) tables.knight[from] |= bit(knight_rank * 8 + knight_file);
      Squares passed = 0;
      int32_t at_file = file + kKing[i][0], at_rank = rank + kKing[i][1];
      if (is_on_board(at_file, at_rank)) tables.king[from] |= bit(at_rank * 8 + at_file);
      for (; is_on_board(at_file, at_rank); at_file += kKing[i][0], at_rank += kKing[i][1]) {
        tables.between[from][static_cast<size_t>(at_rank * 8 + at_file)] = passed;
        passed |= bit(at_rank * 8 + at_file);
      }
      *lines[i / 2] |= passed;
    }
  }
  for (int32_t file = 0; file < 8; ++file) {
    for (int32_t inner = 0; inner < 64; ++inner) {
      const int32_t occupied = inner << 1;
      int32_t attacked = 0;
      for (const int32_t step : {1, -1}) {
        for (int32_t at = file + step; at >= 0 && at < 8; at += step) {
          attacked |= 1 << at;
          if ((occupied >> at & 1) != 0) break;
        }
      }
      tables.along_rank[static_cast<size_t>(file)][static_cast<size_t>(inner)] = static_cast<uint8_t>(attacked);
    }
  }
  return tables;
}

inline constexpr Tables kTables = make_tables();

// Along any line but a rank; `line` is without the square itself.
inline Squares along(Squares line, Squares occupied, Squares piece) {
  const Squares on_line = occupied & line;
  const Squares up = on_line - piece;
  const Squares down = turned(turned(on_line) - turned(piece));
  return (up ^ down) & line;
}

}  // namespace detail

inline Squares knight_attacks(int32_t square) { return detail::kTables.knight[static_cast<size_t>(square)]; }
inline Squares king_attacks(int32_t square) { return detail::kTables.king[static_cast<size_t>(square)]; }

inline Squares rank_attacks(int32_t square, Squares occupied) {
  const int32_t shift = square & 56;
  return Squares{detail::kTables.along_rank[static_cast<size_t>(square & 7)][occupied >> (shift + 1) & 63]} << shift;
}
inline Squares rook_attacks(int32_t square, Squares occupied) {
  return detail::along(detail::kTables.file[static_cast<size_t>(square)], occupied, bit(square)) |
         rank_attacks(square, occupied);
}
inline Squares bishop_attacks(int32_t square, Squares occupied) {
  return detail::along(detail::kTables.diagonal[static_cast<size_t>(square)], occupied, bit(square)) |
         detail::along(detail::kTables.antidiagonal[static_cast<size_t>(square)], occupied, bit(square));
}

// On an empty board.
inline Squares rook_lines(int32_t square) {
  return detail::kTables.file[static_cast<size_t>(square)] | detail::kTables.rank[static_cast<size_t>(square)];
}
inline Squares bishop_lines(int32_t square) {
  return detail::kTables.diagonal[static_cast<size_t>(square)] |
         detail::kTables.antidiagonal[static_cast<size_t>(square)];
}

inline Squares between(int32_t from, int32_t to) {
  return detail::kTables.between[static_cast<size_t>(from)][static_cast<size_t>(to)];
}

// The whole line through `square` on which `other` lies, without `square`; none if there is no such line.
inline Squares line_through(int32_t square, Squares other) {
  const size_t at = static_cast<size_t>(square);
  for (const Squares line : {detail::kTables.file[at], detail::kTables.rank[at], detail::kTables.diagonal[at],
                             detail::kTables.antidiagonal[at]}) {
    if ((line & other) != 0) return line;
  }
  return 0;
}

// What pawns attack that move up the board, and down.
inline Squares attacks_of_pawns_up(Squares pawns) { return (pawns & ~kFileA) << 7 | (pawns & ~kFileH) << 9; }
inline Squares attacks_of_pawns_down(Squares pawns) { return (pawns & ~kFileH) >> 7 | (pawns & ~kFileA) >> 9; }

}  // namespace windrow::chess
