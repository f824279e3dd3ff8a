// tree_proofs.cpp: exact values followed up the tree, and the move that is sure enough to be played.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tree.h"

namespace windrow {

// The node at `at` is proven: marks the edge that leads to it, whose W becomes exact, and proves the node above if that
// was the last thing missing.
void Tree::note_proof(Ref at) {
  const Node& child = node(at);
  Node& parent = node(child.parent);
  if (layout_.is_table(parent)) return;  // of outcomes that cannot be listed nobody knows whether all are proven
  uint16_t& marks = layout_.in_flight(parent)[child.parent_edge];
  if ((marks & kProvenEdge) != 0) return;
  marks |= kProvenEdge;
  const float value = proven_value(child, std::max<int32_t>(parent.to_play, 0));
  layout_.value_sums(parent)[child.parent_edge] =
      static_cast<double>(layout_.visits(parent)[child.parent_edge]) * value;
  if (parent.is_proven) return;
  if (parent.kind == NodeKind::kOfChance) {
    prove_chance(parent);
  } else {
    prove_decision(parent);
  }
}

// By a winning move, or by all moves unless they leave open what other players get.
void Tree::prove_decision(Node& n) {
  const std::span<const Ref> below = children(n);
  const std::span<const uint16_t> marks = edges_in_flight(n);
  const Node* chosen = nullptr;
  float best = -2.0f;
  bool is_complete = true, is_clear = true;
  for (size_t edge = 0; edge < below.size(); ++edge) {
    if ((marks[edge] & kProvenEdge) == 0) {
      is_complete = false;
      continue;
    }
    const Node& child = node(below[edge]);
    const float value = proven_value(child, n.to_play);
    if (value < best) continue;
    if (value > best) {
      best = value;
      chosen = &child;
      is_clear = true;
      continue;
    }
    for (int32_t player = 0; has_vectors() && player < num_values(); ++player) {
      is_clear &= proven_value(child, player) == proven_value(*chosen, player);
    }
    const bool is_preferred = best > 0.0f ? child.distance < chosen->distance : child.distance > chosen->distance;
    if (is_preferred) chosen = &child;
  }
  const bool is_won = !has_vectors() && best >= 1.0f;
  if (!is_clear || !(is_complete || is_won)) return;
  if (has_vectors()) {
    float* values = layout_.player_values(n).values(num_values());
    for (int32_t player = 0; player < num_values(); ++player) values[player] = proven_value(*chosen, player);
  }
  n.value = best;
  n.distance = chosen->distance + 1;
  n.is_proven = true;
  ++counters.proven_nodes;
}

// By all outcomes: it is worth their expectation.
void Tree::prove_chance(Node& n) {
  const std::span<const Ref> below = children(n);
  const std::span<const float> shares = priors(n);
  const std::span<const uint16_t> marks = edges_in_flight(n);
  if (std::any_of(marks.begin(), marks.end(), [](uint16_t mark) { return (mark & kProvenEdge) == 0; })) return;
  const int32_t num_players = has_vectors() ? num_values() : 1;
  double total = 0.0, sums[kMaxPlayers]{};
  int32_t distance = 0;
  for (size_t edge = 0; edge < below.size(); ++edge) {
    const Node& child = node(below[edge]);
    const double share = static_cast<double>(shares[edge]);
    total += share;
    for (int32_t player = 0; player < num_players; ++player) {
      sums[player] += share * static_cast<double>(proven_value(child, player));
    }
    distance = std::max(distance, child.distance);
  }
  n.value = static_cast<float>(sums[0] / total);
  if (has_vectors()) {
    float* values = layout_.player_values(n).values(num_values());
    for (int32_t player = 0; player < num_players; ++player) values[player] = static_cast<float>(sums[player] / total);
  }
  n.distance = distance;
  n.is_proven = true;
  ++counters.proven_nodes;
}

std::vector<uint8_t> Tree::playable_edges(const Node& n) const {
  std::vector<uint8_t> playable(n.num_edges, 1);
  if (!proves_ || !n.is_open) return playable;
  const std::span<const uint16_t> marks = edges_in_flight(n);
  const auto child_of = [&](size_t edge) -> const Node& { return node(children(n)[edge]); };
  const auto is_marked = [&](size_t edge) { return (marks[edge] & kProvenEdge) != 0; };
  float best = -2.0f;
  bool has_open = false;
  for (size_t edge = 0; edge < marks.size(); ++edge) {
    if (is_marked(edge)) {
      best = std::max(best, proven_value(child_of(edge), n.to_play));
    } else {
      has_open = true;
    }
  }
  if (best < -1.0f) return playable;
  if (n.is_proven) {
    size_t chosen = marks.size();
    for (size_t edge = 0; edge < marks.size(); ++edge) {
      if (!is_marked(edge) || proven_value(child_of(edge), n.to_play) != best) continue;
      const int32_t distance = child_of(edge).distance;
      if (chosen == marks.size() ||
          (best > 0.0f ? distance < child_of(chosen).distance : distance > child_of(chosen).distance)) {
        chosen = edge;
      }
    }
    std::fill(playable.begin(), playable.end(), uint8_t{0});
    playable[chosen] = 1;
    return playable;
  }
  for (size_t edge = 0; edge < marks.size(); ++edge) {
    const int32_t count = visits(n)[edge];
    const bool is_good = is_marked(edge)
                             ? proven_value(child_of(edge), n.to_play) == best && (best > -1.0f || !has_open)
                             : count == 0 || value_sums(n)[edge] / count >= static_cast<double>(best);
    playable[edge] = is_good ? 1 : 0;
  }
  return playable;
}

int32_t Tree::surest_action(float deviations) const {
  constexpr double kMinShareOfVisits = 0.1;
  const Node& root = node(root_);
  const std::vector<uint8_t> playable = playable_edges(root);
  const std::span<const uint16_t> moves = actions(root);
  const auto visits_at = [&](size_t edge) { return root.is_open ? visits(root)[edge] : 0; };
  int32_t most = 0;
  for (size_t edge = 0; edge < moves.size(); ++edge) {
    if (playable[edge] != 0) most = std::max(most, visits_at(edge));
  }
  size_t best = moves.size();
  double highest = -std::numeric_limits<double>::infinity();
  for (size_t edge = 0; edge < moves.size(); ++edge) {
    const int32_t count = visits_at(edge);
    if (playable[edge] == 0 || count < std::max(1.0, kMinShareOfVisits * most)) continue;
    const Node& child = node(children(root)[edge]);
    double bound = value_sums(root)[edge] / count;
    if (child.kind != NodeKind::kOver && !child.is_proven) {
      bound -= static_cast<double>(deviations) * deviation(child, root.to_play) / std::sqrt(static_cast<double>(count));
    }
    if (bound > highest) {
      best = edge;
      highest = bound;
    }
  }
  for (size_t edge = 0; edge < moves.size() && most == 0; ++edge) {
    if (playable[edge] == 0) continue;
    if (best == moves.size() || priors(root)[edge] > priors(root)[best]) best = edge;
  }
  return moves[best];
}

}  // namespace windrow
