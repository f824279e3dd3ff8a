// chess_moves.h: the numbers of moves: lc0's 1,858.
//
// 0 to 1,791: every pair of squares that a queen or a knight can move between on an empty board, sorted by the first
//   and then by the second square (a1 = 0, b1 = 1, ... h8 = 63). A pawn that arrives at rank 8 by such a move becomes a
//   knight.
// 1,792 to 1,857: promotions to a queen, a rook or a bishop: for every file from a to h, for every file it can arrive
//   on from left to right, in this order of pieces.
//
// Squares are seen by the player to move. Castling is the king's move onto its own rook.
#pragma once

#include <array>
#include <cstdint>

#include "chess_position.h"

namespace windrow::chess {

inline constexpr int32_t kNumPlainMoves = 1792, kNumMoves = 1858;
inline constexpr std::array<int32_t, 3> kPromotions = {kQueen, kRook, kBishop};

struct MoveTable {
  struct Squares2 {
    uint8_t from, to;
  };
  std::array<Squares2, kNumMoves> squares;           // by number
  std::array<std::array<int16_t, 64>, 64> number;    // by squares; -1 if no piece moves like that
  std::array<std::array<int16_t, 3>, 8> promotions;  // by file and step (left, straight, right): the queen; -1 if none
};

constexpr MoveTable make_move_table() {
  MoveTable table{};
  int32_t next = 0;
  for (int32_t from = 0; from < 64; ++from) {
    for (int32_t to = 0; to < 64; ++to) {
      const int32_t files = to % 8 > from % 8 ? to % 8 - from % 8 : from % 8 - to % 8;
      const int32_t ranks = to / 8 > from / 8 ? to / 8 - from / 8 : from / 8 - to / 8;
      const bool is_queens = from != to && (files == 0 || ranks == 0 || files == ranks);
      const bool is_knights = files * ranks == 2;
      int16_t& number = table.number[static_cast<size_t>(from)][static_cast<size_t>(to)];
      number = -1;
      if (!is_queens && !is_knights) continue;
      table.squares[static_cast<size_t>(next)] = {static_cast<uint8_t>(from), static_cast<uint8_t>(to)};
      number = static_cast<int16_t>(next++);
    }
  }
  for (int32_t file = 0; file < 8; ++file) {
    for (int32_t step = 0; step < 3; ++step) {
      int16_t& promotion = table.promotions[static_cast<size_t>(file)][static_cast<size_t>(step)];
      const int32_t to_file = file + step - 1;
      promotion = -1;
      if (to_file < 0 || to_file > 7) continue;
      promotion = static_cast<int16_t>(next);
      for (size_t piece = 0; piece < kPromotions.size(); ++piece) {
        table.squares[static_cast<size_t>(next++)] = {static_cast<uint8_t>(48 + file),
                                                      static_cast<uint8_t>(56 + to_file)};
      }
    }
  }
  return table;
}

inline constexpr MoveTable kMoveTable = make_move_table();
static_assert(kMoveTable.squares[kNumPlainMoves].from == 48 && kMoveTable.squares[kNumMoves - 1].to == 63);

// The number of a move; -1 if no piece moves like that. `promotion` is a queen, a rook or a bishop, or else nothing.
inline int32_t number_of_move(int32_t from, int32_t to, int32_t promotion) {
  if (promotion == kNothing) return kMoveTable.number[static_cast<size_t>(from)][static_cast<size_t>(to)];
  const int32_t step = (to & 7) - (from & 7) + 1;
  if (from / 8 != 6 || to / 8 != 7 || step < 0 || step > 2) return -1;
  const int32_t queen = kMoveTable.promotions[static_cast<size_t>(from & 7)][static_cast<size_t>(step)];
  return queen + kQueen - promotion;
}
static_assert(kPromotions[0] == kQueen && kPromotions[1] == kQueen - 1 && kPromotions[2] == kQueen - 2);

// The move with this number, promotion to a knight left out: that depends on what stands on the first square.
inline Move move_of_number(int32_t number) {
  const auto [from, to] = kMoveTable.squares[static_cast<size_t>(number)];
  const size_t piece = static_cast<size_t>((number - kNumPlainMoves) % 3);
  return {.from = from, .to = to, .promotion = number < kNumPlainMoves ? kNothing : kPromotions[piece]};
}

}  // namespace windrow::chess
