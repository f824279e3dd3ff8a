// sequences.cpp: how many sequences of moves there are, by playing them all: what chess players call perft.

#include <cstring>
#include <stdexcept>
#include <vector>

#include "builtin.h"

namespace windrow {

namespace {

// Room for one depth: the state there, and its actions.
struct Level {
  std::vector<uint64_t> state;
  std::vector<int32_t> actions;
};

uint64_t count_from(const GameTable& game, std::vector<Level>& levels, int32_t depth) {
  Level& level = levels[static_cast<size_t>(depth)];
  const int32_t count = game.legal_actions(game.self, level.state.data(), level.actions.data());
  if (depth == 1) return static_cast<uint64_t>(count);
  uint64_t total = 0;
  for (int32_t i = 0; i < count; ++i) {
    std::vector<uint64_t>& next = levels[static_cast<size_t>(depth) - 1].state;
    next = level.state;
    game.apply(game.self, next.data(), level.actions[static_cast<size_t>(i)]);
    total += count_from(game, levels, depth - 1);
  }
  return total;
}

}  // namespace

uint64_t NamedGame::count_sequences(const void* state, int32_t depth) const {
  const bool has_chance = table_.chance_outcomes != nullptr || table_.sample_outcome != nullptr;
  if (has_chance || table_.retain != nullptr || table_.explain != nullptr) {
    throw std::invalid_argument("sequences are counted in built-in games without chance");
  }
  if (depth <= 0) return 1;
  const Level empty{.state = std::vector<uint64_t>(static_cast<size_t>(table_.state_bytes) / sizeof(uint64_t)),
                    .actions = std::vector<int32_t>(static_cast<size_t>(table_.max_legal_actions))};
  std::vector<Level> levels(static_cast<size_t>(depth) + 1, empty);
  std::memcpy(levels[static_cast<size_t>(depth)].state.data(), state, static_cast<size_t>(table_.state_bytes));
  return count_from(table_, levels, depth);
}

}  // namespace windrow
