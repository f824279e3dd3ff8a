// census.h: a walk over all nodes of a tree that checks what must always hold.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "check.h"
#include "positions.h"
#include "tree.h"

namespace windrow {

// All nodes that can be reached from the root, parents before children. A table of drawn outcomes is one of its own.
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

// Every one of them owns its state, second tables too.
inline int64_t count_owners(const Tree& tree) { return static_cast<int64_t>(all_nodes(tree).size()); }

inline bool is_table(const GameTable& game, const Node& node) {
  return node.kind == NodeKind::kOfChance && game.sample_outcome != nullptr;
}
// Of a table: the edge to the next one.
inline size_t last_edge(const Node& table) { return static_cast<size_t>(table.num_edges) - 1; }
// Whether the node is a second or later table of its position.
inline bool is_later_table(const GameTable& game, const Tree& tree, Ref ref) {
  const Node& node = tree.node(ref);
  return ref != tree.root() && is_table(game, tree.node(node.parent)) &&
         node.parent_edge == last_edge(tree.node(node.parent));
}

// A node begins with 40 bytes, its state, if there is a value per player 12 for each, padded to 8, and if the search
// needs squares 8 for each value.
inline size_t head_bytes(const GameTable& game, bool has_squares) {
  const size_t count = static_cast<size_t>(game.num_values);
  const size_t values = count == 1 ? 0 : (count * 12 + 7) / 8 * 8;
  return 40 + static_cast<size_t>(game.state_bytes) + values + (has_squares ? 8 * count : 0);
}
// A light node has 6 bytes an edge, an open one 24, a table of drawn outcomes 32.
inline size_t block_bytes(const GameTable& game, size_t num_edges, size_t per_edge, bool has_squares = false) {
  return to_lines(head_bytes(game, has_squares) + per_edge * ((num_edges + 3) / 4 * 4)) * kLineBytes;
}
inline size_t block_bytes(const GameTable& game, const Tree& tree, const Node& node) {
  const size_t per_edge = is_table(game, node) ? 32 : node.is_open ? 24 : 6;
  return block_bytes(game, node.num_edges, per_edge, tree.has_squares());
}

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
  std::vector<uint16_t> in_flight = copy(tree.edges_in_flight(node));
  for (uint16_t& marks : in_flight) marks = static_cast<uint16_t>(in_flight_of(marks));
  return {copy(tree.visits(node)), copy(tree.value_sums(node)), std::move(in_flight), copy(tree.children(node))};
}

template <class T>
int64_t sum(const std::vector<T>& values) {
  int64_t total = 0;
  for (const T value : values) total += value;
  return total;
}

// Values by player; if one value says it all, that of player 0 alone.
using Values = std::vector<double>;

class Census {
 public:
  Census(const GameTable& game, const Tree& tree) : game_(game), tree_(tree), nodes_(all_nodes(tree)) {}

  const std::vector<Ref>& nodes() const { return nodes_; }

  void check_nodes() const {
    int64_t num_expanded = 0, num_positions = 0;
    for (const Ref ref : nodes_) {
      const Node& node = tree_.node(ref);
      if (!is_later_table(game_, tree_, ref)) ++num_positions;
      check_state(ref);
      if (node.kind == NodeKind::kOfChance) {
        is_table(game_, node) ? check_table(ref) : check_listed(ref);
      } else {
        check_actions(ref);
      }
      check_sums(ref);
      check_children(ref);
      if (node.kind == NodeKind::kExpanded) ++num_expanded;
      if (node.is_open) check_value_flow(ref);
    }
    check(tree_.node(tree_.root()).parent == kNone, "the root has a parent");
    check(tree_.num_nodes() == num_positions, "num_nodes is not what can be reached");
    check(tree_.num_expanded() == num_expanded, "num_expanded is not what can be reached");
  }

  // The blocks lie side by side, parents before children. Where an open node was made light before, that form may still
  // lie between them, unless the tree `is_compact`.
  void check_blocks(bool is_compact) const {
    std::vector<Ref> in_order = nodes_;
    std::sort(in_order.begin(), in_order.end());
    size_t next = 0;
    for (const Ref ref : in_order) {
      for (; ref * kLineBytes != next && !is_compact;) {
        const Node& left = tree_.node(static_cast<Ref>(next / kLineBytes));
        check(left.kind == NodeKind::kMoved && !left.is_open, "there is a gap between blocks, or they overlap");
        next += block_bytes(game_, tree_, left);
      }
      check(ref * kLineBytes == next, "there is a gap between blocks, or they overlap");
      const Node& node = tree_.node(ref);
      check(node.parent == kNone || node.parent < ref, "a child lies before its parent");
      next += block_bytes(game_, tree_, node);
    }
    check(tree_.bytes() == next, "bytes is not the sum of the blocks");
  }

 private:
  bool has_vectors() const { return game_.num_values > 1; }

  void check_state(Ref ref) const {
    const Node& node = tree_.node(ref);
    check(node.to_play == game_.to_play(game_.self, tree_.state_of(ref)), "to_play is not the state's");
    check((node.kind == NodeKind::kOver) == (node.to_play == kTerminal), "kind and to_play disagree");
    check((node.kind == NodeKind::kOfChance) == (node.to_play == kChance), "kind and to_play disagree");
  }

  void check_actions(Ref ref) const {
    const Node& node = tree_.node(ref);
    const std::span<const uint16_t> actions = tree_.actions(node);
    if (node.kind == NodeKind::kOver) {
      check(node.value == static_cast<float>(own_values(ref)[0]), "the value of a finished game is not its return");
      check(actions.empty(), "a finished game has edges");
      return;
    }
    const std::vector<int32_t> legal = legal_actions(game_, tree_.state_of(ref));
    check(std::equal(legal.begin(), legal.end(), actions.begin(), actions.end()), "edges are not the legal actions");
    if (node.kind != NodeKind::kExpanded) return;
    check(node.value == evaluate_values(game_, tree_.state_of(ref))[0], "a value is not the evaluator's");
    double total = 0.0;
    for (const float prior : tree_.priors(node)) {
      check(prior >= 0.0f && prior <= 1.0f, "a prior is not in [0, 1]");
      total += static_cast<double>(prior);
    }
    check(std::fabs(total - 1.0) < 1e-5, "the priors do not sum to 1");
  }

  void check_listed(Ref ref) const {
    const Node& node = tree_.node(ref);
    const OutcomeList list = list_outcomes(game_, tree_.state_of(ref));
    const std::vector<Tree::Outcome> found = tree_.outcomes(ref);
    const std::span<const uint16_t> actions = tree_.actions(node);
    check(node.is_open, "a node of chance is not open");
    check(std::equal(list.outcomes.begin(), list.outcomes.end(), actions.begin(), actions.end()),
          "edges are not the outcomes");
    check(found.size() == actions.size(), "outcomes are not what is listed");
    for (size_t i = 0; i < found.size(); ++i) {
      check(tree_.priors(node)[i] == static_cast<float>(list.probabilities[i]), "a prior is not its probability");
      check(found[i].outcome == actions[i] && found[i].probability == tree_.priors(node)[i] &&
                found[i].visits == tree_.visits(node)[i] && found[i].in_flight == tree_.edges_in_flight(node)[i] &&
                found[i].value_sum == tree_.value_sums(node)[i] && found[i].child == tree_.children(node)[i],
            "outcomes are not the edges");
    }
  }

  // A table has as many outcomes as it counts, no more than three quarters of its places, and a larger one behind it
  // only if it is full; together they have every outcome once.
  void check_table(Ref ref) const {
    const Node& node = tree_.node(ref);
    const size_t num_places = last_edge(node);
    check(node.is_open, "a node of chance is not open");
    const bool is_later = is_later_table(game_, tree_, ref);
    const size_t before = is_later ? last_edge(tree_.node(node.parent)) : 0;
    check(num_places == (is_later ? std::min<size_t>(2 * before, 32768) : 4), "a table has a strange size");
    const std::span<const Ref> children = tree_.children(node);
    const int64_t num_children =
        std::count_if(children.begin(), children.end() - 1, [](Ref child) { return child != kNone; });
    check(num_children == node.num_outcomes && num_children <= static_cast<int64_t>(num_places / 4 * 3),
          "a table counts its outcomes wrongly");
    const Ref next = children.back();
    if (next != kNone) {
      check(num_children == static_cast<int64_t>(num_places / 4 * 3), "there is a second table before one is full");
      check(is_same(game_, tree_.state_of(ref), tree_.state_of(next)), "the next table is another position's");
    }
    if (is_later) return;
    const std::vector<Tree::Outcome> found = tree_.outcomes(ref);
    int64_t num_found = 0;
    for (Ref table = ref; table != kNone; table = tree_.children(tree_.node(table)).back()) {
      num_found += tree_.node(table).num_outcomes;
    }
    check(num_found == static_cast<int64_t>(found.size()), "outcomes are not those of all tables");
    for (size_t i = 0; i < found.size(); ++i) {
      check(i == 0 || found[i - 1].outcome < found[i].outcome, "outcomes do not ascend, or one is there twice");
      const Node& child = tree_.node(found[i].child);
      const Node& table = tree_.node(child.parent);
      const size_t place = child.parent_edge;
      check(found[i].probability == 0.0f && found[i].visits == tree_.visits(table)[place] &&
                found[i].in_flight == tree_.edges_in_flight(table)[place] &&
                found[i].value_sum == tree_.value_sums(table)[place],
            "outcomes are not the edges");
    }
  }

  // An edge knows what came through it, a node what came through all of them and its own evaluation.
  void check_sums(Ref ref) const {
    const Node& node = tree_.node(ref);
    const EdgeRecord edges = edges_of(tree_, node);
    double value_sum = 0.0;
    for (const double edge_sum : edges.value_sums) value_sum += edge_sum;
    check(node.in_flight == sum(edges.in_flight), "I(s) is not the sum of I(s,a)");
    if (tree_.has_squares() && node.visits > 0) {
      // No sum of squares is smaller than that of as many equal values.
      const double least = node.value_sum * node.value_sum / node.visits;
      const size_t player = has_vectors() ? static_cast<size_t>(std::max<int32_t>(node.to_play, 0)) : 0;
      check(tree_.square_sums(node)[player] >= least - 1e-9, "squares are too small");
      check(tree_.square_sums(node)[player] <= node.visits, "squares are too large");
    }
    if (node.kind == NodeKind::kExpanded) {
      check(node.visits == 1 + sum(edges.visits), "N(s) is not 1 + the sum of N(s,a)");
      check(node.value_sum == node.value + value_sum, "the node's value sum is not its value + its edges' sums");
    } else if (node.kind == NodeKind::kOfChance) {
      check(node.visits == sum(edges.visits), "N of chance is not the sum of its edges'");
      check(node.value_sum == value_sum, "the value sum of chance is not the sum of its edges'");
    } else {
      check(!node.is_open, "a node that was not evaluated is open");
      check(node.visits == 0 && sum(edges.visits) == 0 && node.in_flight == 0 && value_sum == 0.0,
            "a node that was not evaluated has statistics");
    }
  }

  // What is played along each edge of a node; of tables, where nothing is known yet, 0.
  std::vector<int64_t> moves_of(Ref ref) const {
    const Node& node = tree_.node(ref);
    if (!is_table(game_, node)) {
      const std::span<const uint16_t> actions = tree_.actions(node);
      return {actions.begin(), actions.end()};
    }
    std::vector<int64_t> moves(node.num_edges);
    for (const Tree::Outcome& outcome : tree_.outcomes(ref)) {
      const Node& child = tree_.node(outcome.child);
      if (child.parent == ref) moves[child.parent_edge] = outcome.outcome;
    }
    return moves;
  }

  void check_children(Ref ref) const {
    const Node& node = tree_.node(ref);
    const EdgeRecord edges = edges_of(tree_, node);
    const std::vector<int64_t> moves = moves_of(ref);
    for (size_t edge = 0; edge < moves.size(); ++edge) {
      const Ref child_ref = edges.children[edge];
      const int32_t visits = edges.visits[edge], in_flight = edges.in_flight[edge];
      if (child_ref == kNone) {
        check(visits == 0 && in_flight == 0 && edges.value_sums[edge] == 0.0, "an edge to nowhere has statistics");
        continue;
      }
      const Node& child = tree_.node(child_ref);
      check(child.parent == ref && child.parent_edge == edge, "a child does not know its parent");
      if (!is_later_table(game_, tree_, child_ref)) {
        State next(game_, tree_.state_of(ref));
        check(next.apply(moves[edge]), "apply failed for a child that exists");
        check(is_same(game_, next.data(), tree_.state_of(child_ref)),
              "the child's state is not what the move leads to");
      }
      switch (child.kind) {
        case NodeKind::kExpanded:
          check(visits >= child.visits, "a child has more visits than its edge");
          check(in_flight >= child.in_flight, "a child has more in flight than its edge");
          break;
        case NodeKind::kOfChance:  // no simulation ends here
          check(visits == child.visits, "chance has other visits than its edge");
          check(in_flight == child.in_flight, "chance has another number in flight than its edge");
          break;
        case NodeKind::kNew:
          check(visits == 0 && in_flight == 0, "a new child has visits");
          break;
        case NodeKind::kWaiting:
          check(visits == 0 && in_flight > 0, "a waiting child has visits");
          break;
        case NodeKind::kOver:
          break;
        case NodeKind::kMoved:
          fail("an edge leads to where a node has been");
      }
    }
  }

  // --- Values ----------------------------------------------------------------------------------------------------

  // The evaluation of a node, or the result of a finished game.
  Values own_values(Ref ref) const {
    const Node& node = tree_.node(ref);
    const size_t num_players = static_cast<size_t>(game_.num_players);
    Values own(has_vectors() ? num_players : 1);
    if (node.kind == NodeKind::kOver) {
      std::vector<float> values(num_players);
      check(game_.returns(game_.self, tree_.state_of(ref), values.data()) == 0, "returns failed");
      for (size_t player = 0; player < own.size(); ++player) own[player] = static_cast<double>(values[player]);
      return own;
    }
    const std::vector<float> seats = evaluate_values(game_, tree_.state_of(ref));
    if (!has_vectors()) return {static_cast<double>(node.to_play == 1 ? -seats[0] : seats[0])};
    for (size_t seat = 0; seat < num_players; ++seat) {
      own[(static_cast<size_t>(node.to_play) + seat) % num_players] = static_cast<double>(seats[seat]);
    }
    return own;
  }

  // All that came through a node, its own evaluation included.
  Values sums(Ref ref) const {
    const Node& node = tree_.node(ref);
    if (!has_vectors()) return {node.to_play == 1 ? -node.value_sum : node.value_sum};
    const std::span<const double> sums = tree_.player_value_sums(node);
    return {sums.begin(), sums.end()};
  }

  // All that came up from a child along its edge: what came through it and, for simulations that ended there while its
  // evaluation was out or because of the depth, its own evaluation once more each.
  Values came_from(Ref child_ref, int32_t edge_visits) const {
    const Node& child = tree_.node(child_ref);
    Values total(has_vectors() ? static_cast<size_t>(game_.num_players) : 1);
    if (child.kind == NodeKind::kNew || child.kind == NodeKind::kWaiting) return total;
    if (child.kind != NodeKind::kOver) total = sums(child_ref);
    if (child.kind == NodeKind::kOfChance) return total;
    const Values own = own_values(child_ref);
    for (size_t i = 0; i < total.size(); ++i) total[i] += own[i] * (edge_visits - child.visits);
    return total;
  }

  // Every value that came up is in the sums once, for the right player.
  void check_value_flow(Ref ref) const {
    const Node& node = tree_.node(ref);
    const EdgeRecord edges = edges_of(tree_, node);
    Values expected(has_vectors() ? static_cast<size_t>(game_.num_players) : 1);
    if (node.kind == NodeKind::kExpanded) expected = own_values(ref);
    for (size_t edge = 0; edge < edges.children.size(); ++edge) {
      if (edges.children[edge] == kNone) continue;
      const Values came = came_from(edges.children[edge], edges.visits[edge]);
      for (size_t i = 0; i < came.size(); ++i) expected[i] += came[i];
      const size_t mover = static_cast<size_t>(std::max<int32_t>(node.to_play, 0));
      const double for_mover = has_vectors() ? came[mover] : node.to_play == 1 ? -came[0] : came[0];
      check(edges.value_sums[edge] == for_mover, "an edge's value sum is not what came from its child");
    }
    check(sums(ref) == expected, "a node's value sums are not what came from its children");
    if (has_vectors()) {
      const size_t mover = static_cast<size_t>(std::max<int32_t>(node.to_play, 0));
      check(node.value_sum == sums(ref)[mover], "a node's value sum is not that of the player to move");
    }
  }

  const GameTable& game_;
  const Tree& tree_;
  const std::vector<Ref> nodes_;
};

// What holds in every tree at any moment, if the answers were those of `evaluate`. Returns the nodes. `is_compact`: the
// tree was just planted or advanced, so that no open node has left its light form behind.
inline std::vector<Ref> check_tree(const GameTable& game, const Tree& tree, bool is_compact = false) {
  const Census census(game, tree);
  census.check_nodes();
  census.check_blocks(is_compact);
  return census.nodes();
}

}  // namespace windrow
