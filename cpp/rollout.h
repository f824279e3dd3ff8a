// rollout.h: the value of a position by random play; what people used before networks, and still the baseline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "game.h"
#include "random.h"

namespace windrow {

// The mean result of `num_rollouts` random games from each of `count` states, for the player to move there. The draws
// are keyed by the position's hash, so a position has the same value wherever and whenever it is asked for. A terminal
// state has its own result, for player 0.
inline void evaluate_by_rollout(const GameTable& game, const std::byte* states, int32_t count, int32_t num_rollouts,
                                uint64_t seed, float* values) {
  const size_t size = static_cast<size_t>(game.state_bytes);
  // uint64_t for the alignment that states are promised.
  std::vector<uint64_t> scratch(size / sizeof(uint64_t));
  std::vector<int32_t> actions(static_cast<size_t>(game.max_legal_actions) + 1);
  std::vector<float> returns(static_cast<size_t>(game.num_players));
  for (int32_t row = 0; row < count; ++row) {
    std::memcpy(scratch.data(), states + static_cast<size_t>(row) * size, size);
    uint64_t hash[2];
    game.hash(game.self, scratch.data(), hash);
    const RandomKey key{seed ^ hash[1], static_cast<uint32_t>(hash[0]), static_cast<uint32_t>(hash[0] >> 32)};
    double total = 0.0;
    for (int32_t rollout = 0; rollout < num_rollouts; ++rollout) {
      std::memcpy(scratch.data(), states + static_cast<size_t>(row) * size, size);
      Stream stream(key, Purpose::kRollout, static_cast<uint32_t>(rollout));
      const int32_t mover = game.to_play(game.self, scratch.data());
      for (int32_t player = mover; player != kTerminal; player = game.to_play(game.self, scratch.data())) {
        const uint32_t num_legal = static_cast<uint32_t>(game.legal_actions(game.self, scratch.data(), actions.data()));
        const uint64_t chosen = (stream.next_bits() >> 32) * num_legal >> 32;
        game.apply(game.self, scratch.data(), actions[chosen]);
      }
      game.returns(game.self, scratch.data(), returns.data());
      total += static_cast<double>(returns[static_cast<size_t>(mover == kTerminal ? 0 : mover)]);
    }
    values[row] = static_cast<float>(total / num_rollouts);
  }
}

}  // namespace windrow
