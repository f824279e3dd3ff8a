// test_chance.cpp: what chance does in a search, worked out by hand: which outcome comes when, how often, how deep, how
// many fit.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "census.h"
#include "check.h"
#include "dice.h"
#include "forest.h"
#include "forest_law.h"
#include "lottery.h"
#include "plain_options.h"
#include "positions.h"
#include "random.h"
#include "tree_record.h"

using namespace windrow;

namespace {

// A forest of one tree at the first position, whose search has begun.
struct OneTree {
  OneTree(const GameTable& game, const ForestOptions& options, int64_t budget) : forest(game, 1, options) {
    forest.reset(0, State(game).data());
    forest.begin(0, 1, budget, kCount);
  }
  const Tree& tree() const { return forest.tree(0); }

  static constexpr uint32_t kCount = 5;
  Forest forest;
};

ForestOptions small_options() {
  ForestOptions options = plain_options();
  options.max_memory = size_t{1} << 22;
  options.seed = 11;
  return options;
}

// The moves to the leaves of a batch's simulations, in the order selected.
std::vector<std::vector<int64_t>> paths_of(const Forest& forest, const Batch& batch) {
  std::vector<std::vector<int64_t>> paths;
  for (int32_t i = 0; i < batch.num_rounds; ++i) {
    const Round& round = batch.rounds[static_cast<size_t>(i)];
    for (const Ref leaf : round.simulations) paths.push_back(forest.tree(round.tree).moves_to(leaf));
  }
  return paths;
}

// Draw `draw` of simulation `simulation`, as the generator's documentation says: lane and index of a stream.
Stream stream_of(const ForestOptions& options, uint32_t simulation, uint32_t draw) {
  return Stream({options.seed, 0, OneTree::kCount}, Purpose::kOutcome, draw, simulation);
}

// Every simulation has numbers of its own, every draw in it one of them, whatever else is going on in the tree.
void test_which_outcome() {
  for (const bool is_listed : {true, false}) {
    scene() = is_listed ? "which outcome, listed" : "which outcome, drawn";
    Lottery lottery;
    lottery.num_rounds = 3;
    lottery.num_draws = 2;
    if (is_listed) {
      lottery.outcomes = {3, 10, 65535};
      lottery.probabilities = {0.25, 0.5, 0.25};
    }
    const GameTable game = lottery.table();
    for (const int32_t leaves : {1, 5}) {
      ForestOptions options = small_options();
      options.leaves_per_tree = leaves;
      OneTree one(game, options, 40);
      std::vector<float> observations = make_buffer(one.forest, 64);
      complete(one.forest, one.forest.select(64, 0, 1, false, observations.data()));  // the root
      while (one.forest.has_work(0, 1)) {
        Batch& batch = one.forest.select(64, 0, 1, false, observations.data());
        // Simulations that needed no evaluation are done by now.
        uint32_t simulation = static_cast<uint32_t>(one.tree().counters.simulations);
        for (const std::vector<int64_t>& path : paths_of(one.forest, batch)) {
          // An action, two draws, an action, two draws ...
          uint32_t draw = 0;
          for (size_t i = 0; i < path.size(); ++i) {
            if (i % 3 == 0) continue;
            Stream stream = stream_of(options, simulation, draw++);
            if (is_listed) {
              const double u = stream.next_uniform();
              check(path[i] == (u < 0.25 ? 3 : u < 0.75 ? 10 : 65535), "another outcome is drawn");
            } else {
              check(path[i] == static_cast<int64_t>(stream.next_bits()), "another outcome is drawn");
            }
          }
          check(path.size() % 3 == 0, "a simulation ends where chance is to move");
          ++simulation;
        }
        if (batch.num_rows > 0) complete(one.forest, batch);
      }
      check_tree(game, one.tree());
    }
  }
}

// A simulation that is undone is drawn again alike, if nothing was selected behind it: after cancel, after a bad
// evaluation, and after a search that begins again.
void test_cancelled_draws() {
  for (const bool is_listed : {true, false}) {
    scene() = is_listed ? "cancelled draws, listed" : "cancelled draws, drawn";
    Lottery lottery;
    lottery.num_actions = 2;
    lottery.num_rounds = 4;
    lottery.num_draws = 2;
    lottery.spread = 50;
    if (is_listed) {
      lottery.outcomes = {0, 1, 2, 3, 4, 5};
      lottery.probabilities = std::vector<double>(6, 1.0 / 6.0);
    }
    const GameTable game = lottery.table();
    ForestOptions options = small_options();
    options.leaves_per_tree = 6;
    OneTree one(game, options, 120);
    std::vector<float> observations = make_buffer(one.forest, 64);
    const auto select = [&]() -> Batch& { return one.forest.select(64, 0, 1, false, observations.data()); };
    Dice dice(1);
    std::set<std::vector<std::vector<int64_t>>> different;
    while (one.forest.has_work(0, 1)) {
      Batch* batch = &select();
      const std::vector<std::vector<int64_t>> first = paths_of(one.forest, *batch);
      const int64_t remaining = one.tree().remaining();
      for (int32_t times = dice.below(4); times > 0 && batch->is_out; --times) {
        if (dice.one_in(2)) {
          one.forest.cancel(*batch);
        } else {
          const Out out = take_out(game, one.forest, *batch);
          const std::vector<float> bad(out.answer.values.size(), NAN);
          check_throws<BadEvaluation>([&] { one.forest.complete(*batch, out.answer.logits.data(), bad.data()); },
                                      "a bad evaluation is taken");
        }
        check(one.tree().count_in_flight() == 0, "marks are left behind");
        batch = &select();
        check(paths_of(one.forest, *batch) == first, "a simulation that was undone is drawn otherwise");
        check(one.tree().remaining() == remaining, "a simulation that was undone is counted");
      }
      different.insert(first);
      if (batch->is_out) complete(one.forest, *batch);
    }
    check(different.size() > 10, "always the same is drawn");
    const TreeRecord found = record(game, one.tree());

    // The same search once more finds the same, another one something else.
    for (const uint32_t count : {OneTree::kCount, OneTree::kCount + 1}) {
      one.forest.reset(0, State(game).data());
      one.forest.begin(0, 1, 120, count);
      search_plainly(one.forest, 0);
      const bool is_same_search = count == OneTree::kCount;
      check((evaluated_only(record(game, one.tree())) == evaluated_only(found)) == is_same_search,
            is_same_search ? "the same search finds something else" : "another search draws the same");
    }
  }
}

// As often as the game says. 5 standard deviations: once in two million runs it would be chance, and there is one run.
void test_frequencies() {
  Lottery listed;
  listed.outcomes = {1, 2, 3, 4, 5, 6};
  for (const int32_t outcome : listed.outcomes) listed.probabilities.push_back(outcome / 21.0);
  Lottery drawn;
  drawn.spread = 6;
  for (Lottery* lottery : {&listed, &drawn}) {
    const bool is_listed = lottery == &listed;
    scene() = is_listed ? "frequencies, listed" : "frequencies, drawn";
    const GameTable game = lottery->table();
    constexpr int64_t kCount = 21000;
    OneTree one(game, small_options(), kCount);
    search_plainly(one.forest, 0);
    const Ref chance = one.tree().find(std::vector<int64_t>{0});
    const std::vector<Tree::Outcome> outcomes = one.tree().outcomes(chance);
    check(outcomes.size() == 6 && one.tree().node(chance).visits == kCount, "not every outcome came");
    for (const Tree::Outcome& outcome : outcomes) {
      const double share = is_listed ? static_cast<double>(outcome.outcome) / 21.0 : 1.0 / 6.0;
      const double deviation = std::sqrt(kCount * share * (1.0 - share));
      check(std::fabs(outcome.visits - kCount * share) < 5.0 * deviation, "an outcome comes too often or too rarely");
    }
  }
}

// Depth counts what players do. With one action everywhere and one outcome, the tree is a line:
//   decision, draw, draw, decision, draw, draw, ...
void test_depth() {
  for (const int32_t max_depth : {1, 2, 3, 0}) {
    scene() = "depth " + std::to_string(max_depth);
    Lottery lottery;
    lottery.num_rounds = 5;
    lottery.num_draws = 2;
    lottery.spread = 1;
    const GameTable game = lottery.table();
    ForestOptions options = small_options();
    options.max_depth = max_depth;
    OneTree one(game, options, 50);
    search_plainly(one.forest, 0);
    check_tree(game, one.tree());
    const Tree& tree = one.tree();
    // The root and a decision for every action up to the limit; without one the last action ends the game.
    check(tree.num_expanded() == (max_depth > 0 ? max_depth + 1 : 5), "the tree has another depth");
    check(tree.num_nodes() == 1 + 3 * (max_depth > 0 ? max_depth : 5), "the tree has another size");
    check(tree.counters.max_depth == (max_depth > 0 ? max_depth : 5), "depth is counted differently");
    // Simulation 1 goes 1 deep, simulation 2 goes 2 deep, and from the limit on all are equal.
    const int64_t limit = max_depth > 0 ? max_depth : 5;
    check(tree.counters.depth_sum == limit * (limit - 1) / 2 + (50 - limit + 1) * limit, "depths do not add up");
    check(tree.counters.simulations == 50 && tree.node(tree.root()).visits == 51, "a budget was not spent");
  }
}

// What a chance node backs up is a mean over outcomes, for the player who moved there: values are not turned around.
void test_values() {
  scene() = "values";
  // Outcome 1 is worth 0 for player 0, outcome 2 is worth 1, outcome 3 is worth -1.
  for (const int32_t num_players : {1, 2, 3}) {
    Lottery lottery;
    lottery.num_players = num_players;
    lottery.outcomes = {1, 2, 3};
    lottery.probabilities = {0.5, 0.25, 0.25};
    const GameTable game = lottery.table();
    OneTree one(game, small_options(), 64);
    search_plainly(one.forest, 0);
    check_tree(game, one.tree());
    const Tree& tree = one.tree();
    const Node& root = tree.node(tree.root());
    const Node& chance = tree.node(tree.find(std::vector<int64_t>{0}));
    const std::vector<Tree::Outcome> outcomes = tree.outcomes(tree.find(std::vector<int64_t>{0}));
    const double expected = outcomes[1].visits - outcomes[2].visits;
    check(chance.visits == 64 && chance.value_sum == expected, "chance does not sum its outcomes");
    check(outcomes[0].value_sum == 0.0 && outcomes[1].value_sum == outcomes[1].visits &&
              outcomes[2].value_sum == -outcomes[2].visits,
          "an outcome has another value");
    check(tree.value_sums(root)[0] == expected, "the player who moved sees another value");
    if (num_players == 3) {
      check(tree.player_value_sums(chance)[1] == -expected && tree.player_value_sums(chance)[2] == expected,
            "another player's value");
    }
  }
}

// --- Tables ------------------------------------------------------------------------------------------------------

// Far more outcomes than the largest table has: 4, 8, ... 32768 places, three quarters of them used, is 49,149
// outcomes; the rest is in more of the largest kind.
void test_many_drawn_outcomes() {
  scene() = "many drawn outcomes";
  Lottery lottery;
  const GameTable game = lottery.table();
  ForestOptions options = small_options();
  options.max_memory = size_t{1} << 26;
  constexpr int64_t kCount = 80000;
  OneTree one(game, options, kCount);
  search_plainly(one.forest, 0);
  check_tree(game, one.tree());
  const Tree& tree = one.tree();
  const Ref chance = tree.find(std::vector<int64_t>{0});
  const std::vector<Tree::Outcome> outcomes = tree.outcomes(chance);
  check(outcomes.size() == kCount, "not every outcome is there");  // 64 bits: none comes twice
  std::vector<size_t> sizes;
  for (Ref table = chance; table != kNone; table = tree.children(tree.node(table)).back()) {
    sizes.push_back(last_edge(tree.node(table)));
  }
  std::vector<size_t> expected;
  for (size_t size = 4; size <= 32768; size *= 2) expected.push_back(size);
  expected.insert(expected.end(), {32768, 32768});
  check(sizes == expected, "the tables have other sizes");
  for (size_t i = 0; i < outcomes.size(); i += 777) {
    const Ref child = tree.find(std::vector<int64_t>{0, outcomes[i].outcome});
    check(child == outcomes[i].child, "an outcome is not found");
    check(tree.moves_to(child) == std::vector<int64_t>{0, outcomes[i].outcome}, "an outcome has another path");
    check(tree.find(std::vector<int64_t>{0, outcomes[i].outcome + 1}) == kNone, "what never came is found");
  }
  // The root moves to chance, with all its tables, and then along an outcome.
  one.forest.advance(0, 0);
  check_tree(game, tree, true);
  check(tree.outcomes(tree.root()).size() == kCount, "outcomes are lost on the way");
  one.forest.advance(0, outcomes[kCount / 2].outcome);
  check(tree.num_nodes() == 1 && tree.node(tree.root()).kind == NodeKind::kOver, "something else is at the end");
}

// Lines of 64 bytes: a node takes 40 bytes, its state 16. With one action, padded to 4, the root is light in 2 lines
// (56 + 4 * 6 = 80) and open in 3 (56 + 4 * 24 = 152); the first table of 4 places, padded to 8, takes 5 (56 + 8 * 32 =
// 312), the second of 8, padded to 12, takes 7 (56 + 12 * 32 = 440); the end of a game 1. A new node is made only if
// the largest kind, 5 lines, would fit.
void test_memory_of_tables() {
  Lottery lottery;
  const GameTable game = lottery.table();
  struct Case {
    size_t num_lines, num_nodes, num_outcomes;
  };
  const std::vector<Case> cases = {
      {5, 1, 0},    // the root alone: 2, and to open it 3, but then nothing new
      {9, 1, 0},    // 5 are used, 4 free
      {10, 2, 0},   // the table fits, no outcome
      {14, 2, 0},   // 10 are used, 4 free
      {15, 3, 1},   //
      {16, 4, 2},   //
      {17, 5, 3},   // 13 are used, the table is full
      {19, 5, 3},   // 6 free, but the second table needs 7
      {20, 5, 3},   // the second table fits, but nothing in it; it is no position of its own
      {24, 5, 3},   //
      {25, 6, 4},   //
      {30, 11, 9},  // 26 are used; the third table, of 16 places, needs 56 + 20 * 32 = 696 bytes, 11 lines
      {36, 11, 9},  //
      {37, 11, 9},  //
      {42, 12, 10},
  };
  for (const Case& given : cases) {
    scene() = "memory of tables, lines " + std::to_string(given.num_lines);
    ForestOptions options = small_options();
    options.max_memory = given.num_lines * 64;
    OneTree one(game, options, 100);
    search_plainly(one.forest, 0);
    const Tree& tree = one.tree();
    check_tree(game, tree);
    check(tree.is_full() && tree.count_in_flight() == 0, "a tree without memory is not full");
    check(tree.num_nodes() == static_cast<int64_t>(given.num_nodes), "another number of nodes fits");
    const Ref chance = tree.find(std::vector<int64_t>{0});
    const size_t num_outcomes = chance == kNone ? 0 : tree.outcomes(chance).size();
    check(num_outcomes == given.num_outcomes, "another number of outcomes fits");
    check(tree.counters.simulations == static_cast<int64_t>(num_outcomes), "another number of simulations was done");
    // Moving the root makes room again.
    one.forest.advance(0, 0);
    check_tree(game, tree, true);
    check(tree.outcomes(tree.root()).size() == num_outcomes, "moving the root loses outcomes");
    one.forest.advance(0, 17);
    check(tree.node(tree.root()).kind == NodeKind::kOver && tree.num_nodes() == 1, "an outcome not seen is not a root");
  }
}

// The longest list there can be, and the largest numbers in it.
void test_many_listed_outcomes() {
  scene() = "many listed outcomes";
  Lottery lottery;
  lottery.num_draws = 2;
  lottery.outcomes.resize(65535);
  std::iota(lottery.outcomes.begin(), lottery.outcomes.end(), 1);
  lottery.probabilities.assign(65535, 1.0 / 65535.0);
  const GameTable game = lottery.table();
  ForestOptions options = small_options();
  options.max_memory = size_t{1} << 24;
  OneTree one(game, options, 100);
  search_plainly(one.forest, 0);
  check_tree(game, one.tree());
  // 24 bytes for each of 65536 slots and 56 more are 24,577 lines, and sixteen megabytes, less a line to make them odd,
  // are 262,143: ten of these fit. The first draw takes one, the second of 9 simulations one each; 8 of them have room
  // left for the largest kind, and so for an end.
  check(one.tree().is_full() && one.tree().num_nodes() == 1 + 10 + 8, "another number of nodes fits");
  one.forest.advance(0, 0);
  check_tree(game, one.tree(), true);
  check_throws<std::invalid_argument>([&] { one.forest.advance(0, 0); }, "an outcome that is not listed");
  check_throws<std::invalid_argument>([&] { one.forest.advance(0, 65536); }, "an outcome that is not listed");
  one.forest.advance(0, 65535);
  check_tree(game, one.tree(), true);
}

// Chance where the game said that there is none.
void test_no_chance() {
  scene() = "no chance";
  Lottery lottery;
  lottery.outcomes = {1};
  lottery.probabilities = {1.0};
  GameTable game = lottery.table();
  game.chance_outcomes = nullptr;
  game.max_outcomes = 0;
  OneTree one(game, small_options(), 10);
  const auto fault = check_throws<GameFault>([&] { search_plainly(one.forest, 0); }, "chance in a game without");
  check(std::string(fault.what()) == "to_play gave chance, but the game has no chance" &&
            fault.moves == std::vector<int64_t>{0},
        "the fault is called something else");
  check(one.tree().count_in_flight() == 0 && one.forest.num_batches_out() == 0, "marks are left behind");
}

// Where chance is to move at the root nothing can be searched: begin says so, and select finds nothing.
void test_roots_of_chance() {
  for (const uint64_t spread : {0, 4}) {
    scene() = "roots of chance";
    Lottery lottery;
    lottery.num_rounds = 3;
    lottery.spread = spread;
    const GameTable game = lottery.table();
    Forest forest(game, 2, small_options());
    for (const int32_t tree : {0, 1}) forest.reset(tree, State(game).data());
    forest.begin(0, 2, 20, 0);
    for (const int32_t tree : {0, 1}) search_plainly(forest, tree);
    check(forest.take_finished() == std::vector<int32_t>{0, 1}, "searches that have ended are not named");
    forest.advance(0, 0);
    check_throws<std::logic_error>([&] { forest.begin(0, 1, 10, 0); }, "a search begins where chance is to move");
    check(!forest.has_work(0, 1), "there is work where chance is to move");
    std::vector<float> observations = make_buffer(forest, 8);
    check(forest.select(8, 0, 1, false, observations.data()).num_rows == 0, "chance has a row");
    // Another tree is not held up.
    forest.begin(1, 2, 30, 1);
    search_plainly(forest, 1);
    check(forest.tree(1).counters.simulations == 30, "a budget was not spent");
    const int64_t outcome = forest.tree(0).outcomes(forest.tree(0).root()).front().outcome;
    forest.advance(0, outcome);
    forest.begin(0, 1, 30, 1);
    search_plainly(forest, 0);
    check(forest.tree(0).counters.simulations == 30, "a budget was not spent");
    check_tree(game, forest.tree(0));
  }
}

}  // namespace

// With a number, only that test.
int main(int argc, char** argv) {
  const std::vector<std::function<void()>> tests = {
      test_which_outcome,       test_cancelled_draws,  test_frequencies,          test_depth,     test_values,
      test_many_drawn_outcomes, test_memory_of_tables, test_many_listed_outcomes, test_no_chance, test_roots_of_chance,
  };
  if (argc > 1) {
    tests.at(static_cast<size_t>(std::stoi(argv[1])))();
    return 0;
  }
  for (const std::function<void()>& test : tests) test();
}
