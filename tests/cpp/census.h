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
    if (!tree.node(nodes[i]).is_open) continue;
    for (const Ref child : tree.children(tree.node(nodes[i]))) {
      if (child != kNone) nodes.push_back(child);
    }
  }
  return nodes;
}

// A light node holds 6 bytes an edge, an open one 24.
inline size_t block_bytes(const GameTable& game, const Node& node, bool is_open) {
  const size_t per_edge = is_open ? 24 : 6, num_slots = (node.num_edges + size_t{3}) / 4 * 4;
  return to_lines(sizeof(Node) + static_cast<size_t>(game.state_bytes) + per_edge * num_slots) * kLineBytes;
}
inline size_t block_bytes(const GameTable& game, const Node& node) { return block_bytes(game, node, node.is_open); }

// The statistics of a node's edges; of a light node, the zeros they would be.
struct EdgeRecord {
  std::vector<int32_t> visits;
  std::vector<double> value_sums;
  std::vector<uint16_t> in_flight;
  std::vector<Ref> children;
};

inline EdgeRecord edges_of(const Tree& tree, const Node& node) {
  const size_t count = node.num_edges;
  if (!node.is_open) {
    return {std::vector<int32_t>(count), std::vector<double>(count), std::vector<uint16_t>(count),
            std::vector<Ref>(count, kNone)};
  }
  const auto copy = [](auto span) { return std::vector(span.begin(), span.end()); };
  return {copy(tree.visits(node)), copy(tree.value_sums(node)), copy(tree.edges_in_flight(node)),
          copy(tree.children(node))};
}

template <class T>
int64_t sum(const std::vector<T>& values) {
  int64_t total = 0;
  for (const T value : values) total += value;
  return total;
}

// What holds in every tree at any moment. The values backed up must be dyadic. Returns the nodes. `is_compact`: the
// tree was just planted or advanced, so that no open node has left its light form behind.
inline std::vector<Ref> check_tree(const GameTable& game, const Tree& tree, bool is_compact = false) {
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
    const auto [visits, value_sums, in_flight, children] = edges_of(tree, node);
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
      check(!node.is_open, "a node that was not evaluated is open");
      check(node.visits == 0 && sum(visits) == 0 && node.in_flight == 0 && value_sum == 0.0,
            "a node that was not evaluated has statistics");
    }

    for (size_t edge = 0; edge < actions.size(); ++edge) {
      const Ref child_ref = children[edge];
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

  // The blocks lie side by side, parents before children. Where an open node was made light before, that form may still
  // lie between them.
  std::vector<Ref> in_order = nodes;
  std::sort(in_order.begin(), in_order.end());
  size_t next = 0, left_behind = 0;
  for (const Ref ref : in_order) {
    for (; ref * kLineBytes != next && !is_compact;) {
      const Node& left = tree.node(static_cast<Ref>(next / kLineBytes));
      check(left.kind == NodeKind::kMoved && !left.is_open, "there is a gap between blocks, or they overlap");
      left_behind += block_bytes(game, left);
      next += block_bytes(game, left);
    }
    check(ref * kLineBytes == next, "there is a gap between blocks, or they overlap");
    const Node& node = tree.node(ref);
    check(node.parent == kNone || node.parent < ref, "a child lies before its parent");
    next += block_bytes(game, node);
  }
  check(tree.bytes() == bytes + left_behind, "bytes is not the sum of the blocks");
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
    const EdgeRecord edges = edges_of(tree, node);
    add_span(std::span(edges.visits));
    add_span(std::span(edges.value_sums));
    add_span(std::span(edges.in_flight));
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
