// game.h: what a game must be for the core to search it.
//
// A game is a table of facts and C functions over states of a fixed number of bytes. States are plain data: the core
// copies them with memcpy, stores one inside every node and never looks inside. The table is a C ABI on purpose, so
// that a game compiled by another tool (numba, say) is searched exactly like a built-in one.
//
// Laws every game obeys:
//   - legal_actions writes actions in ascending order; a state in which a player is to move has at least one.
//   - apply changes the state in place and is deterministic. It is only called with a legal action or, where chance is
//     to move, with an outcome that may happen there; it fails on any other outcome, and leaves the state as it was.
//   - returns is only called on a terminal state and writes one value in [-1, 1] per player; if num_values is 1 and
//     there are two players, they sum to zero.
//   - observe describes the state from the view of the player to move and writes every float of its row.
//   - A function that cannot do its work returns kFailed; `explain` then says why, to the thread that called.
//   - Functions may be called from several threads at once, on different states.
#pragma once

#include <cstdint>

namespace windrow {

// What to_play answers when nobody is to move.
inline constexpr int32_t kChance = -1;
inline constexpr int32_t kTerminal = -2;

inline constexpr int32_t kFailed = INT32_MIN;

inline constexpr uint32_t kGameAbiVersion = 2;
inline constexpr int32_t kMaxPlayers = 16;
// Actions, and outcomes of chance that are listed, are 16 bits wide.
inline constexpr int32_t kMaxActions = 65535;

extern "C" {

struct GameTable {
  uint32_t abi_version;
  // Handed back as the first argument of every function; owned by whoever made the table.
  void* self;

  // Facts.
  int32_t num_players;
  int32_t num_values;          // 1: what is good for one player is bad for the other; else num_players
  int32_t num_actions;         // A; actions are 0 .. A-1
  int32_t max_legal_actions;   // no state has more
  int32_t max_outcomes;        // no state has more; 0 if chance_outcomes is null
  int32_t state_bytes;         // a multiple of 8; states are 8-byte aligned
  int32_t observation_floats;  // one row
  int32_t num_symmetries;      // at least 1: index 0 is the identity

  // Rules. Those that do not answer a number return 0 or kFailed.
  int32_t (*initial_state)(void* self, void* state);
  int32_t (*to_play)(void* self, const void* state);                          // a player, kChance or kTerminal
  int32_t (*legal_actions)(void* self, const void* state, int32_t* actions);  // returns how many
  int32_t (*apply)(void* self, void* state, int64_t move);                    // an action, or an outcome of chance
  int32_t (*returns)(void* self, const void* state, float* values);           // [num_players]
  int32_t (*observe)(void* self, const void* state, float* row);              // [observation_floats]

  // Chance. A game lists the outcomes of its chance states, ascending numbers from 0 to kMaxActions with probabilities
  // above 0 that sum to 1, and returns how many there are; or, if there are too many to list, it draws one: any number,
  // a pure function of the state and the seed, such that equal numbers lead to equal states. Both are null for a game
  // without chance.
  int32_t (*chance_outcomes)(void* self, const void* state, int32_t* outcomes, double* probabilities);
  int32_t (*sample_outcome)(void* self, const void* state, uint64_t seed, int64_t* outcome);

  // Identity. Equal positions have equal hashes; 128 bits, so that unequal ones have unequal hashes in practice.
  int32_t (*hash)(void* self, const void* state, uint64_t* hash);  // [2]

  // Symmetry `index` as two permutations: the image of a policy is policy[actions[a]] at a, the image of an
  // observation is row[observation[i]] at i.
  int32_t (*symmetry)(void* self, int32_t index, int32_t* actions, int32_t* observation);

  // For states that refer to something outside; null otherwise. A state is born owned by initial_state, and by apply
  // when it succeeds (what was in that memory before is not released); retain makes an owner of a copy, and every owner
  // is released once.
  void (*retain)(void* self, const void* state);
  void (*release)(void* self, const void* state);

  // Why the last call in this thread failed, as text that ends in 0, cut off at `size` bytes. May be null.
  void (*explain)(void* self, char* text, int32_t size);
};

}  // extern "C"

}  // namespace windrow
