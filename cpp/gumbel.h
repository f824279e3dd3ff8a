// gumbel.h: a root that spends its simulations by sequential halving, for searches of few simulations.
//
// After Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning with Gumbel" (ICLR 2022). Every
// legal action has the score
//
//   G(a) + ln P(a) + (visit_offset + max_b N(b)) * value_scale * Q(a)
//
// with Gumbel noise G drawn once per search. The first simulations go to the `max_considered` actions of highest score,
// then again and again to the better half of those. Q of an action never tried is the value that the network and the
// tried actions together give the root. Without the noise, a softmax of the score is a policy better than P, and what a
// network should learn. Below the root the law's own formula holds, or the same improved policy decides (lagging_edge).
//
// All in float64, operations in the order written; `windrow.gumbel` is its twin.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "numerics.h"
#include "random.h"
#include "rules.h"

namespace windrow {

// `windrow.SearchConfig` explains these and has their defaults; there are none here.
struct GumbelOptions {
  int32_t max_considered;  // 0: the root chooses as every other node does
  float scale;             // of the noise
  float visit_offset;
  float value_scale;
};

// The edges of a node, as arrays over its legal actions.
struct EdgeSpans {
  std::span<const float> priors;
  std::span<const int32_t> visits;      // N
  std::span<const double> value_sums;   // W, for the player to move
  std::span<const uint16_t> in_flight;  // I, with the mark of a proven child
  float value;                          // the network's, for the player to move
};

class GumbelRoot {
 public:
  // A search of `num_simulations` begins. `visits` are those that an earlier search left, none if it is empty.
  void begin(const GumbelOptions& options, float scale, RandomKey key, int64_t num_simulations,
             std::span<const uint16_t> actions, std::span<const int32_t> visits) {
    options_ = options;
    visits_before_.assign(actions.size(), 0);
    std::copy(visits.begin(), visits.end(), visits_before_.begin());
    noise_.assign(actions.size(), 0.0);
    if (scale != 0.0f) {
      for (size_t edge = 0; edge < actions.size(); ++edge) {
        const double draw = Stream(key, Purpose::kGumbel, actions[edge]).next_uniform();
        noise_[edge] = static_cast<double>(scale) * -log64(-log64(draw));
      }
    }
    plan(std::min<int64_t>(options.max_considered, static_cast<int64_t>(actions.size())), num_simulations);
  }

  // The edge that simulation number `simulation` of this search takes: no proven one if another is open.
  int32_t next_edge(const EdgeSpans& edges, int64_t simulation) const {
    const Scorer scorer(options_, edges);
    const int64_t level = level_of(simulation);
    const auto is_open = [&](size_t edge) { return (edges.in_flight[edge] & kProvenEdge) == 0; };
    const bool has_open = std::any_of(edges.in_flight.begin(), edges.in_flight.end(),
                                      [](uint16_t marks) { return (marks & kProvenEdge) == 0; });
    const auto may_take = [&](size_t edge) { return !has_open || is_open(edge); };
    const auto is_at_level = [&](size_t edge) {
      return may_take(edge) && visits_of(edges, edge) + in_flight_of(edges.in_flight[edge]) == level;
    };
    const int32_t edge = best(scorer, is_at_level);
    // A round that was cancelled while others were out can leave no edge at the level; so can proofs.
    return edge >= 0 ? edge : best(scorer, may_take);
  }

  // The edge to play: of those that this search visited most, the one of highest score. `playable` [edges] are those to
  // choose from.
  int32_t best_edge(const EdgeSpans& edges, std::span<const uint8_t> playable) const {
    int32_t most = 0;
    for (size_t edge = 0; edge < noise_.size(); ++edge) {
      if (playable[edge] != 0) most = std::max(most, visits_of(edges, edge));
    }
    return best(Scorer(options_, edges),
                [&](size_t edge) { return playable[edge] != 0 && visits_of(edges, edge) == most; });
  }

  // The improved policy, over legal actions.
  std::vector<float> policy(const EdgeSpans& edges) const {
    std::vector<double> shares;
    improve(options_, edges, shares);
    return {shares.begin(), shares.end()};
  }

  // Of a node below the root, the edge whose share of the visits lags most behind the improved policy: no proven one if
  // another is open.
  int32_t lagging_edge(const GumbelOptions& options, const EdgeSpans& edges) {
    improve(options, edges, shares_);
    int64_t total = 1;
    bool has_open = false;
    for (size_t edge = 0; edge < shares_.size(); ++edge) {
      total += edges.visits[edge] + in_flight_of(edges.in_flight[edge]);
      has_open |= (edges.in_flight[edge] & kProvenEdge) == 0;
    }
    int32_t found = -1;
    double highest = 0.0;
    for (size_t edge = 0; edge < shares_.size(); ++edge) {
      if (has_open && (edges.in_flight[edge] & kProvenEdge) != 0) continue;
      const int32_t count = edges.visits[edge] + in_flight_of(edges.in_flight[edge]);
      const double lag = shares_[edge] - static_cast<double>(count) / static_cast<double>(total);
      if (found >= 0 && lag <= highest) continue;
      found = static_cast<int32_t>(edge);
      highest = lag;
    }
    return found;
  }

 private:
  // From simulation `start` on, `width` actions are visited in turn; each has had `level` visits then.
  struct Phase {
    int64_t start, width, level;
  };

  // The score without the noise.
  class Scorer {
   public:
    Scorer(const GumbelOptions& options, const EdgeSpans& edges) : edges_(edges), untried_(edges.value) {
      int64_t num_visits = 0;
      int32_t most = 0;
      double prior = 0.0, weighted = 0.0;
      for (size_t edge = 0; edge < edges.visits.size(); ++edge) {
        const int32_t visits = edges.visits[edge];
        if (visits == 0) continue;
        num_visits += visits;
        most = std::max(most, visits);
        prior += static_cast<double>(edges.priors[edge]);
        weighted += static_cast<double>(edges.priors[edge]) * (edges.value_sums[edge] / visits);
      }
      if (prior > 0.0) {
        const double visits = static_cast<double>(num_visits);
        untried_ = (untried_ + visits * (weighted / prior)) / (1.0 + visits);
      }
      factor_ = (static_cast<double>(options.visit_offset) + most) * static_cast<double>(options.value_scale);
    }

    double operator()(size_t edge) const {
      const int32_t visits = edges_.visits[edge];
      const double q = visits > 0 ? edges_.value_sums[edge] / visits : untried_;
      const float prior = edges_.priors[edge];
      return (prior > 0.0f ? log64(static_cast<double>(prior)) : kLogOfNothing) + factor_ * q;
    }

   private:
    // Softmax gives nothing below e^-32 but 0.
    static constexpr double kLogOfNothing = -64.0;
    const EdgeSpans& edges_;
    double untried_;
    double factor_;
  };

  // Writes the improved policy of a node to `shares`.
  static void improve(const GumbelOptions& options, const EdgeSpans& edges, std::vector<double>& shares) {
    const Scorer scorer(options, edges);
    shares.resize(edges.priors.size());
    double highest = -INFINITY, total = 0.0;
    for (size_t edge = 0; edge < shares.size(); ++edge) {
      shares[edge] = scorer(edge);
      highest = std::max(highest, shares[edge]);
    }
    for (double& share : shares) total += share = exp64(share - highest);
    for (double& share : shares) share /= total;
  }

  void plan(int64_t num_considered, int64_t num_simulations) {
    phases_.clear();
    int64_t num_halvings = 0;
    while (int64_t{1} << num_halvings < num_considered) ++num_halvings;
    int64_t level = 0;
    for (int64_t start = 0, width = num_considered; start < num_simulations;) {
      phases_.push_back({start, width, level});
      if (width == 1) return;
      const int64_t turns = std::max<int64_t>(1, num_simulations / (num_halvings * width));
      start += turns * width;
      level += turns;
      width = std::max<int64_t>(2, width / 2);
    }
  }

  int64_t level_of(int64_t simulation) const {
    size_t i = phases_.size() - 1;
    while (i > 0 && phases_[i].start > simulation) --i;
    return phases_[i].level + (simulation - phases_[i].start) / phases_[i].width;
  }

  int32_t visits_of(const EdgeSpans& edges, size_t edge) const { return edges.visits[edge] - visits_before_[edge]; }

  // Of the edges that may be taken, the one of highest score, ties to the lowest; -1 if there is none.
  template <class MayTake>
  int32_t best(const Scorer& scorer, const MayTake& may_take) const {
    int32_t found = -1;
    double highest = -INFINITY;
    for (size_t edge = 0; edge < noise_.size(); ++edge) {
      if (!may_take(edge)) continue;
      const double score = noise_[edge] + scorer(edge);
      if (found >= 0 && score <= highest) continue;
      found = static_cast<int32_t>(edge);
      highest = score;
    }
    return found;
  }

  GumbelOptions options_{};
  std::vector<double> noise_;
  std::vector<int32_t> visits_before_;
  std::vector<Phase> phases_;
  std::vector<double> shares_;  // scratch of lagging_edge
};

}  // namespace windrow
