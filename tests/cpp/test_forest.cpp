// test_forest.cpp: long random walks over the forest's verbs, in games of every kind, with faults in the game's rules,
// too little memory, batches cancelled, and what else happens. forest_walk.h has the law.
#include <cstdint>
#include <memory>
#include <string>

#include "check.h"
#include "dice.h"
#include "forest.h"
#include "forest_walk.h"
#include "games/builtin.h"
#include "plain_options.h"
#include "positions.h"
#include "prediction_cache.h"
#include "trap_game.h"

using namespace windrow;

namespace {

// One, two or more players; with and without chance; states that have owners.
void choose_rules(TrapRules& rules, Dice& dice) {
  rules.num_players = dice.one_of({1, 2, 2, 2, 3, 3, 5});
  const bool is_opposed = rules.num_players <= 2 && !dice.one_in(5);
  rules.num_values = is_opposed ? 1 : rules.num_players;
  rules.chance = dice.one_of({TrapRules::Chance::kAbsent, TrapRules::Chance::kListed, TrapRules::Chance::kSampled});
  rules.traps_per_1024 = dice.one_of({0, 16, 60, 250});
  rules.owns_states = dice.one_in(2);
}

// Returns of the built-in games here are dyadic: only then are sums exact.
std::unique_ptr<NamedGame> make_small(const std::string& name) {
  GameOptions options;
  if (name == "connect4") options = {{"rows", int64_t{4}}, {"columns", int64_t{5}}};
  if (name == "gomoku") options = {{"size", int64_t{5}}};
  if (name == "pig") options = {{"target", int64_t{12}}};
  if (name == "backgammon") options = {{"scoring", std::string("wins")}};
  if (name == "azul3") options = {{"players", int64_t{3}}};
  return make_builtin(name == "azul3" ? "azul" : name, options);
}

ForestOptions choose_options(Dice& dice, uint64_t seed) {
  ForestOptions options = plain_options();
  options.rules.c_puct = dice.one_of({0.0f, 0.5f, 1.5f, 4.0f});
  options.rules.in_flight = dice.one_of({InFlight::kVisits, InFlight::kLoss, InFlight::kDilute});
  options.rules.virtual_loss = dice.one_of({0.0f, 1.0f, 3.0f});
  options.rules.first_play = {.is_parent = dice.one_in(2), .value = dice.one_of({0.0f, 0.25f, -1.0f})};
  options.rules.root_first_play =
      dice.one_in(3) ? FirstPlay{.is_parent = dice.one_in(2), .value = 0.5f} : options.rules.first_play;
  options.rules.c_puct_growth = dice.one_of({0.0f, 0.0f, 1.0f});
  options.rules.value_scale = dice.one_of({ValueScale::kFixed, ValueScale::kTree, ValueScale::kNode});
  options.root_policy_temperature = dice.one_of({1.0f, 1.0f, 1.3f});
  options.improves_interior = dice.one_in(4);
  options.lcb_deviations = dice.one_of({0.0f, 5.0f});
  options.share_collisions = dice.one_in(2);
  options.leaves_per_tree = dice.one_of({1, 1, 2, 3, 8, 64});
  options.max_depth = dice.one_in(5) ? dice.one_of({1, 2, 5}) : 0;
  options.dirichlet_fraction = dice.one_of({0.0f, 0.0f, 0.25f});
  if (dice.one_in(8)) options.gumbel.max_considered = dice.one_of({1, 4, 16});
  options.gumbel.scale = 1.0f;
  options.seed = seed;
  options.num_threads = dice.one_of({1, 1, 2});
  return options;
}

void test_walk(uint64_t seed, WalkTotals& totals) {
  Dice dice(seed);
  TrapRules trap;
  choose_rules(trap, dice);
  const std::string name = dice.one_of({"trap", "trap", "trap", "trap", "tictactoe", "connect4", "gomoku", "othello",
                                        "pig", "backgammon", "azul", "azul3"});
  const bool is_trap = name == "trap";
  const std::unique_ptr<NamedGame> named = is_trap ? nullptr : make_small(name);
  const GameTable game = is_trap ? TrapGame::table(trap) : named->table();

  ForestOptions options = choose_options(dice, seed);
  const int32_t num_trees = dice.one_of({1, 2, 5, 20});
  const bool is_tight = dice.one_in(3);
  const size_t smallest = to_lines(NodeLayout(game, true).largest_root_bytes(game)) * kLineBytes;
  const size_t share = is_tight ? smallest * static_cast<size_t>(dice.one_of({1, 2, 8, 30})) : size_t{1} << 22;
  options.max_memory = static_cast<size_t>(num_trees) * share;
  const bool overlap = dice.one_in(3);
  std::shared_ptr<PredictionCache> cache;
  if (dice.one_in(3)) {
    // What looks alike has one canonical key, but not one evaluation here: only in a trap game all look different.
    const bool is_canonical = is_trap && dice.one_in(3);
    cache = std::make_shared<PredictionCache>(size_t{1} << dice.one_of({14, 20}), false, 64, is_canonical);
  }
  scene() = "seed " + std::to_string(seed) + ", " + name + ", players " + std::to_string(game.num_players) +
            ", values " + std::to_string(game.num_values) + ", trees " + std::to_string(num_trees) + ", K " +
            std::to_string(options.leaves_per_tree) + ", rule " +
            std::to_string(static_cast<int32_t>(options.rules.in_flight)) +
            (options.share_collisions ? ", share" : ", skip") + (overlap ? ", overlap" : "") +
            (is_tight ? ", tight" : "") + (cache != nullptr ? ", cache" : "") +
            (game.chance_outcomes != nullptr  ? ", listed"
             : game.sample_outcome != nullptr ? ", sampled"
                                              : "") +
            (game.release != nullptr ? ", owned" : "") + ", max_depth " + std::to_string(options.max_depth);
  {
    ForestWalk walk(game, is_trap ? &trap : nullptr, options, cache, num_trees, overlap, dice, totals);
    walk.run(num_trees > 5 ? 60 : 120);
    walk.finish(dice.one_in(2));
    walk.compare();
    // Some end with batches out.
    if (dice.one_in(2)) walk.run(10);
  }
  check(trap.num_owners == 0, "a state outlives its forest");
}

}  // namespace

// With a number, only the walk of that seed.
int main(int argc, char** argv) {
  WalkTotals totals;
  if (argc > 1) {
    test_walk(std::stoull(argv[1]), totals);
    return 0;
  }
  for (uint64_t seed = 0; seed < 1500; ++seed) test_walk(seed, totals);
  scene() = "compared " + std::to_string(totals.compared) + ", faults " + std::to_string(totals.faults) +
            ", failed moves " + std::to_string(totals.failed_moves) + ", full " + std::to_string(totals.full) +
            ", bad evaluations " + std::to_string(totals.bad) + ", collisions " + std::to_string(totals.collisions) +
            ", cache hits " + std::to_string(totals.hits) + ", shared rows " + std::to_string(totals.shared_rows) +
            ", outcomes seen " + std::to_string(totals.seen_outcomes) + ", not seen " +
            std::to_string(totals.unseen_outcomes) + ", impossible " + std::to_string(totals.impossible_outcomes) +
            ", later tables " + std::to_string(totals.later_tables) + ", roots of chance " +
            std::to_string(totals.chance_roots);
  // The walks must have been where it is dangerous.
  check(totals.compared > 1000 && totals.faults > 500 && totals.failed_moves > 60 && totals.full > 200 &&
            totals.bad > 1000 && totals.collisions > 5000 && totals.hits > 1000 && totals.shared_rows > 100,
        "the walks were too tame");
  check(totals.seen_outcomes > 100 && totals.unseen_outcomes > 100 && totals.impossible_outcomes > 100 &&
            totals.later_tables > 500 && totals.chance_roots > 500,
        "the walks left too little to chance");
}
