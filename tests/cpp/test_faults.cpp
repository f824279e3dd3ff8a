// test_faults.cpp: every fault that a game can have, one at a time, met in the middle of a search. The forest says
// which position and what is wrong, nothing stays in flight, no state is lost or released twice, and once the fault is
// gone the search finds what it would have found without it.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "census.h"
#include "check.h"
#include "dice.h"
#include "failure.h"
#include "forest.h"
#include "forest_law.h"
#include "plain_options.h"
#include "positions.h"
#include "prediction_cache.h"
#include "trap_game.h"
#include "trap_words.h"
#include "tree_record.h"

using namespace windrow;

namespace {

constexpr int32_t kTrees = 10;  // more than one thread is given
constexpr int64_t kBudget = 80;

std::vector<TreeRecord> evaluated(const GameTable& game, const Forest& forest) {
  std::vector<TreeRecord> records;
  for (int32_t tree = 0; tree < forest.num_trees(); ++tree) {
    records.push_back(evaluated_only(record(game, forest.tree(tree))));
  }
  return records;
}

void plant_all(Forest& forest) {
  Dice dice(9);
  for (int32_t tree = 0; tree < kTrees; ++tree) {
    forest.reset(tree, random_decision(forest.game(), dice, 3).data());
  }
  forest.begin(0, kTrees, kBudget, 0);
}

// Searches all trees, with traps armed half of the time. Returns how often one was met.
int32_t search(TrapRules& rules, Forest& forest, const TrapFault fault, bool is_overlapping) {
  const GameTable& game = forest.game();
  Dice dice(8);
  int32_t num_faults = 0;
  std::vector<float> observations = make_buffer(forest, 64);
  std::vector<Out> outs;
  for (;;) {
    bool is_looked_at = dice.one_in(8);
    try {
      Batch* batch = nullptr;
      {
        const Armed armed(&rules, fault != TrapFault::kSound && dice.one_in(2));
        batch = &forest.select(64, 0, kTrees, is_overlapping, observations.data());
      }
      if (batch->num_rows > 0) {
        outs.push_back(take_out(game, forest, *batch));
      } else if (outs.empty() && !forest.has_work(0, kTrees)) {
        return num_faults;
      }
    } catch (const GameFault& error) {
      ++num_faults;
      is_looked_at = true;
      const Tree& tree = forest.tree(error.tree);
      State state(game, tree.state_of(tree.root()));
      for (const int64_t move : error.moves) check(state.apply(move), "a fault names a position that cannot be");
      check(TrapGame::fault_at(rules, state.data()) == fault, "another fault is named");
      check_words(error, rules, state);
      check(forest.num_batches_out() == static_cast<int32_t>(outs.size()), "the batch of a fault is out");
    }
    int64_t num_nodes = 0;
    for (int32_t tree = 0; tree < kTrees; ++tree) {
      if (is_looked_at) check_tree_of(forest, tree, outs, is_overlapping);
      num_nodes += count_owners(forest.tree(tree));
    }
    if (rules.owns_states) {
      check(rules.num_owners - State::num_owned() == num_nodes, "not every node owns its state once");
    }
    if (!outs.empty() && (outs.size() == 3 || dice.one_in(2))) {
      const size_t index = static_cast<size_t>(dice.below(static_cast<int64_t>(outs.size())));
      const Evaluation& answer = outs[index].answer;
      forest.complete(*outs[index].batch, answer.logits.data(), answer.values.data());
      outs.erase(outs.begin() + static_cast<int64_t>(index));
    }
  }
}

struct Variant {
  const char* name;
  int32_t num_players, num_values;
  TrapRules::Chance chance;
  bool owns_states;
};

// Returns how often the fault was met.
int32_t test_fault(const Variant& variant, TrapFault fault, int32_t num_threads, bool is_overlapping) {
  TrapRules rules;
  rules.num_players = variant.num_players;
  rules.num_values = variant.num_values;
  rules.chance = variant.chance;
  rules.owns_states = variant.owns_states;
  rules.traps_per_1024 = 150;
  rules.only = fault;
  scene() = std::string(variant.name) + ", " + std::to_string(num_threads) + " threads" +
            (is_overlapping ? ", overlapping" : "") + ", fault: " + facts_of(fault).words;
  const GameTable game = TrapGame::table(rules);
  int32_t num_faults = 0;
  {
    ForestOptions options = plain_options();
    options.leaves_per_tree = 4;
    options.num_threads = num_threads;
    options.max_memory = size_t{1} << 24;
    // Only a cache asks for hashes.
    std::shared_ptr<PredictionCache> cache;
    if (fault == TrapFault::kHashFails) cache = std::make_shared<PredictionCache>(size_t{1} << 20, false);
    std::vector<TreeRecord> want;
    {
      Forest sound(game, kTrees, options);
      plant_all(sound);
      search(rules, sound, TrapFault::kSound, false);
      want = evaluated(game, sound);
    }
    Forest faulty(game, kTrees, options, cache);
    plant_all(faulty);
    num_faults = search(rules, faulty, fault, is_overlapping);
    for (int32_t tree = 0; tree < kTrees; ++tree) {
      check(faulty.tree(tree).counters.simulations == kBudget, "a budget was not spent");
      check(faulty.tree(tree).count_in_flight() == 0, "marks are left behind");
    }
    if (!is_overlapping) check(evaluated(game, faulty) == want, "faults change what is found");
  }
  check(rules.num_owners == 0, "a state outlives its forest");
  return num_faults;
}

// A root that is faulty from the beginning, and one that the present root would lead to: nothing changes.
int32_t test_faulty_roots(const Variant& variant, TrapFault fault) {
  scene() = std::string(variant.name) + ", roots, fault: " + facts_of(fault).words;
  TrapRules rules;
  rules.num_players = variant.num_players;
  rules.num_values = variant.num_values;
  rules.chance = variant.chance;
  rules.owns_states = variant.owns_states;
  rules.traps_per_1024 = 400;
  rules.only = fault;
  const GameTable game = TrapGame::table(rules);
  ForestOptions options = plain_options();
  options.max_memory = size_t{1} << 22;
  int32_t num_faults = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Forest forest(game, 2, options);
    Dice dice(seed);
    const State start = random_decision(game, dice, 3);
    for (const int32_t tree : {0, 1}) forest.reset(tree, start.data());
    forest.begin(0, 2, dice.below(4), 0);
    for (const int32_t tree : {0, 1}) search_plainly(forest, tree);
    const std::vector<TreeRecord> before = {record(game, forest.tree(0)), record(game, forest.tree(1))};
    const auto is_unchanged = [&] {
      return record(game, forest.tree(0)) == before[0] && record(game, forest.tree(1)) == before[1];
    };
    for (const int64_t move : forest.tree(0).actions(forest.tree(0).node(forest.tree(0).root()))) {
      State bad = start;
      check(bad.apply(move), "apply failed");
      // These are met later: when the position is evaluated, or chance goes on from it.
      const bool is_late =
          fault == TrapFault::kObserveFails || fault == TrapFault::kHashFails || fault == TrapFault::kSampleFails;
      if (TrapGame::fault_at(rules, bad.data()) == TrapFault::kSound || is_late) continue;
      ++num_faults;
      if (fault != TrapFault::kApplyFails) {  // it is there already
        const auto error = check_throws<GameFault>(
            [&] {
              const Armed armed(&rules, true);
              forest.reset(0, bad.data());
            },
            "a faulty root is planted");
        check(error.tree == 0 && error.moves.empty(), "a fault names another position");
        check_words(error, rules, bad);
      }
      if (forest.tree(0).find(std::vector<int64_t>{move}) == kNone) {
        // Tree 1 could move, and must not.
        const int32_t trees[] = {1, 0};
        const int64_t moves[] = {move, move};
        const auto error = check_throws<GameFault>(
            [&] {
              const Armed armed(&rules, true);
              forest.advance(std::span(trees).subspan(forest.tree(1).find(std::vector{move}) == kNone ? 1 : 0),
                             std::span(moves).subspan(forest.tree(1).find(std::vector{move}) == kNone ? 1 : 0));
            },
            "the root is moved to a fault");
        check(error.tree == 0 && error.moves == std::vector{move}, "a fault names another position");
        check_words(error, rules, bad);
      }
      check(is_unchanged(), "a root that cannot be changes a tree");
    }
    if (rules.owns_states) {
      const int64_t num_nodes = count_owners(forest.tree(0)) + count_owners(forest.tree(1));
      check(rules.num_owners - State::num_owned() == num_nodes, "not every node owns its state once");
    }
    forest.begin(0, 2, 30, 1);
    for (const int32_t tree : {0, 1}) {
      search_plainly(forest, tree);
      check_tree(game, forest.tree(tree));
    }
  }
  check(rules.num_owners == 0, "a state outlives its forest");
  return num_faults;
}

// A game need not say why, and may say it at length.
void test_words() {
  scene() = "reasons";
  GameTable game{};
  check(why_failed(game) == "it gave no reason", "a game without words is quoted");
  game.explain = [](void*, char*, int32_t) {};
  check(why_failed(game) == "it gave no reason", "a game that says nothing is quoted");
  game.explain = [](void*, char* text, int32_t size) {
    std::memset(text, 'a', static_cast<size_t>(size));
    text[size - 1] = '\0';
  };
  const std::string words = why_failed(game);
  check(words.size() > 100 && words.find_first_not_of('a') == std::string::npos, "a long reason is not whole");
}

}  // namespace

int main() {
  using Chance = TrapRules::Chance;
  const std::vector<Variant> variants = {
      {"two players", 2, 1, Chance::kAbsent, false},
      {"one player, listed, owned", 1, 1, Chance::kListed, true},
      {"two players, listed", 2, 1, Chance::kListed, false},
      {"two players, sampled, owned", 2, 1, Chance::kSampled, true},
      {"three players, sampled, owned", 3, 3, Chance::kSampled, true},
      {"two players with values of their own, listed, owned", 2, 2, Chance::kListed, true}};
  test_words();
  for (const TrapFaultFacts& facts : trap_faults()) {
    int32_t num_faults = 0, num_roots = 0;
    for (const Variant& variant : variants) {
      for (const int32_t num_threads : {1, 2}) {
        num_faults += test_fault(variant, facts.fault, num_threads, num_threads == 2);
      }
      num_faults += test_fault(variant, facts.fault, 2, false);
      num_roots += test_faulty_roots(variant, facts.fault);
    }
    check(num_faults >= 10, "a fault was hardly met: " + std::to_string(num_faults));
    const bool is_late = facts.fault == TrapFault::kObserveFails || facts.fault == TrapFault::kHashFails ||
                         facts.fault == TrapFault::kSampleFails;
    check(is_late || num_roots >= 5, "a fault was hardly met at roots: " + std::to_string(num_roots));
  }
}
