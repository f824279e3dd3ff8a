// plain_options.h: options of a forest for tests to begin with; the core itself has no defaults.
#pragma once

#include <cstddef>

#include "forest.h"

namespace windrow {

inline constexpr Rules kPlainRules{.c_puct = 1.5f,
                                   .c_puct_growth = 0.0f,
                                   .c_puct_base = 500.0f,
                                   .value_scale = ValueScale::kFixed,
                                   .in_flight = InFlight::kVisits,
                                   .virtual_loss = 1.0f,
                                   .first_play = {.is_parent = false, .value = 0.0f},
                                   .root_first_play = {.is_parent = false, .value = 0.0f}};

inline ForestOptions plain_options() {
  return {.rules = kPlainRules,
          .proves = false,
          .share_collisions = true,
          .leaves_per_tree = 1,
          .max_depth = 0,
          .dirichlet_alpha = 1.0,
          .dirichlet_fraction = 0.0f,
          .root_policy_temperature = 1.0f,
          .gumbel = {.max_considered = 0, .scale = 0.0f, .visit_offset = 50.0f, .value_scale = 1.0f},
          .improves_interior = false,
          .lcb_deviations = 0.0f,
          .seed = 0,
          .num_threads = 1,
          .spin_us = 50,
          .max_memory = size_t{1} << 30};
}

}  // namespace windrow
