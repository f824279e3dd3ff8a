// game.h: what a game must be for the core to search it.
//
// A game is a table of facts and C functions over states of a fixed number of bytes. States are plain data: the core
// copies them with memcpy, stores one inside every node and never looks inside. The table is a C ABI on purpose, so
// that a game compiled by another tool (numba, say) is searched exactly like a built-in one.
//
// Laws every game obeys:
//   - legal_actions writes actions in ascending order; a state that is neither TERMINAL nor CHANCE has at least one.
//   - apply changes the state in place and is deterministic; it is only called with a legal action.
//   - returns is only called on a terminal state and writes one value in [-1, 1] per player; with two players they
//     sum to zero.
//   - observe describes the state from the view of the player to move and writes every float of its row.
//   - Functions may be called from several threads at once, on different states.
#pragma once

#include <cstdint>

namespace windrow {

// What to_play answers when nobody is to move.
inline constexpr int32_t kChance = -1;
inline constexpr int32_t kTerminal = -2;

inline constexpr uint32_t kGameAbiVersion = 1;

extern "C" {

struct GameTable {
  uint32_t abi_version;
  // Handed back as the first argument of every function; owned by whoever made the table.
  void* self;

  // Facts.
  int32_t num_players;
  int32_t num_actions;         // A; actions are 0 .. A-1
  int32_t max_legal_actions;   // no state has more
  int32_t state_bytes;         // a multiple of 8; states are 8-byte aligned
  int32_t observation_floats;  // one row
  int32_t num_symmetries;      // at least 1: index 0 is the identity

  // Rules.
  void (*initial_state)(void* self, void* state);
  int32_t (*to_play)(void* self, const void* state);                          // a player, kChance or kTerminal
  int32_t (*legal_actions)(void* self, const void* state, int32_t* actions);  // returns how many
  int32_t (*apply)(void* self, void* state, int32_t action);                  // 0, or the game's own error code
  void (*returns)(void* self, const void* state, float* values);              // [num_players]
  void (*observe)(void* self, const void* state, float* row);                 // [observation_floats]

  // Identity. Equal positions have equal hashes; 128 bits, so that unequal ones have unequal hashes in practice.
  void (*hash)(void* self, const void* state, uint64_t* hash);  // [2]

  // Symmetry `index` as two permutations: the image of a policy is policy[actions[a]] at a, the image of an
  // observation is row[observation[i]] at i.
  void (*symmetry)(void* self, int32_t index, int32_t* actions, int32_t* observation);
};

}  // extern "C"

}  // namespace windrow
