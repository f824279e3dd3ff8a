// test_limits.cpp: a forest at the edges: roots that cannot be, trees never planted, the widest marks, the smallest
// memory. Whatever happens, a forest says what is wrong and can be used afterwards.
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "census.h"
#include "check.h"
#include "forest.h"
#include "forest_law.h"
#include "games/builtin.h"
#include "plain_options.h"
#include "positions.h"

using namespace windrow;

namespace {

// Verbs on a tree that has no root yet are refused or find nothing to do.
void test_unplanted() {
  scene() = "a tree that was never planted";
  const auto named = make_builtin("tictactoe", {});
  Forest forest(named->table(), 2, plain_options());
  forest.reset(0, State(named->table()).data());
  std::vector<float> observations = make_buffer(forest, 8);
  const std::vector<std::function<void()>> verbs = {
      [&] { forest.has_work(0, 2); },
      [&] { forest.begin(0, 2, 10, 0); },
      [&] { forest.advance(1, 0); },
      [&] {
        Batch& batch = forest.select(8, 0, 2, false, observations.data());
        check(batch.num_rows <= 1, "a tree without a root has a leaf");
        if (batch.num_rows > 0) complete(forest, batch);
      },
  };
  for (const std::function<void()>& verb : verbs) {
    try {
      verb();
    } catch (const std::logic_error&) {  // a refusal in words is as good
    }
  }
  forest.cancel_all();
  for (const int32_t tree : {0, 1}) {
    forest.reset(tree, State(named->table()).data());
    forest.begin(tree, tree + 1, 20, 0);
    search_plainly(forest, tree);
    check_tree(named->table(), forest.tree(tree));
    check(forest.tree(tree).counters.simulations == 20, "a budget was not spent");
  }
}

// From the first position, action 0 ends the game and action 1 leads on.
struct TwoDoors {
  static GameTable table() {
    GameTable game{};
    game.abi_version = kGameAbiVersion;
    game.num_players = 1;
    game.num_values = 1;
    game.num_actions = 2;
    game.max_legal_actions = 2;
    game.state_bytes = 8;
    game.observation_floats = 1;
    game.num_symmetries = 1;
    game.initial_state = [](void*, void* state) {
      *static_cast<int64_t*>(state) = 0;
      return int32_t{0};
    };
    game.to_play = [](void*, const void* state) { return at(state) < 0 ? kTerminal : 0; };
    game.legal_actions = [](void*, const void*, int32_t* actions) {
      actions[0] = 0;
      actions[1] = 1;
      return 2;
    };
    game.apply = [](void*, void* state, int64_t action) {
      *static_cast<int64_t*>(state) = action == 0 ? -1 : at(state) + 1;
      return 0;
    };
    game.returns = [](void*, const void*, float* values) {
      values[0] = 0.0f;
      return int32_t{0};
    };
    game.observe = [](void*, const void* state, float* row) {
      row[0] = static_cast<float>(at(state));
      return int32_t{0};
    };
    game.hash = [](void*, const void* state, uint64_t* hash) {
      hash[0] = hash[1] = static_cast<uint64_t>(at(state));
      return int32_t{0};
    };
    return game;
  }
  static int64_t at(const void* state) { return *static_cast<const int64_t*>(state); }
};

// Selections pile up on one waiting leaf while every other one ends at once. Marks are 15 bits wide.
void test_marks(int32_t leaves_per_tree, InFlight rule) {
  scene() = "marks, K " + std::to_string(leaves_per_tree) + ", rule " + std::to_string(static_cast<int32_t>(rule));
  const GameTable game = TwoDoors::table();
  ForestOptions options = plain_options();
  options.leaves_per_tree = leaves_per_tree;
  options.rules.in_flight = rule;
  options.max_memory = size_t{1} << 24;
  Forest forest(game, 1, options);
  forest.reset(0, State(game).data());
  forest.begin(0, 1, 400000, 0);
  std::vector<float> observations = make_buffer(forest, 1);
  const auto answer = [&](Batch& batch) {
    const std::vector<float> zeros(static_cast<size_t>(batch.num_rows) * 2, 0.0f);
    forest.complete(batch, zeros.data(), zeros.data());
  };
  answer(forest.select(1, 0, 1, true, observations.data()));
  Batch& waiting = forest.select(1, 0, 1, true, observations.data());
  check(waiting.num_rows >= 1, "nothing is selected");
  const Tree& tree = forest.tree(0);
  for (int32_t i = 0; i < 100; ++i) {
    Batch& batch = forest.select(1, 0, 1, true, observations.data());
    const Node& root = tree.node(tree.root());
    check(root.in_flight <= kMaxInFlight, "more is in flight than a mark can count");
    check(root.in_flight == sum(edges_of(tree, root).in_flight), "a mark has run over");
    if (batch.is_out) forest.cancel(batch);
  }
  answer(waiting);
  check(tree.count_in_flight() == 0, "marks are left behind");
}

// A search that was stopped stays stopped when what was out is cancelled.
void test_stop() {
  scene() = "stop";
  const auto named = make_builtin("connect4", {});
  ForestOptions options = plain_options();
  options.leaves_per_tree = 4;
  Forest forest(named->table(), 3, options);
  for (int32_t tree = 0; tree < 3; ++tree) forest.reset(tree, State(named->table()).data());
  forest.begin(0, 3, 100, 0);
  std::vector<float> observations = make_buffer(forest, 8);
  for (int32_t i = 0; i < 10; ++i) complete(forest, forest.select(8, 0, 3, false, observations.data()));
  Batch& first = forest.select(4, 0, 3, false, observations.data());
  Batch& second = forest.select(4, 0, 3, false, observations.data());
  check(first.is_out && second.is_out, "nothing is selected");
  forest.stop();
  complete(forest, first);
  forest.cancel(second);
  check(!forest.has_work(0, 3), "a search that was stopped goes on after cancel");
  check(forest.select(8, 0, 3, false, observations.data()).num_rows == 0, "a search that was stopped selects leaves");
  for (int32_t tree = 0; tree < 3; ++tree) {
    check_tree(named->table(), forest.tree(tree));
    check(forest.tree(tree).count_in_flight() == 0, "marks are left behind");
  }
  forest.begin(0, 3, 100, 1);
  check(forest.has_work(0, 3), "a search cannot begin after a stop");
}

// What cannot work is refused when the forest is made, not met as an endless search.
void test_refused() {
  scene() = "options that cannot work";
  const auto named = make_builtin("tictactoe", {});
  ForestOptions wide = plain_options();
  wide.leaves_per_tree = kMaxInFlight + 1;
  check_throws<std::invalid_argument>([&] { Forest(named->table(), 1, wide); }, "more leaves than marks can count");
  ForestOptions none = plain_options();
  none.leaves_per_tree = 0;
  check_throws<std::invalid_argument>([&] { Forest(named->table(), 1, none); }, "no leaves per tree");
  // A root of tic-tac-toe takes two lines of 64 bytes: 40 + 16 of state + 6 for each of 9 edges, padded to 12.
  constexpr size_t kSmallest = size_t{10} * 2 * 64;
  ForestOptions small = plain_options();
  for (const size_t bytes : {size_t{0}, size_t{1}, kSmallest - 1}) {
    small.max_memory = bytes;
    const auto error = check_throws<std::invalid_argument>([&] { Forest(named->table(), 10, small); }, "no memory");
    const std::string words = error.what();
    check(words.find("max_memory") != std::string::npos && words.find("lower") == std::string::npos,
          "too little memory is explained wrongly: " + words);
  }
  small.max_memory = kSmallest;
  Forest ten(named->table(), 10, small);
  for (int32_t tree = 0; tree < 10; ++tree) {
    ten.reset(tree, State(named->table()).data());
    ten.begin(tree, tree + 1, 5, 0);
    search_plainly(ten, tree);
    check_tree(named->table(), ten.tree(tree));
    check(ten.tree(tree).is_full() && ten.tree(tree).num_expanded() == 1, "the root alone does not fit exactly");
  }
  check(ten.bytes() == kSmallest, "bytes are not what the trees take");
}

// Facts of a game that cannot be.
void test_refused_games() {
  scene() = "games that cannot be";
  const auto named = make_builtin("tictactoe", {});
  const auto refuses = [&](const char* what, void (*change)(GameTable&)) {
    GameTable game = named->table();
    change(game);
    check_throws<std::invalid_argument>([&] { Forest(game, 1, plain_options()); }, what);
  };
  refuses("a state that is not whole words", [](GameTable& game) { game.state_bytes = 20; });
  refuses("a game of another version", [](GameTable& game) { game.abi_version = kGameAbiVersion - 1; });
  refuses("a game of nobody", [](GameTable& game) { game.num_players = 0; });
  refuses("a game of too many", [](GameTable& game) { game.num_players = game.num_values = kMaxPlayers + 1; });
  refuses("a game of three with one value", [](GameTable& game) { game.num_players = 3; });
  refuses("a game of two with three values", [](GameTable& game) { game.num_values = 3; });
  refuses("a game without values", [](GameTable& game) { game.num_values = 0; });
  refuses("more actions than edges can be numbered",
          [](GameTable& game) { game.num_actions = game.max_legal_actions = 70000; });
  refuses("no legal actions", [](GameTable& game) { game.max_legal_actions = 0; });
  refuses("more legal actions than actions", [](GameTable& game) { game.max_legal_actions = game.num_actions + 1; });
  refuses("outcomes that nobody lists", [](GameTable& game) { game.max_outcomes = 6; });
  refuses("a list of outcomes without a length",
          [](GameTable& game) { game.chance_outcomes = [](void*, const void*, int32_t*, double*) { return 0; }; });
  refuses("more outcomes than edges can be numbered", [](GameTable& game) {
    game.chance_outcomes = [](void*, const void*, int32_t*, double*) { return 0; };
    game.max_outcomes = 65536;
  });
  // Sixteen are not too many, and two may have values of their own.
  GameTable crowd = named->table();
  crowd.num_players = crowd.num_values = kMaxPlayers;
  Forest(crowd, 1, plain_options());
  crowd.num_players = crowd.num_values = 2;
  Forest(crowd, 1, plain_options());
}

// The largest policy that is allowed: one node needs megabytes.
void test_many_actions() {
  scene() = "many actions";
  GameTable game = TwoDoors::table();
  constexpr int32_t kMany = 65535;
  game.num_actions = game.max_legal_actions = kMany;
  game.legal_actions = [](void*, const void*, int32_t* actions) {
    for (int32_t i = 0; i < kMany; ++i) actions[i] = i;
    return kMany;
  };
  ForestOptions options = plain_options();
  options.max_memory = size_t{1} << 23;
  options.leaves_per_tree = 3;
  Forest forest(game, 1, options);
  forest.reset(0, State(game).data());
  forest.begin(0, 1, 100, 0);
  search_plainly(forest, 0);
  check_tree(game, forest.tree(0));
  check(forest.tree(0).is_full() && forest.tree(0).num_nodes() > 2, "eight megabytes are not full");
  check(forest.tree(0).count_in_flight() == 0, "marks are left behind");
  forest.advance(0, forest.tree(0).principal_variation().front());
  if (forest.tree(0).node(forest.tree(0).root()).kind != NodeKind::kOver) check_tree(game, forest.tree(0));
}

// One row at a time from many trees, most of which end without one: no budget may be forgotten.
void test_ends_without_rows() {
  scene() = "trees that need no rows";
  const auto named = make_builtin("tictactoe", {});
  const GameTable& game = named->table();
  State state(game);
  // One square is left; whoever takes it ends the game.
  for (const int32_t action : {0, 1, 2, 4, 3, 5, 7, 6}) check(state.apply(action), "apply failed");
  check(game.to_play(game.self, state.data()) != kTerminal, "the game is over too early");
  constexpr int32_t kTrees = 6;
  Forest forest(game, kTrees, plain_options());
  for (int32_t tree = 0; tree < kTrees; ++tree) forest.reset(tree, state.data());
  forest.begin(0, kTrees, 20, 0);
  std::vector<float> observations = make_buffer(forest, 1);
  for (;;) {
    Batch& batch = forest.select(1, 0, kTrees, false, observations.data());
    if (batch.num_rows == 0) break;
    complete(forest, batch);
  }
  for (int32_t tree = 0; tree < kTrees; ++tree) {
    check(forest.tree(tree).counters.simulations == 20, "nothing is out, a batch has no rows, and there is work left");
  }
}

}  // namespace

// With a number, only that test.
int main(int argc, char** argv) {
  const std::vector<std::function<void()>> tests = {
      test_unplanted,
      [] {
        for (const InFlight rule : {InFlight::kVisits, InFlight::kLoss, InFlight::kDilute}) {
          for (const int32_t leaves_per_tree : {1, 2, 3, 1000, kMaxInFlight}) test_marks(leaves_per_tree, rule);
        }
      },
      test_refused,
      test_refused_games,
      test_stop,
      test_many_actions,
      test_ends_without_rows,
  };
  if (argc > 1) {
    tests.at(static_cast<size_t>(std::stoi(argv[1])))();
    return 0;
  }
  for (const std::function<void()>& test : tests) test();
}
