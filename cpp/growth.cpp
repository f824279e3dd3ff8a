// growth.cpp: the loop of select, evaluate and complete with an evaluator of the core.
#include <algorithm>
#include <string>
#include <utility>

#include "evaluator.h"
#include "forest.h"

namespace windrow {

GrowthReport Forest::grow(CoreEvaluator& evaluator, int32_t max_leaves, int32_t first, int32_t last, int32_t max_batch,
                          std::chrono::nanoseconds patience) {
  GrowthReport report;
  evaluator.make_room(rows_needed(max_leaves));
  last_time_ = Clock::now();
  const Clock::time_point end = last_time_ + patience;
  // Timers follow one another until this returns or throws.
  struct Laps {
    bool& is_on;
    explicit Laps(bool& flag) : is_on(flag) { is_on = true; }
    ~Laps() { is_on = false; }
  } const laps(has_laps_);
  for (;;) {
    Batch& batch = select(max_leaves, first, last, /*overlap=*/false, evaluator.observations());
    if (batch.num_rows > 0) {
      report.num_places += std::max(max_leaves, batch.num_rows);
      try {
        evaluate(batch, evaluator, max_batch, report);
      } catch (...) {
        cancel(batch);
        throw;
      }
      complete(batch, evaluator.logits(), evaluator.values());
    }
    const bool has_news = std::exchange(has_news_, false);
    if (batch.num_rows == 0 || has_news) report.is_finished = !has_work(first, last);
    if (report.is_finished || has_news || last_time_ >= end) return report;
  }
}

void Forest::evaluate(const Batch& batch, CoreEvaluator& evaluator, int32_t max_batch, GrowthReport& report) {
  const Timer timer(*this, report.seconds);
  if (evaluator.states() != nullptr) copy_states(batch, evaluator.states());
  for (int32_t row = 0; row < batch.num_rows; row += std::min(max_batch, batch.num_rows - row)) {
    try {
      evaluator.evaluate(row, row + std::min(max_batch, batch.num_rows - row));
    } catch (const RolloutFault& fault) {
      raise_fault(batch, fault.row, std::string("in a random game from here: ") + fault.what());
    }
    ++report.num_calls;
  }
  report.num_rows += batch.num_rows;
}

// Throws a GameFault at the leaf of a row.
void Forest::raise_fault(const Batch& batch, int32_t row, const std::string& what) const {
  for (int32_t i = 0; i < batch.num_rounds; ++i) {
    const Round& round = batch.rounds[static_cast<size_t>(i)];
    const Tree& tree = trees_[static_cast<size_t>(round.tree)];
    for (const Leaf& leaf : round.leaves) {
      if (leaf.row == row) throw GameFault(what, tree.index(), tree.moves_to(leaf.node));
    }
  }
  throw std::out_of_range("the batch has no such row");
}

}  // namespace windrow
