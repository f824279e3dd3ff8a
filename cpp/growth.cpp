// growth.cpp: the loop of select, evaluate and complete.
#include "growth.h"

#include <algorithm>
#include <string>

namespace windrow {

namespace {

using Clock = std::chrono::steady_clock;

void evaluate(Forest& forest, const Batch& batch, CoreEvaluator& evaluator, int32_t max_batch, GrowthReport& report) {
  if (evaluator.states() != nullptr) forest.copy_states(batch, evaluator.states());
  for (int32_t begin = 0; begin < batch.num_rows; begin += max_batch) {
    try {
      evaluator.evaluate(begin, std::min(batch.num_rows - begin, max_batch) + begin);
    } catch (const RolloutFault& fault) {
      forest.raise_fault(batch, fault.row, std::string("in a random game from here: ") + fault.what());
    }
    ++report.num_calls;
  }
  report.num_rows += batch.num_rows;
}

}  // namespace

GrowthReport grow(Forest& forest, CoreEvaluator& evaluator, int32_t first, int32_t last, int32_t max_leaves,
                  int32_t max_batch, std::chrono::nanoseconds patience) {
  GrowthReport report;
  evaluator.make_room(forest.rows_needed(max_leaves));
  const Clock::time_point end = Clock::now() + patience;
  for (;;) {
    Batch& batch = forest.select(max_leaves, first, last, /*overlap=*/false, evaluator.observations());
    Clock::time_point now = Clock::now();
    if (batch.num_rows > 0) {
      const Clock::time_point start = now;
      try {
        evaluate(forest, batch, evaluator, max_batch, report);
      } catch (...) {
        forest.cancel(batch);
        throw;
      }
      report.num_places += std::max(max_leaves, batch.num_rows);
      now = Clock::now();
      report.seconds += std::chrono::duration<double>(now - start).count();
      forest.complete(batch, evaluator.logits(), evaluator.values());
    } else if (!forest.has_work(first, last)) {
      report.is_finished = true;
      return report;
    }
    if (forest.take_news()) {
      report.is_finished = !forest.has_work(first, last);
      return report;
    }
    if (now >= end) return report;
  }
}

}  // namespace windrow
