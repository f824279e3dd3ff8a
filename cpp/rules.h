// rules.h: which edge a simulation takes. Pure functions; the law's selection formula and nothing else.
//
//   score(s,a) = Q(s,a) + c(s) * P(s,a) * sqrt(N(s) + I(s)) / (1 + N(s,a) + I(s,a))
//
// c(s) is c_puct, unless it grows with N(s) + I(s) or follows the spread of the values (tree.h, `exploration`).
//
// With proofs, an edge to a proven child has the score W / N, which is exact, and none if that is a loss; unless all
// children are proven.
//
// All in float32, operations in the order written, no fused multiply-add, ties to the lowest action.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "lanes.h"
#include "numerics.h"

namespace windrow {

// An edge's count of simulations in flight, I, shares its 16 bits with a mark.
inline constexpr uint16_t kProvenEdge = 0x8000u;  // the child is proven (tree.h)
inline constexpr int32_t kMaxInFlight = 0x7FFF;
inline int32_t in_flight_of(uint16_t edge) { return edge & kMaxInFlight; }

// How a simulation that was selected but not yet backed up changes Q; see `in_flight` in windrow.SearchConfig.
enum class InFlight : uint8_t {
  kVisits,  // Q = W / N
  kLoss,    // Q = (W - virtual_loss * I) / (N + I)
  kDilute,  // Q = W / (N + I)
};

// Q of an edge whose denominator above is zero.
struct FirstPlay {
  bool is_parent;  // the node's own mean value less `value`; else `value`
  float value;
  bool operator==(const FirstPlay&) const = default;
};

// Which values' standard deviation the exploration constant is relative to.
enum class ValueScale : uint8_t {
  kFixed,  // none
  kTree,   // those at the root
  kNode,   // those at the node itself
};

// The standard deviation for which c_puct is meant, and how many values of it count before the first real one.
inline constexpr double kUsualDeviation = 0.4, kAssumedValues = 2.0;

// The standard deviation of `count` values, given their sum and the sum of their squares.
inline double deviation_of(double sum, double square_sum, int32_t count) {
  const double spread = square_sum - sum * sum / count;
  const double assumed = kAssumedValues * (kUsualDeviation * kUsualDeviation);
  return std::sqrt((assumed + std::max(spread, 0.0)) / (kAssumedValues + count));
}

// `windrow.SearchConfig` explains these and has their defaults; there are none here.
struct Rules {
  float c_puct;
  float c_puct_growth, c_puct_base;
  ValueScale value_scale;
  InFlight in_flight;
  float virtual_loss;
  FirstPlay first_play, root_first_play;

  // Whether they are the same at every node: c(s) is c_puct, and the root's first-play value is that of all.
  bool are_uniform() const {
    return c_puct_growth == 0.0f && value_scale == ValueScale::kFixed && root_first_play == first_play;
  }
  // What a node's N(s) + I(s) adds to c_puct.
  float growth(int32_t visits) const {
    const double ratio = static_cast<double>(visits) / static_cast<double>(c_puct_base);
    return c_puct_growth * static_cast<float>(log64(1.0 + ratio));
  }
};

// The same for few visits, looked up: a logarithm takes as long as the rest of a step.
class GrowthTable {
 public:
  explicit GrowthTable(const Rules& rules) {
    if (rules.c_puct_growth == 0.0f) return;
    for (int32_t visits = 0; visits < kSize; ++visits) growth_.push_back(rules.growth(visits));
  }
  float at(const Rules& rules, int32_t visits) const {
    return visits < kSize ? growth_[static_cast<size_t>(visits)] : rules.growth(visits);
  }

 private:
  static constexpr int32_t kSize = 4096;
  std::vector<float> growth_;
};

// The edges of one node, as arrays. `count` is a multiple of kLanes; padding has the prior kPadding, so that
// its score is -infinity (or NaN at c_puct 0) and never the best.
struct EdgeStatistics {
  int32_t count;
  const double* value_sum;    // W, for the player to move at the node
  const float* prior;         // P
  const int32_t* visits;      // N
  const uint16_t* in_flight;  // I, with the mark of a proven child
};

// Q of four edges.
template <InFlight kRule>
inline Float4 edge_q(Double4 value_sum, Int4 visits, Int4 in_flight, float virtual_loss, float first_play) {
  const Int4 denominator = kRule == InFlight::kVisits ? visits : visits + in_flight;
  Float4 numerator = convert<Float4>(value_sum);
  if constexpr (kRule == InFlight::kLoss) numerator -= virtual_loss * convert<Float4>(in_flight);
  // Where nothing is known 0/0 is computed and thrown away.
  const Float4 q = numerator / convert<Float4>(denominator);
  return denominator > 0 ? q : Float4{} + first_play;
}

// What marks of proofs on edges mean.
enum class Proofs : uint8_t {
  kNone,     // there are none
  kMarked,   // these children are proven
  kIgnored,  // nothing, where all are
};

// The index of the best edge. `exploration` is c(s), `sqrt_visits` is sqrt(N(s) + I(s)).
template <InFlight kRule, Proofs kProofs>
inline int32_t best_edge(const EdgeStatistics& edges, float exploration, float sqrt_visits, float virtual_loss,
                         float first_play) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  Float4 best = Float4{} + kNever;
  Int4 best_index = {};
  Int4 index = {0, 1, 2, 3};
  Int4 num_open = {};
  for (int32_t i = 0; i < edges.count; i += kLanes, index += kLanes) {
    const Int4 visits = load<Int4>(edges.visits + i);
    Int4 in_flight = convert<Int4>(load<Short4>(edges.in_flight + i));
    const Int4 is_proven = in_flight > kMaxInFlight;  // in each lane 0 or -1
    if constexpr (kProofs != Proofs::kNone) {
      in_flight &= kMaxInFlight;
      num_open += is_proven + 1;
    }
    const Float4 q = edge_q<kRule>(load<Double4>(edges.value_sum + i), visits, in_flight, virtual_loss, first_play);
    const Float4 u =
        exploration * load<Float4>(edges.prior + i) * sqrt_visits / convert<Float4>(1 + visits + in_flight);
    Float4 score = q + u;
    if constexpr (kProofs == Proofs::kMarked) {
      const Float4 exact = convert<Float4>(load<Double4>(edges.value_sum + i)) / convert<Float4>(visits);
      score = is_proven ? (exact > -1.0f ? exact : Float4{} + kNever) : score;
    }
    const Int4 is_better = score > best;
    best = is_better ? score : best;
    best_index = is_better ? index : best_index;
  }
  if constexpr (kProofs == Proofs::kMarked) {
    if (num_open[0] + num_open[1] + num_open[2] + num_open[3] == 0) [[unlikely]] {
      return best_edge<kRule, Proofs::kIgnored>(edges, exploration, sqrt_visits, virtual_loss, first_play);
    }
  }
  // Within a lane the first of equals has won; between lanes the lowest index must.
  float top = best[0];
  int32_t top_index = best_index[0];
  for (int32_t lane = 1; lane < kLanes; ++lane) {
    const bool is_better = best[lane] > top || (best[lane] == top && best_index[lane] < top_index);
    top = is_better ? best[lane] : top;
    top_index = is_better ? best_index[lane] : top_index;
  }
  return top_index;
}

}  // namespace windrow
