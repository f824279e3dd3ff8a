// plain_options.h: options of a forest for tests to begin with; the core itself has no defaults.
#pragma once

#include <cstddef>

#include "forest.h"

namespace windrow {

inline constexpr Rules kPlainRules{.c_puct = 1.5f,
                                   .in_flight = InFlight::kVisits,
                                   .virtual_loss = 1.0f,
                                   .first_play = FirstPlay::kValue,
                                   .first_play_value = 0.0f};

inline ForestOptions plain_options() {
  return {.rules = kPlainRules,
          .proves = false,
          .share_collisions = true,
          .leaves_per_tree = 1,
          .max_depth = 0,
          .dirichlet_alpha = 1.0,
          .dirichlet_fraction = 0.0f,
          .gumbel = {.max_considered = 0, .scale = 0.0f, .visit_offset = 50.0f, .value_scale = 1.0f},
          .seed = 0,
          .num_threads = 1,
          .spin_us = 50,
          .max_memory = size_t{1} << 30};
}

}  // namespace windrow
