// test_connect4_solver.cpp: the solver against a search that tries everything, on boards of all shapes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"
#include "dice.h"
#include "games/connect4.h"
#include "solver/bound_table.h"
#include "solver/connect4_solver.h"

using namespace windrow;

namespace {

using Question = Connect4Solver::Question;
using State = Connect4Rules::State;

struct Board {
  int32_t rows;
  int32_t columns;
  int32_t num_stones;  // of the positions to try; the plain search takes too long with fewer
};

Connect4Rules rules_of(const Board& board) {
  return Connect4Rules({{"rows", int64_t{board.rows}}, {"columns", int64_t{board.columns}}, {"connect", int64_t{4}}});
}

std::vector<int32_t> legal_actions(const Connect4Rules& rules, const State& state) {
  std::vector<int32_t> actions(static_cast<size_t>(rules.num_actions()));
  actions.resize(static_cast<size_t>(rules.legal_actions(state, actions.data())));
  return actions;
}

State random_state(const Connect4Rules& rules, Dice& dice, int32_t num_stones) {
  for (;;) {
    State state = rules.initial_state();
    for (int32_t i = 0; i < num_stones && state.to_play != kTerminal; ++i) {
      const std::vector<int32_t> legal = legal_actions(rules, state);
      rules.apply(state, dice.one_of(std::span<const int32_t>(legal)));
    }
    if (state.to_play != kTerminal) return state;
  }
}

// Every move is tried, and how a game ends is what the rules say.
class PlainSearch {
 public:
  explicit PlainSearch(const Board& board) : rules_(rules_of(board)), num_cells_(board.rows * board.columns) {}

  // The score of a move for the player who makes it.
  int32_t rate(State state, int32_t action) {
    const int32_t mover = state.to_play;
    rules_.apply(state, action);
    if (state.to_play != kTerminal) return -score(state);
    if (state.winner == kNobody) return 0;
    check(state.winner == mover, "somebody else has won");
    return (num_cells_ + 2 - count_bits(state.occupied)) / 2;
  }

 private:
  int32_t score(const State& state) {
    const auto [entry, is_new] = known_.try_emplace({state.mine, state.occupied}, 0);
    if (!is_new) return entry->second;
    int32_t best = -num_cells_;
    for (const int32_t action : legal_actions(rules_, state)) best = std::max(best, rate(state, action));
    return known_[{state.mine, state.occupied}] = best;
  }

  Connect4Rules rules_;
  int32_t num_cells_;
  std::map<std::pair<uint64_t, uint64_t>, int32_t> known_;
};

int32_t sign_of(int32_t score) { return (score > 0) - (score < 0); }

void check_position(Connect4Solver& solver, const Connect4Rules& rules, PlainSearch& plain, const State& state) {
  scene() = rules.render(state);
  const std::vector<int32_t> legal = legal_actions(rules, state);
  const std::vector<MoveRating> scores = solver.rate_moves(state, Question::kScore, {});
  const std::vector<MoveRating> results = solver.rate_moves(state, Question::kResult, {});
  check(scores.size() == legal.size() && results.size() == legal.size(), "not every legal move is rated");
  int32_t best = -1000;
  for (size_t i = 0; i < legal.size(); ++i) {
    const int32_t want = plain.rate(state, legal[i]);
    best = std::max(best, want);
    check(scores[i].action == legal[i] && results[i].action == legal[i], "moves are not in order");
    check(scores[i].score == want, "move " + std::to_string(legal[i]) + " is worth " + std::to_string(want) + ", not " +
                                       std::to_string(scores[i].score));
    check(results[i].score == sign_of(want), "the result is not the sign of the score");
  }
  check(solver.solve(state, Question::kScore, {}) == best, "the position is not worth its best move");
  check(solver.solve(state, Question::kResult, {}) == sign_of(best), "the result of the position is wrong");
}

void test_all_shapes() {
  // Narrow ones, low ones, odd and even numbers of rows, up to all 64 bits.
  constexpr Board kBoards[] = {{4, 4, 0},  {5, 4, 6},  {4, 5, 6},   {5, 5, 13},  {4, 6, 10},  {6, 4, 10},
                               {6, 5, 18}, {5, 6, 18}, {3, 6, 4},   {3, 7, 9},   {2, 7, 0},   {2, 9, 6},
                               {7, 3, 9},  {9, 2, 3},  {31, 2, 50}, {6, 7, 29},  {7, 7, 37},  {7, 8, 45},
                               {6, 9, 43}, {8, 7, 45}, {2, 21, 32}, {15, 4, 50}, {3, 16, 38}, {9, 6, 44}};
  Dice dice(1);
  for (const Board& board : kBoards) {
    const Connect4Rules rules = rules_of(board);
    Connect4Solver solver(board.rows, board.columns, 4, size_t{1} << 24);
    PlainSearch plain(board);
    for (int32_t i = 0; i < 12; ++i) {
      check_position(solver, rules, plain, random_state(rules, dice, board.num_stones + i % 3));
    }
  }
}

// Late positions of the usual board, many of them, with a table so small that entries go all the time.
void test_late_positions() {
  const Board board = {6, 7, 0};
  const Connect4Rules rules = rules_of(board);
  Connect4Solver large(6, 7, 4, size_t{1} << 22), small(6, 7, 4, 512);
  Dice dice(2);
  for (int32_t i = 0; i < 300; ++i) {
    PlainSearch plain(board);
    const State state = random_state(rules, dice, 31 + i % 11);
    check_position(large, rules, plain, state);
    check_position(small, rules, plain, state);
  }
}

void test_limits() {
  scene() = "limits";
  const Connect4Rules rules = rules_of({6, 7, 0});
  Connect4Solver solver(6, 7, 4, size_t{1} << 20);
  const State empty = rules.initial_state();
  check_throws<SolverLimitError>([&] { solver.solve(empty, Question::kScore, {.max_nodes = 1000, .check = {}}); },
                                 "a thousand nodes were enough for the empty board");
  check(solver.num_nodes() <= 1001, "more nodes than allowed");
  int32_t num_checks = 0;
  const SolverLimits impatient = {.check = [&] {
    if (++num_checks == 3) throw std::runtime_error("enough");
  }};
  check_throws<std::runtime_error>([&] { solver.rate_moves(empty, Question::kResult, impatient); },
                                   "no check stops it");
  check(num_checks == 3, "it went on after it was stopped");
  Dice dice(3);
  PlainSearch plain({6, 7, 0});
  check_position(solver, rules, plain, random_state(rules, dice, 32));
}

void test_refusals() {
  scene() = "refusals";
  check_throws<std::invalid_argument>([] { Connect4Solver(6, 7, 5, 1 << 20); }, "five in line");
  check_throws<std::invalid_argument>([] { Connect4Solver(6, 7, 4, 0); }, "no memory");
  check_throws<std::invalid_argument>([] { Connect4Solver(7, 8, 4, 1 << 23); }, "too little memory for the tags");
  Connect4Solver solver(6, 7, 4, 1 << 20);
  const auto refuses = [&](const State& state, const char* what) {
    check_throws<std::invalid_argument>([&] { solver.rate_moves(state, Question::kScore, {}); }, what);
  };
  refuses({.mine = 0, .occupied = 2, .to_play = 1, .winner = kNobody}, "a stone in the air");
  refuses({.mine = 1, .occupied = 1, .to_play = 1, .winner = kNobody}, "one stone, and of the wrong side");
  refuses({.mine = 1, .occupied = 0, .to_play = 0, .winner = kNobody}, "a stone that is not there");
  refuses({.mine = 0, .occupied = uint64_t{1} << 63, .to_play = 1, .winner = kNobody}, "a stone beside the board");
  const Connect4Rules rules = rules_of({6, 7, 0});
  State won = rules.initial_state();
  for (const int32_t action : {0, 1, 0, 1, 0, 1, 0}) rules.apply(won, action);
  refuses(won, "a finished game");
  won.to_play = 1;
  refuses(won, "a finished game that says it is not");
}

// Whatever is in the table was put there under that key.
void test_table() {
  Dice dice(4);
  for (const int32_t key_bits : {12, 20, 49, 56, 64}) {
    scene() = "keys of " + std::to_string(key_bits) + " bits";
    BoundTable table(key_bits, key_bits > 49 ? size_t{1} << 24 : size_t{1} << 12);
    std::map<uint64_t, std::pair<int32_t, int32_t>> stored;
    int32_t num_found = 0;
    for (int32_t i = 0; i < 20'000; ++i) {
      const uint64_t key = dice.bits() >> (64 - key_bits) >> (dice.one_in(2) ? key_bits - 12 : 0);
      const int32_t upper = dice.below(63) - 31, lower = dice.below(upper + 32) - 31;
      const BoundTable::Place place = table.place(key);
      BoundTable::Bounds bounds = {-32, 32};
      BoundTable::narrow(place, bounds);
      if (bounds.lower > -32) {
        ++num_found;
        check(stored.contains(key), "another key's entry is given");
        check(stored[key] == std::pair(bounds.lower, bounds.upper), "other bounds come out than went in");
        check(BoundTable::upper_bound(place, 99) == bounds.upper, "the upper bound is another");
      }
      table.store(place, {lower, upper}, dice.bits() >> dice.below(64));
      stored[key] = {lower, upper};
      check(BoundTable::upper_bound(place, 99) == upper, "what was just stored is not there");
      if (dice.one_in(100)) table.next_generation();
    }
    check(num_found > 0, "nothing was ever found");
  }
}

void test_threads() {
  scene() = "threads";
  const Connect4Rules rules = rules_of({6, 7, 0});
  Connect4Solver solver(6, 7, 4, size_t{1} << 20);
  Dice dice(5);
  std::vector<State> states;
  for (int32_t i = 0; i < 40; ++i) states.push_back(random_state(rules, dice, 26));
  std::array<std::vector<int32_t>, 2> found;
  std::vector<std::thread> threads;
  for (std::vector<int32_t>& scores : found) {
    threads.emplace_back([&] {
      for (const State& state : states) scores.push_back(solver.solve(state, Question::kScore, {}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  check(found[0] == found[1], "two threads find different scores");
}

}  // namespace

int main() {
  test_table();
  test_all_shapes();
  test_late_positions();
  test_limits();
  test_refusals();
  test_threads();
}
