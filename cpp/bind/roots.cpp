// roots.cpp: the part of windrow._core.Forest that plants and reads many trees at once; the work is in cpp/roots.h and
// cpp/move_choice.h.
#include "../roots.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../move_choice.h"
#include "arrays.h"
#include "bound_forest.h"

using namespace nb::literals;

using namespace windrow;

namespace {

template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstStates = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// One node as plain arrays over its legal actions, or over the outcomes of chance.
struct NodeView {
  std::string kind;
  int32_t to_play;
  int32_t visits;
  int32_t in_flight;
  bool is_proven;
  int32_t distance;
  float value;
  double value_sum;
  std::vector<double> player_value_sums;
  nb::ndarray<nb::numpy, int64_t> actions;
  nb::ndarray<nb::numpy, float> priors;
  nb::ndarray<nb::numpy, int32_t> edge_visits;
  nb::ndarray<nb::numpy, double> edge_value_sums;
  nb::ndarray<nb::numpy, int32_t> edges_in_flight;
  nb::ndarray<nb::numpy, uint8_t> edges_proven;
};

NodeView view(const Tree& tree, Ref ref) {
  static constexpr const char* kKinds[] = {"new", "waiting", "expanded", "over", "chance", "moved"};
  const Node& node = tree.node(ref);
  std::vector<double> player_sums;
  if (tree.has_vectors()) {
    player_sums.assign(tree.player_value_sums(node).begin(), tree.player_value_sums(node).end());
  }
  if (node.kind == NodeKind::kOfChance) {
    std::vector<int64_t> outcomes;
    std::vector<float> priors;
    std::vector<int32_t> visits, in_flight;
    std::vector<double> value_sums;
    std::vector<uint8_t> is_proven;
    for (const Tree::Outcome& outcome : tree.outcomes(ref)) {
      outcomes.push_back(outcome.outcome);
      priors.push_back(outcome.probability);
      visits.push_back(outcome.visits);
      in_flight.push_back(outcome.in_flight);
      value_sums.push_back(outcome.value_sum);
      is_proven.push_back(outcome.child != kNone && tree.node(outcome.child).is_proven ? 1 : 0);
    }
    const size_t count = outcomes.size();
    return {"chance",
            node.to_play,
            node.visits,
            node.in_flight,
            node.is_proven,
            node.is_proven ? node.distance : 0,
            node.is_proven ? node.value : 0.0f,
            node.value_sum,
            player_sums,
            to_array(std::move(outcomes), count),
            to_array(std::move(priors), count),
            to_array(std::move(visits), count),
            to_array(std::move(value_sums), count),
            to_array(std::move(in_flight), count),
            to_array(std::move(is_proven), count)};
  }
  // Edges that no simulation has passed have no statistics yet: zeros.
  const std::vector<int32_t> none(node.num_edges, 0);
  std::vector<int32_t> in_flight = none;
  std::vector<uint8_t> is_proven(node.num_edges, 0);
  for (size_t edge = 0; edge < node.num_edges && node.is_open; ++edge) {
    in_flight[edge] = in_flight_of(tree.edges_in_flight(node)[edge]);
    is_proven[edge] = (tree.edges_in_flight(node)[edge] & kProvenEdge) != 0 ? 1 : 0;
  }
  return {kKinds[static_cast<size_t>(node.kind)],
          node.to_play,
          node.visits,
          node.in_flight,
          node.is_proven,
          node.is_proven ? node.distance : 0,
          node.value,
          node.value_sum,
          player_sums,
          copy_array<int64_t>(tree.actions(node)),
          copy_array<float>(tree.priors(node)),
          node.is_open ? copy_array<int32_t>(tree.visits(node)) : copy_array<int32_t>(std::span<const int32_t>(none)),
          node.is_open ? copy_array<double>(tree.value_sums(node)) : copy_array<double>(std::span<const int32_t>(none)),
          to_array(std::move(in_flight), node.num_edges),
          to_array(std::move(is_proven), node.num_edges)};
}

nb::object node_at(BoundForest& bound, int32_t index, const std::vector<int64_t>& path) {
  const Holding holding(bound);
  const Tree& tree = planted_tree(bound.forest, index);
  const Ref ref = tree.find(path);
  return ref == kNone ? nb::none() : nb::cast(view(tree, ref));
}

template <class T>
std::span<const T> span_of(const Column<T>& column) {
  return {column.data(), column.shape(0)};
}

template <class T>
void check_length(const Column<int32_t>& trees, const Column<T>& column) {
  if (column.shape(0) != trees.shape(0)) throw std::invalid_argument("one entry per tree is needed");
}

void reset_many(BoundForest& bound, const Column<int32_t>& trees, const ConstStates& states) {
  const size_t size = static_cast<size_t>(bound.forest.game().state_bytes);
  if (states.shape(0) != trees.shape(0) || states.shape(1) != size) {
    throw std::invalid_argument("states [trees, state_bytes] are needed");
  }
  const Working working(bound);
  for (size_t i = 0; i < trees.shape(0); ++i) bound.forest.reset(trees.data()[i], states.data() + i * size);
}

void uproot_many(BoundForest& bound, const Column<int32_t>& trees) {
  const Working working(bound);
  for (size_t i = 0; i < trees.shape(0); ++i) bound.forest.uproot(trees.data()[i]);
}

void advance_many(BoundForest& bound, const Column<int32_t>& trees, const Column<int64_t>& moves) {
  check_length(trees, moves);
  const Working working(bound);
  bound.forest.advance(span_of(trees), span_of(moves));
}

void begin_many(BoundForest& bound, const Column<int32_t>& trees, const Column<int64_t>& num_simulations,
                const Column<uint32_t>& keys, const Column<uint32_t>& counts, const Column<bool>& explores,
                uint64_t model_version) {
  check_length(trees, num_simulations);
  check_length(trees, keys);
  check_length(trees, counts);
  check_length(trees, explores);
  std::vector<SearchOrder> orders;
  orders.reserve(trees.shape(0));
  for (size_t i = 0; i < trees.shape(0); ++i) {
    orders.push_back(
        {trees.data()[i], num_simulations.data()[i], keys.data()[i], counts.data()[i], explores.data()[i]});
  }
  const Working working(bound);
  bound.forest.begin(orders, model_version);
}

// [trees, width]
template <class T>
nb::ndarray<nb::numpy, T> to_rows(std::vector<T> values, const Column<int32_t>& trees, int32_t width) {
  return to_array(std::move(values), trees.shape(0), static_cast<size_t>(width));
}

nb::tuple roots(BoundForest& bound, const Column<int32_t>& trees) {
  const Holding holding(bound);
  RootStatistics found = root_statistics(bound.forest, span_of(trees));
  const int32_t width = bound.forest.game().num_actions;
  return nb::make_tuple(to_rows(std::move(found.visits), trees, width), to_rows(std::move(found.priors), trees, width),
                        to_rows(std::move(found.qs), trees, width), to_array(std::move(found.values), trees.shape(0)));
}

nb::tuple proofs(BoundForest& bound, const Column<int32_t>& trees) {
  const Holding holding(bound);
  RootProofs found = root_proofs(bound.forest, span_of(trees));
  const int32_t width = bound.forest.game().num_actions;
  return nb::make_tuple(
      to_array(std::move(found.values), trees.shape(0)), to_array(std::move(found.distances), trees.shape(0)),
      to_rows(std::move(found.action_values), trees, width), to_rows(std::move(found.action_distances), trees, width),
      to_rows(std::move(found.playable), trees, width));
}

nb::tuple gumbel_roots(BoundForest& bound, const Column<int32_t>& trees) {
  const Holding holding(bound);
  GumbelResults found = gumbel_results(bound.forest, span_of(trees));
  return nb::make_tuple(to_rows(std::move(found.policies), trees, bound.forest.game().num_actions),
                        to_array(std::move(found.actions), trees.shape(0)));
}

auto surest_actions_of(BoundForest& bound, const Column<int32_t>& trees) {
  const Holding holding(bound);
  return to_array(surest_actions(bound.forest, span_of(trees)), trees.shape(0));
}

nb::tuple choose_moves_of(BoundForest& bound, const Column<int32_t>& trees, const Column<double>& temperatures,
                          const Column<uint32_t>& keys, const Column<uint32_t>& counts) {
  check_length(trees, temperatures);
  check_length(trees, keys);
  check_length(trees, counts);
  const Holding holding(bound);
  MoveChoices chosen =
      choose_moves(bound.forest, span_of(trees), span_of(temperatures), span_of(keys), span_of(counts));
  return nb::make_tuple(to_rows(std::move(chosen.policies), trees, bound.forest.game().num_actions),
                        to_array(std::move(chosen.values), trees.shape(0)),
                        to_array(std::move(chosen.actions), trees.shape(0)),
                        to_array(std::move(chosen.proven), trees.shape(0)));
}

nb::dict totals(BoundForest& bound, const Column<int32_t>& trees) {
  const Holding holding(bound);
  const ForestTotals sum = sum_totals(bound.forest, span_of(trees));
  nb::dict result;
  result["simulations"] = sum.counters.simulations;
  result["evaluations"] = sum.counters.evaluations;
  result["cache_hits"] = sum.counters.cache_hits;
  result["collisions"] = sum.counters.collisions;
  result["terminal_hits"] = sum.counters.terminal_hits;
  result["depth_sum"] = sum.counters.depth_sum;
  result["max_depth"] = sum.counters.max_depth;
  result["nodes"] = sum.nodes;
  result["expanded"] = sum.expanded;
  result["bytes"] = sum.bytes;
  result["full_trees"] = sum.full_trees;
  result["proven_nodes"] = sum.counters.proven_nodes;
  result["proven_trees"] = sum.proven_trees;
  return result;
}

}  // namespace

void bind_roots(nb::module_& m, nb::class_<BoundForest>& forest) {
  nb::class_<NodeView>(m, "NodeView", "A copy of one node's statistics; arrays are over its legal actions, ascending.")
      .def_ro("kind", &NodeView::kind, "'new', 'waiting', 'expanded', 'over' or 'chance'.")
      .def_ro("to_play", &NodeView::to_play)
      .def_ro("visits", &NodeView::visits,
              "N(s): 1 + the sum of edge_visits once expanded, else 0; the sum alone where chance is to move.")
      .def_ro("in_flight", &NodeView::in_flight, "I(s).")
      .def_ro("is_proven", &NodeView::is_proven, "Whether `value` is exact, in a search that proves.")
      .def_ro("distance", &NodeView::distance, "Of a proven node, moves to the end of the game; else 0.")
      .def_ro(
          "value", &NodeView::value,
          "The evaluation or proven value, for the player to move; for player 0 if the game is over or chance moves.")
      .def_ro("value_sum", &NodeView::value_sum,
              "The evaluation and all that came through, for the player to move; for player 0 where chance is.")
      .def_ro("player_value_sums", &NodeView::player_value_sums, "The same by player, if there is a value per player.")
      .def_ro("actions", &NodeView::actions, nb::rv_policy::automatic,
              "Where chance is to move: its outcomes, or those drawn so far if they cannot be listed.")
      .def_ro("priors", &NodeView::priors, nb::rv_policy::automatic,
              "Where chance is to move: the probabilities, 0 if they are not known.")
      .def_ro("edge_visits", &NodeView::edge_visits, nb::rv_policy::automatic)
      .def_ro("edge_value_sums", &NodeView::edge_value_sums, nb::rv_policy::automatic,
              "W(s,a), for the player to move at this node.")
      .def_ro("edges_in_flight", &NodeView::edges_in_flight, nb::rv_policy::automatic)
      .def_ro("edges_proven", &NodeView::edges_proven, nb::rv_policy::automatic,
              "1 where the child is proven, else 0.");

  forest.def("reset_many", &reset_many, "trees"_a, "states"_a, "Plants trees anew at `states` [trees, state_bytes].")
      .def("uproot_many", &uproot_many, "trees"_a, "Empties trees: nothing is selected until they are planted again.")
      .def("advance_many", &advance_many, "trees"_a, "moves"_a,
           "Moves each root along its action, or its outcome of chance: all of them, or none. Trees are given once.")
      .def("begin_many", &begin_many, "trees"_a, "num_simulations"_a, "keys"_a, "counts"_a, "explores"_a,
           "model_version"_a,
           "Starts a search of each tree while others go on; `keys` and `counts` are the keys of their random numbers, "
           "without `explores` there is no noise at the root, `model_version` is part of the cache's keys.")
      .def(
          "take_finished",
          [](BoundForest& self) {
            const Holding holding(self);
            std::vector<int32_t> finished = self.forest.take_finished();
            const size_t count = finished.size();
            return to_array(std::move(finished), count);
          },
          nb::sig("def take_finished(self) -> NDArray[numpy.int32]"),
          "The trees whose search has ended since the last call, ascending.")
      .def(
          "root_states",
          [](BoundForest& self, const Column<int32_t>& trees) {
            const Holding holding(self);
            return to_rows(root_states(self.forest, span_of(trees)), trees, self.forest.game().state_bytes);
          },
          "trees"_a, nb::sig("def root_states(self, trees: NDArray[numpy.int32]) -> NDArray[numpy.uint8]"),
          "The positions at the roots, [trees, state_bytes].")
      .def(
          "roots", &roots, "trees"_a,
          nb::sig("def roots(self, trees: NDArray[numpy.int32]) -> tuple[NDArray[numpy.int32], NDArray[numpy.float32], "
                  "NDArray[numpy.float32], NDArray[numpy.float32]]"),
          "Visits, priors and Q [trees, A], and mean values for the player to move [trees].")
      .def("proofs", &proofs, "trees"_a,
           nb::sig("def proofs(self, trees: NDArray[numpy.int32]) -> tuple[NDArray[numpy.float32], "
                   "NDArray[numpy.int32], NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.uint8]]"),
           "Proven values [trees] and moves to the end, the same of every action [trees, A], and which actions may be "
           "played [trees, A]; NaN where a value is open.")
      .def(
          "player_values",
          [](BoundForest& self, const Column<int32_t>& trees) {
            const Holding holding(self);
            return to_rows(root_player_values(self.forest, span_of(trees)), trees, self.forest.game().num_values);
          },
          "trees"_a, nb::sig("def player_values(self, trees: NDArray[numpy.int32]) -> NDArray[numpy.float32]"),
          "Mean values by player [trees, players], if there is a value per player.")
      .def(
          "lines",
          [](BoundForest& self, const Column<int32_t>& trees) {
            const Holding holding(self);
            return root_lines(self.forest, span_of(trees));
          },
          "trees"_a, nb::sig("def lines(self, trees: NDArray[numpy.int32]) -> list[list[int]]"),
          "The most visited line of each tree.")
      .def("gumbel_roots", &gumbel_roots, "trees"_a,
           nb::sig("def gumbel_roots(self, trees: NDArray[numpy.int32]) -> tuple[NDArray[numpy.float32], "
                   "NDArray[numpy.int32]]"),
           "Improved policies [trees, A] and the actions to play [trees].")
      .def("surest_actions", &surest_actions_of, "trees"_a,
           nb::sig("def surest_actions(self, trees: NDArray[numpy.int32]) -> NDArray[numpy.int32]"),
           "The actions of the highest lower confidence bounds [trees].")
      .def("choose_moves", &choose_moves_of, "trees"_a, "temperatures"_a, "keys"_a, "counts"_a,
           nb::sig("def choose_moves(self, trees: NDArray[numpy.int32], temperatures: NDArray[numpy.float64], keys: "
                   "NDArray[numpy.uint32], counts: NDArray[numpy.uint32]) -> tuple[NDArray[numpy.float32], "
                   "NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.uint8]]"),
           "After searches: policies to learn [trees, A], values for the player to move [trees], actions to play "
           "[trees] and whether the roots are proven [trees]. `keys` and `counts` are the keys of the draws.")
      .def("totals", &totals, "trees"_a, nb::sig("def totals(self, trees: NDArray[numpy.int32]) -> dict[str, int]"),
           "What the searches of `trees` did since they began, summed.")
      .def(
          "node", &node_at, "tree"_a, "moves"_a,
          nb::sig("def node(self, tree: int, moves: list[int]) -> NodeView | None"),
          "The node that `moves` (actions and outcomes of chance) lead to from the root; None if it was never reached.")
      .def(
          "num_in_flight",
          [](BoundForest& self, int32_t tree) {
            const Holding holding(self);
            return self.forest.tree(tree).count_in_flight();
          },
          "tree"_a, "The sum of all in-flight marks of a tree; zero while nothing is out. Walks the whole tree.");
}
