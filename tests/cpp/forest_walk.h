// forest_walk.h: a long random walk over a forest's verbs. After every step all trees are walked, and whatever the law
// says about them must hold; at the end, what the walk found must be what the plain way of searching finds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "census.h"
#include "check.h"
#include "dice.h"
#include "forest.h"
#include "forest_law.h"
#include "positions.h"
#include "root_walk.h"
#include "trap_game.h"
#include "tree_record.h"
#include "walk_base.h"

namespace windrow {

class ForestWalk : public RootWalk {
 public:
  ForestWalk(const GameTable& game, TrapRules* trap, const ForestOptions& options,
             std::shared_ptr<PredictionCache> cache, int32_t num_trees, bool overlap, Dice& dice, WalkTotals& totals)
      : RootWalk(game, trap, options, std::move(cache), num_trees, overlap, dice, totals) {
    for (int32_t tree = 0; tree < num_trees; ++tree) plant(tree, false);
    check_all();
  }

  void run(int32_t num_steps) {
    for (int32_t i = 0; i < num_steps; ++i) {
      is_step_armed_ = dice_.one_in(2);
      step();
      check_all();
    }
    is_step_armed_ = false;
  }

  // Ends every search: with what it has, or with its whole budget.
  void finish(bool to_the_end) {
    if (!to_the_end) cancel_all();
    while (to_the_end) {
      if (select(0, num_trees(), 64) > 0) continue;
      if (outs_.empty() && !forest_.has_work(0, num_trees())) break;
      if (!outs_.empty()) complete(pick_out());
    }
    check_all();
    check(forest_.num_batches_out() == 0, "a batch is out after the end");
    for (int32_t tree = 0; tree < num_trees(); ++tree) {
      const Tree& at = forest_.tree(tree);
      check(at.count_in_flight() == 0, "marks are left after the end");
      const NodeKind kind = at.node(at.root()).kind;
      if (to_the_end && kind == NodeKind::kExpanded && !at.is_full()) {
        check(at.counters.simulations == log(tree).searches.back().budget, "a budget was not spent exactly");
      }
      for (const Ref ref : all_nodes(at)) totals_.later_tables += is_later_table(game_, at, ref);
    }
    if (to_the_end) check(!forest_.has_work(0, num_trees()), "there is work left after the end");
  }

  // Does it all again the plain way: without threads, cache and detours.
  void compare() {
    if (overlap_ || options().gumbel.max_considered > 0) return;
    ForestOptions plain = options();
    plain.num_threads = 1;
    Forest forest(game_, num_trees(), plain);
    for (int32_t tree = 0; tree < num_trees(); ++tree) {
      end_search(tree);
      const TreeLog& story = log(tree);
      if (!story.is_comparable) continue;
      ++totals_.compared;
      forest.reset(tree, story.start->data());
      for (const int64_t move : story.moves) forest.advance(tree, move);
      for (const SearchLog& search : story.searches) {
        // A search that was ended early had done whole rounds; a budget of just those gives the same rounds.
        forest.begin(tree, tree + 1, search.is_full ? search.budget : search.num_done, search.move);
        if (search.is_root_expanded) search_plainly(forest, tree);
        check(forest.tree(tree).is_full() == search.is_full, "memory ends at another place");
        for (const int64_t move : search.moves) forest.advance(tree, move);
      }
      check(evaluated_only(record(game_, forest.tree(tree))) == evaluated_only(record(game_, forest_.tree(tree))),
            "the plain search finds something else");
    }
  }

 private:
  size_t pick_out() { return static_cast<size_t>(dice_.below(static_cast<int64_t>(outs_.size()))); }
  Out take_away(size_t index) {
    Out out = std::move(outs_[index]);
    outs_.erase(outs_.begin() + static_cast<int64_t>(index));
    return out;
  }

  void step() {
    const int32_t choice = dice_.below(100);
    if (choice < 45) {
      const int32_t first = dice_.one_in(3) ? dice_.below(num_trees()) : 0;
      const int32_t last = dice_.one_in(3) ? first + 1 + dice_.below(num_trees() - first) : num_trees();
      if (outs_.size() < 4) select(first, last, dice_.one_of({1, 2, 7, 64, 500}));
    } else if (choice < 70) {
      if (!outs_.empty()) complete(pick_out());
    } else if (choice < 75) {
      if (!outs_.empty()) complete_badly(pick_out());
    } else if (choice < 80) {
      if (!outs_.empty()) cancel(pick_out());
    } else if (choice < 81) {
      cancel_all();
    } else if (choice < 88) {
      begin(dice_.below(num_trees()));
    } else if (choice < 94) {
      advance(dice_.below(num_trees()));
    } else if (choice < 97) {
      advance_together();
    } else {
      replant(dice_.below(num_trees()));
    }
  }

  // --- Select, complete, cancel ----------------------------------------------------------------------------------

  // Returns the number of rows.
  int32_t select(int32_t first, int32_t last, int32_t max_leaves) {
    constexpr float kUntouched = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> observations = make_buffer(forest_, max_leaves, kUntouched);
    const bool was_idle = outs_.empty();
    Batch* batch = nullptr;
    try {
      const Armed armed(trap_, is_step_armed_);
      batch = &forest_.select(max_leaves, first, last, overlap_, observations.data());
    } catch (const GameFault& fault) {
      ++totals_.faults;
      check(fault.tree >= first && fault.tree < last, "a fault in a tree that was not asked for");
      check_fault(fault);
      for (int32_t tree = first; tree < last; ++tree) log(tree).has_cancelled = true;
      return 0;
    }
    if (batch->num_rows == 0) {
      check(!batch->is_out, "a batch of no rows is out");
      // Budgets here are too small for a tree to be interrupted among simulations that need no evaluation.
      if (was_idle) check(!forest_.has_work(first, last), "nothing is out, nothing is selected, and there is work");
      return 0;
    }
    check(batch->is_out && batch->num_rows <= forest_.rows_needed(max_leaves), "a batch has too many rows");
    for (const Out& out : outs_) check(out.batch != batch, "a batch that is out was handed out again");
    for (int32_t i = 0; i < batch->num_rounds; ++i) {
      const Round& round = batch->rounds[static_cast<size_t>(i)];
      check(round.tree >= first && round.tree < last, "a tree was selected that was not asked for");
      for (const Leaf& leaf : round.leaves) totals_.shared_rows += leaf.is_owner ? 0 : 1;
    }
    outs_.push_back(take_out(game_, forest_, *batch));
    check_rows(*batch, observations);
    return batch->num_rows;
  }

  // The rows are what the game shows, and nothing is written behind them.
  void check_rows(const Batch& batch, const std::vector<float>& observations) const {
    const size_t width = static_cast<size_t>(game_.observation_floats);
    std::vector<float> row(width);
    for_each_row(forest_, batch, [&](int32_t index, const Tree& tree, Ref leaf) {
      check(game_.observe(game_.self, tree.state_of(leaf), row.data()) == 0, "observe failed");
      const float* seen = observations.data() + static_cast<size_t>(index) * width;
      check(std::equal(row.begin(), row.end(), seen), "a row is not its leaf's observation");
      const void* copy = outs_.back().states.data() + static_cast<size_t>(index * game_.state_bytes) / sizeof(uint64_t);
      check(is_same(game_, copy, tree.state_of(leaf)), "a copied state is not its leaf's");
    });
    const auto end = observations.begin() + static_cast<int64_t>(static_cast<size_t>(batch.num_rows) * width);
    check(std::all_of(end, observations.end(), [](float x) { return std::isnan(x); }),
          "a row behind the last was written");
  }

  void complete(size_t index) {
    const Out out = take_away(index);
    check(out.batch->serial == out.serial, "a batch that is out was used again");
    Evaluation answer = out.answer;
    if (dice_.one_in(3)) spoil_illegal(*out.batch, answer);
    {
      // Nothing is asked of the game any more.
      const Armed armed(trap_, is_step_armed_);
      forest_.complete(*out.batch, answer.logits.data(), answer.values.data());
    }
    check(!out.batch->is_out, "a batch is out after it was completed");
    check_throws<std::logic_error>([&] { forest_.complete(*out.batch, answer.logits.data(), answer.values.data()); },
                                   "a batch is completed twice");
  }

  float& logit(Evaluation& answer, int32_t row, int32_t action) const {
    return answer
        .logits[static_cast<size_t>(row) * static_cast<size_t>(game_.num_actions) + static_cast<size_t>(action)];
  }

  // Illegal logits may be anything.
  void spoil_illegal(const Batch& batch, Evaluation& answer) {
    for_each_row(forest_, batch, [&](int32_t row, const Tree& tree, Ref leaf) {
      const std::span<const uint16_t> legal = tree.actions(tree.node(leaf));
      for (int32_t action = 0; action < game_.num_actions; ++action) {
        if (std::find(legal.begin(), legal.end(), action) != legal.end()) continue;
        logit(answer, row, action) =
            dice_.one_of({std::numeric_limits<float>::quiet_NaN(), -INFINITY, INFINITY, 1e30f});
      }
    });
  }

  void complete_badly(size_t index) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    const Out out = take_away(index);
    Evaluation answer = out.answer;
    const int32_t bad_row = dice_.below(out.batch->num_rows);
    int32_t bad_tree = -1;
    std::vector<int64_t> bad_path;
    for_each_row(forest_, *out.batch, [&](int32_t row, const Tree& tree, Ref leaf) {
      if (row != bad_row) return;
      bad_tree = tree.index();
      bad_path = tree.moves_to(leaf);
      if (dice_.one_in(2)) {
        logit(answer, row, dice_.one_of(tree.actions(tree.node(leaf)))) = dice_.one_of({kNan, INFINITY, -INFINITY});
      } else {
        const int32_t seat = dice_.below(game_.num_values);
        answer.values[static_cast<size_t>(row * game_.num_values + seat)] =
            dice_.one_of({2.0f, -2.0f, kNan, INFINITY, -INFINITY});
      }
    });
    note_cancelled(*out.batch);
    const auto error = check_throws<BadEvaluation>(
        [&] { forest_.complete(*out.batch, answer.logits.data(), answer.values.data()); }, "a bad evaluation is taken");
    check(error.tree == bad_tree && error.moves == bad_path, "a bad evaluation is blamed on another position");
    check(!out.batch->is_out, "a batch is out after a bad evaluation");
    ++totals_.bad;
  }

  void cancel(size_t index) {
    Batch& batch = *take_away(index).batch;
    note_cancelled(batch);
    forest_.cancel(batch);
    forest_.cancel(batch);  // a second time does nothing
    check(!batch.is_out, "a batch is out after it was cancelled");
  }

  void cancel_all() {
    for (const Out& out : outs_) note_cancelled(*out.batch);
    forest_.cancel_all();
    outs_.clear();
  }
};

}  // namespace windrow
