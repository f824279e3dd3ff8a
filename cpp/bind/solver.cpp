// solver.cpp: windrow._core.Connect4Solver. Converts and checks; the work is in cpp/solver/.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../solver/connect4_solver.h"
#include "bind.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace windrow;

namespace {

using Clock = std::chrono::steady_clock;

void construct(Connect4Solver* self, const NativeGame& game, size_t max_bytes) {
  if (game.game->name() != Connect4Rules::kName) {
    throw std::invalid_argument("the solver plays connect4, not " + game.game->name());
  }
  int32_t rows = 0, columns = 0, connect = 0;
  for (const auto& [name, value] : game.game->options()) {
    const int32_t number = static_cast<int32_t>(std::get<int64_t>(value));
    if (name == "rows") rows = number;
    if (name == "columns") columns = number;
    if (name == "connect") connect = number;
  }
  new (self) Connect4Solver(rows, columns, connect, max_bytes);
}

Connect4Rules::State to_state(const nb::bytes& data) {
  Connect4Rules::State state;
  if (data.size() != sizeof(state)) {
    throw std::invalid_argument("a state of connect4 has " + std::to_string(sizeof(state)) + " bytes, not " +
                                std::to_string(data.size()));
  }
  std::memcpy(&state, data.data(), sizeof(state));
  return state;
}

Connect4Solver::Question to_question(bool is_score) {
  return is_score ? Connect4Solver::Question::kScore : Connect4Solver::Question::kResult;
}

// Limits that also let Ctrl-C through: now and then Python is asked whether it has a signal to handle.
SolverLimits make_limits(std::optional<int64_t> max_nodes, std::optional<double> timeout_s) {
  static constexpr std::chrono::milliseconds kSignalInterval{50};
  SolverLimits limits;
  if (max_nodes) limits.max_nodes = *max_nodes;
  const Clock::time_point start = Clock::now();
  limits.check = [start, timeout_s, next_look = start + kSignalInterval]() mutable {
    const Clock::time_point now = Clock::now();
    if (timeout_s && std::chrono::duration<double>(now - start).count() > *timeout_s) {
      throw SolverLimitError("the position is not solved after " + std::to_string(*timeout_s) + " s");
    }
    if (now < next_look) return;
    next_look = now + kSignalInterval;
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
  return limits;
}

}  // namespace

void bind_solver(nb::module_& m) {
  nb::class_<Connect4Solver>(m, "Connect4Solver", "Perfect play in Connect-4. See cpp/solver/connect4_solver.h.")
      .def("__init__", &construct, "game"_a, "max_bytes"_a)
      .def(
          "rate_moves",
          [](Connect4Solver& self, const nb::bytes& state, bool is_score, std::optional<int64_t> max_nodes,
             std::optional<double> timeout_s) {
            const Connect4Rules::State position = to_state(state);
            const SolverLimits limits = make_limits(max_nodes, timeout_s);
            const nb::gil_scoped_release no_gil;
            std::vector<std::pair<int32_t, int32_t>> ratings;
            for (const MoveRating& rating : self.rate_moves(position, to_question(is_score), limits)) {
              ratings.emplace_back(rating.action, rating.score);
            }
            return ratings;
          },
          "state"_a, nb::kw_only(), "is_score"_a, "max_nodes"_a = nb::none(), "timeout_s"_a = nb::none(),
          "Every legal action with its score, or with the sign of it; RuntimeError beyond a limit.")
      .def(
          "solve",
          [](Connect4Solver& self, const nb::bytes& state, bool is_score, std::optional<int64_t> max_nodes,
             std::optional<double> timeout_s) {
            const Connect4Rules::State position = to_state(state);
            const SolverLimits limits = make_limits(max_nodes, timeout_s);
            const nb::gil_scoped_release no_gil;
            return self.solve(position, to_question(is_score), limits);
          },
          "state"_a, nb::kw_only(), "is_score"_a, "max_nodes"_a = nb::none(), "timeout_s"_a = nb::none(),
          "The score for the player to move, or the sign of it; RuntimeError beyond a limit.")
      .def_prop_ro("num_nodes", &Connect4Solver::num_nodes, nb::call_guard<nb::gil_scoped_release>(),
                   "Positions visited so far.");
}
