// lottery.h: the plainest game of chance: decisions and draws in turn, always the same number of each.
//
//   a round:  a player moves (`num_actions` ways, all alike), then chance draws `num_draws` times
//
// After `num_rounds` rounds the game is over, and the last number drawn says who wins. Chance draws from a list, or any
// of `spread` numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "game.h"

namespace windrow {

struct Lottery {
  struct State {
    int64_t last;  // drawn
    int64_t step;  // moves and draws so far
  };

  int32_t num_players = 2;
  int32_t num_actions = 1;
  int32_t num_rounds = 1;
  int32_t num_draws = 1;
  std::vector<int32_t> outcomes;  // if they are listed
  std::vector<double> probabilities;
  uint64_t spread = 0;  // if they are not; 0: the seed itself is drawn

  // The table refers to this object.
  GameTable table() {
    GameTable game{};
    game.abi_version = kGameAbiVersion;
    game.self = this;
    game.num_players = num_players;
    game.num_values = num_players > 2 ? num_players : 1;
    game.num_actions = num_actions;
    game.max_legal_actions = num_actions;
    game.state_bytes = sizeof(State);
    game.observation_floats = 1;
    game.num_symmetries = 1;
    game.initial_state = [](void*, void* state) {
      *static_cast<State*>(state) = {0, 0};
      return int32_t{0};
    };
    game.to_play = [](void* self, const void* state) { return of(self).to_play(at(state)); };
    game.legal_actions = [](void* self, const void* state, int32_t* actions) {
      if (of(self).to_play(at(state)) < 0) return int32_t{0};
      for (int32_t i = 0; i < of(self).num_actions; ++i) actions[i] = i;
      return of(self).num_actions;
    };
    game.apply = [](void* self, void* state, int64_t move) { return of(self).apply(at(state), move, state); };
    game.returns = [](void* self, const void* state, float* values) {
      // Player 0 has 1, 0 or -1, the next the opposite, and so on.
      for (int32_t player = 0; player < of(self).num_players; ++player) {
        values[player] = static_cast<float>((static_cast<uint64_t>(at(state).last) % 3) - 1.0) * (player % 2 ? -1 : 1);
      }
      return int32_t{0};
    };
    game.observe = [](void*, const void* state, float* row) {
      row[0] = static_cast<float>(at(state).step);
      return int32_t{0};
    };
    game.hash = [](void*, const void* state, uint64_t* hash) {
      hash[0] = (static_cast<uint64_t>(at(state).last) + 1) * 0x9e3779b97f4a7c15u;
      hash[1] = hash[0] ^ static_cast<uint64_t>(at(state).step + 1) * 0xd6e8feb86659fd93u;
      return int32_t{0};
    };
    game.symmetry = [](void* self, int32_t, int32_t* actions, int32_t* observation) {
      for (int32_t i = 0; i < of(self).num_actions; ++i) actions[i] = i;
      observation[0] = 0;
      return int32_t{0};
    };
    if (!outcomes.empty()) {
      game.max_outcomes = static_cast<int32_t>(outcomes.size());
      game.chance_outcomes = [](void* self, const void*, int32_t* numbers, double* shares) {
        std::copy(of(self).outcomes.begin(), of(self).outcomes.end(), numbers);
        std::copy(of(self).probabilities.begin(), of(self).probabilities.end(), shares);
        return static_cast<int32_t>(of(self).outcomes.size());
      };
    } else {
      game.sample_outcome = [](void* self, const void*, uint64_t seed, int64_t* outcome) {
        *outcome = static_cast<int64_t>(of(self).spread == 0 ? seed : seed % of(self).spread);
        return int32_t{0};
      };
    }
    return game;
  }

 private:
  static const Lottery& of(void* self) { return *static_cast<const Lottery*>(self); }
  static const State& at(const void* state) { return *static_cast<const State*>(state); }

  int32_t to_play(const State& state) const {
    const int64_t round = state.step / (1 + num_draws);
    if (round == num_rounds) return kTerminal;
    return state.step % (1 + num_draws) != 0 ? kChance : static_cast<int32_t>(round % num_players);
  }

  int32_t apply(const State& before, int64_t move, void* after) const {
    const bool is_draw = to_play(before) == kChance;
    if (is_draw && !outcomes.empty() && !std::binary_search(outcomes.begin(), outcomes.end(), move)) return kFailed;
    if (is_draw && spread != 0 && static_cast<uint64_t>(move) >= spread) return kFailed;
    *static_cast<State*>(after) = {is_draw ? move : before.last, before.step + 1};
    return 0;
  }
};

}  // namespace windrow
