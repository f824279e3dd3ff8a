// forest.h: many trees, grown by three verbs.
//
//   select    marks the paths of the next simulations in flight and writes the observations of their leaves
//   complete  puts the evaluator's answers in: expands the leaves, backs the simulations up, clears the marks
//   cancel    clears the marks only
//
// A round is what one tree has in one batch: up to `leaves_per_tree` simulations chosen one after another, each seeing
// the marks of those before. Rounds decide the result and batches do not: which trees share a batch, in which order
// batches return and how many threads there are changes nothing. Several batches may be out at once; a tree takes part
// in several at a time only if `overlap` is asked for.
//
// One caller at a time; the work inside a call is spread over the thread pool, tree by tree.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arena.h"
#include "canonical.h"
#include "game.h"
#include "gumbel.h"
#include "prediction_cache.h"
#include "rules.h"
#include "thread_pool.h"
#include "tree.h"

namespace windrow {

// What a search is. `windrow.SearchConfig` explains the settings and has their defaults; there are none here.
struct ForestOptions {
  Rules rules;
  bool proves;              // whether values that are exact are followed up the tree
  bool share_collisions;    // else a leaf met again ends its tree's round
  int32_t leaves_per_tree;  // K
  int32_t max_depth;        // 0: no limit
  double dirichlet_alpha;
  float dirichlet_fraction;
  float root_policy_temperature;
  GumbelOptions gumbel;    // instead of noise in the root's priors
  bool improves_interior;  // below the root the improved policy decides, with the numbers in `gumbel`
  float lcb_deviations;    // what the move is chosen by: the lower confidence bound, or, if 0, most visits
  uint64_t seed;
  int32_t num_threads;
  int32_t spin_us;    // time that threads spin for the next round before they sleep
  size_t max_memory;  // bytes, for all trees together
};

// A leaf that waits for the evaluator.
struct Leaf {
  Ref node;
  int32_t row = 0;
  bool is_owner = true;  // else an equal position elsewhere in the batch brings the row
  PositionKey key = {};  // if there is a cache
  int32_t symmetry = 0;  // if its keys are canonical: the image that gave the key
};

// What one search of one tree is to be.
struct SearchOrder {
  int32_t tree = 0;
  int64_t num_simulations = 0;
  uint32_t key = 0;  // with `count` and the forest's seed, the key of the search's random numbers
  uint32_t count = 0;
  bool explores = true;  // else there is no noise at the root
};

struct Round {
  int32_t tree = 0;
  std::vector<Leaf> leaves;      // in the order found
  std::vector<Ref> known;        // leaves whose evaluation came from the cache
  std::vector<Ref> simulations;  // where each ended, in the order selected
};

// Leaves that are out for evaluation. Owned by the forest and used again.
struct Batch {
  int32_t slot = 0;
  int64_t serial = 0;  // which use of the slot this is, so that a stale handle is noticed
  bool is_out = false;
  int32_t num_rows = 0;
  int32_t num_rounds = 0;
  std::vector<Round> rounds;         // the first num_rounds are in use
  std::vector<int32_t> rows_by_key;  // scratch of finding equal positions
  std::vector<const Leaf*> owners;   // by row
};

// The evaluator's answer for one row cannot be used. The batch has been cancelled.
class BadEvaluation : public PositionError {
 public:
  using PositionError::PositionError;
};

struct ForestSeconds {
  double select = 0.0;
  double encode = 0.0;
  double complete = 0.0;
};

// How far a call of `grow` came, and what its evaluations took.
struct GrowthReport {
  bool is_finished = false;  // no tree has anything left to do
  int64_t num_calls = 0;     // of the evaluator
  int64_t num_rows = 0;
  int64_t num_places = 0;  // rows that the batches had room for
  double seconds = 0.0;    // in the evaluator
};

class CoreEvaluator;

class Forest {
 public:
  // With a cache, a leaf that it knows never enters a batch, and equal positions in one batch are evaluated once. What
  // a search does is the same, as long as the evaluator gives equal answers to equal positions.
  Forest(const GameTable& game, int32_t num_trees, const ForestOptions& options,
         std::shared_ptr<PredictionCache> cache = nullptr);
  ~Forest();
  Forest(const Forest&) = delete;
  Forest& operator=(const Forest&) = delete;

  int32_t num_trees() const { return static_cast<int32_t>(trees_.size()); }
  const GameTable& game() const { return game_; }
  const ForestOptions& options() const { return options_; }

  // Plants tree `tree` anew. Its batches must not be out.
  void reset(int32_t tree, const void* state);
  // Empties tree `tree`: nothing is selected from it until it is planted again.
  void uproot(int32_t tree);
  // Moves a root along an action or an outcome of chance; the statistics below it stay.
  void advance(int32_t tree, int64_t move) { advance(std::span(&tree, 1), std::span(&move, 1)); }
  // The same for many trees: all of them, or none and an exception.
  void advance(std::span<const int32_t> trees, std::span<const int64_t> moves);
  // Starts a search of every tree in [first, last) on its present root; draws new root noise. The next
  // `num_simulations` simulations of each are its budget. `count` is the number of searches so far: with the seed
  // and the tree it is the key of the search's random numbers. `model_version` is part of the cache's keys.
  void begin(int32_t first, int32_t last, int64_t num_simulations, uint32_t count, uint64_t model_version = 0);
  // The same for any trees, each as it is ordered, while others go on.
  void begin(std::span<const SearchOrder> orders, uint64_t model_version);
  // Trees whose search has ended since the last call, ascending.
  std::vector<int32_t> take_finished();

  // Ends all searches: no more simulations are selected. Roots that have no evaluation still are.
  void stop();

  // Gathers from the trees of [first, last) that have something left to do, taking turns from call to call, until
  // another round might not fit into `max_leaves` rows; at least one tree. `observations` has room for
  // `rows_needed(max_leaves)` rows, or is null: then none are written. A batch of no rows is already complete: every
  // tree of the range has used up its budget, waits for a batch that is out, or has done many simulations that need no
  // evaluation (`has_work` tells).
  Batch& select(int32_t max_leaves, int32_t first, int32_t last, bool overlap, float* observations);
  int32_t rows_needed(int32_t max_leaves) const { return std::max(max_leaves, options_.leaves_per_tree); }

  // logits [rows, A], values [rows, num_values], the player to move first. Throws BadEvaluation, having cancelled the
  // batch, if a legal logit or a value is not finite, or a value is outside [-1, 1].
  void complete(Batch& batch, const float* logits, const float* values);
  void cancel(Batch& batch);
  void cancel_all();

  // The three verbs in a loop, with an evaluator of the core: grows the trees in [first, last) to the end of their
  // budgets, in batches of about `max_leaves` rows of which the evaluator is given `max_batch` at a time. Comes back
  // earlier, between two batches, when `patience` is over or a tree has finished. Nothing is out then, nor after an
  // exception.
  GrowthReport grow(CoreEvaluator& evaluator, int32_t max_leaves, int32_t first, int32_t last, int32_t max_batch,
                    std::chrono::nanoseconds patience);

  Batch& batch(int32_t slot) { return *batches_.at(static_cast<size_t>(slot)); }
  // The states of a batch's leaves, one row of state_bytes each.
  void copy_states(const Batch& batch, std::byte* states) const;

  const Tree& tree(int32_t index) const { return trees_.at(static_cast<size_t>(index)); }
  int32_t num_batches_out() const { return num_batches_out_; }
  // Whether some tree in [first, last) has simulations left to select.
  bool has_work(int32_t first, int32_t last) const;
  size_t bytes() const;
  const ForestSeconds& seconds() const { return seconds_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Cursor;
  class Timer;

  // Descents a thread has under way at once: enough to hide the latency of memory behind one another.
  static constexpr int32_t kInterleave = 8;

  static NodeLayout layout_for(const GameTable& game, const ForestOptions& options);
  static size_t slice_bytes(const GameTable& game, int32_t num_trees, const ForestOptions& options);
  Batch& take_batch();
  void give_back(Batch& batch);
  void release_trees(Batch& batch);
  void begin(const SearchOrder& order);
  void prepare_priors(Tree& tree);
  void note_if_finished(const Tree& tree);
  bool is_ready(const Tree& tree, bool overlap) const;
  int32_t choose_trees(Batch& batch, int32_t max_leaves, int32_t first, int32_t last, bool overlap, int32_t num_left);
  template <InFlight kRule, Proofs kProofs, bool kUniform>
  void gather(Batch& batch, int32_t begin, int32_t end);
  void gather_all(Batch& batch);
  void number_rows(Batch& batch);
  bool start_round(Cursor& cursor, const Batch& batch);
  void take_leaf(Tree& tree, Ref leaf, Round& round, const Batch& batch);
  bool ask_cache(Tree& tree, Leaf& leaf);
  void tell_cache(const Tree& tree, const Leaf& leaf, const float* values);
  void expand(Tree& tree, Ref leaf, const float* values);
  void write_observations(const Batch& batch, float* observations);
  bool end_round(Cursor& cursor, const Batch& batch);
  Round& round_of(int32_t slot, int32_t tree);
  void evaluate(const Batch& batch, CoreEvaluator& evaluator, int32_t max_batch, GrowthReport& report);
  [[noreturn]] void raise_fault(const Batch& batch, int32_t row, const std::string& what) const;
  void check_evaluation(const Batch& batch, const float* logits, const float* values) const;
  void expand_round(const Round& round, const float* logits, const float* values);
  template <bool kVectors, Proofs kProofs, bool kSquares>
  void back_up_rounds(const Batch& batch, int32_t begin, int32_t end);
  Tree& idle_tree(int32_t index, const char* verb);
  template <class Fn>
  void for_each_round(const Batch& batch, int32_t begin, int32_t end, const Fn& fn);
  int32_t piece_size(int32_t count) const;

  const GameTable game_;
  const ForestOptions options_;
  const GrowthTable growth_;
  Reservation reservation_;
  std::vector<Tree> trees_;
  std::vector<uint8_t> is_finished_;  // by tree: its search has ended, and take_finished has not told
  bool has_news_ = false;             // a search has ended since `grow` looked
  std::vector<std::unique_ptr<Batch>> batches_;
  int64_t next_serial_ = 0;
  int32_t num_batches_out_ = 0;
  int32_t turn_ = 0;  // the tree select looks at first
  ForestSeconds seconds_;
  Clock::time_point last_time_;  // when the last timer ended
  bool has_laps_ = false;        // whether the next one begins there
  std::shared_ptr<PredictionCache> cache_;
  std::unique_ptr<const Canonizer> canonizer_;  // if the cache's keys are canonical
  uint64_t model_version_ = 0;
  ThreadPool pool_;
};

// Adds the time from its making to its end to a total. In a loop each begins where the one before has ended: looking at
// the clock takes as long as a good part of a simulation.
class Forest::Timer {
 public:
  Timer(Forest& forest, double& total)
      : forest_(forest), total_(total), start_(forest.has_laps_ ? forest.last_time_ : Clock::now()) {}
  ~Timer() {
    forest_.last_time_ = Clock::now();
    total_ += std::chrono::duration<double>(forest_.last_time_ - start_).count();
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  Forest& forest_;
  double& total_;
  const Clock::time_point start_;
};

// fn(round) for the rounds [begin, end) of a batch, fetching the leaves of rounds ahead.
template <class Fn>
void Forest::for_each_round(const Batch& batch, int32_t begin, int32_t end, const Fn& fn) {
  for (int32_t i = begin; i < end; ++i) {
    if (i + kInterleave < end) {
      const Round& ahead = batch.rounds[static_cast<size_t>(i + kInterleave)];
      if (!ahead.leaves.empty()) trees_[static_cast<size_t>(ahead.tree)].prefetch(ahead.leaves.front().node);
    }
    fn(batch.rounds[static_cast<size_t>(i)]);
  }
}

}  // namespace windrow
