// test_move_choice.cpp: the action that self-play draws, and the policy that it learns.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "dice.h"
#include "forest.h"
#include "forest_law.h"
#include "games/builtin.h"
#include "move_choice.h"
#include "plain_options.h"
#include "positions.h"
#include "random.h"

using namespace windrow;

namespace {

constexpr double kBeforeOne = 1.0 - 0x1p-53;

void test_draws_by_hand() {
  const std::vector<float> policy = {0.0f, 0.25f, 0.0f, 0.5f, 0.25f, 0.0f};
  // At temperature 1 the shares are the policy's: action 1 up to 0.25, action 3 up to 0.75, action 4 up to 1.
  for (const auto& [draw, want] : std::vector<std::pair<double, int32_t>>{
           {0x1p-53, 1}, {0.24, 1}, {0.26, 3}, {0.74, 3}, {0.76, 4}, {kBeforeOne, 4}}) {
    scene() = "a draw of " + std::to_string(draw);
    check(draw_action(policy, 1.0, draw) == want, "another action at temperature 1");
  }
  // At 1/2 they are squared: 1/6, 4/6 and 1/6.
  check(draw_action(policy, 0.5, 0.16) == 1 && draw_action(policy, 0.5, 0.17) == 3, "squares");
  check(draw_action(policy, 0.5, 0.83) == 3 && draw_action(policy, 0.5, 0.84) == 4, "squares");
  // At 1e-9 only the best is left; without scaling its power would be 0.
  check(draw_action(policy, 1e-9, 0x1p-53) == 3 && draw_action(policy, 1e-9, kBeforeOne) == 3, "cold");
  // At 0 the first of the best.
  const std::vector<float> tied = {0.1f, 0.45f, 0.45f};
  check(draw_action(tied, 0.0, kBeforeOne) == 1, "the first of the best");
}

void test_impossible_actions_are_never_drawn() {
  scene() = "impossible actions";
  Dice dice(3);
  for (int32_t i = 0; i < 2000; ++i) {
    std::vector<float> policy(static_cast<size_t>(2 + dice.below(40)));
    for (float& share : policy) share = dice.one_in(2) ? 0.0f : static_cast<float>(dice.uniform());
    policy[static_cast<size_t>(dice.below(static_cast<int64_t>(policy.size())))] = 1e-6f;
    const double temperature = dice.one_of({0.0, 0.1, 0.7, 1.0, 3.0});
    for (const double draw : {0x1p-53, dice.uniform() * kBeforeOne + 0x1p-54, kBeforeOne}) {
      const int32_t action = draw_action(policy, temperature, draw);
      check(action >= 0 && static_cast<size_t>(action) < policy.size(), "no action at all");
      check(policy[static_cast<size_t>(action)] > 0.0f, "an impossible action");
    }
  }
}

// Three trees of Connect-4, some moves into the game, whose searches have ended.
constexpr int32_t kTrees = 3;
const std::vector<int32_t> kAll = {0, 1, 2};
const std::vector<double> kWarm = {1.0, 1.0, 0.0};
const std::vector<uint32_t> kKeys = {7, 8, 9}, kCounts = {4, 5, 6};

void search_all(Forest& forest, int64_t num_simulations) {
  Dice dice(12);
  for (const int32_t tree : kAll) forest.reset(tree, random_decision(forest.game(), dice, 6).data());
  forest.begin(0, kTrees, num_simulations, 0);
  for (const int32_t tree : kAll) search_plainly(forest, tree);
}

void test_visits_are_learned_and_drawn_from() {
  const auto named = make_builtin("connect4", {});
  const size_t width = static_cast<size_t>(named->table().num_actions);
  for (const int64_t num_simulations : {0, 80}) {
    scene() = std::to_string(num_simulations) + " simulations";
    ForestOptions options = plain_options();
    options.max_memory = size_t{1} << 24;
    options.seed = 21;
    Forest forest(named->table(), kTrees, options);
    search_all(forest, num_simulations);
    const MoveChoices chosen = choose_moves(forest, kAll, kWarm, kKeys, kCounts);
    for (size_t row = 0; row < kAll.size(); ++row) {
      const Tree& tree = forest.tree(kAll[row]);
      const Node& root = tree.node(tree.root());
      check(chosen.values[row] == static_cast<float>(root.value_sum) / static_cast<float>(root.visits), "the value");
      std::vector<float> want(width);
      for (size_t edge = 0; edge < root.num_edges; ++edge) {
        want[tree.actions(root)[edge]] =
            num_simulations == 0 ? tree.priors(root)[edge] : static_cast<float>(tree.visits(root)[edge] / 80.0);
      }
      const auto first = chosen.policies.begin() + static_cast<std::ptrdiff_t>(row * width);
      check(std::equal(want.begin(), want.end(), first), "the policy is not the visits'");
      const double draw = Stream({21, kKeys[row], kCounts[row]}, Purpose::kMove, 0).next_uniform();
      check(chosen.actions[row] == draw_action(want, kWarm[row], draw), "the action is not the draw's");
    }
  }
}

void test_a_gumbel_root_decides_itself() {
  scene() = "Gumbel roots";
  const auto named = make_builtin("connect4", {});
  const size_t width = static_cast<size_t>(named->table().num_actions);
  ForestOptions options = plain_options();
  options.max_memory = size_t{1} << 24;
  options.gumbel = {.max_considered = 4, .scale = 1.0f, .visit_offset = 50.0f, .value_scale = 0.25f};
  Forest forest(named->table(), kTrees, options);
  search_all(forest, 32);
  const MoveChoices chosen = choose_moves(forest, kAll, kWarm, kKeys, kCounts);
  for (size_t row = 0; row < kAll.size(); ++row) {
    const Tree& tree = forest.tree(kAll[row]);
    const Node& root = tree.node(tree.root());
    const std::vector<float> improved = tree.gumbel_policy();
    for (size_t edge = 0; edge < root.num_edges; ++edge) {
      check(chosen.policies[row * width + tree.actions(root)[edge]] == improved[edge], "another policy");
    }
    check(chosen.actions[row] == tree.gumbel_action(), "another action");
  }
}

void test_a_search_must_have_ended() {
  scene() = "no search";
  const auto named = make_builtin("tictactoe", {});
  ForestOptions options = plain_options();
  options.max_memory = size_t{1} << 22;
  Forest forest(named->table(), kTrees, options);
  const auto choose = [&] { choose_moves(forest, kAll, kWarm, kKeys, kCounts); };
  check_throws<std::logic_error>(choose, "trees without roots");
  for (const int32_t tree : kAll) forest.reset(tree, State(named->table()).data());
  check_throws<std::logic_error>(choose, "roots that were never evaluated");
}

}  // namespace

int main() {
  test_draws_by_hand();
  test_impossible_actions_are_never_drawn();
  test_visits_are_learned_and_drawn_from();
  test_a_gumbel_root_decides_itself();
  test_a_search_must_have_ended();
}
