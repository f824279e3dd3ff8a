// trap_game.h: a random game tree as a GameTable of our own, with faults that can be switched on.
//
// Who moves, what is legal, where the game ends and what it is worth are all read off a hash of the moves so far, so a
// player often moves twice in a row and the number of legal actions varies from 1 to 9. Chance may have a part in it,
// with outcomes that are listed (1 to 12 of them) or drawn (from one to very many). Some positions are traps: while the
// traps are armed, reaching one is one of the faults the core must survive.
//
// If states are to have owners, each refers to a ticket on the heap that counts them. ASan sees a state that is used or
// released after its last owner has gone, and what was never released is still in `num_owners`.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "check.h"
#include "game.h"
#include "trap_faults.h"

namespace windrow {

struct TrapRules {
  enum class Chance { kAbsent, kListed, kSampled };
  int32_t num_players = 2;
  int32_t num_values = 1;
  Chance chance = Chance::kAbsent;
  int32_t max_moves = 12;
  bool owns_states = false;

  int32_t traps_per_1024 = 16;
  TrapFault only = TrapFault::kSound;  // if it is another: the one kind of trap there is
  bool is_armed = false;               // change it only while no search is inside the game

  std::atomic<int64_t> num_owners = 0;
};

// Arms the traps for as long as it lives.
class Armed {
 public:
  Armed(TrapRules* rules, bool is_armed) : rules_(rules) {
    if (rules_ != nullptr) rules_->is_armed = is_armed;
  }
  ~Armed() {
    if (rules_ != nullptr) rules_->is_armed = false;
  }
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;

 private:
  TrapRules* const rules_;
};

class TrapGame {
 public:
  struct Ticket {
    uint64_t id;
    std::atomic<int32_t> num_owners;
  };
  struct State {
    uint64_t id;
    int32_t num_moves;
    int32_t unused;
    Ticket* ticket;  // null if states have no owners
  };
  static constexpr int32_t kNumActions = 9;
  static constexpr int32_t kMaxOutcomes = 12;
  static constexpr int32_t kFloats = 5;
  static constexpr uint64_t kFirst = 0x1ff01;  // if a player begins, all actions are legal

  // The table refers to `rules`.
  static GameTable table(TrapRules& rules) {
    GameTable game{};
    game.abi_version = kGameAbiVersion;
    game.self = &rules;
    game.num_players = rules.num_players;
    game.num_values = rules.num_values;
    game.num_actions = kNumActions;
    game.max_legal_actions = kNumActions;
    game.state_bytes = sizeof(State);
    game.observation_floats = kFloats;
    game.num_symmetries = 1;
    game.initial_state = [](void* self, void* state) {
      bear(of(self), state, kFirst, 0);
      return int32_t{0};
    };
    game.to_play = [](void* self, const void* state) { return to_play(of(self), at(self, state)); };
    game.legal_actions = [](void* self, const void* state, int32_t* actions) {
      return write_legal(of(self), at(self, state), actions);
    };
    game.apply = [](void* self, void* state, int64_t move) { return apply(of(self), at(self, state), move, state); };
    game.returns = [](void* self, const void* state, float* values) {
      return write_returns(of(self), at(self, state), values);
    };
    game.observe = [](void* self, const void* state, float* row) {
      const State& seen = at(self, state);
      if (has(of(self), seen, TrapFault::kObserveFails)) return fail(seen);
      for (int32_t i = 0; i < 4; ++i) row[i] = static_cast<float>(seen.id >> (16 * i) & 0xffff);
      row[4] = static_cast<float>(seen.num_moves);
      return int32_t{0};
    };
    game.hash = [](void* self, const void* state, uint64_t* hash) {
      const State& seen = at(self, state);
      if (has(of(self), seen, TrapFault::kHashFails)) return fail(seen);
      hash[0] = mix(seen.id);
      hash[1] = mix(seen.id + 1);
      return int32_t{0};
    };
    game.symmetry = [](void*, int32_t, int32_t* actions, int32_t* observation) {
      for (int32_t i = 0; i < kNumActions; ++i) actions[i] = i;
      for (int32_t i = 0; i < kFloats; ++i) observation[i] = i;
      return int32_t{0};
    };
    game.explain = [](void*, char* text, int32_t size) {
      std::snprintf(text, static_cast<size_t>(size), "%s", last_failure().c_str());
    };
    if (rules.chance == TrapRules::Chance::kListed) {
      game.max_outcomes = kMaxOutcomes;
      game.chance_outcomes = [](void* self, const void* state, int32_t* outcomes, double* probabilities) {
        return write_outcomes(of(self), at(self, state), outcomes, probabilities);
      };
    }
    if (rules.chance == TrapRules::Chance::kSampled) {
      game.sample_outcome = [](void* self, const void* state, uint64_t seed, int64_t* outcome) {
        return sample(of(self), at(self, state), seed, outcome);
      };
    }
    if (rules.owns_states) {
      game.retain = [](void* self, const void* state) {
        ++at(self, state).ticket->num_owners;
        ++of(self).num_owners;
      };
      game.release = [](void* self, const void* state) {
        Ticket* ticket = at(self, state).ticket;
        --of(self).num_owners;
        if (--ticket->num_owners == 0) delete ticket;
      };
    }
    return game;
  }

  static TrapPlace place_of(const TrapRules& rules, const State& state) {
    if (state.num_moves >= rules.max_moves || (state.num_moves > 1 && state.id % 6 == 0)) return TrapPlace::kEnd;
    if (rules.chance == TrapRules::Chance::kAbsent || state.id >> 50 & 3) return TrapPlace::kDecision;
    return rules.chance == TrapRules::Chance::kListed ? TrapPlace::kListedChance : TrapPlace::kSampledChance;
  }

  // What is wrong with a position when the traps are armed.
  static TrapFault fault_at(const TrapRules& rules, const State& state) {
    const uint64_t bits = mix(state.id + 2);
    if (static_cast<int32_t>(bits % 1024) >= rules.traps_per_1024) return TrapFault::kSound;
    const TrapPlace place = place_of(rules, state);
    const bool is_opposed = rules.num_players == 2 && rules.num_values == 1;
    if (rules.only != TrapFault::kSound) {
      return can_be_at(rules.only, place, is_opposed) ? rules.only : TrapFault::kSound;
    }
    size_t num_possible = 0;
    for (const TrapFaultFacts& facts : trap_faults()) num_possible += can_be_at(facts.fault, place, is_opposed);
    size_t chosen = (bits >> 32) % num_possible;
    for (const TrapFaultFacts& facts : trap_faults()) {
      if (can_be_at(facts.fault, place, is_opposed) && chosen-- == 0) return facts.fault;
    }
    return TrapFault::kSound;
  }
  static TrapFault fault_at(const TrapRules& rules, const void* state) {
    return fault_at(rules, *static_cast<const State*>(state));
  }

  // What `explain` says of a function that failed at a position.
  static std::string reason(const void* state) { return reason(*static_cast<const State*>(state)); }

 private:
  static TrapRules& of(void* self) { return *static_cast<TrapRules*>(self); }

  // The state, alive.
  static const State& at(void* self, const void* state) {
    const State& seen = *static_cast<const State*>(state);
    check((seen.ticket != nullptr) == of(self).owns_states, "a state was made up");
    if (seen.ticket != nullptr) {
      check(seen.ticket->id == seen.id && seen.ticket->num_owners > 0, "a state is used that nobody owns");
    }
    return seen;
  }

  static void bear(TrapRules& rules, void* state, uint64_t id, int32_t num_moves) {
    *static_cast<State*>(state) = {
        .id = id, .num_moves = num_moves, .unused = 0, .ticket = rules.owns_states ? new Ticket{id, 1} : nullptr};
    if (rules.owns_states) ++rules.num_owners;
  }

  static uint64_t mix(uint64_t word) {
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
  }

  static bool has(const TrapRules& rules, const State& state, TrapFault fault) {
    return rules.is_armed && fault_at(rules, state) == fault;
  }

  static std::string& last_failure() {
    thread_local std::string text;
    return text;
  }
  static std::string reason(const State& state) { return "trap " + std::to_string(state.id); }
  static int32_t fail(const State& state) {
    last_failure() = reason(state);
    return kFailed;
  }

  static int32_t to_play(const TrapRules& rules, const State& state) {
    if (has(rules, state, TrapFault::kToPlayFails)) return fail(state);
    if (has(rules, state, TrapFault::kUnknownPlayer)) return (state.id >> 40 & 1) != 0 ? rules.num_players : -3;
    switch (place_of(rules, state)) {
      case TrapPlace::kEnd:
        return kTerminal;
      case TrapPlace::kDecision:
        return static_cast<int32_t>(state.id >> 32 & 0xff) % rules.num_players;
      default:
        return kChance;
    }
  }

  static int32_t write_legal(const TrapRules& rules, const State& state, int32_t* actions) {
    if (has(rules, state, TrapFault::kLegalActionsFails)) return fail(state);
    if (has(rules, state, TrapFault::kNobodyCanMove)) return 0;
    if (has(rules, state, TrapFault::kTooManyActions)) return kNumActions + 1;
    if (place_of(rules, state) != TrapPlace::kDecision) return 0;
    int32_t count = 0;
    for (int32_t action = 0; action < kNumActions; ++action) {
      if ((state.id >> (8 + action) & 1) != 0) actions[count++] = action;
    }
    if (count == 0) actions[count++] = static_cast<int32_t>(state.id >> 20) & 7;
    if (has(rules, state, TrapFault::kActionsDescend)) {
      actions[0] = actions[1] = 3;
      count = 2;
    }
    if (has(rules, state, TrapFault::kActionUnknown)) actions[count - 1] = (state.id & 1) != 0 ? kNumActions : -1;
    return count;
  }

  static int32_t write_returns(const TrapRules& rules, const State& state, float* values) {
    if (has(rules, state, TrapFault::kReturnsFails)) return fail(state);
    for (int32_t player = 0; player < rules.num_players; ++player) {
      const uint64_t word = mix(state.id + 3 + (static_cast<uint64_t>(player) << 32));
      values[player] = static_cast<float>(static_cast<int32_t>(word % 5) - 2) / 2.0f;
    }
    if (rules.num_players == 2 && rules.num_values == 1) values[1] = -values[0];
    float& last = values[rules.num_players - 1];
    if (has(rules, state, TrapFault::kReturnsTooLarge)) last = 1.5f;
    if (has(rules, state, TrapFault::kReturnsNoNumber)) last = std::numeric_limits<float>::quiet_NaN();
    if (has(rules, state, TrapFault::kReturnsNotOpposed)) {
      values[0] = 1.0f;
      values[1] = 0.5f;
    }
    return 0;
  }

  // --- Chance ----------------------------------------------------------------------------------------------------

  static int32_t write_outcomes(const TrapRules& rules, const State& state, int32_t* outcomes, double* probabilities) {
    if (has(rules, state, TrapFault::kOutcomesFails)) return fail(state);
    if (has(rules, state, TrapFault::kNoOutcome)) return 0;
    const uint64_t bits = mix(state.id + 4);
    const int32_t count = static_cast<int32_t>(bits >> 8 & 0xff) % kMaxOutcomes + 1;
    double total = 0.0;
    for (int32_t i = 0; i < count; ++i) {
      const uint64_t word = mix(bits + static_cast<uint64_t>(i));
      outcomes[i] = 5461 * i + static_cast<int32_t>(word % 5461);
      // Some are all but impossible.
      probabilities[i] = (word >> 32 & 7) == 0 ? 1e-9 : static_cast<double>((word >> 40 & 15) + 1);
      total += probabilities[i];
    }
    if ((bits & 1) != 0) outcomes[0] = 0;
    if ((bits & 2) != 0) outcomes[count - 1] = kMaxActions;
    for (int32_t i = 0; i < count; ++i) probabilities[i] /= total;
    if (has(rules, state, TrapFault::kTooManyOutcomes)) return kMaxOutcomes + 1;
    if (has(rules, state, TrapFault::kOutcomesDescend)) outcomes[0] = count > 1 ? outcomes[1] : -1;
    if (has(rules, state, TrapFault::kOutcomeTooLarge)) outcomes[count - 1] = kMaxActions + 1;
    if (has(rules, state, TrapFault::kOutcomeImpossible)) probabilities[0] = (bits & 4) != 0 ? 0.0 : -0.25;
    if (has(rules, state, TrapFault::kProbabilitiesTooSmall)) {
      for (int32_t i = 0; i < count; ++i) probabilities[i] *= 0.999;
    }
    if (has(rules, state, TrapFault::kProbabilityNoNumber)) {
      probabilities[count - 1] =
          (bits & 4) != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    }
    return count;
  }

  // Drawn outcomes are any numbers of 64 bits: the first of the position's, with the lowest bits changed.
  static uint64_t first_outcome(const State& state) { return mix(state.id + 5); }
  static uint64_t num_outcomes(const State& state) {
    constexpr uint64_t kCounts[] = {1, 2, 3, 4, 7, 30, 300, uint64_t{1} << 40};
    return kCounts[first_outcome(state) >> 16 & 7];
  }

  static int32_t sample(const TrapRules& rules, const State& state, uint64_t seed, int64_t* outcome) {
    if (has(rules, state, TrapFault::kSampleFails)) return fail(state);
    // Small ones are more likely than large ones.
    const uint64_t number = mix(seed) % num_outcomes(state) & mix(seed + 1);
    *outcome = static_cast<int64_t>(first_outcome(state) ^ number);
    return 0;
  }

  static bool is_possible(const TrapRules& rules, const State& state, int64_t move) {
    int32_t moves[kMaxOutcomes];
    double probabilities[kMaxOutcomes];
    int32_t count = 0;
    switch (place_of(rules, state)) {
      case TrapPlace::kEnd:
        return false;
      case TrapPlace::kSampledChance:
        return (static_cast<uint64_t>(move) ^ first_outcome(state)) < num_outcomes(state);
      case TrapPlace::kListedChance:
        count = write_outcomes(rules, state, moves, probabilities);
        break;
      case TrapPlace::kDecision:
        count = write_legal(rules, state, moves);
        break;
    }
    for (int32_t i = 0; i < count; ++i) {
      if (moves[i] == move) return true;
    }
    return false;
  }

  // `before` is what `changed` holds.
  static int32_t apply(TrapRules& rules, const State& before, int64_t move, void* changed) {
    const TrapPlace place = place_of(rules, before);
    // A position that is itself a trap may have been reached before the traps were armed.
    const bool is_known = fault_at(rules, before) == TrapFault::kSound || !rules.is_armed;
    const bool may_happen = is_possible(rules, before, move);
    check(may_happen || !is_known || place == TrapPlace::kListedChance || place == TrapPlace::kSampledChance,
          "apply is called with an action that is not legal");
    if (!may_happen && is_known) {
      last_failure() = "no such outcome";
      return kFailed;
    }
    State after{};
    after.id = mix(before.id ^ mix(static_cast<uint64_t>(move) * 0x9e3779b97f4a7c15u + 6));
    after.num_moves = before.num_moves + 1;
    if (has(rules, after, TrapFault::kApplyFails)) return fail(after);
    bear(rules, changed, after.id, after.num_moves);
    return 0;
  }
};

}  // namespace windrow
