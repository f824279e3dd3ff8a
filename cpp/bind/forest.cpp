// forest.cpp: windrow._core.Forest. Converts and checks; the work is in cpp/forest.h.
#include "../forest.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "../evaluator.h"
#include "../rollout.h"
#include "arrays.h"
#include "bind.h"
#include "bound_forest.h"

namespace nb = nanobind;
using namespace nb::literals;

using namespace windrow;

namespace {

using Floats = nb::ndarray<float, nb::c_contig, nb::device::cpu>;
using ConstLogits = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
// [rows], or [rows, num_values].
using ConstValues = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using ConstNumbers = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstStates = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A batch that is out, as Python holds it.
struct BatchHandle {
  int32_t slot;
  int64_t serial;
  int32_t num_rows;
};

// An evaluator of the core, as Python holds it.
struct BoundEvaluator {
  std::shared_ptr<NamedGame> game;
  std::unique_ptr<CoreEvaluator> evaluator;
};

template <class Evaluator, class... Arguments>
std::unique_ptr<BoundEvaluator> make_evaluator(const NativeGame& game, Arguments... arguments) {
  return std::make_unique<BoundEvaluator>(
      BoundEvaluator{game.game, std::make_unique<Evaluator>(game.game->table(), arguments...)});
}

// The cache behind a Python object, kept alive by it; null for None.
std::shared_ptr<PredictionCache> shared_cache(const nb::object& cache) {
  if (cache.is_none()) return nullptr;
  PyObject* owner = cache.inc_ref().ptr();
  return {nb::cast<PredictionCache*>(cache), [owner](PredictionCache*) {
            const nb::gil_scoped_acquire gil;
            Py_DECREF(owner);
          }};
}

Batch& batch_of(BoundForest& bound, const BatchHandle& handle) {
  Batch& batch = bound.forest.batch(handle.slot);
  if (!batch.is_out || batch.serial != handle.serial) {
    throw std::logic_error("this batch is not out: it was completed or cancelled before");
  }
  return batch;
}

InFlight in_flight_of(const std::string& name) {
  if (name == "visits") return InFlight::kVisits;
  if (name == "loss") return InFlight::kLoss;
  if (name == "dilute") return InFlight::kDilute;
  throw std::invalid_argument("in_flight must be visits, loss or dilute");
}

ValueScale value_scale_of(const std::string& name) {
  if (name == "fixed") return ValueScale::kFixed;
  if (name == "tree") return ValueScale::kTree;
  if (name == "node") return ValueScale::kNode;
  throw std::invalid_argument("value_scale must be fixed, tree or node");
}

// A constant, or a reduction from the parent's value: (is_parent, number).
FirstPlay first_play_of(const std::pair<bool, float>& pair) { return {pair.first, pair.second}; }

void check_range(const BoundForest& bound, int32_t first, int32_t last) {
  if (first < 0 || last > bound.forest.num_trees() || first >= last) {
    throw std::invalid_argument("not a range of trees");
  }
}

// Python exceptions whose args are (message, tree, moves), for the caller to turn into words about the position.
template <class Error>
void bind_position_error(nb::module_& m, const char* name) {
  static PyObject* type = nullptr;
  const std::string full_name = std::string("windrow._core.") + name;
  type = PyErr_NewException(full_name.c_str(), PyExc_RuntimeError, nullptr);
  m.attr(name) = nb::borrow(type);
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& error) {
      PyErr_SetObject(type, nb::make_tuple(error.what(), error.tree, error.moves).ptr());
    }
  });
}

}  // namespace

void bind_forest(nb::module_& m) {
  bind_position_error<GameFault>(m, "GameFault");
  bind_position_error<BadEvaluation>(m, "BadEvaluation");

  nb::class_<BatchHandle>(m, "Batch", "Leaves that are out for evaluation.")
      .def_ro("num_rows", &BatchHandle::num_rows, "How many observations were written.");

  nb::class_<BoundEvaluator>(m, "CoreEvaluator", "An evaluator that lives in the core. See cpp/evaluator.h.");
  m.def("uniform_evaluator", &make_evaluator<UniformEvaluator>, "game"_a, "Uniform priors and value 0.");
  m.def("hash_evaluator", &make_evaluator<HashEvaluator, uint64_t>, "game"_a, "seed"_a,
        "`windrow.evaluators.HashEvaluator`.");
  m.def(
      "rollout_evaluator",
      [](const NativeGame& game, int32_t num_rollouts, uint64_t seed) {
        return make_evaluator<RolloutEvaluator>(game, num_rollouts, seed, game.game->play_out());
      },
      "game"_a, "num_rollouts"_a, "seed"_a, "`windrow.evaluators.RolloutEvaluator`.");

  nb::class_<BoundForest> bound_class(m, "Forest",
                                      "Many trees, grown by select, complete and cancel. See cpp/forest.h.");
  bound_class
      .def(
          "__init__",
          [](BoundForest* self, const NativeGame& game, int32_t num_trees, float c_puct, float c_puct_growth,
             float c_puct_base, const std::string& value_scale, const std::string& in_flight, float virtual_loss,
             const std::pair<bool, float>& first_play, const std::pair<bool, float>& root_first_play, bool proves,
             bool share_collisions, int32_t leaves_per_tree, int32_t max_depth, double dirichlet_alpha,
             float dirichlet_fraction, float root_policy_temperature, int32_t gumbel_considered, float gumbel_scale,
             float gumbel_visit_offset, float gumbel_value_scale, bool improves_interior, float lcb_deviations,
             uint64_t seed, int32_t num_threads, int32_t spin_us, size_t max_memory, nb::object cache) {
            const ForestOptions options{
                .rules = {.c_puct = c_puct,
                          .c_puct_growth = c_puct_growth,
                          .c_puct_base = c_puct_base,
                          .value_scale = value_scale_of(value_scale),
                          .in_flight = in_flight_of(in_flight),
                          .virtual_loss = virtual_loss,
                          .first_play = first_play_of(first_play),
                          .root_first_play = first_play_of(root_first_play)},
                .proves = proves,
                .share_collisions = share_collisions,
                .leaves_per_tree = leaves_per_tree,
                .max_depth = max_depth,
                .dirichlet_alpha = dirichlet_alpha,
                .dirichlet_fraction = dirichlet_fraction,
                .root_policy_temperature = root_policy_temperature,
                .gumbel = {.max_considered = gumbel_considered,
                           .scale = gumbel_scale,
                           .visit_offset = gumbel_visit_offset,
                           .value_scale = gumbel_value_scale},
                .improves_interior = improves_interior,
                .lcb_deviations = lcb_deviations,
                .seed = seed,
                // Threads of a game that needs the GIL would wait for the one that waits for them.
                .num_threads = game.game->needs_gil() ? 1 : num_threads,
                .spin_us = spin_us,
                .max_memory = max_memory};
            new (self) BoundForest(game.game, num_trees, options, shared_cache(cache));
          },
          "game"_a, "num_trees"_a, nb::kw_only(), "c_puct"_a, "c_puct_growth"_a, "c_puct_base"_a, "value_scale"_a,
          "in_flight"_a, "virtual_loss"_a, "first_play"_a, "root_first_play"_a, "proves"_a, "share_collisions"_a,
          "leaves_per_tree"_a, "max_depth"_a, "dirichlet_alpha"_a, "dirichlet_fraction"_a, "root_policy_temperature"_a,
          "gumbel_considered"_a, "gumbel_scale"_a, "gumbel_visit_offset"_a, "gumbel_value_scale"_a,
          "improves_interior"_a, "lcb_deviations"_a, "seed"_a, "num_threads"_a, "spin_us"_a, "max_memory"_a,
          "cache"_a.none(),
          nb::sig(
              "def __init__(self, game: NativeGame, num_trees: int, *, c_puct: float, c_puct_growth: float, "
              "c_puct_base: float, value_scale: str, in_flight: str, virtual_loss: float, first_play: tuple[bool, "
              "float], root_first_play: tuple[bool, float], proves: bool, share_collisions: bool, leaves_per_tree: "
              "int, max_depth: int, dirichlet_alpha: float, dirichlet_fraction: float, root_policy_temperature: float, "
              "gumbel_considered: int, gumbel_scale: float, gumbel_visit_offset: float, gumbel_value_scale: float, "
              "improves_interior: bool, lcb_deviations: float, seed: int, num_threads: int, spin_us: int, max_memory: "
              "int, cache: PredictionCache | None) -> None"))
      .def_prop_ro("num_trees", [](const BoundForest& self) { return self.forest.num_trees(); })
      .def_prop_ro("num_batches_out", [](const BoundForest& self) { return self.forest.num_batches_out(); })
      .def_prop_ro("num_threads", [](const BoundForest& self) { return self.forest.options().num_threads; })
      .def(
          "select",
          [](BoundForest& self, const std::optional<Floats>& observations, int32_t max_leaves, int32_t first,
             int32_t last, bool overlap) {
            Forest& forest = self.forest;
            const size_t needed = static_cast<size_t>(forest.rows_needed(max_leaves)) *
                                  static_cast<size_t>(forest.game().observation_floats);
            if (observations && observations->size() < needed) {
              throw std::invalid_argument("the observation buffer is too small");
            }
            check_range(self, first, last);
            if (max_leaves < 1) throw std::invalid_argument("max_leaves must be at least 1");
            float* data = observations ? observations->data() : nullptr;
            const Working working(self);
            const Batch& batch = forest.select(max_leaves, first, last, overlap, data);
            return BatchHandle{batch.slot, batch.serial, batch.num_rows};
          },
          "observations"_a.none(), "max_leaves"_a, "first"_a, "last"_a, "overlap"_a = false,
          "Marks the next simulations in flight and writes their leaves' observations, unless None is given for them. "
          "A batch of no rows is already complete.")
      .def(
          "complete",
          [](BoundForest& self, const BatchHandle& handle, const ConstLogits& logits, const ConstValues& values) {
            const size_t rows = static_cast<size_t>(handle.num_rows);
            const GameTable& game = self.forest.game();
            if (logits.shape(0) != rows || logits.shape(1) != static_cast<size_t>(game.num_actions) ||
                values.ndim() < 1 || values.shape(0) != rows ||
                values.size() != rows * static_cast<size_t>(game.num_values)) {
              throw std::invalid_argument("complete needs logits [rows, A] and values [rows] or [rows, num_values]");
            }
            const float* logits_data = logits.data();
            const float* values_data = values.data();
            const Working working(self);
            self.forest.complete(batch_of(self, handle), logits_data, values_data);
          },
          "batch"_a, "logits"_a, "values"_a, "Expands the leaves, backs the simulations up, clears the marks.")
      .def(
          "grow",
          [](BoundForest& self, BoundEvaluator& evaluator, int32_t max_leaves, int32_t first, int32_t last,
             int32_t max_batch, double patience_s) {
            check_range(self, first, last);
            if (max_leaves < 1 || max_batch < 1) throw std::invalid_argument("a batch has at least 1 row");
            if (evaluator.game != self.game) throw std::invalid_argument("the evaluator is for another game");
            const auto patience =
                std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(patience_s));
            GrowthReport report;
            {
              const Working working(self);
              report = self.forest.grow(*evaluator.evaluator, max_leaves, first, last, max_batch, patience);
            }
            return nb::make_tuple(report.is_finished, report.num_places, report.seconds, report.num_calls,
                                  report.num_rows);
          },
          "evaluator"_a, "max_leaves"_a, "first"_a, "last"_a, nb::kw_only(), "max_batch"_a, "patience_s"_a,
          nb::sig("def grow(self, evaluator: CoreEvaluator, max_leaves: int, first: int, last: int, *, max_batch: int, "
                  "patience_s: float) -> tuple[bool, int, float, int, int]"),
          "Selects, evaluates and completes until the trees have finished, one of them has, or `patience_s` is over. "
          "Returns whether all have finished, the rows that the batches had room for, and the evaluator's seconds, "
          "calls and rows.")
      .def(
          "cancel",
          [](BoundForest& self, const BatchHandle& handle) {
            const Working working(self);
            self.forest.cancel(batch_of(self, handle));
          },
          "batch"_a, "Clears the marks only.")
      .def(
          "stop",
          [](BoundForest& self) {
            const Working working(self);
            self.forest.stop();
          },
          "Ends all searches: no more simulations are selected. Roots that have no evaluation still are.")
      .def(
          "cancel_all",
          [](BoundForest& self) {
            const Working working(self);
            self.forest.cancel_all();
          },
          "Cancels every batch that is out.")
      .def(
          "states",
          [](BoundForest& self, const BatchHandle& handle) {
            const Holding holding(self);
            const Batch& batch = batch_of(self, handle);
            const size_t size = static_cast<size_t>(self.forest.game().state_bytes);
            std::vector<uint8_t> states(static_cast<size_t>(handle.num_rows) * size);
            self.forest.copy_states(batch, reinterpret_cast<std::byte*>(states.data()));
            return to_array<uint8_t>(std::move(states), handle.num_rows, size);
          },
          "batch"_a, "The states of the leaves of a batch, [rows, state_bytes].")
      .def(
          "has_work",
          [](BoundForest& self, int32_t first, int32_t last) {
            const Holding holding(self);
            check_range(self, first, last);
            return self.forest.has_work(first, last);
          },
          "first"_a, "last"_a, "Whether some tree in [first, last) has simulations left to select.")
      .def(
          "seconds",
          [](const BoundForest& self) {
            const ForestSeconds& seconds = self.forest.seconds();
            return nb::make_tuple(seconds.select, seconds.encode, seconds.complete);
          },
          nb::sig("def seconds(self) -> tuple[float, float, float]"),
          "Seconds spent so far in select, encode and complete.");
  bind_roots(m, bound_class);

  m.def(
      "uniforms",
      [](uint64_t seed, const ConstNumbers& trees, const ConstNumbers& counts, uint32_t purpose, uint32_t lane) {
        const size_t count = trees.shape(0);
        if (counts.shape(0) != count) throw std::invalid_argument("trees and counts must be of one length");
        std::vector<double> draws;
        draws.reserve(count);
        for (size_t i = 0; i < count; ++i) {
          const RandomKey key{seed, trees.data()[i], counts.data()[i]};
          draws.push_back(Stream(key, static_cast<Purpose>(purpose), lane).next_uniform());
        }
        return to_array<double>(std::move(draws), count);
      },
      "seed"_a, "trees"_a, "counts"_a, "purpose"_a, "lane"_a,
      nb::sig(
          "def uniforms(seed: int, trees: NDArray[numpy.uint32], counts: NDArray[numpy.uint32], purpose: int, lane: "
          "int) -> NDArray[numpy.float64]"),
      "The first number of many streams; `windrow.numerics.uniforms`.");

  m.def(
      "evaluate_by_rollout",
      [](const NativeGame& game, const ConstStates& states, int32_t num_rollouts, uint64_t seed) {
        const GameTable& table = game.game->table();
        if (states.shape(1) != static_cast<size_t>(table.state_bytes)) {
          throw std::invalid_argument("these are not states of this game");
        }
        if (num_rollouts < 1) throw std::invalid_argument("num_rollouts must be at least 1");
        const size_t count = states.shape(0), num_values = static_cast<size_t>(table.num_values);
        std::vector<float> values(count * num_values);
        {
          const nb::gil_scoped_release no_gil;
          Rollouts(table, num_rollouts, seed, game.game->play_out())
              .evaluate(reinterpret_cast<const std::byte*>(states.data()), 0, static_cast<int32_t>(count),
                        values.data());
        }
        return num_values == 1 ? to_array<float>(std::move(values), count)
                               : to_array<float>(std::move(values), count, num_values);
      },
      "game"_a, "states"_a, nb::kw_only(), "num_rollouts"_a, "seed"_a,
      "The mean result of random games from each state, for the player to move there; [n, players] if there is a value "
      "per player, that player first.");
}
