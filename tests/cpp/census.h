// census.h: a walk over all nodes of a tree that checks what must always hold, and a record of what it found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "positions.h"
#include "tree.h"

namespace windrow {

// All nodes that can be reached from the root, parents before children.
inline std::vector<Ref> all_nodes(const Tree& tree) {
  std::vector<Ref> nodes = {tree.root()};
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const Ref child : tree.children(tree.node(nodes[i]))) {
      if (child != kNone) nodes.push_back(child);
    }
  }
  return nodes;
}

inline size_t block_bytes(const GameTable& game, const Node& node) {
  return to_lines(sizeof(Node) + static_cast<size_t>(game.state_bytes) + size_t{24} * node.num_slots) * kLineBytes;
}

template <class T>
int64_t sum(std::span<const T> values) {
  int64_t total = 0;
  for (const T value : values) total += value;
  return total;
}

// What holds in every tree at any moment. The values backed up must be dyadic. Returns the nodes.
inline std::vector<Ref> check_tree(const GameTable& game, const Tree& tree) {
  const std::vector<Ref> nodes = all_nodes(tree);
  int64_t num_expanded = 0;
  size_t bytes = 0;
  for (const Ref ref : nodes) {
    const Node& node = tree.node(ref);
    bytes += block_bytes(game, node);

    // The node shows its state.
    const State state(game, tree.state_of(ref));
    check(node.to_play == game.to_play(game.self, state.data()), "to_play is not the state's");
    check((node.kind == NodeKind::kOver) == (node.to_play == kTerminal), "kind and to_play disagree");
    const std::span<const uint16_t> actions = tree.actions(node);
    if (node.kind == NodeKind::kOver) {
      std::vector<float> values(static_cast<size_t>(game.num_players));
      game.returns(game.self, state.data(), values.data());
      check(node.value == values[0], "the value of a finished game is not its return");
      check(actions.empty(), "a finished game has edges");
    } else {
      const std::vector<int32_t> legal = legal_actions(game, state.data());
      check(std::equal(legal.begin(), legal.end(), actions.begin(), actions.end()), "edges are not the legal actions");
    }

    // Sums. An edge knows what came through it, a node what came through all of them and its own evaluation.
    const std::span<const int32_t> visits = tree.visits(node);
    const std::span<const double> value_sums = tree.value_sums(node);
    const std::span<const uint16_t> in_flight = tree.edges_in_flight(node);
    double value_sum = 0.0;
    for (const double edge_sum : value_sums) value_sum += edge_sum;
    check(node.in_flight == sum(in_flight), "I(s) is not the sum of I(s,a)");
    if (node.kind == NodeKind::kExpanded) {
      ++num_expanded;
      check(node.visits == 1 + sum(visits), "N(s) is not 1 + the sum of N(s,a)");
      check(node.value_sum == node.value + value_sum, "the node's value sum is not its value + its edges' sums");
      double total = 0.0;
      for (const float prior : tree.priors(node)) {
        check(prior >= 0.0f && prior <= 1.0f, "a prior is not in [0, 1]");
        total += static_cast<double>(prior);
      }
      check(std::fabs(total - 1.0) < 1e-5, "the priors do not sum to 1");
    } else {
      check(node.visits == 0 && sum(visits) == 0 && node.in_flight == 0 && value_sum == 0.0,
            "a node that was not evaluated has statistics");
    }

    for (size_t edge = 0; edge < actions.size(); ++edge) {
      const Ref child_ref = tree.children(node)[edge];
      if (child_ref == kNone) {
        check(visits[edge] == 0 && in_flight[edge] == 0 && value_sums[edge] == 0.0,
              "an edge to nowhere has statistics");
        continue;
      }
      const Node& child = tree.node(child_ref);
      check(child.parent == ref && child.parent_edge == edge, "a child does not know its parent");
      State next = state;
      check(game.apply(game.self, next.data(), actions[edge]) == 0, "apply failed for a child that exists");
      check(next == State(game, tree.state_of(child_ref)), "the child's state is not what the action leads to");
      if (child.kind == NodeKind::kExpanded) {
        check(visits[edge] >= child.visits, "a child has more visits than its edge");
        check(in_flight[edge] >= child.in_flight, "a child has more in flight than its edge");
      }
      if (child.kind == NodeKind::kNew) check(visits[edge] == 0 && in_flight[edge] == 0, "a new child has visits");
      if (child.kind == NodeKind::kWaiting)
        check(visits[edge] == 0 && in_flight[edge] > 0, "a waiting child has visits");
    }
  }
  check(tree.node(tree.root()).parent == kNone, "the root has a parent");
  check(static_cast<size_t>(tree.num_nodes()) == nodes.size(), "num_nodes is not what can be reached");
  check(tree.num_expanded() == num_expanded, "num_expanded is not what can be reached");
  check(tree.bytes() == bytes, "bytes is not the sum of the blocks that can be reached");

  // The blocks lie side by side.
  std::vector<Ref> in_order = nodes;
  std::sort(in_order.begin(), in_order.end());
  size_t next = 0;
  for (const Ref ref : in_order) {
    check(ref * kLineBytes == next, "there is a gap between blocks, or they overlap");
    next += block_bytes(game, tree.node(ref));
  }
  return nodes;
}

// All that a node holds except where it lies, bit for bit.
struct NodeRecord {
  NodeKind kind;
  std::string bits;
  bool operator==(const NodeRecord&) const = default;
};
// By the actions that lead to the node.
using TreeRecord = std::map<std::vector<int32_t>, NodeRecord>;

inline TreeRecord record(const GameTable& game, const Tree& tree) {
  TreeRecord found;
  for (const Ref ref : all_nodes(tree)) {
    const Node& node = tree.node(ref);
    std::string bits;
    const auto add = [&](const void* data, size_t size) { bits.append(static_cast<const char*>(data), size); };
    const auto add_span = [&](const auto& values) { add(values.data(), values.size_bytes()); };
    add(tree.state_of(ref), static_cast<size_t>(game.state_bytes));
    add(&node.value_sum, sizeof node.value_sum);
    add(&node.value, sizeof node.value);
    add(&node.visits, sizeof node.visits);
    add(&node.in_flight, sizeof node.in_flight);
    add(&node.to_play, sizeof node.to_play);
    add_span(tree.actions(node));
    add_span(tree.priors(node));
    add_span(tree.visits(node));
    add_span(tree.value_sums(node));
    add_span(tree.edges_in_flight(node));
    found.emplace(tree.actions_to(ref), NodeRecord{node.kind, std::move(bits)});
  }
  return found;
}

// The nodes that were evaluated: what does not depend on selections that were cancelled. (The ends of games that were
// reached show in their edges.)
inline TreeRecord evaluated_only(TreeRecord all) {
  std::erase_if(all, [](const auto& entry) { return entry.second.kind != NodeKind::kExpanded; });
  return all;
}

}  // namespace windrow
