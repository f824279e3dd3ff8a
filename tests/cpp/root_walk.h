// root_walk.h: what a random walk does to roots: searches begin, roots move, trees are planted and uprooted. Much of it
// must be refused or fails, and then nothing may have changed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "census.h"
#include "check.h"
#include "dice.h"
#include "forest.h"
#include "positions.h"
#include "trap_game.h"
#include "tree_record.h"
#include "walk_base.h"

namespace windrow {

class RootWalk : public WalkBase {
 public:
  using WalkBase::WalkBase;

 protected:
  void begin(int32_t tree) {
    const int64_t budget = dice_.one_of({0, 1, 5, 64, 100, 250});
    const uint32_t move = static_cast<uint32_t>(dice_.below(1000));
    if (must_refuse(tree, [&] { forest_.begin(tree, tree + 1, budget, move); })) return;
    const Tree& at = forest_.tree(tree);
    if (at.node(at.root()).kind == NodeKind::kOfChance) {
      const TreeRecord before = record(game_, at);
      check_throws<std::logic_error>([&] { forest_.begin(tree, tree + 1, budget, move); },
                                     "a search begins where chance is to move");
      check(record(game_, at) == before, "what was refused changes the tree");
      check(!forest_.has_work(tree, tree + 1), "there is work where chance is to move");
      ++totals_.chance_roots;
      return;
    }
    end_search(tree);
    forest_.begin(tree, tree + 1, budget, move);
    log(tree).searches.push_back({.budget = budget, .move = move, .moves = {}});
    log(tree).num_expanded_at_begin = at.num_expanded();
  }

  void advance(int32_t tree) {
    const Tree& at = forest_.tree(tree);
    const Node& root = at.node(at.root());
    if (must_refuse(tree, [&] { forest_.advance(tree, 0); })) return;
    if (root.kind == NodeKind::kOver) {
      check_throws<std::invalid_argument>([&] { forest_.advance(tree, 0); }, "a finished game goes on");
      return plant(tree, is_step_armed_);
    }
    refuse_move(tree);
    const int64_t move = choose_move(at);
    const TreeRecord before = record(game_, at);
    end_search(tree);
    try {
      const Armed armed(trap_, is_step_armed_);
      forest_.advance(tree, move);
    } catch (const GameFault& fault) {
      ++totals_.failed_moves;
      check(fault.tree == tree && fault.moves == std::vector{move}, "a fault names another position");
      check_fault(fault);
      check(record(game_, at) == before, "a move that fails changes the tree");
      return;
    }
    note_moved(tree, move, before);
    // Where chance is to move there is nothing else to do. Otherwise a search goes on from a fresh count.
    if (at.node(at.root()).kind == NodeKind::kOfChance && !dice_.one_in(3)) return advance(tree);
    begin(tree);
  }

  // Many roots at once: all move, or none.
  void advance_together() {
    std::vector<int32_t> trees;
    std::vector<int64_t> moves;
    std::vector<TreeRecord> before;
    bool must_fail = false;
    for (int32_t tree = 0; tree < num_trees(); ++tree) {
      if (dice_.one_in(2)) continue;
      const Tree& at = forest_.tree(tree);
      const bool can_move = at.num_batches_out == 0 && at.node(at.root()).kind != NodeKind::kOver;
      const bool is_wrong = dice_.one_in(12);
      if (!can_move && !is_wrong) continue;
      // A table of chance may take any number, and its fault would be the game's.
      const bool is_impossible = is_wrong && !is_table(game_, at.node(at.root()));
      must_fail |= is_impossible || !can_move;
      trees.push_back(tree);
      moves.push_back(!can_move || is_impossible ? -1 : choose_move(at));
      before.push_back(record(game_, at));
      if (at.num_batches_out == 0) end_search(tree);
    }
    if (!trees.empty() && dice_.one_in(6)) {  // one of them twice
      must_fail = true;
      trees.push_back(trees.front());
      moves.push_back(moves.front());
      before.push_back(before.front());
    }
    bool has_failed = true;
    try {
      const Armed armed(trap_, is_step_armed_);
      forest_.advance(trees, moves);
      has_failed = false;
    } catch (const GameFault& fault) {
      check_fault(fault);
    } catch (const std::logic_error&) {
      check(must_fail, "moves that can be made are refused");
    }
    check(has_failed || !must_fail, "trees advance although one of them cannot");
    totals_.failed_moves += has_failed ? 1 : 0;
    for (size_t i = 0; i < trees.size(); ++i) {
      if (has_failed) {
        check(record(game_, forest_.tree(trees[i])) == before[i], "some trees advance and others do not");
      } else {
        note_moved(trees[i], moves[i], before[i]);
        begin(trees[i]);
      }
    }
  }

  // The root has moved, from `before`.
  void note_moved(int32_t tree, int64_t move, const TreeRecord& before) {
    const Tree& at = forest_.tree(tree);
    check_tree(game_, at, true);
    const TreeRecord kept = below(before, move);
    if (kept.empty()) {
      check(at.num_nodes() == 1 && at.node(at.root()).visits == 0, "a child never reached is not a fresh root");
    } else {
      check(record(game_, at) == kept, "what was below the new root is not what there is now");
    }
    TreeLog& story = log(tree);
    (story.searches.empty() ? story.moves : story.searches.back().moves).push_back(move);
  }

  // Moves that cannot be are refused, and change nothing.
  void refuse_move(int32_t tree) {
    const Tree& at = forest_.tree(tree);
    const TreeRecord before = record(game_, at);
    const int64_t impossible = dice_.one_of<int64_t>({-1, 65536, 65537, INT64_MIN, INT64_MAX, int64_t{1} << 32});
    if (is_table(game_, at.node(at.root()))) {
      State state(game_, at.state_of(at.root()));
      if (state.apply(impossible)) return;  // it can be, after all
      const auto fault =
          check_throws<GameFault>([&] { forest_.advance(tree, impossible); }, "chance does the impossible");
      check(std::string(fault.what()).starts_with("apply: ") && fault.moves == std::vector{impossible},
            "an impossible outcome is called something else");
      ++totals_.impossible_outcomes;
    } else {
      check_throws<std::invalid_argument>([&] { forest_.advance(tree, impossible); }, "an illegal move is made");
    }
    check(record(game_, at) == before, "a move that was refused changes the tree");
  }

  int64_t choose_move(const Tree& at) {
    const Node& root = at.node(at.root());
    if (root.kind != NodeKind::kOfChance) {
      const std::vector<int32_t> line = at.principal_variation();
      return line.empty() || dice_.one_in(4) ? dice_.one_of(at.actions(root)) : line.front();
    }
    int64_t move = random_move(game_, at.state_of(at.root()), dice_);
    std::vector<int64_t> seen;
    for (const Tree::Outcome& outcome : at.outcomes(at.root())) {
      if (outcome.child != kNone) seen.push_back(outcome.outcome);
    }
    if (!seen.empty() && dice_.one_in(2)) move = dice_.one_of(std::span<const int64_t>(seen));
    const bool is_seen = std::find(seen.begin(), seen.end(), move) != seen.end();
    ++(is_seen ? totals_.seen_outcomes : totals_.unseen_outcomes);
    return move;
  }

  void replant(int32_t tree) {
    const State start(game_);
    if (must_refuse(tree, [&] { forest_.reset(tree, start.data()); })) return;
    if (must_refuse(tree, [&] { forest_.uproot(tree); })) return;
    const bool is_uprooted = dice_.one_in(2);
    if (is_uprooted) {
      end_search(tree);
      forest_.uproot(tree);
      const Tree& at = forest_.tree(tree);
      check(!at.is_planted() && at.bytes() == 0 && at.num_nodes() == 0, "a tree that was uprooted has something");
      check(!forest_.has_work(tree, tree + 1), "a tree without a root has work");
      check_throws<std::logic_error>([&] { forest_.begin(tree, tree + 1, 1, 0); }, "a search without a root begins");
      check_throws<std::logic_error>([&] { forest_.advance(tree, 0); }, "a tree without a root advances");
    }
    plant(tree, is_step_armed_ && !is_uprooted);
  }

  void plant(int32_t tree, bool is_armed) {
    auto start =
        std::make_unique<State>(dice_.one_in(4) ? random_state(game_, dice_, 4) : random_decision(game_, dice_, 4));
    const bool was_planted = forest_.tree(tree).is_planted();
    const TreeRecord before = was_planted ? record(game_, forest_.tree(tree)) : TreeRecord();
    try {
      const Armed armed(trap_, is_armed);
      forest_.reset(tree, start->data());
    } catch (const GameFault& fault) {
      ++totals_.failed_moves;
      check(fault.tree == tree && fault.moves.empty(), "a fault names another position");
      check_words(fault, *trap_, *start);
      check(was_planted && record(game_, forest_.tree(tree)) == before, "a reset that fails changes the tree");
      return;
    }
    log(tree) = {};
    log(tree).start = std::move(start);
    begin(tree);
  }

  // Whether the tree's leaves are out. Then `verb` must be refused and change nothing.
  template <class Verb>
  bool must_refuse(int32_t tree, const Verb& verb) {
    if (forest_.tree(tree).num_batches_out == 0) return false;
    const TreeRecord before = record(game_, forest_.tree(tree));
    check_throws<std::logic_error>(verb, "the root of a tree whose leaves are out is moved");
    check(record(game_, forest_.tree(tree)) == before, "what was refused changes the tree");
    return true;
  }
};

}  // namespace windrow
