// failure.h: why a game could not do what it was asked, in words.
#pragma once

#include <string>

#include "game.h"

namespace windrow {

// About the last call in this thread that returned kFailed.
inline std::string why_failed(const GameTable& game) {
  char text[2048] = {};
  if (game.explain != nullptr) game.explain(game.self, text, sizeof text);
  return text[0] != '\0' ? text : "it gave no reason";
}

}  // namespace windrow
