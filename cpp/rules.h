// rules.h: which edge a simulation takes. Pure functions; the law's selection formula and nothing else.
//
//   score(s,a) = Q(s,a) + c_puct * P(s,a) * sqrt(N(s) + I(s)) / (1 + N(s,a) + I(s,a))
//
// All in float32, operations in the order written, no fused multiply-add, ties to the lowest action.
#pragma once

#include <cstdint>
#include <limits>

namespace windrow {

// How a simulation that was selected but not yet backed up changes Q; see `in_flight` in windrow.SearchConfig.
enum class InFlight : uint8_t {
  kVisits,  // Q = W / N
  kLoss,    // Q = (W - virtual_loss * I) / (N + I)
  kDilute,  // Q = W / (N + I)
};

// Q of an edge whose denominator above is zero.
enum class FirstPlay : uint8_t {
  kValue,   // a constant
  kParent,  // the node's own mean value less a constant
};

struct Rules {
  float c_puct = 1.5f;
  InFlight in_flight = InFlight::kVisits;
  float virtual_loss = 1.0f;
  FirstPlay first_play = FirstPlay::kValue;
  float first_play_value = 0.0f;  // the constant of either kind
};

// The edges of one node, as arrays. `count` is a multiple of kEdgePadding; padding has prior -infinity, so that its
// score is -infinity (or NaN at c_puct 0) and never the best.
inline constexpr int32_t kEdgePadding = 4;
inline constexpr float kPaddingPrior = -std::numeric_limits<float>::infinity();

struct EdgeStatistics {
  int32_t count;
  const double* value_sum;    // W, for the player to move at the node
  const float* prior;         // P
  const int32_t* visits;      // N
  const uint16_t* in_flight;  // I
};

template <InFlight kRule>
inline float edge_q(double value_sum, int32_t visits, int32_t in_flight, float virtual_loss, float first_play) {
  const int32_t denominator = kRule == InFlight::kVisits ? visits : visits + in_flight;
  float numerator = static_cast<float>(value_sum);
  if constexpr (kRule == InFlight::kLoss) numerator -= virtual_loss * static_cast<float>(in_flight);
  // Written without a branch so that it vectorizes; 0/0 is computed and thrown away.
  const float q = numerator / static_cast<float>(denominator);
  return denominator > 0 ? q : first_play;
}

// The index of the best edge. `root` is sqrt(N(s) + I(s)).
template <InFlight kRule>
inline int32_t best_edge(const EdgeStatistics& edges, float c_puct, float root, float virtual_loss, float first_play) {
  constexpr int32_t kBlock = 32;
  float scores[kBlock];
  float best = -std::numeric_limits<float>::infinity();
  int32_t best_index = 0;
  for (int32_t begin = 0; begin < edges.count; begin += kBlock) {
    const int32_t size = edges.count - begin < kBlock ? edges.count - begin : kBlock;
    for (int32_t group = 0; group < size; group += kEdgePadding) {
      for (int32_t lane = 0; lane < kEdgePadding; ++lane) {
        const int32_t i = begin + group + lane, visits = edges.visits[i], in_flight = edges.in_flight[i];
        const float q = edge_q<kRule>(edges.value_sum[i], visits, in_flight, virtual_loss, first_play);
        const float u = c_puct * edges.prior[i] * root / static_cast<float>(1 + visits + in_flight);
        scores[group + lane] = q + u;
      }
    }
    for (int32_t i = 0; i < size; ++i) {
      if (scores[i] > best) {
        best = scores[i];
        best_index = begin + i;
      }
    }
  }
  return best_index;
}

}  // namespace windrow
