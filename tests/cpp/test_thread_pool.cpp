// test_thread_pool.cpp: the pool alone, and a forest on it. Runs under TSan too.
#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "census.h"
#include "check.h"
#include "dice.h"
#include "forest.h"
#include "forest_law.h"
#include "kinds_of_games.h"
#include "plain_options.h"
#include "positions.h"
#include "thread_pool.h"
#include "trap_game.h"
#include "trap_words.h"
#include "tree_record.h"

using namespace windrow;

namespace {

// Every index is visited once. Plain ints on purpose: TSan sees if two threads share one, or if the caller reads them
// before the workers are done.
void test_cover() {
  Dice dice(1);
  for (int32_t num_threads = 1; num_threads <= 8; ++num_threads) {
    scene() = std::to_string(num_threads) + " threads";
    ThreadPool pool(num_threads);
    check(pool.num_threads() == num_threads, "the pool has another number of threads");
    std::vector<int32_t> seen;
    for (int32_t job = 0; job < 300; ++job) {
      const int32_t count = dice.one_of({0, 1, 2, 7, 8, 9, 100, 1000}), piece_size = dice.one_of({1, 3, 8, 1000});
      seen.assign(static_cast<size_t>(count), 0);
      pool.for_each(count, piece_size, [&](int32_t begin, int32_t end) {
        check(begin >= 0 && begin < end && end <= count, "a piece is out of range");
        for (int32_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      for (const int32_t times : seen) check(times == 1, "an index was not visited exactly once");
    }
  }
}

// All threads work at once: each holds its piece until every other thread has one. A pool that left all the work to the
// caller would pass every other test here, and show TSan nothing.
void test_threads_meet() {
  for (int32_t num_threads = 2; num_threads <= 8; ++num_threads) {
    scene() = std::to_string(num_threads) + " threads meet";
    ThreadPool pool(num_threads);
    std::vector<int32_t> seen(static_cast<size_t>(num_threads), 0);
    for (int32_t job = 0; job < 50; ++job) {
      std::atomic<int32_t> num_here = 0;
      pool.for_each(num_threads, 1, [&](int32_t begin, int32_t) {
        ++seen[static_cast<size_t>(begin)];
        ++num_here;
        while (num_here < num_threads) std::this_thread::yield();
      });
      for (const int32_t times : seen) check(times == job + 1, "a piece was not run exactly once");
    }
  }
}

void test_exceptions() {
  Dice dice(2);
  for (int32_t num_threads = 1; num_threads <= 8; ++num_threads) {
    scene() = std::to_string(num_threads) + " threads";
    ThreadPool pool(num_threads);
    for (int32_t job = 0; job < 100; ++job) {
      constexpr int32_t kCount = 64;
      const int32_t bad = dice.below(kCount);
      const bool all_fail = dice.one_in(4);
      std::atomic<int32_t> num_begun = 0, num_ended = 0;
      const auto error = check_throws<std::runtime_error>(
          [&] {
            pool.for_each(kCount, 1, [&](int32_t begin, int32_t end) {
              ++num_begun;
              if (all_fail || (begin <= bad && bad < end)) {
                ++num_ended;
                throw std::runtime_error("piece " + std::to_string(begin));
              }
              ++num_ended;
            });
          },
          "a piece throws");
      check(std::string(error.what()).starts_with("piece "), "another error arrives");
      check(num_begun == num_ended && num_begun >= 1, "for_each returned while a piece was running");

      std::vector<int32_t> seen(kCount, 0);
      pool.for_each(kCount, 1, [&](int32_t begin, int32_t end) {
        for (int32_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      check(std::accumulate(seen.begin(), seen.end(), 0) == kCount, "after an error the pool does not work");
    }
  }
}

// Pools that come and go, used and unused.
void test_lifetime() {
  scene() = "lifetime";
  for (int32_t i = 0; i < 100; ++i) {
    ThreadPool pool(2 + i % 7);
    if (i % 3 == 0) continue;
    std::vector<int32_t> seen(32, 0);
    pool.for_each(32, 1, [&](int32_t begin, int32_t) { seen[static_cast<size_t>(begin)] = begin; });
    if (i % 3 == 1) continue;
    check_throws<std::runtime_error>(
        [&] { pool.for_each(32, 1, [](int32_t, int32_t) { throw std::runtime_error(""); }); }, "every piece throws");
  }
}

// Two moves of every tree, `num_out` batches out at a time.
std::vector<TreeRecord> search(const GameTable& game, ForestOptions options, int32_t num_threads, int32_t num_out,
                               int32_t max_leaves) {
  constexpr int32_t kTrees = 64;
  options.num_threads = num_threads;
  Forest forest(game, kTrees, options);
  Dice dice(5), order(6);
  for (int32_t tree = 0; tree < kTrees; ++tree) forest.reset(tree, random_decision(game, dice, 4).data());
  std::vector<float> observations = make_buffer(forest, max_leaves);
  for (uint32_t move = 0; move < 2; ++move) {
    forest.begin(0, kTrees, 50, move);
    std::vector<Out> out;
    for (;;) {
      while (static_cast<int32_t>(out.size()) < num_out) {
        Batch& batch = forest.select(max_leaves, 0, kTrees, false, observations.data());
        if (batch.num_rows == 0) {
          // Trees that were not tried may have work.
          if (!out.empty() || !forest.has_work(0, kTrees)) break;
          continue;
        }
        out.push_back(take_out(game, forest, batch));
      }
      if (out.empty()) break;
      // Not in the order in which they went out.
      const size_t index = static_cast<size_t>(order.below(static_cast<int64_t>(out.size())));
      forest.complete(*out[index].batch, out[index].answer.logits.data(), out[index].answer.values.data());
      out.erase(out.begin() + static_cast<int64_t>(index));
    }
    check(!forest.has_work(0, kTrees), "a search ends with work left");
    if (move == 1) break;
    for (int32_t tree = 0; tree < kTrees; ++tree) {
      const std::vector<int32_t> line = forest.tree(tree).principal_variation();
      if (!line.empty()) forest.advance(tree, line.front());
      leave_chance(forest, tree, dice);
    }
  }
  std::vector<TreeRecord> found;
  for (int32_t tree = 0; tree < kTrees; ++tree) {
    if (!options.proves) check_tree(game, forest.tree(tree));  // a proof changes W of an edge
    check(forest.tree(tree).count_in_flight() == 0, "marks are left behind");
    found.push_back(record(game, forest.tree(tree)));
  }
  return found;
}

void test_forest() {
  KindsOfGames games;
  for (const TrapKind& kind : trap_kinds()) games.add_trap(kind);
  games.add("connect4", {});
  games.add("othello", {});
  games.add_chance();
  for (const auto& [name, game] : games.all) {
    for (const bool proves : {false, true}) {
      ForestOptions options = plain_options();
      options.proves = proves;
      options.leaves_per_tree = 4;
      options.dirichlet_fraction = 0.25f;
      options.max_memory = size_t{1} << 26;
      scene() = name;
      const std::vector<TreeRecord> want = search(game, options, 1, 1, 4096);
      for (const int32_t num_threads : {2, 4}) {
        for (const int32_t num_out : {1, 3}) {
          scene() = name + ", " + std::to_string(num_threads) + " threads, " + std::to_string(num_out) +
                    " batches out" + (proves ? ", proves" : "");
          check(search(game, options, num_threads, num_out, 64) == want, "threads or batches change the result");
        }
      }
    }
  }
  for (const std::unique_ptr<TrapRules>& rules : games.traps) check(rules->num_owners == 0, "a state is left");
}

// Games that fail in the middle of a parallel select, each thread with reasons of its own.
void test_forest_faults(const TrapKind& kind) {
  scene() = "faults in a forest, " + kind.name;
  constexpr int32_t kTrees = 64;
  const std::unique_ptr<TrapRules> trap = make_rules(kind);
  trap->traps_per_1024 = 20;
  const GameTable game = TrapGame::table(*trap);
  {
    ForestOptions options = plain_options();
    options.leaves_per_tree = 4;
    options.num_threads = 4;
    options.max_memory = size_t{1} << 26;
    Forest forest(game, kTrees, options);
    Dice dice(6);
    for (int32_t tree = 0; tree < kTrees; ++tree) forest.reset(tree, random_decision(game, dice, 3).data());
    forest.begin(0, kTrees, 100, 0);
    std::vector<float> observations = make_buffer(forest, 256);
    int32_t num_faults = 0;
    while (forest.has_work(0, kTrees)) {
      try {
        Batch* batch = nullptr;
        {
          const Armed armed(trap.get(), dice.one_in(2));
          batch = &forest.select(256, 0, kTrees, false, observations.data());
        }
        if (batch->num_rows > 0) complete(forest, *batch);
      } catch (const GameFault& fault) {
        ++num_faults;
        const Tree& at = forest.tree(fault.tree);
        State state(game, at.state_of(at.root()));
        for (const int64_t move : fault.moves) check(state.apply(move), "a fault names a position that cannot be");
        check_words(fault, *trap, state);
        check(forest.num_batches_out() == 0, "a batch is out after a fault");
        int64_t num_nodes = 0;
        for (int32_t tree = 0; tree < kTrees; ++tree) {
          check(forest.tree(tree).count_in_flight() == 0, "marks are left behind after a fault");
          num_nodes += count_owners(forest.tree(tree));
        }
        if (trap->owns_states) {
          check(trap->num_owners - State::num_owned() == num_nodes, "not every node owns its state once");
        }
      }
    }
    check(num_faults > 0, "no fault was met");
    for (int32_t tree = 0; tree < kTrees; ++tree) {
      check_tree(game, forest.tree(tree));
      check(forest.tree(tree).counters.simulations == 100, "a budget was not spent");
    }
  }
  check(trap->num_owners == 0, "a state is left");
}

}  // namespace

int main() {
  test_cover();
  test_threads_meet();
  test_exceptions();
  test_lifetime();
  test_forest();
  for (const TrapKind& kind : trap_kinds()) test_forest_faults(kind);
}
