// evaluator.cpp: the evaluators of the core.
#include "evaluator.h"

#include <cstring>

namespace windrow {

namespace {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15u;

// The finalizer of SplitMix64: every input bit changes every output bit.
uint64_t mix(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
  return word ^ (word >> 31);
}

}  // namespace

void CoreEvaluator::make_room(int32_t num_rows) {
  if (num_rows <= num_rows_) return;
  num_rows_ = num_rows;
  const size_t count = static_cast<size_t>(num_rows);
  if (reads_observations()) observations_.resize(count * static_cast<size_t>(game_.observation_floats));
  if (reads_states()) states_.resize(count * static_cast<size_t>(game_.state_bytes) / sizeof(uint64_t));
  logits_.resize(count * static_cast<size_t>(game_.num_actions));
  values_.resize(count * static_cast<size_t>(game_.num_values));
}

void RolloutEvaluator::evaluate(int32_t first, int32_t last) {
  rollouts_.evaluate(states(), first, last, values_of(0));
}

HashEvaluator::HashEvaluator(const GameTable& game, uint64_t seed)
    : CoreEvaluator(game), seed_(mix(seed * kGolden + 1)) {
  for (uint64_t lane = 1; lane <= static_cast<uint64_t>(game.observation_floats); ++lane) {
    weights_.push_back(mix(lane * kGolden + seed_) | 1);
  }
}

void HashEvaluator::evaluate(int32_t first, int32_t last) {
  for (int32_t row = first; row < last; ++row) {
    const float* numbers = observations() + static_cast<size_t>(row) * weights_.size();
    uint64_t sum = seed_;
    for (size_t i = 0; i < weights_.size(); ++i) {
      uint32_t bits;
      std::memcpy(&bits, numbers + i, sizeof bits);
      sum += bits * weights_[i];
    }
    const uint64_t key = mix(sum);
    float* logits = logits_of(row);
    for (int32_t action = 0; action < game().num_actions; ++action) {
      logits[action] = static_cast<float>(mix(key + (static_cast<uint64_t>(action) + 1) * kGolden) >> 58) / 8 - 4;
    }
    float* values = values_of(row);
    for (int32_t seat = 0; seat < game().num_values; ++seat) {
      values[seat] = static_cast<float>(mix(key - static_cast<uint64_t>(seat) * kGolden) >> 57) / 64 - 1;
    }
  }
}

}  // namespace windrow
