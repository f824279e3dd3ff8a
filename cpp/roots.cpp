#include "roots.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace windrow {

const Tree& planted_tree(const Forest& forest, int32_t index) {
  const Tree& tree = forest.tree(index);
  if (!tree.is_planted()) throw std::logic_error("the tree has no root yet");
  return tree;
}

std::vector<uint8_t> root_states(const Forest& forest, std::span<const int32_t> trees) {
  const size_t size = static_cast<size_t>(forest.game().state_bytes);
  std::vector<uint8_t> states(trees.size() * size);
  for (size_t row = 0; row < trees.size(); ++row) {
    const Tree& tree = planted_tree(forest, trees[row]);
    std::memcpy(states.data() + row * size, tree.state_of(tree.root()), size);
  }
  return states;
}

RootStatistics root_statistics(const Forest& forest, std::span<const int32_t> trees) {
  const size_t count = trees.size(), width = static_cast<size_t>(forest.game().num_actions);
  RootStatistics found{.visits = std::vector<int32_t>(count * width),
                       .priors = std::vector<float>(count * width),
                       .qs = std::vector<float>(count * width),
                       .values = std::vector<float>(count)};
  for (size_t row = 0; row < count; ++row) {
    const Tree& tree = planted_tree(forest, trees[row]);
    const Node& root = tree.node(tree.root());
    if (root.kind == NodeKind::kOfChance) continue;
    if (root.kind != NodeKind::kExpanded) {
      for (const uint16_t action : tree.actions(root)) found.priors[row * width + action] = 1.0f / root.num_edges;
      continue;
    }
    found.values[row] =
        root.is_proven ? root.value : static_cast<float>(root.value_sum) / static_cast<float>(root.visits);
    for (size_t edge = 0; edge < root.num_edges; ++edge) {
      const size_t cell = row * width + tree.actions(root)[edge];
      const int32_t visits = root.is_open ? tree.visits(root)[edge] : 0;
      found.visits[cell] = visits;
      found.priors[cell] = tree.priors(root)[edge];
      if (visits > 0) found.qs[cell] = static_cast<float>(tree.value_sums(root)[edge]) / static_cast<float>(visits);
    }
  }
  return found;
}

RootProofs root_proofs(const Forest& forest, std::span<const int32_t> trees) {
  const size_t count = trees.size(), width = static_cast<size_t>(forest.game().num_actions);
  RootProofs found{.values = std::vector<float>(count, NAN),
                   .distances = std::vector<int32_t>(count),
                   .action_values = std::vector<float>(count * width, NAN),
                   .action_distances = std::vector<int32_t>(count * width),
                   .playable = std::vector<uint8_t>(count * width)};
  for (size_t row = 0; row < count; ++row) {
    const Tree& tree = planted_tree(forest, trees[row]);
    const Node& root = tree.node(tree.root());
    if (root.kind == NodeKind::kOfChance || root.kind == NodeKind::kOver) continue;
    if (root.is_proven) {
      found.values[row] = root.value;
      found.distances[row] = root.distance;
    }
    const std::vector<uint8_t> playable = tree.playable_edges(root);
    for (size_t edge = 0; edge < root.num_edges; ++edge) {
      const size_t cell = row * width + tree.actions(root)[edge];
      found.playable[cell] = playable[edge];
      if (!root.is_open || (tree.edges_in_flight(root)[edge] & kProvenEdge) == 0) continue;
      const Node& child = tree.node(tree.children(root)[edge]);
      found.action_values[cell] = tree.proven_value(child, root.to_play);
      found.action_distances[cell] = child.distance + 1;
    }
  }
  return found;
}

std::vector<float> root_player_values(const Forest& forest, std::span<const int32_t> trees) {
  const size_t width = static_cast<size_t>(forest.game().num_values);
  if (width == 1) throw std::logic_error("the game has one value, not one per player");
  std::vector<float> values(trees.size() * width);
  for (size_t row = 0; row < trees.size(); ++row) {
    const Tree& tree = planted_tree(forest, trees[row]);
    const Node& root = tree.node(tree.root());
    if (root.kind != NodeKind::kExpanded) continue;
    for (size_t player = 0; player < width; ++player) {
      values[row * width + player] =
          root.is_proven ? tree.proven_value(root, static_cast<int32_t>(player))
                         : static_cast<float>(tree.player_value_sums(root)[player]) / static_cast<float>(root.visits);
    }
  }
  return values;
}

int32_t chosen_action(const Forest& forest, const Tree& tree) {
  if (tree.node(tree.root()).kind != NodeKind::kExpanded) return -1;
  // Of the actions that a Gumbel root has visited most it plays the one of highest score, not the first.
  if (forest.options().gumbel.max_considered > 0) return tree.gumbel_action();
  if (forest.options().lcb_deviations > 0.0f) return tree.surest_action(forest.options().lcb_deviations);
  return -1;
}

std::vector<int32_t> surest_actions(const Forest& forest, std::span<const int32_t> trees) {
  if (forest.options().lcb_deviations == 0.0f) throw std::logic_error("the move is not chosen by its bound");
  std::vector<int32_t> chosen;
  chosen.reserve(trees.size());
  for (const int32_t index : trees) {
    const Tree& tree = planted_tree(forest, index);
    const Node& root = tree.node(tree.root());
    const bool has_moves = root.kind != NodeKind::kOfChance && root.num_edges > 0;
    const int32_t action = chosen_action(forest, tree);
    chosen.push_back(action >= 0 ? action : has_moves ? tree.actions(root)[0] : 0);
  }
  return chosen;
}

std::vector<std::vector<int32_t>> root_lines(const Forest& forest, std::span<const int32_t> trees) {
  std::vector<std::vector<int32_t>> lines;
  lines.reserve(trees.size());
  for (const int32_t index : trees) {
    const Tree& tree = planted_tree(forest, index);
    lines.push_back(tree.principal_variation(chosen_action(forest, tree)));
  }
  return lines;
}

GumbelResults gumbel_results(const Forest& forest, std::span<const int32_t> trees) {
  if (forest.options().gumbel.max_considered == 0) throw std::logic_error("the roots are not Gumbel roots");
  const size_t count = trees.size(), width = static_cast<size_t>(forest.game().num_actions);
  GumbelResults found{.policies = std::vector<float>(count * width), .actions = std::vector<int32_t>(count)};
  for (size_t row = 0; row < count; ++row) {
    const Tree& tree = planted_tree(forest, trees[row]);
    const Node& root = tree.node(tree.root());
    if (root.kind == NodeKind::kOfChance) continue;
    const std::span<const uint16_t> actions = tree.actions(root);
    float* const policy = found.policies.data() + row * width;
    if (root.kind != NodeKind::kExpanded) {
      for (const uint16_t action : actions) policy[action] = 1.0f / root.num_edges;
      found.actions[row] = actions.empty() ? 0 : actions[0];
      continue;
    }
    const std::vector<float> improved = tree.gumbel_policy();
    for (size_t edge = 0; edge < actions.size(); ++edge) policy[actions[edge]] = improved[edge];
    found.actions[row] = tree.gumbel_action();
  }
  return found;
}

ForestTotals sum_totals(const Forest& forest, std::span<const int32_t> trees) {
  ForestTotals sum;
  for (const int32_t index : trees) {
    const Tree& tree = forest.tree(index);
    sum.counters.simulations += tree.counters.simulations;
    sum.counters.evaluations += tree.counters.evaluations;
    sum.counters.cache_hits += tree.counters.cache_hits;
    sum.counters.collisions += tree.counters.collisions;
    sum.counters.terminal_hits += tree.counters.terminal_hits;
    sum.counters.proven_nodes += tree.counters.proven_nodes;
    sum.counters.depth_sum += tree.counters.depth_sum;
    sum.counters.max_depth = std::max(sum.counters.max_depth, tree.counters.max_depth);
    sum.nodes += tree.num_nodes();
    sum.expanded += tree.num_expanded();
    sum.bytes += tree.bytes();
    sum.full_trees += tree.is_full() ? 1 : 0;
    sum.proven_trees += tree.is_planted() && tree.node(tree.root()).is_proven ? 1 : 0;
  }
  return sum;
}

}  // namespace windrow
