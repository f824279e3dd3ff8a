#include "connect4_solver.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>
#include <string>
#include <utility>

#include "bound_table.h"
#include "connect4_board.h"

namespace windrow {

class Connect4Solver::Search {
 public:
  virtual ~Search() = default;
  virtual std::vector<MoveRating> rate_moves(const Connect4Rules::State& state, Question question,
                                             const SolverLimits& limits) = 0;
  virtual int32_t solve(const Connect4Rules::State& state, Question question, const SolverLimits& limits) = 0;
  virtual int64_t num_nodes() const = 0;
};

namespace {

int32_t sign_of(int32_t score) { return (score > 0) - (score < 0); }

template <int32_t kStride>
class NullWindowSearch final : public Connect4Solver::Search {
  using Question = Connect4Solver::Question;

 public:
  NullWindowSearch(int32_t rows, int32_t columns, size_t max_bytes)
      : board_(rows, columns), num_cells_(rows * columns), table_((rows + 1) * columns, max_bytes) {
    // The middle first: most lines go through it.
    std::iota(column_order_, column_order_ + columns, 0);
    std::sort(column_order_, column_order_ + columns, [columns](int32_t a, int32_t b) {
      return std::pair(std::abs(2 * a - (columns - 1)), a) < std::pair(std::abs(2 * b - (columns - 1)), b);
    });
  }

  std::vector<MoveRating> rate_moves(const Connect4Rules::State& state, Question question,
                                     const SolverLimits& limits) override {
    const Node root = begin(state, limits);
    std::vector<MoveRating> ratings;
    for (int32_t column = 0; column < board_.columns(); ++column) {
      const uint64_t cell = board_.playable(root.occupied) & board_.column_cells(column);
      if (cell == 0) continue;
      const bool is_win = (board_.line_ends(root.mine) & cell) != 0;
      const int32_t score = is_win ? score_of_win(root.ply) : -score_of(after(root, cell, column), question);
      ratings.push_back({column, question == Question::kResult ? sign_of(score) : score});
    }
    return ratings;
  }

  int32_t solve(const Connect4Rules::State& state, Question question, const SolverLimits& limits) override {
    const int32_t score = score_of(begin(state, limits), question);
    return question == Question::kResult ? sign_of(score) : score;
  }

  int64_t num_nodes() const override { return static_cast<int64_t>(num_nodes_); }

 private:
  static constexpr int32_t kMaxColumns = 21;
  static constexpr uint64_t kNodesPerCheck = 1 << 14;

  struct Node {
    uint64_t mine;         // stones of the player to move
    uint64_t occupied;     // stones of both
    uint64_t odd_columns;  // all cells of the columns with an odd number of stones
    int32_t ply;           // how many stones there are
    BoundTable::Place place;
  };

  // A move that is being considered, and the position after it.
  struct Move {
    Node next;
    uint64_t my_ends;  // empty cells that then complete a line of mine
    int32_t worth;
  };

  // The score of winning with the stone after `ply` others.
  int32_t score_of_win(int32_t ply) const { return (num_cells_ + 1 - ply) / 2; }

  Node begin(const Connect4Rules::State& state, const SolverLimits& limits) {
    const uint64_t theirs = state.mine ^ state.occupied;
    const int32_t ply = std::popcount(state.occupied);
    const bool is_on_board = (state.occupied & ~board_.full()) == 0 && (state.mine & ~state.occupied) == 0;
    uint64_t odd_columns = 0;
    bool is_stacked = is_on_board && std::popcount(state.mine) == ply / 2;
    for (int32_t column = 0; column < board_.columns(); ++column) {
      const uint64_t cells = board_.column_cells(column), stones = state.occupied & cells;
      if (std::popcount(stones) % 2 != 0) odd_columns |= cells;
      is_stacked &= std::has_single_bit(stones + (cells & -cells));
    }
    if (!is_stacked) throw std::invalid_argument("these bytes are not a position of this board");
    if (state.to_play == kTerminal || ply == num_cells_ || board_.has_line(theirs) || board_.has_line(state.mine)) {
      throw std::invalid_argument("the game is over: there are no moves to rate");
    }
    limits_ = &limits;
    last_node_ = num_nodes_ + static_cast<uint64_t>(limits.max_nodes);
    next_check_ = 0;
    table_.next_generation();
    return {state.mine, state.occupied, odd_columns, ply, place_of(state.mine, state.occupied, ply)};
  }

  BoundTable::Place place_of(uint64_t mine, uint64_t occupied, int32_t ply) const {
    uint64_t key = board_.key(mine, occupied);
    // Later on hardly any position is met in both its forms, and making the other takes longer than it saves.
    if (ply <= num_cells_ / 3) key = std::min(key, board_.mirrored(key));
    return table_.place(key);
  }

  Node after(const Node& node, uint64_t cell, int32_t column) const {
    const uint64_t theirs = node.mine ^ node.occupied, occupied = node.occupied | cell;
    return {theirs, occupied, node.odd_columns ^ board_.column_cells(column), node.ply + 1,
            place_of(theirs, occupied, node.ply + 1)};
  }

  // The score of any unfinished position, or any number of the same sign.
  int32_t score_of(const Node& node, Question question) {
    if ((board_.line_ends(node.mine) & board_.playable(node.occupied)) != 0) return score_of_win(node.ply);
    if (node.ply == num_cells_) return 0;
    int32_t lower = -score_of_win(node.ply + 1), upper = score_of_win(node.ply + 2);
    while (lower < upper) {
      if (question == Question::kResult && (lower > 0 || upper < 0)) break;
      // Half way, but nearer to 0, where most scores are.
      int32_t alpha = lower + (upper - lower) / 2;
      if (alpha <= 0 && lower / 2 < alpha) alpha = lower / 2;
      if (alpha >= 0 && upper / 2 > alpha) alpha = upper / 2;
      if (question == Question::kResult) alpha = upper > 0 ? 0 : -1;
      const int32_t bound = search(node, alpha);
      (bound > alpha ? lower : upper) = bound;
    }
    return lower;
  }

  // A bound of the score of a position whose player to move cannot win at once: a lower one if it is greater than
  // alpha, otherwise an upper one.
  int32_t search(const Node& node, int32_t alpha) {
    if (++num_nodes_ >= next_check_) check_limits();
    const uint64_t mine = node.mine, theirs = node.mine ^ node.occupied, empty = board_.full() ^ node.occupied;
    const int32_t ply = node.ply;

    // Moves after which the opponent does not win at once.
    const uint64_t their_ends = board_.line_ends(theirs) & empty;
    uint64_t cells = board_.playable(node.occupied);
    if (const uint64_t forced = cells & their_ends; forced != 0) {
      if ((forced & (forced - 1)) != 0) return -score_of_win(ply + 1);
      cells = forced;
    }
    cells &= ~(their_ends >> 1);
    if (cells == 0) return -score_of_win(ply + 1);
    if (ply >= num_cells_ - 2) return 0;

    BoundTable::Bounds bounds = {-score_of_win(ply + 3), score_of_win(ply + 2)};
    if (alpha >= 0 && !board_.has_line(mine | empty)) bounds.upper = 0;
    if (alpha < 0 && !board_.has_line(theirs | empty)) bounds.lower = 0;
    if (bounds.lower > alpha) return bounds.lower;
    if (bounds.upper <= alpha) return bounds.upper;
    BoundTable::narrow(node.place, bounds);
    if (bounds.lower > alpha) return bounds.lower;
    if (bounds.upper <= alpha) return bounds.upper;

    Move moves[kMaxColumns];
    int32_t order[kMaxColumns];  // of the moves, best first
    int32_t num_moves = 0;
    const uint64_t good_rows = ply % 2 == 0 ? board_.even_rows() : ~board_.even_rows();
    for (int32_t i = 0; i < board_.columns(); ++i) {
      const int32_t column = column_order_[i];
      const uint64_t cell = cells & board_.column_cells(column);
      if (cell == 0) continue;
      const uint64_t my_ends = board_.line_ends(mine | cell) & (empty ^ cell);
      // Two cells that win next: the opponent cannot take both. One, and one above it: neither.
      if (const uint64_t next = my_ends & board_.playable(node.occupied | cell); next != 0) {
        if ((next & (next - 1)) != 0) return score_of_win(ply + 2);
        if ((next << 1 & my_ends) != 0 && score_of_win(ply + 4) > alpha) return score_of_win(ply + 4);
      }
      // The more cells complete a line the better, above all those whose turn comes when the columns are filled up.
      const int32_t worth = 2 * std::popcount(my_ends) + std::popcount(my_ends & good_rows);
      moves[num_moves] = {after(node, cell, column), my_ends, worth};
      int32_t j = num_moves++;
      for (; j > 0 && moves[order[j - 1]].worth < worth; --j) order[j] = order[j - 1];
      order[j] = num_moves - 1;
    }

    // Moves that answer the question without playing on.
    if (alpha <= 0) {
      for (int32_t i = 0; i < num_moves; ++i) {
        const Node& next = moves[order[i]].next;
        const int32_t bound =
            board_.follow_up_bound(next.mine, next.occupied, next.odd_columns, moves[order[i]].my_ends);
        if (bound < 1 && -bound > alpha) return -bound;
      }
    }
    // The same from memory, which pays only where much depends on it.
    if (ply < num_cells_ * 2 / 3) {
      for (int32_t i = 0; i < num_moves; ++i) {
        const int32_t bound = BoundTable::upper_bound(moves[order[i]].next.place, num_cells_);
        if (-bound > alpha) return -bound;
      }
    }

    const uint64_t first_node = num_nodes_;
    int32_t best = -num_cells_;
    for (int32_t i = 0; i < num_moves && best <= alpha; ++i) {
      best = std::max(best, -search(moves[order[i]].next, -alpha - 1));
    }
    (best > alpha ? bounds.lower : bounds.upper) = best;
    table_.store(node.place, bounds, num_nodes_ - first_node);
    return best;
  }

  void check_limits() {
    if (num_nodes_ > last_node_) {
      throw SolverLimitError("the position is not solved after " + std::to_string(limits_->max_nodes) + " nodes");
    }
    if (limits_->check && next_check_ != 0) limits_->check();
    next_check_ = std::min(num_nodes_ + kNodesPerCheck, last_node_ + 1);
  }

  const Connect4Board<kStride> board_;
  const int32_t num_cells_;
  int32_t column_order_[kMaxColumns] = {};
  BoundTable table_;
  uint64_t num_nodes_ = 0;

  // Of the question that is being answered.
  const SolverLimits* limits_ = nullptr;
  uint64_t last_node_ = 0;
  uint64_t next_check_ = 0;
};

std::unique_ptr<Connect4Solver::Search> make_search(int32_t rows, int32_t columns, int32_t connect, size_t max_bytes) {
  if (connect != 4) {
    throw std::invalid_argument("the solver plays with connect=4 only, not with connect=" + std::to_string(connect));
  }
  if (rows == 6) return std::make_unique<NullWindowSearch<7>>(rows, columns, max_bytes);
  return std::make_unique<NullWindowSearch<0>>(rows, columns, max_bytes);
}

}  // namespace

Connect4Solver::Connect4Solver(int32_t rows, int32_t columns, int32_t connect, size_t max_bytes)
    : search_(make_search(rows, columns, connect, max_bytes)) {}

Connect4Solver::~Connect4Solver() = default;

std::vector<MoveRating> Connect4Solver::rate_moves(const Connect4Rules::State& state, Question question,
                                                   const SolverLimits& limits) {
  const std::lock_guard lock(mutex_);
  return search_->rate_moves(state, question, limits);
}

int32_t Connect4Solver::solve(const Connect4Rules::State& state, Question question, const SolverLimits& limits) {
  const std::lock_guard lock(mutex_);
  return search_->solve(state, question, limits);
}

int64_t Connect4Solver::num_nodes() const {
  const std::lock_guard lock(mutex_);
  return search_->num_nodes();
}

}  // namespace windrow
