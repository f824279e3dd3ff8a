// connect4_solver.h: perfect play in Connect-4, on every board of games/connect4.h where four in line win.
//
// The score of a position is for the player to move and says who wins with best play, and how soon:
//
//   0          nobody
//   s > 0      the player to move, who then has s - 1 stones left
//   s < 0      the opponent, who then has -s - 1 stones left
//
// The winner takes the shortest way, the loser the longest. A win by the stone number n of the game has score
// (cells + 2 - n) / 2, rounded down. The *result* of a position is the sign of its score, and takes less work to find.
//
// The search is alpha-beta with windows of one point only: every question is "is the score above alpha?", and the
// answer is a bound that goes into a table of fixed size. What keeps the tree small is what connect4_board.h sees
// without playing on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "../games/connect4.h"

namespace windrow {

struct MoveRating {
  int32_t action;
  int32_t score;  // for the player who makes the move
};

struct SolverLimits {
  int64_t max_nodes = INT64_MAX;
  // Called every few milliseconds; may throw, which ends the search and leaves the solver fit for use.
  std::function<void()> check;
};

// max_nodes were not enough.
class SolverLimitError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// May be used from several threads; one question is answered at a time. What was learned is kept for the next one, but
// never changes an answer.
class Connect4Solver {
 public:
  enum class Question { kResult, kScore };

  // Throws std::invalid_argument if `connect` is not 4 or max_bytes too small.
  Connect4Solver(int32_t rows, int32_t columns, int32_t connect, size_t max_bytes);
  ~Connect4Solver();

  // Every legal move of an unfinished position, in ascending order, and the score, or the result, that it leads to.
  std::vector<MoveRating> rate_moves(const Connect4Rules::State& state, Question question, const SolverLimits& limits);
  // The score, or the result, of an unfinished position: less work than rating all moves.
  int32_t solve(const Connect4Rules::State& state, Question question, const SolverLimits& limits);

  int64_t num_nodes() const;  // positions visited so far, by all questions

  class Search;  // one per width of column

 private:
  std::unique_ptr<Search> search_;
  mutable std::mutex mutex_;
};

}  // namespace windrow
