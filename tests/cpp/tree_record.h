// tree_record.h: all that a tree holds except where it lies, to compare it with another.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "census.h"
#include "check.h"
#include "tree.h"

namespace windrow {

// One outcome of chance. Numbers only, so that records can be compared.
struct OutcomeRecord {
  int64_t outcome;
  float probability;
  int32_t visits, in_flight;
  double value_sum;
  bool was_reached;
  bool operator==(const OutcomeRecord&) const = default;
};

// Bit for bit. Of chance with several tables there is one record.
struct NodeRecord {
  NodeKind kind;
  int32_t visits;
  std::string bits;
  std::vector<OutcomeRecord> outcomes;  // of chance
  bool operator==(const NodeRecord&) const = default;
};
// By the moves that lead to the node.
using TreeRecord = std::map<std::vector<int64_t>, NodeRecord>;

inline TreeRecord record(const GameTable& game, const Tree& tree) {
  TreeRecord found;
  for (const Ref ref : all_nodes(tree)) {
    if (is_later_table(game, tree, ref)) continue;
    const Node& node = tree.node(ref);
    std::string bits;
    const auto add = [&](const void* data, size_t size) { bits.append(static_cast<const char*>(data), size); };
    const auto add_span = [&](const auto& values) { add(values.data(), values.size_bytes()); };
    if (game.release == nullptr) {
      add(tree.state_of(ref), static_cast<size_t>(game.state_bytes));
    } else {  // what a state refers to may lie elsewhere
      uint64_t hash[2];
      check(game.hash(game.self, tree.state_of(ref), hash) == 0, "hash failed");
      add(hash, sizeof hash);
    }
    add(&node.value_sum, sizeof node.value_sum);
    add(&node.value, sizeof node.value);
    add(&node.visits, sizeof node.visits);
    add(&node.in_flight, sizeof node.in_flight);
    add(&node.to_play, sizeof node.to_play);
    if (tree.has_vectors()) add_span(tree.player_value_sums(node));
    if (tree.has_squares()) add_span(tree.square_sums(node));
    std::vector<OutcomeRecord> outcomes;
    if (node.kind == NodeKind::kOfChance) {
      for (const Tree::Outcome& o : tree.outcomes(ref)) {
        outcomes.push_back({o.outcome, o.probability, o.visits, o.in_flight, o.value_sum, o.child != kNone});
      }
    } else {
      add_span(tree.actions(node));
      // Before the evaluation there are none.
      if (node.kind == NodeKind::kExpanded) add_span(tree.priors(node));
      const EdgeRecord edges = edges_of(tree, node);
      add_span(std::span(edges.visits));
      add_span(std::span(edges.value_sums));
      add_span(std::span(edges.in_flight));
    }
    const bool is_new =
        found.emplace(tree.moves_to(ref), NodeRecord{node.kind, node.visits, std::move(bits), std::move(outcomes)})
            .second;
    check(is_new, "two nodes have one path");
  }
  return found;
}

// What does not depend on selections that were cancelled: nodes that were evaluated, and what came of chance. (The ends
// of games that were reached show in their edges.)
inline TreeRecord evaluated_only(TreeRecord all) {
  std::erase_if(all, [](const auto& entry) {
    const NodeRecord& node = entry.second;
    return node.kind != NodeKind::kExpanded && (node.kind != NodeKind::kOfChance || node.visits == 0);
  });
  for (auto& [path, node] : all) {
    std::erase_if(node.outcomes, [](const OutcomeRecord& outcome) { return outcome.visits == 0; });
  }
  return all;
}

// What must be left of `all` when the root moves along `move`.
inline TreeRecord below(const TreeRecord& all, int64_t move) {
  TreeRecord kept;
  for (const auto& [path, node] : all) {
    if (!path.empty() && path.front() == move) kept.emplace(std::vector(path.begin() + 1, path.end()), node);
  }
  return kept;
}

}  // namespace windrow
