// test_thread_pool_cache.cpp: the prediction cache shared by threads, alone and under forests. Runs under TSan too.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
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
#include "prediction_cache.h"
#include "trap_game.h"
#include "tree_record.h"

using namespace windrow;

namespace {

void on_threads(int32_t num_threads, const std::function<void(int32_t)>& fn) {
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < num_threads; ++i) threads.emplace_back(fn, i);
  for (std::thread& thread : threads) thread.join();
}

// --- The cache alone ---------------------------------------------------------------------------------------------

constexpr int32_t kMaxCount = 50;

PositionKey key_of(uint64_t number) {
  const uint64_t hash[2] = {number * 0x9e3779b97f4a7c15u, (number + 1) * 0xd6e8feb86659fd93u};
  return make_key(hash, 0);
}
int32_t count_of(uint64_t number) { return static_cast<int32_t>(number * 7 % kMaxCount) + 1; }
// Dyadic, so that half precision keeps it.
float prior_of(uint64_t number, int32_t i) {
  return static_cast<float>((number + static_cast<uint64_t>(i) * 37) % 1024) / 1024.0f;
}
float value_of(uint64_t number) { return static_cast<float>(number % 2048) / 1024.0f - 1.0f; }

void insert(PredictionCache& cache, uint64_t number) {
  float priors[kMaxCount];
  const int32_t count = count_of(number);
  for (int32_t i = 0; i < count; ++i) priors[i] = prior_of(number, i);
  cache.insert(key_of(number), count, priors, value_of(number));
}

bool find(PredictionCache& cache, uint64_t number) {
  float priors[kMaxCount], value = 0.0f;
  const int32_t count = count_of(number);
  if (!cache.find(key_of(number), count, priors, &value)) return false;
  check(value == value_of(number), "another value comes out than went in");
  for (int32_t i = 0; i < count; ++i) check(priors[i] == prior_of(number, i), "another prior comes out than went in");
  return true;
}

// Threads insert and ask for the same positions, far more than fit; now and then one clears, and one watches the bytes.
void test_shared_by_threads() {
  constexpr int64_t kSteps = 120'000;
  for (const int32_t num_threads : {2, 4}) {
    for (const size_t max_bytes : {size_t{1} << 14, size_t{1} << 20}) {
      for (const bool half_precision : {false, true}) {
        for (const int32_t place_bits : {64, 4}) {
          // Four bits make long chains: fewer entries then, or nothing gets done.
          if (place_bits < 64 && max_bytes > (size_t{1} << 14)) continue;
          scene() = std::to_string(num_threads) + " threads, " + std::to_string(max_bytes) + " bytes, " +
                    std::to_string(place_bits) + " bits";
          PredictionCache cache(max_bytes, half_precision, place_bits);
          const int64_t num_positions = max_bytes > (size_t{1} << 14) ? 60'000 : 600;
          std::atomic<int64_t> num_hits = 0, num_misses = 0;
          on_threads(num_threads, [&](int32_t thread) {
            Dice dice(static_cast<uint64_t>(thread));
            int64_t hits = 0, misses = 0;
            for (int64_t step = 0; step < kSteps / num_threads; ++step) {
              const uint64_t number = static_cast<uint64_t>(dice.below(num_positions));
              if (dice.one_in(2)) {
                insert(cache, number);
              } else {
                ++(find(cache, number) ? hits : misses);
              }
              if (dice.one_in(500)) check(cache.counters().bytes <= max_bytes, "more bytes than allowed");
              if (dice.one_in(kSteps)) cache.clear();
            }
            num_hits += hits;
            num_misses += misses;
          });
          const CacheCounters counters = cache.counters();
          check(counters.hits == num_hits && counters.misses == num_misses, "questions are not counted");
          check(counters.hits > 0 && counters.evictions > 0, "the cache was not used enough");
          int64_t num_found = 0;
          for (int64_t i = 0; i < num_positions; ++i) num_found += find(cache, static_cast<uint64_t>(i));
          check(counters.entries == num_found, "entries are not counted");
        }
      }
    }
  }
}

// --- Under forests -----------------------------------------------------------------------------------------------

constexpr int32_t kTrees = 32;

// Does to a forest what a search does, with a cache or without. `clumsiness`: one batch in so many is cancelled.
struct Player {
  const GameTable& game;
  ForestOptions options = plain_options();
  std::shared_ptr<PredictionCache> cache;
  int32_t num_out = 1;
  int32_t max_leaves = 64;
  int64_t num_simulations = 24;
  int32_t clumsiness = 0;
  bool overlap = false;
  int64_t num_rows = 0, num_hits = 0, num_evaluations = 0;

  std::vector<TreeRecord> play(uint64_t seed = 5) {
    options.max_memory = size_t{1} << 26;
    Forest forest(game, kTrees, options, cache);
    Dice dice(seed), luck(seed + 1);
    for (int32_t tree = 0; tree < kTrees; ++tree) forest.reset(tree, random_decision(game, dice, 4).data());
    for (uint32_t move = 0; move < 3; ++move) {
      forest.begin(0, kTrees, num_simulations, move);
      grow(forest, luck);
      for (int32_t tree = 0; tree < kTrees; ++tree) {
        const TreeCounters& counters = forest.tree(tree).counters;
        num_hits += counters.cache_hits;
        num_evaluations += counters.evaluations;
        const Node& root = forest.tree(tree).node(forest.tree(tree).root());
        if (root.kind != NodeKind::kOver) check(counters.simulations == num_simulations, "a budget was not spent");
        const std::vector<int32_t> line = forest.tree(tree).principal_variation();
        if (move < 2 && !line.empty()) forest.advance(tree, line.front());
        leave_chance(forest, tree, dice);
      }
    }
    std::vector<TreeRecord> found;
    for (int32_t tree = 0; tree < kTrees; ++tree) {
      check_tree(game, forest.tree(tree));
      check(forest.tree(tree).count_in_flight() == 0, "marks are left behind");
      // After a cancelled batch there may be leaves that another run does not have.
      TreeRecord all = record(game, forest.tree(tree));
      found.push_back(clumsiness > 0 ? evaluated_only(std::move(all)) : std::move(all));
    }
    return found;
  }

  void grow(Forest& forest, Dice& luck) {
    const size_t rows_needed = static_cast<size_t>(forest.rows_needed(max_leaves));
    const size_t width = static_cast<size_t>(game.observation_floats);
    constexpr float kUntouched = -77.0f;
    // Twice the room that is needed: what is written behind it shows.
    std::vector<float> observations;
    std::vector<Out> out;
    for (;;) {
      while (static_cast<int32_t>(out.size()) < num_out) {
        observations.assign(rows_needed * width + static_cast<size_t>(kTrees * options.leaves_per_tree) * width,
                            kUntouched);
        Batch& batch = forest.select(max_leaves, 0, kTrees, overlap, observations.data());
        check(static_cast<size_t>(batch.num_rows) <= rows_needed, "a batch has more rows than were asked for");
        check(std::all_of(observations.begin() + static_cast<int64_t>(rows_needed * width), observations.end(),
                          [](float x) { return x == kUntouched; }),
              "something was written behind the observations");
        if (batch.num_rows == 0) {
          if (!out.empty() || !forest.has_work(0, kTrees)) break;
          continue;
        }
        num_rows += batch.num_rows;
        out.push_back(take_out(game, forest, batch));
      }
      if (out.empty()) break;
      const size_t index = static_cast<size_t>(luck.below(static_cast<int64_t>(out.size())));
      if (clumsiness > 0 && luck.one_in(clumsiness)) {
        forest.cancel(*out[index].batch);
      } else {
        forest.complete(*out[index].batch, out[index].answer.logits.data(), out[index].answer.values.data());
      }
      out.erase(out.begin() + static_cast<int64_t>(index));
    }
    check(!forest.has_work(0, kTrees), "a search ends with work left");
  }
};

struct Games {
  KindsOfGames kinds;
  Games() {
    kinds.add("connect4", {});
    kinds.add_trap(trap_kinds()[0]);
    kinds.add("othello", {});
    kinds.add_trap({.name = "listed, owned", .chance = TrapRules::Chance::kListed, .owns_states = true});
    kinds.add_trap(
        {.name = "three, sampled", .num_players = 3, .num_values = 3, .chance = TrapRules::Chance::kSampled});
    kinds.add("azul", {{"players", int64_t{3}}});
  }
  std::vector<GameTable> tables() {
    std::vector<GameTable> found;
    for (const auto& [name, game] : kinds.all) found.push_back(game);
    return found;
  }
};

// Threads, batches out, and caches that hold everything or next to nothing: always the trees of a forest without one.
void test_forest() {
  Games games;
  for (const GameTable& game : games.tables()) {
    for (const int32_t leaves : {1, 4}) {
      ForestOptions options = plain_options();
      options.leaves_per_tree = leaves;
      options.dirichlet_fraction = 0.25f;
      Player plain{.game = game, .options = options, .cache = nullptr, .max_leaves = 4096};
      const std::vector<TreeRecord> want = plain.play();
      for (const size_t cache_bytes : {size_t{1} << 14, size_t{1} << 22}) {
        for (const int32_t num_threads : {1, 2, 4}) {
          for (const int32_t num_out : {1, 3}) {
            if ((num_threads == 2) != (num_out == 3)) continue;
            scene() = std::to_string(leaves) + " leaves, " + std::to_string(cache_bytes) + " bytes, " +
                      std::to_string(num_threads) + " threads, " + std::to_string(num_out) + " batches out";
            options.num_threads = num_threads;
            const auto cache = std::make_shared<PredictionCache>(cache_bytes, false);
            // Twice: the second time the cache knows what its size allows.
            for (int32_t turn = 0; turn < 2; ++turn) {
              Player player{.game = game, .options = options, .cache = cache, .num_out = num_out, .max_leaves = 4096};
              check(player.play() == want, "a cache changes the result");
              check(player.num_evaluations == plain.num_evaluations, "other evaluations than without a cache");
              check(player.num_rows + player.num_hits <= player.num_evaluations, "rows and hits are too many");
              check(player.num_hits <= cache->counters().hits, "hits are not counted");
            }
          }
        }
      }
    }
  }
}

// Batches that are cancelled, selections that are known among them.
void test_cancelled_batches() {
  Games games;
  for (const GameTable& game : games.tables()) {
    ForestOptions options = plain_options();
    options.leaves_per_tree = 4;
    options.num_threads = 2;
    Player plain{.game = game, .options = options, .cache = nullptr, .max_leaves = 4096, .clumsiness = 1'000'000};
    const std::vector<TreeRecord> want = plain.play();
    for (const size_t cache_bytes : {size_t{1} << 14, size_t{1} << 22}) {
      const auto cache = std::make_shared<PredictionCache>(cache_bytes, false);
      for (const int32_t clumsiness : {2, 3, 10}) {
        scene() = "one batch of " + std::to_string(clumsiness) + " is cancelled";
        Player player{.game = game,
                      .options = options,
                      .cache = cache,
                      .num_out = 3,
                      .max_leaves = 4096,
                      .clumsiness = clumsiness};
        check(player.play() == want, "cancelled batches change the result");
      }
    }
  }
}

// Rounds of one tree that overlap: which leaves meet depends on the batches, so only what must hold is checked.
void test_overlapping_rounds() {
  Games games;
  for (const GameTable& game : games.tables()) {
    ForestOptions options = plain_options();
    options.leaves_per_tree = 4;
    options.num_threads = 2;
    const auto cache = std::make_shared<PredictionCache>(size_t{1} << 15, false);
    for (const int32_t clumsiness : {0, 4}) {
      for (const bool share : {true, false}) {
        scene() = "overlap";
        options.share_collisions = share;
        Player player{.game = game,
                      .options = options,
                      .cache = cache,
                      .num_out = 3,
                      .max_leaves = 4096,
                      .clumsiness = clumsiness,
                      .overlap = true};
        player.play();
      }
    }
  }
}

// Roots that the cache knows: their trees go on to a whole round at once, and the batch must still fit its rows.
void test_known_roots_keep_to_the_rows() {
  Games games;
  for (const GameTable& game : games.tables()) {
    ForestOptions options = plain_options();
    options.leaves_per_tree = 8;
    options.num_threads = 2;
    options.rules.in_flight = InFlight::kLoss;
    options.rules.c_puct = 20.0f;  // spreads the leaves of a round
    for (const int32_t max_leaves : {8, 32}) {
      scene() = "known roots, batches of " + std::to_string(max_leaves) + " rows";
      const auto cache = std::make_shared<PredictionCache>(size_t{1} << 22, false);
      Player{.game = game, .options = options, .cache = cache, .max_leaves = max_leaves, .num_simulations = 0}.play();
      Player{.game = game, .options = options, .cache = cache, .num_out = 2, .max_leaves = max_leaves}.play();
    }
  }
}

// Two forests with two threads each, in two threads, on one cache.
void test_two_forests_share_a_cache() {
  Games games;
  const GameTable game = games.tables()[0];
  ForestOptions options = plain_options();
  options.leaves_per_tree = 4;
  options.num_threads = 2;
  std::vector<std::vector<TreeRecord>> want;
  for (const uint64_t seed : {5, 6}) {
    Player plain{.game = game, .options = options, .cache = nullptr, .max_leaves = 4096};
    want.push_back(plain.play(seed));
  }
  for (const size_t cache_bytes : {size_t{1} << 14, size_t{1} << 22}) {
    scene() = "two forests, " + std::to_string(cache_bytes) + " bytes";
    const auto cache = std::make_shared<PredictionCache>(cache_bytes, false);
    on_threads(2, [&](int32_t thread) {
      for (int32_t turn = 0; turn < 2; ++turn) {
        const size_t which = static_cast<size_t>(thread + turn) % 2;
        Player player{.game = game, .options = options, .cache = cache, .num_out = 2, .max_leaves = 4096};
        check(player.play(5 + which) == want[which], "forests that share a cache disturb each other");
      }
    });
  }
}

// Games that fail in the middle of a parallel select, while leaves that the cache knows are held.
void test_faults(const TrapKind& kind) {
  scene() = "faults, " + kind.name;
  const std::unique_ptr<TrapRules> trap = make_rules(kind);
  trap->traps_per_1024 = 60;
  const GameTable game = TrapGame::table(*trap);
  ForestOptions options = plain_options();
  options.leaves_per_tree = 4;
  options.num_threads = 4;
  options.max_memory = size_t{1} << 26;
  const auto cache = std::make_shared<PredictionCache>(size_t{1} << 18, false);
  std::vector<TreeRecord> want;
  for (const bool is_armed : {false, true, true}) {
    Forest forest(game, kTrees, options, cache);
    Dice dice(6);
    for (int32_t tree = 0; tree < kTrees; ++tree) forest.reset(tree, random_decision(game, dice, 3).data());
    forest.begin(0, kTrees, 100, 0);
    std::vector<float> observations = make_buffer(forest, 4096);
    int32_t num_faults = 0, num_calls = 0;
    while (forest.has_work(0, kTrees)) {
      try {
        Batch* batch = nullptr;
        {
          // The first time too: what the cache knows needs few calls.
          const Armed armed(trap.get(), is_armed && num_calls++ % 2 == 0);
          batch = &forest.select(4096, 0, kTrees, false, observations.data());
        }
        if (batch->num_rows > 0) complete(forest, *batch);
      } catch (const GameFault&) {
        ++num_faults;
        check(forest.num_batches_out() == 0, "a batch is out after a fault");
        for (int32_t tree = 0; tree < kTrees; ++tree) {
          check(forest.tree(tree).count_in_flight() == 0, "marks are left behind after a fault");
        }
      }
    }
    check((num_faults > 0) == is_armed, "no fault was met, or one that was not there");
    std::vector<TreeRecord> found;
    for (int32_t tree = 0; tree < kTrees; ++tree) {
      check_tree(game, forest.tree(tree));
      check(forest.tree(tree).counters.simulations == 100, "a budget was not spent");
      found.push_back(evaluated_only(record(game, forest.tree(tree))));
    }
    if (want.empty()) want = found;
    check(found == want, "faults have changed the result");
  }
  check(trap->num_owners == 0, "a state is left");
}

}  // namespace

int main() {
  test_shared_by_threads();
  test_forest();
  test_cancelled_batches();
  test_overlapping_rounds();
  test_two_forests_share_a_cache();
  for (const TrapKind& kind : trap_kinds()) test_faults(kind);
  test_known_roots_keep_to_the_rows();
}
