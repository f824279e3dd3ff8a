// evaluator.h: evaluators that live in the core: a search with one of them need not leave it to evaluate a leaf.
//
// Each is the twin of one in `windrow.evaluators`: its answers have the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "game.h"
#include "rollout.h"

namespace windrow {

// Evaluates leaves of one game, a batch at a time: they are written into its memory, and the answers stand there until
// the next batch. One caller at a time. The game's table must outlive it.
class CoreEvaluator {
 public:
  explicit CoreEvaluator(const GameTable& game) : game_(game) {}
  virtual ~CoreEvaluator() = default;
  CoreEvaluator(const CoreEvaluator&) = delete;
  CoreEvaluator& operator=(const CoreEvaluator&) = delete;

  const GameTable& game() const { return game_; }

  // Has room for so many rows from now on.
  void make_room(int32_t num_rows);
  // Where to write the leaves: observations [rows, observation_floats] and states [rows, state_bytes]. Null: not read.
  float* observations() { return reads_observations() ? observations_.data() : nullptr; }
  std::byte* states() { return reads_states() ? reinterpret_cast<std::byte*>(states_.data()) : nullptr; }

  // Answers for the rows [first, last). Throws RolloutFault.
  virtual void evaluate(int32_t first, int32_t last) = 0;
  // [rows, A] and [rows, num_values], the player to move first.
  const float* logits() const { return logits_.data(); }
  const float* values() const { return values_.data(); }

 protected:
  virtual bool reads_observations() const { return false; }
  virtual bool reads_states() const { return false; }
  float* logits_of(int32_t row) { return logits_.data() + row * int64_t{game_.num_actions}; }
  float* values_of(int32_t row) { return values_.data() + row * int64_t{game_.num_values}; }

 private:
  const GameTable& game_;
  int32_t num_rows_ = 0;
  std::vector<float> observations_, logits_, values_;
  std::vector<uint64_t> states_;  // words, for the alignment that states are promised
};

// Uniform priors and value 0: its memory is zero from the start.
class UniformEvaluator final : public CoreEvaluator {
 public:
  using CoreEvaluator::CoreEvaluator;
  void evaluate(int32_t, int32_t) override {}
};

// Uniform priors; the value is the mean result of random games.
class RolloutEvaluator final : public CoreEvaluator {
 public:
  RolloutEvaluator(const GameTable& game, int32_t num_rollouts, uint64_t seed, PlayOut play_out = nullptr)
      : CoreEvaluator(game), rollouts_(game, num_rollouts, seed, play_out) {}
  void evaluate(int32_t first, int32_t last) override;

 private:
  bool reads_states() const override { return true; }

  Rollouts rollouts_;
};

// For tests: logits and values look random, but are a pure function of the observation (evaluators/hashing.py).
class HashEvaluator final : public CoreEvaluator {
 public:
  HashEvaluator(const GameTable& game, uint64_t seed);
  void evaluate(int32_t first, int32_t last) override;

 private:
  bool reads_observations() const override { return true; }

  uint64_t seed_;
  std::vector<uint64_t> weights_;  // of the floats of an observation
};

}  // namespace windrow
