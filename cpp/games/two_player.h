// two_player.h: what all games between x (player 0, moves first) and o (player 1) share.
#pragma once

#include <cstdint>
#include <string_view>

#include "../game.h"

namespace windrow {

// The winner of a draw, and of a game that is not over.
inline constexpr int32_t kNobody = -1;

inline constexpr char kEmptyMark = '.';
inline constexpr char kPlayerMarks[2] = {'x', 'o'};

inline void write_returns(int32_t winner, float* values) {
  values[0] = winner == 0 ? 1.0f : winner == 1 ? -1.0f : 0.0f;
  values[1] = winner == 1 ? 1.0f : winner == 0 ? -1.0f : 0.0f;
}

// The last line of a drawn position.
inline std::string_view status_line(int32_t to_play, int32_t winner) {
  if (to_play != kTerminal) return to_play == 0 ? "x to move" : "o to move";
  if (winner == kNobody) return "draw";
  return winner == 0 ? "x wins" : "o wins";
}

}  // namespace windrow
