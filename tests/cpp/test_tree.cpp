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
#include "kinds_of_games.h"
#include "plain_options.h"
#include "positions.h"
#include "trap_game.h"
#include "trap_words.h"
#include "tree.h"
#include "tree_record.h"

using namespace windrow;

namespace {

// A position in a slice must become bytes in 64 bits: 2^32 lines are 256 GiB.
static_assert(std::is_same_v<decltype(Ref{} * kLineBytes), size_t> && sizeof(size_t) == 8);

const GrowthTable kNoGrowth(kPlainRules);

enum class Ending { kDone, kPending, kFull };

// One simulation, all by hand. A pending one keeps its marks, as if its leaf were out for evaluation.
Ending simulate(const GameTable& game, Tree& tree, bool is_pending, TrapRules* trap = nullptr) {
  Ref at = tree.root();
  uint32_t num_draws = 0;
  for (;;) {
    const NodeKind kind = tree.node(at).kind;
    if (kind != NodeKind::kExpanded && kind != NodeKind::kOfChance) break;
    const Ref child = kind == NodeKind::kOfChance
                          ? tree.step_chance(at, num_draws++)
                          : tree.step_down<InFlight::kVisits, Proofs::kNone, true>(at, kPlainRules);
    if (child == kNone) {
      tree.unmark(at);
      return Ending::kFull;
    }
    at = child;
  }
  if (tree.node(at).kind == NodeKind::kWaiting) {
    tree.unmark(at);
    tree.start_simulation();  // another time chance does something else
    return Ending::kPending;
  }
  tree.start_simulation();
  if (tree.node(at).kind == NodeKind::kNew) {
    if (is_pending && at != tree.root()) {
      tree.node(at).kind = NodeKind::kWaiting;
      return Ending::kPending;
    }
    const Armed is_over(trap, false);  // from here on it is the test that asks
    const State state(game, tree.state_of(at));
    const Evaluation answer = evaluate(game, state.data(), 1);
    tree.write_priors(at, answer.logits.data());
    tree.expand(at, answer.values.data());
  }
  tree.back_up(at);
  return Ending::kDone;
}

void advance(Tree& tree, int64_t move) {
  tree.prepare_advance(move);
  tree.finish_advance();
}

// Mostly where the search went, sometimes where it did not.
int64_t choose_move(const GameTable& game, const Tree& tree, Dice& dice) {
  const std::vector<int32_t> line = tree.principal_variation();
  if (!line.empty() && !dice.one_in(3)) return line.front();
  if (tree.node(tree.root()).kind == NodeKind::kOfChance && !dice.one_in(3)) {
    const std::vector<Tree::Outcome> outcomes = tree.outcomes(tree.root());
    if (!outcomes.empty()) return dice.one_of(std::span<const Tree::Outcome>(outcomes)).outcome;
  }
  return random_move(game, tree.state_of(tree.root()), dice);
}

// Searches and moves the root until the game ends; every move keeps exactly what was below it.
void test_advance(const GameTable& game, uint64_t seed, bool leaves_marks) {
  Dice dice(seed);
  const Reservation memory(1, size_t{1} << 24);
  Tree tree(game, NodeLayout(game, false), kNoGrowth, 0, false, memory.slice(0), memory.slice_bytes());
  tree.reset(random_state(game, dice, 3).data());
  check(tree.num_nodes() == 1 && tree.num_expanded() == 0, "a new tree is not one node");
  for (int32_t move_number = 0; tree.node(tree.root()).kind != NodeKind::kOver && move_number < 60; ++move_number) {
    const int32_t num_simulations = dice.one_of({0, 1, 2, 10, 150});
    tree.begin(num_simulations, {.seed = seed, .tree = 0, .count = static_cast<uint32_t>(move_number)});
    // From a root of chance a simulation can go too, if somebody wants one.
    for (int32_t i = 0; i < num_simulations; ++i) simulate(game, tree, leaves_marks && dice.one_in(8));
    check_tree(game, tree);
    if (!leaves_marks) check(tree.count_in_flight() == 0, "marks are left behind");
    const TreeRecord before = record(game, tree);

    // Impossible moves change nothing.
    for (const int64_t move : {int64_t{-1}, int64_t{65536}, int64_t{game.num_actions} + 65536, INT64_MIN}) {
      State next(game, tree.state_of(tree.root()));
      if (!is_table(game, tree.node(tree.root()))) {
        check_throws<std::invalid_argument>([&] { tree.prepare_advance(move); }, "an impossible move is made");
      } else if (!next.apply(move)) {
        check_throws<GameFault>([&] { tree.prepare_advance(move); }, "an impossible move is made");
      }
    }
    check(record(game, tree) == before, "an impossible move changes the tree");

    const int64_t move = choose_move(game, tree, dice);
    State next(game, tree.state_of(tree.root()));
    check(next.apply(move), "apply failed");

    // To think better of it changes nothing, however often.
    for (int32_t times = dice.below(3); times > 0; --times) {
      tree.prepare_advance(move);
      check(record(game, tree) == before, "a move that is prepared changes the tree");
      tree.abandon_advance();
      check(record(game, tree) == before, "a move that is abandoned changes the tree");
    }
    advance(tree, move);
    check_tree(game, tree, true);
    const TreeRecord after = record(game, tree);
    const TreeRecord kept = below(before, move);
    if (kept.empty()) {
      check(tree.num_nodes() == 1 && tree.node(tree.root()).visits == 0, "a child never reached is not a fresh root");
    } else {
      check(after == kept, "what was below the new root is not what there is now");
    }
    check(is_same(game, next.data(), tree.state_of(tree.root())), "the root's state is not what the move leads to");
    check(tree.find({}) == tree.root() && tree.moves_to(tree.root()).empty(), "the root is not at the empty path");
    for (const Ref ref : all_nodes(tree)) {
      if (is_later_table(game, tree, ref)) continue;
      check(tree.find(tree.moves_to(ref)) == ref, "a node is not at its path");
    }
  }
  if (tree.node(tree.root()).kind == NodeKind::kOver) {
    check_throws<std::invalid_argument>([&] { tree.prepare_advance(0); }, "a finished game goes on");
  }
  tree.uproot();
  check(!tree.is_planted() && tree.bytes() == 0, "a tree that was uprooted has something");
}

// The most bytes that one step can ask for: to open a node and make another, or to make the next table of a full one.
size_t largest_step(const GameTable& game, const Tree& tree) {
  const size_t largest_new = to_lines(NodeLayout(game, false).largest_root_bytes(game)) * kLineBytes;
  size_t largest = 0;
  for (const Ref ref : all_nodes(tree)) {
    const Node& node = tree.node(ref);
    const size_t places = last_edge(node);
    if (!node.is_open && node.kind == NodeKind::kExpanded) {
      largest = std::max(largest, block_bytes(game, node.num_edges, 24));
    }
    if (is_table(game, node) && static_cast<size_t>(node.num_outcomes) == places / 4 * 3) {
      largest = std::max(largest, block_bytes(game, 2 * places + 1, 32));
    }
  }
  return largest + largest_new;
}

// A slice for a few nodes only: the tree fills it, stays whole, and has room again once the root has moved.
bool test_memory(const GameTable& game, size_t num_lines) {
  Dice dice(num_lines);
  const Reservation memory(1, size_t{1} << 20);
  const size_t quota = num_lines * kLineBytes;
  if (quota < NodeLayout(game, false).largest_root_bytes(game)) return false;  // Forest refuses to make such a tree
  Tree tree(game, NodeLayout(game, false), kNoGrowth, 0, false, memory.slice(0), quota);
  const State start(game);
  tree.reset(start.data());
  bool was_full = false;
  for (int32_t move_number = 0; tree.node(tree.root()).kind != NodeKind::kOver && move_number < 40; ++move_number) {
    tree.begin(300, {.seed = num_lines, .tree = 0, .count = static_cast<uint32_t>(move_number)});
    Ending ending = Ending::kDone;
    for (int32_t i = 0; ending != Ending::kFull && i < 300; ++i) {
      const TreeRecord before = i % 16 == 0 ? evaluated_only(record(game, tree)) : TreeRecord();
      ending = simulate(game, tree, false);
      if (ending == Ending::kFull && i % 16 == 0) {
        check(evaluated_only(record(game, tree)) == before, "a simulation without memory has changed something");
      }
    }
    check_tree(game, tree);
    check(tree.count_in_flight() == 0, "marks are left behind");
    check(tree.bytes() <= quota, "the tree is larger than its quota");
    if (ending == Ending::kFull) {
      was_full = true;
      check(tree.bytes() + largest_step(game, tree) > quota, "a tree is full too early");
    }
    const TreeRecord before = record(game, tree);
    const int64_t move = choose_move(game, tree, dice);
    advance(tree, move);
    const TreeRecord kept = below(before, move);
    check(kept.empty() || record(game, tree) == kept, "what was below the new root is not what there is now");
  }
  tree.uproot();
  return was_full;
}

// Noise is mixed into clean priors, search after search, and does not travel with the root.
void test_noise(const GameTable& game) {
  const Reservation memory(1, size_t{1} << 20);
  Tree tree(game, NodeLayout(game, false), kNoGrowth, 0, false, memory.slice(0), memory.slice_bytes());
  Dice dice(3);
  do {
    tree.reset(random_decision(game, dice, 2).data());
  } while (tree.node(tree.root()).num_edges < 2);
  for (int32_t i = 0; i < 20; ++i) simulate(game, tree, false);
  const auto priors = [&] {
    const std::span<const float> now = tree.priors(tree.node(tree.root()));
    return std::vector<float>(now.begin(), now.end());
  };
  const std::vector<float> clean = priors();
  const auto noisy = [&](uint32_t move) {
    tree.begin(10, {.seed = 1, .tree = 0, .count = move});
    tree.prepare_priors(1.0f, 0.5, 0.25f);
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
  advance(tree, action);
  check(record(game, tree) == below(before, action), "noise travels with the root");
  tree.uproot();
}

// The smallest logit there is, for every legal action: still a softmax.
void test_smallest_logits(const GameTable& game) {
  const Reservation memory(1, size_t{1} << 20);
  Tree tree(game, NodeLayout(game, false), kNoGrowth, 0, false, memory.slice(0), memory.slice_bytes());
  Dice dice(4);
  tree.reset(random_decision(game, dice, 3).data());
  const std::vector<float> logits(static_cast<size_t>(game.num_actions), -FLT_MAX);
  tree.write_priors(tree.root(), logits.data());
  const Node& root = tree.node(tree.root());
  for (const float prior : tree.priors(root)) {
    check(prior == 1.0f / static_cast<float>(root.num_edges), "equal logits are not equal priors that sum to 1");
  }
  tree.uproot();
}

// Faults of the game in the middle of a descent: the tree says where, and stays what it was.
int32_t test_faults(TrapRules& rules, uint64_t seed) {
  const GameTable game = TrapGame::table(rules);
  const Reservation memory(1, size_t{1} << 22);
  Dice dice(seed);
  Tree tree(game, NodeLayout(game, false), kNoGrowth, 0, false, memory.slice(0), memory.slice_bytes());
  tree.reset(random_decision(game, dice, 2).data());
  tree.begin(1000, {.seed = seed, .tree = 0, .count = 0});
  for (int32_t i = 0; i < 5; ++i) simulate(game, tree, false);
  int32_t num_faults = 0;
  for (int32_t i = 0; i < 100 && num_faults == 0; ++i) {
    const TreeRecord before = record(game, tree);
    try {
      const Armed armed(&rules, true);
      simulate(game, tree, false, &rules);
    } catch (const GameFault& fault) {
      ++num_faults;
      State state(game, tree.state_of(tree.root()));
      for (const int64_t move : fault.moves) check(state.apply(move), "a fault names a position that cannot be");
      check_words(fault, rules, state);
      // Undo the marks of the descent as Forest does. Where it stopped: at the position itself if chance could not
      // draw, otherwise at its parent.
      const bool is_draw = TrapGame::fault_at(rules, state.data()) == TrapFault::kSampleFails;
      check(is_draw || !fault.moves.empty(), "a fault at the root, which is sound");
      const std::vector<int64_t> stop(fault.moves.begin(), fault.moves.end() - (is_draw ? 0 : 1));
      tree.unmark(tree.find(stop));
      // What was made on the way stays.
      check(evaluated_only(record(game, tree)) == evaluated_only(before), "a fault changes the tree");
      check(tree.count_in_flight() == 0, "marks are left behind");
    }
  }
  check_tree(game, tree);
  for (int32_t i = 0; i < 20; ++i) simulate(game, tree, false);
  check_tree(game, tree);
  tree.uproot();
  return num_faults;
}

}  // namespace

int main() {
  const KindsOfGames games = KindsOfGames::every();
  for (const auto& [name, game] : games.all) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
      scene() = "advance, " + name + ", seed " + std::to_string(seed);
      test_advance(game, seed, seed % 3 == 2);
    }
    // From the smallest tree there may be to one of some dozen nodes.
    const size_t smallest = to_lines(NodeLayout(game, false).largest_root_bytes(game));
    int32_t num_full = 0;
    for (size_t num_lines = smallest - 1; num_lines < smallest + 60; num_lines += 1 + (num_lines - smallest + 1) / 16) {
      scene() = "memory, " + name + ", lines " + std::to_string(num_lines);
      num_full += test_memory(game, num_lines);
    }
    check(num_full > 5, "memory never ran out");
    scene() = "noise, " + name;
    test_noise(game);
    scene() = "smallest logits, " + name;
    test_smallest_logits(game);
  }
  int32_t num_faults = 0;
  for (const std::unique_ptr<TrapRules>& rules : games.traps) {
    for (uint64_t seed = 0; seed < 40; ++seed) {
      scene() = "faults, seed " + std::to_string(seed);
      num_faults += test_faults(*rules, seed);
    }
    check(rules->num_owners == 0, "a state has outlived its tree");
  }
  check(num_faults > 100, "few faults were met: " + std::to_string(num_faults));
}
