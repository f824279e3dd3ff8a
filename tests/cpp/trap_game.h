// trap_game.h: a random game tree as a GameTable of our own, with faults that can be switched on.
//
// Who moves, what is legal, where the game ends and what it is worth are all read off a hash of the moves so far, so a
// player often moves twice in a row and the number of legal actions varies from 1 to 9. Some positions are traps: while
// the traps are armed, reaching one is one of the faults the core must survive.
#pragma once

#include <cstdint>

#include "game.h"

namespace windrow {

struct TrapRules {
  int32_t num_players = 2;
  int32_t max_moves = 12;
  int32_t traps_per_1024 = 16;
  bool is_armed = false;  // change it only while no search is inside the game
};

class TrapGame {
 public:
  enum class Fault { kSound, kApply, kNobodyCanMove, kUnknownPlayer, kTooManyActions };
  struct State {
    uint64_t id;
    int32_t num_moves;
    int32_t unused;
  };
  static constexpr int32_t kNumActions = 9;
  static constexpr int32_t kErrorCode = 7;

  // The table refers to `rules`.
  static GameTable table(TrapRules& rules) {
    GameTable game{};
    game.abi_version = kGameAbiVersion;
    game.self = &rules;
    game.num_players = rules.num_players;
    game.num_actions = kNumActions;
    game.max_legal_actions = kNumActions;
    game.state_bytes = sizeof(State);
    game.observation_floats = 3;
    game.num_symmetries = 1;
    game.initial_state = [](void*, void* state) {
      *static_cast<State*>(state) = {.id = 1, .num_moves = 0, .unused = 0};
    };
    game.to_play = [](void* self, const void* state) { return to_play(of(self), at(state)); };
    game.legal_actions = [](void* self, const void* state, int32_t* actions) {
      return write_legal(of(self), at(state), actions);
    };
    game.apply = [](void* self, void* state, int32_t action) {
      State& changed = *static_cast<State*>(state);
      changed = {.id = mix(changed.id * 16 + static_cast<uint64_t>(action) + 1),
                 .num_moves = changed.num_moves + 1,
                 .unused = 0};
      return fault_at(of(self), changed) == Fault::kApply ? kErrorCode : int32_t{0};
    };
    game.returns = [](void* self, const void* state, float* values) {
      values[0] = static_cast<float>(static_cast<int32_t>(at(state).id >> 40) % 5 - 2) / 2.0f;
      if (of(self).num_players == 2) values[1] = -values[0];
    };
    game.observe = [](void*, const void* state, float* row) {
      row[0] = static_cast<float>(at(state).id >> 44);
      row[1] = static_cast<float>(at(state).id >> 24 & 0xfffff);
      row[2] = static_cast<float>(at(state).num_moves);
    };
    game.hash = [](void*, const void* state, uint64_t* hash) {
      hash[0] = mix(at(state).id);
      hash[1] = mix(at(state).id + 1);
    };
    game.symmetry = [](void*, int32_t, int32_t* actions, int32_t* observation) {
      for (int32_t i = 0; i < kNumActions; ++i) actions[i] = i;
      for (int32_t i = 0; i < 3; ++i) observation[i] = i;
    };
    return game;
  }

  static Fault fault_at(const TrapRules& rules, const State& state) {
    const uint64_t bits = mix(state.id + 2);
    if (!rules.is_armed || static_cast<int32_t>(bits % 1024) >= rules.traps_per_1024) return Fault::kSound;
    constexpr Fault kFaults[] = {Fault::kApply, Fault::kNobodyCanMove, Fault::kUnknownPlayer, Fault::kTooManyActions};
    return kFaults[bits >> 32 & 3];
  }

 private:
  static const TrapRules& of(void* self) { return *static_cast<const TrapRules*>(self); }
  static const State& at(const void* state) { return *static_cast<const State*>(state); }

  static uint64_t mix(uint64_t word) {
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
  }

  static int32_t to_play(const TrapRules& rules, const State& state) {
    const Fault fault = fault_at(rules, state);
    if (fault == Fault::kUnknownPlayer) return 5;
    const bool is_over = state.num_moves >= rules.max_moves || (state.num_moves > 1 && state.id % 6 == 0);
    if (is_over && fault == Fault::kSound) return kTerminal;
    return static_cast<int32_t>(state.id >> 32 & 1) % rules.num_players;
  }

  static int32_t write_legal(const TrapRules& rules, const State& state, int32_t* actions) {
    const Fault fault = fault_at(rules, state);
    if (fault == Fault::kNobodyCanMove) return 0;
    if (fault == Fault::kTooManyActions) return kNumActions + 1;
    int32_t count = 0;
    for (int32_t action = 0; action < kNumActions; ++action) {
      if ((state.id >> (8 + action) & 1) != 0) actions[count++] = action;
    }
    if (count == 0) actions[count++] = static_cast<int32_t>(state.id >> 20) & 7;
    return count;
  }
};

}  // namespace windrow
