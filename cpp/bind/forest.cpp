// forest.cpp: windrow._core.Forest. Converts and checks; the work is in cpp/forest.h.
#include "../forest.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "../rollout.h"
#include "bind.h"

namespace nb = nanobind;
using namespace nb::literals;

using namespace windrow;

namespace {

using Floats = nb::ndarray<float, nb::c_contig, nb::device::cpu>;
using ConstLogits = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstValues = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstStates = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A vector handed to Python as an array that owns it.
template <class T, class... Shape>
nb::ndarray<nb::numpy, T> to_array(std::vector<T> values, Shape... shape) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owned->data();
  nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T>(data, {static_cast<size_t>(shape)...}, owner);
}

template <class To, class From>
nb::ndarray<nb::numpy, To> copy_array(std::span<const From> values) {
  return to_array<To>(std::vector<To>(values.begin(), values.end()), values.size());
}

// A batch that is out, as Python holds it.
struct BatchHandle {
  int32_t slot;
  int64_t serial;
  int32_t num_rows;
};

// A forest, the game it plays, its cache, and a guard against two Python threads inside it at once.
struct BoundForest {
  std::shared_ptr<NamedGame> game;
  Forest forest;
  std::atomic_flag is_busy = ATOMIC_FLAG_INIT;

  BoundForest(std::shared_ptr<NamedGame> the_game, int32_t num_trees, const ForestOptions& options,
              std::shared_ptr<PredictionCache> cache)
      : game(std::move(the_game)), forest(game->table(), num_trees, options, std::move(cache)) {}
};

// The cache behind a Python object, kept alive by it; null for None.
std::shared_ptr<PredictionCache> shared_cache(const nb::object& cache) {
  if (cache.is_none()) return nullptr;
  PyObject* owner = cache.inc_ref().ptr();
  return {nb::cast<PredictionCache*>(cache), [owner](PredictionCache*) {
            const nb::gil_scoped_acquire gil;
            Py_DECREF(owner);
          }};
}

// Holds the forest: nobody else may use it meanwhile.
class Holding {
 public:
  explicit Holding(BoundForest& bound) : bound_(bound) {
    if (bound_.is_busy.test_and_set()) throw std::logic_error("a forest can be used from one thread at a time");
  }
  ~Holding() { bound_.is_busy.clear(); }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

 private:
  BoundForest& bound_;
};

// Holds the forest and not the GIL.
class Working {
 public:
  explicit Working(BoundForest& bound) : holding_(bound) {}

 private:
  Holding holding_;
  nb::gil_scoped_release no_gil_;
};

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

const std::byte* state_bytes(const GameTable& game, const nb::bytes& state) {
  if (state.size() != static_cast<size_t>(game.state_bytes)) {
    throw std::invalid_argument("a state of this game has " + std::to_string(game.state_bytes) + " bytes, not " +
                                std::to_string(state.size()));
  }
  return static_cast<const std::byte*>(state.data());
}

// One node as plain arrays over its legal actions.
struct NodeView {
  std::string kind;
  int32_t to_play;
  int32_t visits;
  int32_t in_flight;
  float value;
  double value_sum;
  nb::ndarray<nb::numpy, int32_t> actions;
  nb::ndarray<nb::numpy, float> priors;
  nb::ndarray<nb::numpy, int32_t> edge_visits;
  nb::ndarray<nb::numpy, double> edge_value_sums;
  nb::ndarray<nb::numpy, int32_t> edges_in_flight;
};

NodeView view(const Tree& tree, Ref ref) {
  static constexpr const char* kKinds[] = {"new", "waiting", "expanded", "over", "moved"};
  const Node& node = tree.node(ref);
  // Edges that no simulation has passed have no statistics yet: zeros.
  const std::vector<int32_t> none(node.num_edges, 0);
  return {kKinds[static_cast<size_t>(node.kind)],
          node.to_play,
          node.visits,
          node.in_flight,
          node.value,
          node.value_sum,
          copy_array<int32_t>(tree.actions(node)),
          copy_array<float>(tree.priors(node)),
          node.is_open ? copy_array<int32_t>(tree.visits(node)) : copy_array<int32_t>(std::span<const int32_t>(none)),
          node.is_open ? copy_array<double>(tree.value_sums(node)) : copy_array<double>(std::span<const int32_t>(none)),
          node.is_open ? copy_array<int32_t>(tree.edges_in_flight(node))
                       : copy_array<int32_t>(std::span<const int32_t>(none))};
}

const Tree& planted_tree(const BoundForest& bound, int32_t index) {
  const Tree& tree = bound.forest.tree(index);
  if (!tree.is_planted()) throw std::logic_error("the tree has no root yet");
  return tree;
}

void check_range(const BoundForest& bound, int32_t first, int32_t last) {
  if (first < 0 || last > bound.forest.num_trees() || first >= last) {
    throw std::invalid_argument("not a range of trees");
  }
}

nb::object node_at(BoundForest& bound, int32_t index, const std::vector<int32_t>& path) {
  const Holding holding(bound);
  const Tree& tree = planted_tree(bound, index);
  const Ref ref = tree.find(path);
  return ref == kNone ? nb::none() : nb::cast(view(tree, ref));
}

// What the roots of [first, last) have found, as dense arrays; zeros where an action is illegal or was never tried.
nb::tuple roots(BoundForest& bound, int32_t first, int32_t last) {
  const Holding holding(bound);
  check_range(bound, first, last);
  const size_t count = static_cast<size_t>(last - first), width = static_cast<size_t>(bound.forest.game().num_actions);
  std::vector<int32_t> visits(count * width);
  std::vector<float> priors(count * width), qs(count * width), values(count);
  std::vector<std::vector<int32_t>> lines;
  for (size_t row = 0; row < count; ++row) {
    const Tree& tree = planted_tree(bound, first + static_cast<int32_t>(row));
    const Node& root = tree.node(tree.root());
    lines.push_back(tree.principal_variation());
    if (root.kind != NodeKind::kExpanded) {
      for (const uint16_t action : tree.actions(root)) priors[row * width + action] = 1.0f / root.num_edges;
      continue;
    }
    values[row] = static_cast<float>(root.value_sum) / static_cast<float>(root.visits);
    for (size_t edge = 0; edge < root.num_edges; ++edge) {
      const size_t cell = row * width + tree.actions(root)[edge];
      const int32_t edge_visits = root.is_open ? tree.visits(root)[edge] : 0;
      visits[cell] = edge_visits;
      priors[cell] = tree.priors(root)[edge];
      if (edge_visits > 0) {
        qs[cell] = static_cast<float>(tree.value_sums(root)[edge]) / static_cast<float>(edge_visits);
      }
    }
  }
  return nb::make_tuple(to_array(std::move(visits), count, width), to_array(std::move(priors), count, width),
                        to_array(std::move(qs), count, width), to_array(std::move(values), count), lines);
}

// Sums over the trees of [first, last).
nb::dict totals(BoundForest& bound, int32_t first, int32_t last) {
  const Holding holding(bound);
  check_range(bound, first, last);
  TreeCounters sum;
  int64_t nodes = 0, expanded = 0;
  size_t bytes = 0;
  int32_t full = 0;
  for (int32_t i = first; i < last; ++i) {
    const Tree& tree = bound.forest.tree(i);
    sum.simulations += tree.counters.simulations;
    sum.evaluations += tree.counters.evaluations;
    sum.cache_hits += tree.counters.cache_hits;
    sum.collisions += tree.counters.collisions;
    sum.terminal_hits += tree.counters.terminal_hits;
    sum.depth_sum += tree.counters.depth_sum;
    sum.max_depth = std::max(sum.max_depth, tree.counters.max_depth);
    nodes += tree.num_nodes();
    expanded += tree.num_expanded();
    bytes += tree.bytes();
    full += tree.is_full() ? 1 : 0;
  }
  nb::dict result;
  result["simulations"] = sum.simulations;
  result["evaluations"] = sum.evaluations;
  result["cache_hits"] = sum.cache_hits;
  result["collisions"] = sum.collisions;
  result["terminal_hits"] = sum.terminal_hits;
  result["depth_sum"] = sum.depth_sum;
  result["max_depth"] = sum.max_depth;
  result["nodes"] = nodes;
  result["expanded"] = expanded;
  result["bytes"] = bytes;
  result["full_trees"] = full;
  return result;
}

// Python exceptions whose args are (message, tree, actions), for the caller to turn into words about the position.
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
      PyErr_SetObject(type, nb::make_tuple(error.what(), error.tree, error.actions).ptr());
    }
  });
}

}  // namespace

void bind_forest(nb::module_& m) {
  bind_position_error<GameFault>(m, "GameFault");
  bind_position_error<BadEvaluation>(m, "BadEvaluation");

  nb::class_<BatchHandle>(m, "Batch", "Leaves that are out for evaluation.")
      .def_ro("num_rows", &BatchHandle::num_rows, "How many observations were written.");

  nb::class_<NodeView>(m, "NodeView", "A copy of one node's statistics; arrays are over its legal actions, ascending.")
      .def_ro("kind", &NodeView::kind, "'new', 'waiting', 'expanded' or 'over'.")
      .def_ro("to_play", &NodeView::to_play)
      .def_ro("visits", &NodeView::visits, "N(s): 1 + the sum of edge_visits once expanded, else 0.")
      .def_ro("in_flight", &NodeView::in_flight, "I(s).")
      .def_ro("value", &NodeView::value, "The evaluation, for the player to move; for player 0 if the game is over.")
      .def_ro("value_sum", &NodeView::value_sum, "The evaluation and all that came through, for the player to move.")
      .def_ro("actions", &NodeView::actions, nb::rv_policy::automatic)
      .def_ro("priors", &NodeView::priors, nb::rv_policy::automatic)
      .def_ro("edge_visits", &NodeView::edge_visits, nb::rv_policy::automatic)
      .def_ro("edge_value_sums", &NodeView::edge_value_sums, nb::rv_policy::automatic,
              "W(s,a), for the player to move at this node.")
      .def_ro("edges_in_flight", &NodeView::edges_in_flight, nb::rv_policy::automatic);

  nb::class_<BoundForest>(m, "Forest", "Many trees, grown by select, complete and cancel. See cpp/forest.h.")
      .def(
          "__init__",
          [](BoundForest* self, const NativeGame& game, int32_t num_trees, float c_puct, const std::string& in_flight,
             float virtual_loss, bool first_play_parent, float first_play_value, bool share_collisions,
             int32_t leaves_per_tree, int32_t max_depth, double dirichlet_alpha, float dirichlet_fraction,
             uint64_t seed, int32_t num_threads, size_t max_memory, nb::object cache) {
            ForestOptions options;
            options.rules.c_puct = c_puct;
            options.rules.in_flight = in_flight_of(in_flight);
            options.rules.virtual_loss = virtual_loss;
            options.rules.first_play = first_play_parent ? FirstPlay::kParent : FirstPlay::kValue;
            options.rules.first_play_value = first_play_value;
            options.share_collisions = share_collisions;
            options.leaves_per_tree = leaves_per_tree;
            options.max_depth = max_depth;
            options.dirichlet_alpha = dirichlet_alpha;
            options.dirichlet_fraction = dirichlet_fraction;
            options.seed = seed;
            options.num_threads = num_threads;
            options.max_memory = max_memory;
            new (self) BoundForest(game.game, num_trees, options, shared_cache(cache));
          },
          "game"_a, "num_trees"_a, nb::kw_only(), "c_puct"_a, "in_flight"_a, "virtual_loss"_a, "first_play_parent"_a,
          "first_play_value"_a, "share_collisions"_a, "leaves_per_tree"_a, "max_depth"_a, "dirichlet_alpha"_a,
          "dirichlet_fraction"_a, "seed"_a, "num_threads"_a, "max_memory"_a, "cache"_a.none() = nb::none(),
          nb::sig(
              "def __init__(self, game: NativeGame, num_trees: int, *, c_puct: float, in_flight: str, virtual_loss: "
              "float, first_play_parent: bool, first_play_value: float, share_collisions: bool, leaves_per_tree: "
              "int, max_depth: int, dirichlet_alpha: float, dirichlet_fraction: float, seed: int, num_threads: int, "
              "max_memory: int, cache: PredictionCache | None = None) -> None"))
      .def_prop_ro("num_trees", [](const BoundForest& self) { return self.forest.num_trees(); })
      .def_prop_ro("num_batches_out", [](const BoundForest& self) { return self.forest.num_batches_out(); })
      .def_prop_ro("num_threads", [](const BoundForest& self) { return self.forest.options().num_threads; })
      .def(
          "reset",
          [](BoundForest& self, int32_t tree, const nb::bytes& state) {
            const std::byte* bytes = state_bytes(self.forest.game(), state);
            const Working working(self);
            self.forest.reset(tree, bytes);
          },
          "tree"_a, "state"_a, "Plants a tree anew at `state`.")
      .def(
          "advance",
          [](BoundForest& self, int32_t tree, int32_t action) {
            const Working working(self);
            self.forest.advance(tree, action);
          },
          "tree"_a, "action"_a, "Moves a root along `action`, keeping what is below it.")
      .def(
          "begin",
          [](BoundForest& self, int64_t num_simulations, uint32_t move, int32_t first, int32_t last,
             uint64_t model_version) {
            check_range(self, first, last);
            const Working working(self);
            self.forest.begin(first, last, num_simulations, move, model_version);
          },
          "num_simulations"_a, "move"_a, "first"_a, "last"_a, "model_version"_a = 0,
          "Starts a search of the trees in [first, last); `move` is part of the key of their random numbers, "
          "`model_version` of the cache's keys.")
      .def(
          "select",
          [](BoundForest& self, const Floats& observations, int32_t max_leaves, int32_t first, int32_t last,
             bool overlap) {
            Forest& forest = self.forest;
            const size_t needed = static_cast<size_t>(forest.rows_needed(max_leaves)) *
                                  static_cast<size_t>(forest.game().observation_floats);
            if (observations.size() < needed) throw std::invalid_argument("the observation buffer is too small");
            check_range(self, first, last);
            if (max_leaves < 1) throw std::invalid_argument("max_leaves must be at least 1");
            float* data = observations.data();
            const Working working(self);
            const Batch& batch = forest.select(max_leaves, first, last, overlap, data);
            return BatchHandle{batch.slot, batch.serial, batch.num_rows};
          },
          "observations"_a, "max_leaves"_a, "first"_a, "last"_a, "overlap"_a = false,
          "Marks the next simulations in flight and writes their leaves' observations. A batch of no rows is already "
          "complete.")
      .def(
          "complete",
          [](BoundForest& self, const BatchHandle& handle, const ConstLogits& logits, const ConstValues& values) {
            const size_t rows = static_cast<size_t>(handle.num_rows);
            if (logits.shape(0) != rows || values.shape(0) != rows ||
                logits.shape(1) != static_cast<size_t>(self.forest.game().num_actions)) {
              throw std::invalid_argument("complete needs logits [rows, A] and values [rows]");
            }
            const float* logits_data = logits.data();
            const float* values_data = values.data();
            const Working working(self);
            self.forest.complete(batch_of(self, handle), logits_data, values_data);
          },
          "batch"_a, "logits"_a, "values"_a, "Expands the leaves, backs the simulations up, clears the marks.")
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
      .def("node", &node_at, "tree"_a, "actions"_a,
           nb::sig("def node(self, tree: int, actions: list[int]) -> NodeView | None"),
           "The node that `actions` lead to from the root, or None if it was never reached.")
      .def("roots", &roots, "first"_a, "last"_a,
           nb::sig("def roots(self, first: int, last: int) -> tuple[NDArray[numpy.int32], NDArray[numpy.float32], "
                   "NDArray[numpy.float32], NDArray[numpy.float32], list[list[int]]]"),
           "Visits, priors and Q [trees, A], mean values for the player to move [trees], most visited lines.")
      .def("totals", &totals, "first"_a, "last"_a, nb::sig("def totals(self, first: int, last: int) -> dict[str, int]"),
           "What the searches of the trees in [first, last) did since `begin`, summed.")
      .def(
          "num_in_flight",
          [](BoundForest& self, int32_t tree) {
            const Holding holding(self);
            return self.forest.tree(tree).count_in_flight();
          },
          "tree"_a, "The sum of all in-flight marks of a tree; zero while nothing is out. Walks the whole tree.")
      .def(
          "seconds",
          [](const BoundForest& self) {
            const ForestSeconds& seconds = self.forest.seconds();
            return nb::make_tuple(seconds.select, seconds.encode, seconds.complete);
          },
          nb::sig("def seconds(self) -> tuple[float, float, float]"),
          "Seconds spent so far in select, encode and complete.");

  m.def(
      "evaluate_by_rollout",
      [](const NativeGame& game, const ConstStates& states, int32_t num_rollouts, uint64_t seed) {
        const GameTable& table = game.game->table();
        if (states.shape(1) != static_cast<size_t>(table.state_bytes)) {
          throw std::invalid_argument("these are not states of this game");
        }
        if (num_rollouts < 1) throw std::invalid_argument("num_rollouts must be at least 1");
        std::vector<float> values(states.shape(0));
        {
          const nb::gil_scoped_release no_gil;
          evaluate_by_rollout(table, reinterpret_cast<const std::byte*>(states.data()),
                              static_cast<int32_t>(values.size()), num_rollouts, seed, values.data());
        }
        const size_t count = values.size();
        return to_array<float>(std::move(values), count);
      },
      "game"_a, "states"_a, nb::kw_only(), "num_rollouts"_a, "seed"_a,
      "The mean result of random games from each state, for the player to move there.");
}
