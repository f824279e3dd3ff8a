// growth.h: the loop of select, evaluate and complete with an evaluator of the core.
#pragma once

#include <chrono>
#include <cstdint>

#include "evaluator.h"
#include "forest.h"

namespace windrow {

// How far a call of `grow` came, and what its evaluations took.
struct GrowthReport {
  bool is_finished = false;  // no tree has anything left to do
  int64_t num_calls = 0;     // of the evaluator
  int64_t num_rows = 0;
  int64_t num_places = 0;  // rows that the batches had room for
  double seconds = 0.0;    // in the evaluator
};

// Grows the trees in [first, last) to the end of their budgets, in batches of about `max_leaves` rows of which the
// evaluator is given `max_batch` at a time. Comes back earlier, between two batches, when `patience` is over or a tree
// has finished: the trees are then as after any other batch, and nothing is out. So it is after an exception.
GrowthReport grow(Forest& forest, CoreEvaluator& evaluator, int32_t first, int32_t last, int32_t max_leaves,
                  int32_t max_batch, std::chrono::nanoseconds patience);

}  // namespace windrow
