// test_tree.cpp: one tree on its own: growing, moving the root, running out of memory.
#include <algorithm>
#include <cfloat>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "arena.h"
#include "census.h"
#include "check.h"
#include "dice.h"
#include "games/builtin.h"
#include "positions.h"
#include "trap_game.h"
#include "tree.h"

using namespace windrow;

namespace {

// A position in a slice must become bytes in 64 bits: 2^32 lines are 256 GiB.
static_assert(std::is_same_v<decltype(Ref{} * kLineBytes), size_t> && sizeof(size_t) == 8);

constexpr Rules kRules = {};

enum class Outcome { kDone, kPending, kFull };

// One simulation, all by hand. A pending one keeps its marks, as if its leaf were out for evaluation.
Outcome simulate(const GameTable& game, Tree& tree, bool is_pending) {
  Ref at = tree.root();
  while (tree.node(at).kind == NodeKind::kExpanded) {
    const Ref child = tree.step_down<InFlight::kVisits>(at, kRules);
    if (child == kNone) {
      tree.unmark(at);
      return Outcome::kFull;
    }
    at = child;
  }
  if (tree.node(at).kind == NodeKind::kWaiting) {
    tree.unmark(at);
    return Outcome::kPending;
  }
  if (tree.node(at).kind == NodeKind::kNew) {
    if (is_pending && at != tree.root()) {
      tree.node(at).kind = NodeKind::kWaiting;
      return Outcome::kPending;
    }
    const State state(game, tree.state_of(at));
    const Evaluation answer = evaluate(game, state.data(), 1);
    tree.write_priors(at, answer.logits.data());
    tree.expand(at, answer.values[0]);
  }
  tree.back_up(at);
  return Outcome::kDone;
}

// What must be left of `all` when the root moves along `action`.
TreeRecord below(const TreeRecord& all, int32_t action) {
  TreeRecord kept;
  for (const auto& [path, node] : all) {
    if (!path.empty() && path.front() == action) kept.emplace(std::vector(path.begin() + 1, path.end()), node);
  }
  return kept;
}

// Searches and moves the root until the game ends; every move keeps exactly what was below it.
void test_advance(const GameTable& game, uint64_t seed, bool leaves_marks) {
  Dice dice(seed);
  const Reservation memory(1, size_t{1} << 24);
  Tree tree(game, 0, memory.slice(0), memory.slice_bytes());
  tree.reset(random_state(game, dice, 3).data());
  check(tree.num_nodes() == 1 && tree.num_expanded() == 0, "a new tree is not one node");
  while (tree.node(tree.root()).kind != NodeKind::kOver) {
    const int32_t num_simulations = dice.one_of({0, 1, 2, 10, 150});
    for (int32_t i = 0; i < num_simulations; ++i) simulate(game, tree, leaves_marks && dice.one_in(8));
    check_tree(game, tree);
    if (!leaves_marks) check(tree.count_in_flight() == 0, "marks are left behind");
    const TreeRecord before = record(game, tree);

    // Illegal actions change nothing.
    const std::span<const uint16_t> actions = tree.actions(tree.node(tree.root()));
    for (const int32_t action : {-1, game.num_actions, game.num_actions + 65536}) {
      check_throws<std::invalid_argument>([&] { tree.advance(action); }, "an illegal action is taken");
    }
    check(record(game, tree) == before, "an illegal action changes the tree");

    // Mostly where the search went, sometimes where it did not.
    int32_t action = dice.one_of(actions);
    const std::vector<int32_t> line = tree.principal_variation();
    if (!line.empty() && !dice.one_in(3)) action = line.front();
    State next(game, tree.state_of(tree.root()));
    check(game.apply(game.self, next.data(), action) == 0, "apply failed");

    tree.advance(action);
    check_tree(game, tree, true);
    const TreeRecord after = record(game, tree);
    const TreeRecord kept = below(before, action);
    if (kept.empty()) {
      check(tree.num_nodes() == 1 && tree.node(tree.root()).visits == 0, "a child never reached is not a fresh root");
    } else {
      check(after == kept, "what was below the new root is not what there is now");
    }
    check(next == State(game, tree.state_of(tree.root())), "the root's state is not what the action leads to");
    check(tree.find({}) == tree.root() && tree.actions_to(tree.root()).empty(), "the root is not at the empty path");
    for (const Ref ref : all_nodes(tree)) check(tree.find(tree.actions_to(ref)) == ref, "a node is not at its path");
  }
  check_throws<std::invalid_argument>([&] { tree.advance(0); }, "a finished game goes on");
}

// A slice for a few nodes only: the tree fills it, stays whole, and has room again once the root has moved. A step may
// open a node and make another, so a tree may be full while less than both would need is left.
void test_memory(const GameTable& game, size_t num_lines) {
  Dice dice(num_lines);
  const Reservation memory(1, size_t{1} << 20);
  const size_t quota = num_lines * kLineBytes;
  const size_t num_slots = (static_cast<size_t>(game.max_legal_actions) + 3) / 4 * 4;
  const size_t fixed = sizeof(Node) + static_cast<size_t>(game.state_bytes);
  const size_t smallest = to_lines(fixed + 6 * num_slots), largest = to_lines(fixed + 24 * num_slots) + smallest;
  const State start(game);
  if (num_lines < smallest) return;  // Forest refuses to make such a tree
  Tree tree(game, 0, memory.slice(0), quota);
  tree.reset(start.data());
  while (tree.node(tree.root()).kind != NodeKind::kOver) {
    Outcome outcome = Outcome::kDone;
    int32_t num_simulations = 0;
    while (outcome != Outcome::kFull && num_simulations < 300) {
      outcome = simulate(game, tree, false);
      ++num_simulations;
    }
    check_tree(game, tree);
    check(tree.count_in_flight() == 0, "marks are left behind");
    check(tree.bytes() <= quota, "the tree is larger than its quota");
    if (outcome == Outcome::kFull) check(tree.bytes() + largest * kLineBytes > quota, "a tree is full too early");
    const TreeRecord before = record(game, tree);
    const int32_t action = dice.one_of(tree.actions(tree.node(tree.root())));
    tree.advance(action);
    const TreeRecord kept = below(before, action);
    check(kept.empty() || record(game, tree) == kept, "what was below the new root is not what there is now");
  }
}

// Noise is mixed into clean priors, search after search, and does not travel with the root.
void test_noise(const GameTable& game) {
  const Reservation memory(1, size_t{1} << 20);
  Tree tree(game, 0, memory.slice(0), memory.slice_bytes());
  Dice dice(3);
  do {
    tree.reset(random_state(game, dice, 2).data());
  } while (tree.node(tree.root()).num_edges < 2);
  for (int32_t i = 0; i < 20; ++i) simulate(game, tree, false);
  const auto priors = [&] {
    const std::span<const float> now = tree.priors(tree.node(tree.root()));
    return std::vector<float>(now.begin(), now.end());
  };
  const std::vector<float> clean = priors();
  const auto noisy = [&](uint32_t move) {
    tree.begin(10, {.seed = 1, .tree = 0, .move = move});
    tree.mix_noise(0.5, 0.25f);
    return priors();
  };
  const std::vector<float> first = noisy(0), second = noisy(1);
  check(first != clean && second != clean && first != second, "noise changes nothing");
  check(noisy(0) == first, "noise builds up from search to search");
  for (size_t i = 0; i < clean.size(); ++i) {
    check(first[i] >= 0.75f * clean[i] - 1e-6f, "noise takes more than its fraction");
  }
  const TreeRecord before = record(game, tree);
  const int32_t action = tree.principal_variation().front();
  tree.advance(action);
  check(record(game, tree) == below(before, action), "noise travels with the root");
}

// The smallest logit there is, for every legal action: still a softmax.
void test_smallest_logits(const GameTable& game) {
  const Reservation memory(1, size_t{1} << 20);
  Tree tree(game, 0, memory.slice(0), memory.slice_bytes());
  tree.reset(State(game).data());
  const std::vector<float> logits(static_cast<size_t>(game.num_actions), -FLT_MAX);
  tree.write_priors(tree.root(), logits.data());
  const Node& root = tree.node(tree.root());
  for (const float prior : tree.priors(root)) {
    check(prior == 1.0f / static_cast<float>(root.num_edges), "equal logits are not equal priors that sum to 1");
  }
}

// A state the game cannot be in: the tree must say so and stay what it was, or be plantable again.
void test_faults() {
  TrapRules rules;
  rules.traps_per_1024 = 200;
  const GameTable game = TrapGame::table(rules);
  const Reservation memory(1, size_t{1} << 22);
  int32_t num_faults = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    scene() = "faults, seed " + std::to_string(seed);
    Dice dice(seed);
    Tree tree(game, 0, memory.slice(0), memory.slice_bytes());
    rules.is_armed = false;
    tree.reset(random_state(game, dice, 2).data());
    for (int32_t i = 0; i < 5; ++i) simulate(game, tree, false);
    rules.is_armed = true;
    for (int32_t i = 0; i < 100; ++i) {
      const TreeRecord before = record(game, tree);
      try {
        simulate(game, tree, false);
      } catch (const GameFault& fault) {
        ++num_faults;
        State state(game, tree.state_of(tree.root()));
        check(!fault.actions.empty(), "a fault names no position");
        for (const int32_t action : fault.actions) game.apply(game.self, state.data(), action);
        const auto& at = *static_cast<const TrapGame::State*>(state.data());
        check(TrapGame::fault_at(rules, at) != TrapGame::Fault::kSound, "a fault names a position that has none");
        // Undo the marks of the descent as Forest does: the position's parent is where it stopped.
        const std::vector<int32_t> parent(fault.actions.begin(), fault.actions.end() - 1);
        tree.unmark(tree.find(parent));
        check(record(game, tree) == before, "a fault changes the tree");
        break;
      }
    }
    rules.is_armed = false;
    check_tree(game, tree);
    for (int32_t i = 0; i < 20; ++i) simulate(game, tree, false);
    check_tree(game, tree);
  }
  check(num_faults > 10, "no fault was met");
  scene().clear();
}

}  // namespace

int main() {
  TrapRules trap, alone;
  alone.num_players = 1;
  const auto tictactoe = make_builtin("tictactoe", {});
  const auto connect4 = make_builtin("connect4", {});
  const auto othello = make_builtin("othello", {});
  const auto gomoku = make_builtin("gomoku", {{"size", int64_t{5}}});
  const std::vector<std::pair<const char*, GameTable>> games = {
      {"trap", TrapGame::table(trap)},   {"trap for one", TrapGame::table(alone)},
      {"tictactoe", tictactoe->table()}, {"connect4", connect4->table()},
      {"othello", othello->table()},     {"gomoku", gomoku->table()}};
  for (const auto& [name, game] : games) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
      scene() = std::string("advance, ") + name + ", seed " + std::to_string(seed);
      test_advance(game, seed, seed % 3 == 2);
    }
    for (size_t num_lines = 1; num_lines < 60; num_lines += 1 + num_lines / 16) {
      scene() = std::string("memory, ") + name + ", lines " + std::to_string(num_lines);
      test_memory(game, num_lines);
    }
    scene() = std::string("noise, ") + name;
    test_noise(game);
  }
  test_faults();
  for (const auto& [name, game] : games) {
    scene() = std::string("smallest logits, ") + name;
    test_smallest_logits(game);
  }
}
