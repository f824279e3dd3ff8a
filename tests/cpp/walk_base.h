// walk_base.h: a forest in the middle of a random walk over its verbs: what was done to it, what is out, and the law.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "check.h"
#include "dice.h"
#include "forest.h"
#include "forest_law.h"
#include "positions.h"
#include "trap_game.h"
#include "trap_words.h"

namespace windrow {

// What a walk met: it must have been where it is dangerous.
struct WalkTotals {
  int64_t compared = 0, faults = 0, failed_moves = 0, full = 0, bad = 0, collisions = 0, hits = 0, shared_rows = 0;
  int64_t seen_outcomes = 0, unseen_outcomes = 0, impossible_outcomes = 0, later_tables = 0, chance_roots = 0;
};

// One search of one tree, as it happened.
struct SearchLog {
  int64_t budget = 0;
  uint32_t move = 0;
  int64_t num_done = 0;
  bool is_root_expanded = false;
  bool is_full = false;
  std::vector<int64_t> moves;  // of the root, after it
};

// What has happened to a tree since it was planted: enough to do it again.
struct TreeLog {
  std::unique_ptr<State> start;
  std::vector<int64_t> moves;  // of the root, before the first search
  std::vector<SearchLog> searches;
  bool has_cancelled = false;
  bool is_comparable = true;
  int64_t num_expanded_at_begin = 0;
};

class WalkBase {
 public:
  WalkBase(const GameTable& game, TrapRules* trap, const ForestOptions& options, std::shared_ptr<PredictionCache> cache,
           int32_t num_trees, bool overlap, Dice& dice, WalkTotals& totals)
      : game_(game),
        trap_(trap),
        overlap_(overlap),
        dice_(dice),
        totals_(totals),
        forest_(game, num_trees, options, std::move(cache)),
        logs_(static_cast<size_t>(num_trees)) {}

 protected:
  int32_t num_trees() const { return forest_.num_trees(); }
  const ForestOptions& options() const { return forest_.options(); }
  TreeLog& log(int32_t tree) { return logs_[static_cast<size_t>(tree)]; }

  void end_search(int32_t tree) {
    TreeLog& story = log(tree);
    if (story.searches.empty()) return;
    const Tree& at = forest_.tree(tree);
    SearchLog& search = story.searches.back();
    if (!search.moves.empty()) return;
    search.num_done = at.counters.simulations;
    search.is_root_expanded = at.node(at.root()).kind == NodeKind::kExpanded;
    search.is_full = at.is_full();
    totals_.collisions += at.counters.collisions;
    totals_.hits += at.counters.cache_hits;
    if (at.is_full()) {
      ++totals_.full;
      // Nodes of cancelled selections take memory; the plain way does not have them, so its memory ends later.
      if (story.has_cancelled) story.is_comparable = false;
    }
  }

  void note_cancelled(const Batch& batch) {
    for (int32_t i = 0; i < batch.num_rounds; ++i) log(batch.rounds[static_cast<size_t>(i)].tree).has_cancelled = true;
  }

  void check_all() {
    check(forest_.num_batches_out() == static_cast<int32_t>(outs_.size()), "another number of batches is out");
    size_t bytes = 0;
    int64_t num_nodes = 0;
    for (int32_t index = 0; index < num_trees(); ++index) {
      const Tree& tree = forest_.tree(index);
      const int64_t num_out = check_tree_of(forest_, index, outs_, overlap_);
      bytes += tree.bytes();
      num_nodes += count_owners(tree);
      check_budget(index, num_out);
    }
    check(forest_.bytes() == bytes && bytes <= options().max_memory, "bytes are not the sum, or above max_memory");
    if (game_.release != nullptr) {
      check(trap_->num_owners - State::num_owned() == num_nodes, "not every node owns its state once");
    }
  }

  void check_budget(int32_t index, int64_t num_out) {
    const TreeLog& story = log(index);
    if (story.searches.empty() || !story.searches.back().moves.empty()) return;
    const Tree& tree = forest_.tree(index);
    if (tree.is_full()) {
      check(tree.remaining() == 0, "a full tree has work left");
    } else {
      check(tree.counters.simulations + num_out + tree.remaining() == story.searches.back().budget,
            "simulations done, out and remaining do not make the budget");
    }
    check(tree.counters.evaluations == tree.num_expanded() - story.num_expanded_at_begin,
          "evaluations are not expanded nodes");
  }

  // The position that a fault names has that fault, and the words are the right ones.
  void check_fault(const GameFault& fault) {
    check(trap_ != nullptr && is_step_armed_, "a game without faults has one");
    const Tree& tree = forest_.tree(fault.tree);
    State state(game_, tree.state_of(tree.root()));
    for (const int64_t move : fault.moves) check(state.apply(move), "a fault names a position that cannot be");
    check_words(fault, *trap_, state);
  }

  const GameTable game_;
  TrapRules* const trap_;
  const bool overlap_;
  Dice& dice_;
  WalkTotals& totals_;
  Forest forest_;
  std::vector<TreeLog> logs_;
  std::vector<Out> outs_;
  bool is_step_armed_ = false;  // whether this step's verb meets traps
};

}  // namespace windrow
