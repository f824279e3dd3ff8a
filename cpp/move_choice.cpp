#include "move_choice.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "random.h"
#include "roots.h"

namespace windrow {

int32_t draw_action(std::span<const float> policy, double temperature, double draw) {
  const float highest = *std::max_element(policy.begin(), policy.end());
  if (temperature == 0.0) {
    return static_cast<int32_t>(std::find(policy.begin(), policy.end(), highest) - policy.begin());
  }
  // Scaled first, so that a small temperature cannot overflow.
  std::vector<double> cumulative;
  cumulative.reserve(policy.size());
  double total = 0.0;
  for (const float share : policy) {
    const double weight = static_cast<double>(share) / static_cast<double>(highest);
    total += temperature == 1.0 ? weight : std::pow(weight, 1.0 / temperature);
    cumulative.push_back(total);
  }
  // Below the actual sum, so that rounding can neither run past the end nor hit an impossible action.
  const auto above = std::upper_bound(cumulative.begin(), cumulative.end(), draw * total);
  return static_cast<int32_t>(above - cumulative.begin());
}

MoveChoices choose_moves(const Forest& forest, std::span<const int32_t> trees, std::span<const double> temperatures,
                         std::span<const uint32_t> keys, std::span<const uint32_t> counts) {
  const ForestOptions& options = forest.options();
  const size_t count = trees.size(), width = static_cast<size_t>(forest.game().num_actions);
  MoveChoices chosen{.policies = std::vector<float>(count * width),
                     .values = std::vector<float>(count),
                     .proven = std::vector<uint8_t>(count),
                     .actions = std::vector<int32_t>(count)};
  for (size_t row = 0; row < count; ++row) {
    const Tree& tree = planted_tree(forest, trees[row]);
    const Node& root = tree.node(tree.root());
    if (root.kind != NodeKind::kExpanded) throw std::logic_error("a search that has ended is needed");
    chosen.proven[row] = root.is_proven ? 1 : 0;
    chosen.values[row] =
        root.is_proven ? root.value : static_cast<float>(root.value_sum) / static_cast<float>(root.visits);
    const std::span<const uint16_t> actions = tree.actions(root);
    const std::span<float> policy(chosen.policies.data() + row * width, width);
    if (options.gumbel.max_considered > 0) {
      const std::vector<float> improved = tree.gumbel_policy();
      for (size_t edge = 0; edge < actions.size(); ++edge) policy[actions[edge]] = improved[edge];
      chosen.actions[row] = tree.gumbel_action();
      continue;
    }
    const std::vector<uint8_t> playable = tree.playable_edges(root);
    int32_t num_visits = 0;
    for (size_t edge = 0; edge < actions.size() && root.is_open; ++edge) {
      if (playable[edge] != 0) num_visits += tree.visits(root)[edge];
    }
    for (size_t edge = 0; edge < actions.size(); ++edge) {
      if (playable[edge] == 0) continue;
      policy[actions[edge]] = num_visits > 0
                                  ? static_cast<float>(static_cast<double>(tree.visits(root)[edge]) / num_visits)
                                  : tree.priors(root)[edge];
    }
    const RandomKey key{options.seed, keys[row], counts[row]};
    const double draw = Stream(key, Purpose::kMove, 0).next_uniform();
    const bool is_drawn = temperatures[row] > 0.0 || options.lcb_deviations == 0.0f;
    chosen.actions[row] =
        is_drawn ? draw_action(policy, temperatures[row], draw) : tree.surest_action(options.lcb_deviations);
  }
  return chosen;
}

}  // namespace windrow
