// test_growth.cpp: the loop in the core: the same trees however often it comes back, and after every fault that select
// or a random game can meet.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "dice.h"
#include "evaluator.h"
#include "forest.h"
#include "plain_options.h"
#include "positions.h"
#include "trap_game.h"
#include "tree_record.h"

using namespace windrow;

namespace {

constexpr int32_t kTrees = 10;
constexpr int64_t kBudget = 80;
constexpr std::chrono::nanoseconds kNoPatience{0}, kLong = std::chrono::minutes(10);

void plant_all(Forest& forest) {
  Dice dice(9);
  for (int32_t tree = 0; tree < kTrees; ++tree) {
    forest.reset(tree, random_decision(forest.game(), dice, 3).data());
  }
  forest.begin(0, kTrees, kBudget, 0);
}

std::vector<TreeRecord> records_of(const Forest& forest) {
  std::vector<TreeRecord> records;
  for (int32_t tree = 0; tree < kTrees; ++tree) {
    check(forest.tree(tree).counters.simulations == kBudget, "a budget was not spent");
    check(forest.tree(tree).count_in_flight() == 0, "marks are left behind");
    records.push_back(evaluated_only(record(forest.game(), forest.tree(tree))));
  }
  return records;
}

struct Grown {
  std::vector<TreeRecord> records;
  int64_t num_rows = 0, num_calls = 0;
  int32_t num_returns = 0, num_faults = 0;
};

// Grows all trees with random games, with traps armed half of the time if there are any.
Grown grow_all(TrapRules& rules, const ForestOptions& options, int32_t max_batch, std::chrono::nanoseconds patience) {
  const GameTable game = TrapGame::table(rules);
  Forest forest(game, kTrees, options);
  RolloutEvaluator evaluator(game, 2, 7);
  plant_all(forest);
  Dice dice(8);
  Grown grown;
  for (bool is_finished = false; !is_finished;) {
    try {
      const Armed armed(&rules, rules.only != TrapFault::kSound && dice.one_in(2));
      const GrowthReport report = forest.grow(evaluator, 16, 0, kTrees, max_batch, patience);
      is_finished = report.is_finished;
      grown.num_rows += report.num_rows;
      grown.num_calls += report.num_calls;
      ++grown.num_returns;
      check(report.num_rows <= report.num_places, "a batch is more than full");
    } catch (const GameFault& fault) {
      ++grown.num_faults;
      const Tree& tree = forest.tree(fault.tree);
      State state(game, tree.state_of(tree.root()));
      for (const int64_t move : fault.moves) check(state.apply(move), "a fault names a position that cannot be");
      check(forest.num_batches_out() == 0, "the batch of a fault is out");
      check(tree.count_in_flight() == 0, "marks are left behind");
    }
  }
  check(!forest.has_work(0, kTrees), "the end is not the end");
  grown.records = records_of(forest);
  return grown;
}

void test_patience() {
  for (const int32_t num_threads : {1, 2}) {
    scene() = "patience, " + std::to_string(num_threads) + " threads";
    TrapRules rules;
    ForestOptions options = plain_options();
    options.leaves_per_tree = 3;
    options.num_threads = num_threads;
    const Grown whole = grow_all(rules, options, 1000, kLong), often = grow_all(rules, options, 1000, kNoPatience);
    check(whole.records == often.records, "coming back changes what is found");
    check(whole.num_returns <= kTrees + 1, "it comes back for no reason");
    check(often.num_returns >= often.num_calls && often.num_returns > kTrees, "it does not come back after a batch");
    check(whole.num_rows == often.num_rows && whole.num_calls == often.num_calls, "coming back changes the batches");
    const Grown pieces = grow_all(rules, options, 2, kLong);
    check(whole.records == pieces.records, "calls of the evaluator change what is found");
    check(whole.num_rows == pieces.num_rows && pieces.num_calls >= pieces.num_rows / 2, "max_batch is exceeded");
  }
}

void test_faults() {
  using Chance = TrapRules::Chance;
  for (const TrapFault fault :
       {TrapFault::kApplyFails, TrapFault::kToPlayFails, TrapFault::kLegalActionsFails, TrapFault::kNobodyCanMove,
        TrapFault::kReturnsFails, TrapFault::kOutcomesFails, TrapFault::kSampleFails, TrapFault::kHashFails}) {
    int32_t num_faults = 0;
    for (const Chance chance : {Chance::kAbsent, Chance::kListed, Chance::kSampled}) {
      scene() = "fault " + std::to_string(static_cast<int32_t>(fault));
      TrapRules rules;
      rules.num_players = rules.num_values = 3;
      rules.chance = chance;
      rules.owns_states = true;
      rules.traps_per_1024 = 150;
      ForestOptions options = plain_options();
      options.leaves_per_tree = 4;
      const Grown want = grow_all(rules, options, 1000, kLong);
      rules.only = fault;
      const Grown got = grow_all(rules, options, 1000, kNoPatience);
      check(got.records == want.records, "faults change what is found");
      check(rules.num_owners == State::num_owned(), "a state is left");
      num_faults += got.num_faults;
    }
    check(num_faults > 5, "few faults: " + std::to_string(num_faults));
  }
}

// The other two, of which tests in Python know the answers: exact sizes of buffers, and nothing read that is not there.
void test_evaluators() {
  scene() = "evaluators";
  TrapRules rules;
  const GameTable game = TrapGame::table(rules);
  UniformEvaluator uniform(game);
  HashEvaluator hash(game, 3);
  for (CoreEvaluator* evaluator : {static_cast<CoreEvaluator*>(&uniform), static_cast<CoreEvaluator*>(&hash)}) {
    Forest forest(game, kTrees, plain_options());
    plant_all(forest);
    for (const int32_t max_leaves : {1, 4, 64}) {
      while (!forest.grow(*evaluator, max_leaves, 0, kTrees, 1000, kLong).is_finished) continue;
      records_of(forest);
      forest.begin(0, kTrees, kBudget, 1);
    }
  }
}

}  // namespace

int main() {
  test_patience();
  test_faults();
  test_evaluators();
}
