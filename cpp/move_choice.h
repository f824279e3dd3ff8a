// move_choice.h: the policy that self-play learns and the action that it plays after a search.
//
// A PUCT root teaches its visits, and its action is drawn from them, without moves that a proven one beats; a Gumbel
// root teaches its improved policy and plays its own choice.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "forest.h"

namespace windrow {

// The action that `draw`, a number in (0, 1), picks from `policy` to the power of 1/temperature. Temperature 0 picks
// the first of the best. Some entry of `policy` is above 0; an action whose entry is 0 is never picked.
int32_t draw_action(std::span<const float> policy, double temperature, double draw);

struct MoveChoices {
  std::vector<float> policies;   // [trees, A], to learn
  std::vector<float> values;     // [trees], means for the player to move; of a proven root its value
  std::vector<uint8_t> proven;   // [trees], whether the root is proven
  std::vector<int32_t> actions;  // [trees], to play
};

// For trees whose searches have ended, else std::logic_error. All arguments are [trees]; `keys` and `counts` are with
// the forest's seed the keys of the draws. A PUCT root that has no visits gives its priors instead.
MoveChoices choose_moves(const Forest& forest, std::span<const int32_t> trees, std::span<const double> temperatures,
                         std::span<const uint32_t> keys, std::span<const uint32_t> counts);

}  // namespace windrow
