// roots.h: the results of searches at the roots of many trees, as dense arrays of one row per tree.
//
// Every function throws std::logic_error if one of the trees has no root.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "forest.h"

namespace windrow {

// The tree at `index`, which must have a root.
const Tree& planted_tree(const Forest& forest, int32_t index);

// The positions at the roots, [trees, state_bytes].
std::vector<uint8_t> root_states(const Forest& forest, std::span<const int32_t> trees);

// Values and Q are for the player to move. Zeros where an action is illegal or was never tried, and in all of a row
// whose root is a chance node.
struct RootStatistics {
  std::vector<int32_t> visits;  // [trees, A]
  std::vector<float> priors;    // [trees, A], equal over the legal actions until the root has been evaluated
  std::vector<float> qs;        // [trees, A]
  std::vector<float> values;    // [trees], means; of a proven root its value
};
RootStatistics root_statistics(const Forest& forest, std::span<const int32_t> trees);

// What is proven at the roots, values for the player to move. NaN where a value is open, or the action is illegal.
struct RootProofs {
  std::vector<float> values;              // [trees]
  std::vector<int32_t> distances;         // [trees], moves to the end of the game; 0 where it is open
  std::vector<float> action_values;       // [trees, A]
  std::vector<int32_t> action_distances;  // [trees, A], the move itself counted
  std::vector<uint8_t> playable;          // [trees, A], which actions may be played (tree.h)
};
RootProofs root_proofs(const Forest& forest, std::span<const int32_t> trees);

// Mean values by player, or the proven ones, [trees, num_values]; zeros where the root has not been evaluated. For
// games with one value per player, else std::logic_error.
std::vector<float> root_player_values(const Forest& forest, std::span<const int32_t> trees);

// The action that a search would play at its root, if anything but the most visits decides that; else -1, as for a root
// that has not been evaluated.
int32_t chosen_action(const Forest& forest, const Tree& tree);
// The same for many trees whose move is chosen by the lower confidence bound; before a root is evaluated, its first
// action. std::logic_error if it is not.
std::vector<int32_t> surest_actions(const Forest& forest, std::span<const int32_t> trees);

// The most visited line of each tree. It begins with the action that the search would play.
std::vector<std::vector<int32_t>> root_lines(const Forest& forest, std::span<const int32_t> trees);

// The improved policies of Gumbel roots and the actions they would play. Until a root has been evaluated: equal over
// the legal actions, and the first of them. std::logic_error if the roots are not Gumbel roots.
struct GumbelResults {
  std::vector<float> policies;   // [trees, A]
  std::vector<int32_t> actions;  // [trees]
};
GumbelResults gumbel_results(const Forest& forest, std::span<const int32_t> trees);

// What the searches of some trees did since they began, summed; `max_depth` is the largest. Trees without a root count.
struct ForestTotals {
  TreeCounters counters;
  int64_t nodes = 0;
  int64_t expanded = 0;
  size_t bytes = 0;
  int32_t full_trees = 0;
  int32_t proven_trees = 0;  // whose root is proven
};
ForestTotals sum_totals(const Forest& forest, std::span<const int32_t> trees);

}  // namespace windrow
