// random.h: the law's random numbers.
//
// A counter-based generator (Philox 4x32 with 10 rounds: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011): number `index` of a stream is a pure function of (seed, tree, count, purpose, lane, index). Nothing is
// carried from call to call, so thread counts and schedules cannot change a draw. `windrow.numerics` is its twin.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "numerics.h"

namespace windrow {

inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t seed) {
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// What a stream is for; streams of different purposes are independent. The other numbers are self-play's, in Python.
enum class Purpose : uint32_t { kRootNoise = 0, kMove = 1, kRollout = 2, kGumbel = 3, kOutcome = 7 };

// Whose random numbers: one search of one tree.
struct RandomKey {
  uint64_t seed = 0;
  uint32_t tree = 0;   // or which game of many
  uint32_t count = 0;  // how many searches this tree, or moves this game, has had before
};

class Stream {
 public:
  // `lane` splits a purpose into 2^24 independent streams (one per action, say); `index` is where in it to begin.
  Stream(RandomKey key, Purpose purpose, uint32_t lane, uint32_t index = 0)
      : seed_(key.seed), counter_{index, static_cast<uint32_t>(purpose) | lane << 8, key.count, key.tree} {}

  uint64_t next_bits() {
    const std::array<uint32_t, 4> block = philox(counter_, seed_);
    ++counter_[0];
    return uint64_t{block[1]} << 32 | block[0];
  }

  // In (0, 1), both ends excluded.
  double next_uniform() { return (static_cast<double>(next_bits() >> 12) + 0.5) * 0x1p-52; }

  // One of `count` numbers from 0 on, each as likely.
  uint32_t next_below(uint32_t count) { return static_cast<uint32_t>((next_bits() >> 32) * count >> 32); }

  // Standard normal, by Marsaglia's polar method.
  double next_normal() {
    for (;;) {
      const double x = 2.0 * next_uniform() - 1.0, y = 2.0 * next_uniform() - 1.0, s = x * x + y * y;
      if (s < 1.0) return x * std::sqrt(-2.0 * log64(s) / s);
    }
  }

  // ln of a Gamma(alpha, 1) draw (Marsaglia and Tsang, 2000; for alpha < 1 their boost). The logarithm, because for
  // small alpha the draw itself underflows.
  double next_log_gamma(double alpha) {
    const double shift = alpha < 1.0 ? log64(next_uniform()) / alpha : 0.0;
    const double d = (alpha < 1.0 ? alpha + 1.0 : alpha) - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
    for (;;) {
      const double x = next_normal(), base = 1.0 + c * x;
      if (base <= 0.0) continue;
      const double v = base * base * base, log_v = log64(v);
      if (log64(next_uniform()) < 0.5 * x * x + d - d * v + d * log_v) return log64(d) + log_v + shift;
    }
  }

 private:
  uint64_t seed_;
  std::array<uint32_t, 4> counter_;
};

// Mixes Dirichlet(alpha) noise into the priors of a root's legal actions: (1 - fraction) * prior + fraction * noise.
inline void mix_root_noise(RandomKey key, double alpha, float fraction, std::span<const uint16_t> actions,
                           std::span<float> priors) {
  std::vector<double> draws;
  draws.reserve(actions.size());
  double largest = -INFINITY, total = 0.0;
  for (const uint16_t action : actions) {
    draws.push_back(Stream(key, Purpose::kRootNoise, action).next_log_gamma(alpha));
    largest = draws.back() > largest ? draws.back() : largest;
  }
  for (double& draw : draws) total += draw = exp64(draw - largest);
  for (size_t i = 0; i < draws.size(); ++i) {
    const float noise = static_cast<float>(draws[i] / total);
    priors[i] = (1.0f - fraction) * priors[i] + fraction * noise;
  }
}

}  // namespace windrow
