// forest_law.h: what must hold in a forest while batches are out: every mark is explained by a simulation that is under
// way, every node has the evaluator's answer, nothing is counted twice.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "census.h"
#include "check.h"
#include "forest.h"
#include "positions.h"

namespace windrow {

// A batch that is out, with the answer to it.
struct Out {
  Batch* batch;
  int64_t serial;
  std::vector<uint64_t> states;
  Evaluation answer;
};

inline Out take_out(const GameTable& game, const Forest& forest, Batch& batch) {
  Out out{&batch, batch.serial, {}, {}};
  out.states.resize(static_cast<size_t>(batch.num_rows) * static_cast<size_t>(game.state_bytes) / sizeof(uint64_t));
  forest.copy_states(batch, reinterpret_cast<std::byte*>(out.states.data()));
  out.answer = evaluate(game, out.states.data(), batch.num_rows);
  return out;
}

// A buffer of exactly the promised size, filled with `filling`.
inline std::vector<float> make_buffer(const Forest& forest, int32_t max_leaves, float filling = 0.0f) {
  return std::vector<float>(
      static_cast<size_t>(forest.rows_needed(max_leaves)) * static_cast<size_t>(forest.game().observation_floats),
      filling);
}

inline void complete(Forest& forest, Batch& batch) {
  const Out out = take_out(forest.game(), forest, batch);
  forest.complete(batch, out.answer.logits.data(), out.answer.values.data());
}

// The plain way to search: one tree, one batch at a time.
inline void search_plainly(Forest& forest, int32_t tree) {
  std::vector<float> observations = make_buffer(forest, 1);
  for (;;) {
    Batch& batch = forest.select(1, tree, tree + 1, false, observations.data());
    if (batch.num_rows > 0) {
      complete(forest, batch);
    } else if (!forest.has_work(tree, tree + 1)) {
      return;
    }
  }
}

// Lets chance move at the root until a player is to.
inline void leave_chance(Forest& forest, int32_t tree, Dice& dice) {
  for (;;) {
    const Tree& at = forest.tree(tree);
    if (at.node(at.root()).kind != NodeKind::kOfChance) return;
    forest.advance(tree, random_move(forest.game(), at.state_of(at.root()), dice));
  }
}

// fn(row, tree, leaf) for every row of a batch. Equal positions share a row, if there is a cache.
template <class Fn>
void for_each_row(const Forest& forest, const Batch& batch, const Fn& fn) {
  int32_t num_rows = 0;
  std::vector<const std::byte*> states;
  for (int32_t i = 0; i < batch.num_rounds; ++i) {
    const Round& round = batch.rounds[static_cast<size_t>(i)];
    const Tree& tree = forest.tree(round.tree);
    for (const Leaf& leaf : round.leaves) {
      const std::byte* state = tree.state_of(leaf.node);
      if (!leaf.is_owner) {
        check(leaf.row < num_rows && is_same(forest.game(), state, states[static_cast<size_t>(leaf.row)]),
              "a leaf shares the row of another position");
        continue;
      }
      check(leaf.row == num_rows++, "rows are not numbered in the order of leaves");
      states.push_back(state);
      fn(leaf.row, tree, leaf.node);
    }
  }
  check(num_rows == batch.num_rows, "a batch counts its rows wrongly");
}

// How many players' moves lead from the root to a node; what chance does is not counted.
inline int32_t count_decisions(const Tree& tree, Ref ref) {
  int32_t count = 0;
  for (Ref at = ref; at != tree.root(); at = tree.node(at).parent) {
    if (tree.node(tree.node(at).parent).kind != NodeKind::kOfChance) ++count;
  }
  return count;
}

// Prior and value are the evaluator's; only a root's priors may be flattened or have noise.
inline void check_evaluation(const Forest& forest, const Tree& tree, Ref ref) {
  const Node& node = tree.node(ref);
  const ForestOptions& options = forest.options();
  if (ref == tree.root() && (options.dirichlet_fraction > 0.0f || options.root_policy_temperature != 1.0f)) return;
  const Evaluation answer = evaluate(forest.game(), tree.state_of(ref), 1);
  std::vector<float> priors;
  for (const uint16_t action : tree.actions(node)) priors.push_back(answer.logits[action]);
  priors.resize((priors.size() + 3) / 4 * 4, kPadding);
  softmax(priors.data(), static_cast<int32_t>(priors.size()));
  priors.resize(node.num_edges);
  const std::span<const float> got = tree.priors(node);
  check(std::equal(priors.begin(), priors.end(), got.begin(), got.end()), "priors are not the evaluator's");
}

// One tree of a forest. Returns how many of its simulations are out.
inline int64_t check_tree_of(const Forest& forest, int32_t index, const std::vector<Out>& outs, bool overlap) {
  const Tree& tree = forest.tree(index);
  const ForestOptions& options = forest.options();
  const std::vector<Ref> nodes = check_tree(forest.game(), tree);

  // What is out explains every mark: follow each simulation from its end to the root.
  std::map<std::pair<Ref, uint16_t>, int32_t> marks;
  std::map<Ref, int32_t> waiting;
  int64_t num_out = 0;
  int32_t num_batches = 0;
  for (const Out& out : outs) {
    for (int32_t i = 0; i < out.batch->num_rounds; ++i) {
      const Round& round = out.batch->rounds[static_cast<size_t>(i)];
      if (round.tree != index) continue;
      ++num_batches;
      for (const Leaf& leaf : round.leaves) {
        check(waiting.emplace(leaf.node, out.batch->slot).second, "one leaf has two rows");
      }
      for (const Ref leaf : round.known) {
        check(waiting.emplace(leaf, out.batch->slot).second, "a leaf that is known has a row too");
      }
      num_out += static_cast<int64_t>(round.simulations.size());
      if (!overlap) {
        check(static_cast<int32_t>(round.simulations.size()) <= options.leaves_per_tree, "a round is too large");
      }
      for (const Ref end : round.simulations) {
        for (Ref at = end; at != tree.root(); at = tree.node(at).parent) {
          ++marks[{tree.node(at).parent, tree.node(at).parent_edge}];
        }
      }
    }
  }
  check(tree.num_batches_out == num_batches, "a tree counts another number of batches");
  if (!overlap) check(num_batches <= 1, "a tree is in two batches without overlap");

  for (const Ref ref : nodes) {
    const Node& node = tree.node(ref);
    const auto row = waiting.find(ref);
    check((node.kind == NodeKind::kWaiting) == (row != waiting.end()), "a node waits that is not out, or the reverse");
    if (row != waiting.end()) check(node.batch == row->second, "a node waits for another batch");
    const EdgeRecord edges = edges_of(tree, node);
    for (uint16_t edge = 0; edge < node.num_edges; ++edge) {
      const auto mark = marks.find({ref, edge});
      check(edges.in_flight[edge] == (mark == marks.end() ? 0 : mark->second), "marks are not what is in flight");
      // A leaf that is never shared, and no limit of depth: each visit of the edge is one of the child.
      const Ref child = edges.children[edge];
      if (child == kNone || tree.node(child).kind != NodeKind::kExpanded) continue;
      if (!options.share_collisions && options.max_depth == 0) {
        check(edges.visits[edge] == tree.node(child).visits, "an edge and its child have different visits");
      }
    }
    if (node.kind == NodeKind::kExpanded) check_evaluation(forest, tree, ref);
    // Depth is counted from the root a node was searched from, which lay at most this far above.
    if (options.max_depth > 0) {
      check(count_decisions(tree, ref) <= options.max_depth, "a node lies below max_depth");
    }
    if (!is_later_table(forest.game(), tree, ref)) {
      check(tree.find(tree.moves_to(ref)) == ref, "a node is not at its path");
    }
  }
  check(tree.remaining() >= 0, "a budget was overdrawn");
  check(tree.counters.max_depth <= (options.max_depth > 0 ? options.max_depth : INT32_MAX), "a search is too deep");
  return num_out;
}

}  // namespace windrow
