// test_players.cpp: whose value is whose, with one, two, three and sixteen players. Numbers are worked out by hand.
#include <algorithm>
#include <cstdint>
#include <memory>
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
#include "prediction_cache.h"
#include "trap_game.h"
#include "tree_record.h"

using namespace windrow;

namespace {

ForestOptions small_options() {
  ForestOptions options = plain_options();
  options.max_memory = size_t{1} << 22;
  return options;
}

// Players take turns, one action each: the tree is a line. Every evaluation begins with the player to move.
void test_seats() {
  scene() = "seats";
  Lottery line;
  line.num_players = 3;
  line.num_rounds = 9;
  line.num_draws = 0;
  const GameTable game = line.table();
  Forest forest(game, 1, small_options());
  forest.reset(0, State(game).data());
  forest.begin(0, 1, 3, 0);
  float observation = 0.0f;
  const auto answer = [&](std::vector<float> values) {
    Batch& batch = forest.select(1, 0, 1, false, &observation);
    check(batch.num_rows == 1, "not one row");
    const float logit = 0.0f;
    forest.complete(batch, &logit, values.data());
  };
  const Tree& tree = forest.tree(0);
  const auto at = [&](size_t depth) -> const Node& { return tree.node(tree.find(std::vector<int64_t>(depth, 0))); };
  const auto has_sums = [&](size_t depth, const std::vector<double>& want) {
    const std::span<const double> sums = tree.player_value_sums(at(depth));
    return std::equal(want.begin(), want.end(), sums.begin(), sums.end());
  };
  answer({0.5f, -0.25f, -0.5f});  // player 0 is to move
  check(at(0).value == 0.5f && has_sums(0, {0.5, -0.25, -0.5}), "the root's values are others'");
  answer({0.25f, 0.75f, -1.0f});  // player 1 is: 0.25 is hers, 0.75 is player 2's, -1 is player 0's
  check(at(1).value == 0.25f && at(1).value_sum == 0.25 && has_sums(1, {-1.0, 0.25, 0.75}), "player 1's seat");
  check(tree.value_sums(at(0))[0] == -1.0 && at(0).value_sum == -0.5, "player 0 sees another's value");
  check(has_sums(0, {-0.5, 0.0, 0.25}), "the root's sums are others'");
  answer({1.0f, 0.5f, 0.0f});  // player 2 is: 1 is hers, 0.5 is player 0's, 0 is player 1's
  check(at(2).value == 1.0f && has_sums(2, {0.5, 0.0, 1.0}), "player 2's seat");
  check(tree.value_sums(at(1))[0] == 0.0 && at(1).value_sum == 0.25 && has_sums(1, {-0.5, 0.25, 1.75}),
        "player 1 sees another's value");
  check(tree.value_sums(at(0))[0] == -0.5 && at(0).value_sum == 0.0 && has_sums(0, {0.0, 0.0, 1.25}),
        "player 0 sees another's value");
  answer({-0.5f, 0.125f, 0.25f});  // player 0 again
  check(at(3).value == -0.5f && has_sums(3, {-0.5, 0.125, 0.25}), "player 0's seat");
  check(has_sums(0, {-0.5, 0.125, 1.5}) && at(0).visits == 4 && at(0).value_sum == -0.5, "the root's sums at the end");
}

// One decision: whoever is to move chooses who wins. What is good for the mover alone counts.
struct Favour {
  int32_t num_players, mover;
  bool is_shared = false;  // everybody has the same: action 1 is good for all, the others are bad

  GameTable table() {
    GameTable game{};
    game.abi_version = kGameAbiVersion;
    game.self = this;
    game.num_players = game.num_values = game.num_actions = game.max_legal_actions = num_players;
    game.state_bytes = 8;
    game.observation_floats = 1;
    game.num_symmetries = 1;
    game.initial_state = [](void*, void* state) { return *static_cast<int64_t*>(state) = -1, int32_t{0}; };
    game.to_play = [](void* self, const void* state) { return at(state) < 0 ? of(self).mover : kTerminal; };
    game.legal_actions = [](void* self, const void* state, int32_t* actions) {
      if (at(state) >= 0) return int32_t{0};
      for (int32_t i = 0; i < of(self).num_players; ++i) actions[i] = i;
      return of(self).num_players;
    };
    game.apply = [](void*, void* state, int64_t action) { return *static_cast<int64_t*>(state) = action, int32_t{0}; };
    game.returns = [](void* self, const void* state, float* values) {
      for (int32_t i = 0; i < of(self).num_players; ++i) {
        values[i] = (of(self).is_shared ? 1 : i) == at(state) ? 1.0f : -1.0f;
      }
      return int32_t{0};
    };
    game.observe = [](void*, const void*, float* row) { return row[0] = 0.0f, int32_t{0}; };
    game.hash = [](void*, const void* state, uint64_t* hash) {
      hash[0] = hash[1] = static_cast<uint64_t>(at(state));
      return int32_t{0};
    };
    return game;
  }
  static const Favour& of(void* self) { return *static_cast<const Favour*>(self); }
  static int64_t at(const void* state) { return *static_cast<const int64_t*>(state); }
};

void test_favours() {
  for (const int32_t num_players : {2, 3, 16}) {
    for (int32_t mover = 0; mover < num_players; ++mover) {
      for (const bool is_shared : {false, true}) {
        scene() = "player " + std::to_string(mover) + " of " + std::to_string(num_players);
        Favour favour{num_players, mover, is_shared};
        const GameTable game = favour.table();
        Forest forest(game, 1, small_options());
        forest.reset(0, State(game).data());
        forest.begin(0, 1, 200, 0);
        search_plainly(forest, 0);
        check_tree(game, forest.tree(0));
        const int32_t want = is_shared ? 1 : mover;
        check(forest.tree(0).principal_variation() == std::vector<int32_t>{want}, "a player does another a favour");
        const Tree& tree = forest.tree(0);
        const Node& root = tree.node(tree.root());
        for (int32_t action = 0; action < num_players; ++action) {
          const size_t edge = static_cast<size_t>(action);
          const double sign = action == want ? 1.0 : -1.0;
          check(tree.value_sums(root)[edge] == sign * tree.visits(root)[edge], "an edge has another player's value");
        }
      }
    }
  }
}

// As many players as there may be, in a random game, with all else.
void test_many_players() {
  for (const int32_t num_players : {2, 3, 4, 15, 16}) {
    scene() = std::to_string(num_players) + " players";
    TrapRules rules;
    rules.num_players = rules.num_values = num_players;
    rules.chance = TrapRules::Chance::kSampled;
    rules.owns_states = true;
    const GameTable game = TrapGame::table(rules);
    {
      ForestOptions options = small_options();
      options.leaves_per_tree = 3;
      Forest forest(game, 2, options);
      Dice dice(3);
      for (const int32_t tree : {0, 1}) forest.reset(tree, random_decision(game, dice, 2).data());
      forest.begin(0, 2, 300, 0);
      for (const int32_t tree : {0, 1}) {
        search_plainly(forest, tree);
        check_tree(game, forest.tree(tree));
      }
    }
    check(rules.num_owners == 0, "a state outlives its forest");
  }
}

// A cache gives every player's value back, in half precision too: what `evaluate` says has few bits. Priors lose some,
// so they must not matter here.
void test_cached_values() {
  for (const bool is_half : {false, true}) {
    for (const bool is_canonical : {false, true}) {
      scene() = std::string("cached values") + (is_half ? ", half" : "") + (is_canonical ? ", canonical" : "");
      TrapRules rules;
      rules.num_players = rules.num_values = 3;
      rules.chance = TrapRules::Chance::kListed;
      const GameTable game = TrapGame::table(rules);
      ForestOptions options = small_options();
      options.rules.c_puct = 0.0f;
      options.rules.first_play.value = options.rules.root_first_play.value = 1.0f;  // every action is tried
      const auto cache = std::make_shared<PredictionCache>(size_t{1} << 22, is_half, 64, is_canonical);
      std::vector<std::vector<std::vector<double>>> found;
      std::vector<int64_t> hits;
      for (const auto& used : {std::shared_ptr<PredictionCache>(), cache, cache}) {
        constexpr int32_t kTrees = 8;
        Forest forest(game, kTrees, options, used);
        Dice dice(4);
        for (int32_t tree = 0; tree < kTrees; ++tree) forest.reset(tree, random_decision(game, dice, 2).data());
        forest.begin(0, kTrees, 200, 0);
        std::vector<std::vector<double>> sums;
        hits.push_back(0);
        for (int32_t index = 0; index < kTrees; ++index) {
          search_plainly(forest, index);
          const Tree& tree = forest.tree(index);
          if (!is_half) check_tree(game, tree);
          for (const Ref ref : all_nodes(tree)) {
            const std::span<const double> own = tree.player_value_sums(tree.node(ref));
            sums.emplace_back(own.begin(), own.end());
            sums.back().push_back(tree.node(ref).visits);
          }
          hits.back() += tree.counters.cache_hits;
        }
        found.push_back(sums);
      }
      check(found[0] == found[1] && found[0] == found[2], "a cache changes a player's value");
      check(hits[0] == 0 && hits[2] > 20, "the cache knows nothing: " + std::to_string(hits[2]));
    }
  }
}

}  // namespace

int main() {
  test_seats();
  test_favours();
  test_many_players();
  test_cached_values();
}
