// roots.cpp: what the trees of windrow._core.Forest are and have found, many at a time.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../forest.h"
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
  float value;
  double value_sum;
  std::vector<double> player_value_sums;
  nb::ndarray<nb::numpy, int64_t> actions;
  nb::ndarray<nb::numpy, float> priors;
  nb::ndarray<nb::numpy, int32_t> edge_visits;
  nb::ndarray<nb::numpy, double> edge_value_sums;
  nb::ndarray<nb::numpy, int32_t> edges_in_flight;
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
    for (const Tree::Outcome& outcome : tree.outcomes(ref)) {
      outcomes.push_back(outcome.outcome);
      priors.push_back(outcome.probability);
      visits.push_back(outcome.visits);
      in_flight.push_back(outcome.in_flight);
      value_sums.push_back(outcome.value_sum);
    }
    const size_t count = outcomes.size();
    return {"chance",
            node.to_play,
            node.visits,
            node.in_flight,
            0.0f,
            node.value_sum,
            player_sums,
            to_array(std::move(outcomes), count),
            to_array(std::move(priors), count),
            to_array(std::move(visits), count),
            to_array(std::move(value_sums), count),
            to_array(std::move(in_flight), count)};
  }
  // Edges that no simulation has passed have no statistics yet: zeros.
  const std::vector<int32_t> none(node.num_edges, 0);
  return {kKinds[static_cast<size_t>(node.kind)],
          node.to_play,
          node.visits,
          node.in_flight,
          node.value,
          node.value_sum,
          player_sums,
          copy_array<int64_t>(tree.actions(node)),
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

nb::object node_at(BoundForest& bound, int32_t index, const std::vector<int64_t>& path) {
  const Holding holding(bound);
  const Tree& tree = planted_tree(bound, index);
  const Ref ref = tree.find(path);
  return ref == kNone ? nb::none() : nb::cast(view(tree, ref));
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
  bound.forest.advance({trees.data(), trees.shape(0)}, {moves.data(), moves.shape(0)});
}

void begin_many(BoundForest& bound, const Column<int32_t>& trees, const Column<int64_t>& num_simulations,
                const Column<uint32_t>& keys, const Column<uint32_t>& moves, const Column<bool>& explores,
                uint64_t model_version) {
  check_length(trees, num_simulations);
  check_length(trees, keys);
  check_length(trees, moves);
  check_length(trees, explores);
  std::vector<SearchOrder> orders;
  for (size_t i = 0; i < trees.shape(0); ++i) {
    orders.push_back({trees.data()[i], num_simulations.data()[i], keys.data()[i], moves.data()[i], explores.data()[i]});
  }
  const Working working(bound);
  bound.forest.begin(orders, model_version);
}

// The positions at the roots, [trees, state_bytes].
nb::ndarray<nb::numpy, uint8_t> root_states(BoundForest& bound, const Column<int32_t>& trees) {
  const Holding holding(bound);
  const size_t count = trees.shape(0), size = static_cast<size_t>(bound.forest.game().state_bytes);
  std::vector<uint8_t> states(count * size);
  for (size_t row = 0; row < count; ++row) {
    const Tree& tree = planted_tree(bound, trees.data()[row]);
    std::memcpy(states.data() + row * size, tree.state_of(tree.root()), size);
  }
  return to_array(std::move(states), count, size);
}

// What the roots have found, as dense arrays; zeros where an action is illegal or was never tried.
nb::tuple roots(BoundForest& bound, const Column<int32_t>& trees) {
  const Holding holding(bound);
  const size_t count = trees.shape(0), width = static_cast<size_t>(bound.forest.game().num_actions);
  std::vector<int32_t> visits(count * width);
  std::vector<float> priors(count * width), qs(count * width), values(count);
  for (size_t row = 0; row < count; ++row) {
    const Tree& tree = planted_tree(bound, trees.data()[row]);
    const Node& root = tree.node(tree.root());
    if (root.kind == NodeKind::kOfChance) continue;
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
                        to_array(std::move(qs), count, width), to_array(std::move(values), count));
}

// Mean values by player, [trees, num_values]; zeros where nothing is known.
nb::ndarray<nb::numpy, float> player_values(BoundForest& bound, const Column<int32_t>& trees) {
  const Holding holding(bound);
  const size_t count = trees.shape(0), width = static_cast<size_t>(bound.forest.game().num_values);
  if (width == 1) throw std::logic_error("the game has one value, not one per player");
  std::vector<float> values(count * width);
  for (size_t row = 0; row < count; ++row) {
    const Tree& tree = planted_tree(bound, trees.data()[row]);
    const Node& root = tree.node(tree.root());
    if (root.kind != NodeKind::kExpanded) continue;
    for (size_t player = 0; player < width; ++player) {
      values[row * width + player] =
          static_cast<float>(tree.player_value_sums(root)[player]) / static_cast<float>(root.visits);
    }
  }
  return to_array(std::move(values), count, width);
}

std::vector<std::vector<int32_t>> lines(BoundForest& bound, const Column<int32_t>& trees) {
  const Holding holding(bound);
  std::vector<std::vector<int32_t>> found;
  const bool is_gumbel = bound.forest.options().gumbel.max_considered > 0;
  for (size_t row = 0; row < trees.shape(0); ++row) {
    const Tree& tree = planted_tree(bound, trees.data()[row]);
    // Of the actions that a Gumbel root has visited most it plays the one of highest score, not the first.
    const bool is_chosen = is_gumbel && tree.node(tree.root()).kind == NodeKind::kExpanded;
    found.push_back(tree.principal_variation(is_chosen ? tree.gumbel_action() : -1));
  }
  return found;
}

// What Gumbel roots would play and teach.
nb::tuple gumbel_roots(BoundForest& bound, const Column<int32_t>& trees) {
  const Holding holding(bound);
  if (bound.forest.options().gumbel.max_considered == 0) throw std::logic_error("the roots are not Gumbel roots");
  const size_t count = trees.shape(0), width = static_cast<size_t>(bound.forest.game().num_actions);
  std::vector<float> policies(count * width);
  std::vector<int32_t> actions(count);
  for (size_t row = 0; row < count; ++row) {
    const Tree& tree = planted_tree(bound, trees.data()[row]);
    const Node& root = tree.node(tree.root());
    if (root.kind == NodeKind::kOfChance) continue;
    if (root.kind != NodeKind::kExpanded) {  // nothing is known yet: every action alike, and the first
      for (const uint16_t action : tree.actions(root)) policies[row * width + action] = 1.0f / root.num_edges;
      actions[row] = root.num_edges > 0 ? tree.actions(root)[0] : 0;
      continue;
    }
    const std::vector<float> policy = tree.gumbel_policy();
    for (size_t edge = 0; edge < root.num_edges; ++edge) {
      policies[row * width + tree.actions(root)[edge]] = policy[edge];
    }
    actions[row] = tree.gumbel_action();
  }
  return nb::make_tuple(to_array(std::move(policies), count, width), to_array(std::move(actions), count));
}

// The action that a draw from `policy` to the power of 1/temperature gives; at temperature 0 the first of the best.
int32_t draw_action(std::span<const float> policy, double temperature, double draw) {
  const float highest = *std::max_element(policy.begin(), policy.end());
  if (temperature == 0.0) {
    return static_cast<int32_t>(std::find(policy.begin(), policy.end(), highest) - policy.begin());
  }
  // Scaled first, so that a small temperature cannot overflow.
  std::vector<double> cumulative;
  double total = 0.0;
  for (const float share : policy) {
    const double weight = static_cast<double>(share) / static_cast<double>(highest);
    total += temperature == 1.0 ? weight : std::pow(weight, 1.0 / temperature);
    cumulative.push_back(total);
  }
  // Below the actual sum, so that rounding can neither run past the end nor hit an impossible action.
  const auto above = std::upper_bound(cumulative.begin(), cumulative.end(), draw * total);
  return static_cast<int32_t>(above - cumulative.begin());
}

// What self-play needs of searches that have ended: policies to learn [trees, A], values for the player to move
// [trees], and actions to play [trees]. A PUCT root's policy is its visits, and its action is drawn from them; a Gumbel
// root has its own.
nb::tuple harvest(BoundForest& bound, const Column<int32_t>& trees, const Column<double>& temperatures,
                  const Column<uint32_t>& keys, const Column<uint32_t>& moves) {
  check_length(trees, temperatures);
  check_length(trees, keys);
  check_length(trees, moves);
  const Holding holding(bound);
  const ForestOptions& options = bound.forest.options();
  const size_t count = trees.shape(0), width = static_cast<size_t>(bound.forest.game().num_actions);
  std::vector<float> policies(count * width), values(count);
  std::vector<int32_t> chosen(count);
  for (size_t row = 0; row < count; ++row) {
    const Tree& tree = planted_tree(bound, trees.data()[row]);
    const Node& root = tree.node(tree.root());
    if (root.kind != NodeKind::kExpanded) throw std::logic_error("a search that has ended is needed");
    values[row] = static_cast<float>(root.value_sum) / static_cast<float>(root.visits);
    const std::span<const uint16_t> actions = tree.actions(root);
    const std::span<float> policy(policies.data() + row * width, width);
    if (options.gumbel.max_considered > 0) {
      const std::vector<float> improved = tree.gumbel_policy();
      for (size_t edge = 0; edge < actions.size(); ++edge) policy[actions[edge]] = improved[edge];
      chosen[row] = tree.gumbel_action();
      continue;
    }
    const int32_t num_visits = root.visits - 1;
    for (size_t edge = 0; edge < actions.size(); ++edge) {
      policy[actions[edge]] = num_visits > 0 && root.is_open
                                  ? static_cast<float>(static_cast<double>(tree.visits(root)[edge]) / num_visits)
                                  : tree.priors(root)[edge];
    }
    const RandomKey key{options.seed, keys.data()[row], moves.data()[row]};
    chosen[row] = draw_action(policy, temperatures.data()[row], Stream(key, Purpose::kMove, 0).next_uniform());
  }
  return nb::make_tuple(to_array(std::move(policies), count, width), to_array(std::move(values), count),
                        to_array(std::move(chosen), count));
}

// Sums over trees of what their searches did.
nb::dict totals(BoundForest& bound, const Column<int32_t>& trees) {
  const Holding holding(bound);
  TreeCounters sum;
  int64_t nodes = 0, expanded = 0;
  size_t bytes = 0;
  int32_t full = 0;
  for (size_t row = 0; row < trees.shape(0); ++row) {
    const Tree& tree = bound.forest.tree(trees.data()[row]);
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

}  // namespace

void bind_roots(nb::module_& m, nb::class_<BoundForest>& forest) {
  nb::class_<NodeView>(m, "NodeView", "A copy of one node's statistics; arrays are over its legal actions, ascending.")
      .def_ro("kind", &NodeView::kind, "'new', 'waiting', 'expanded', 'over' or 'chance'.")
      .def_ro("to_play", &NodeView::to_play)
      .def_ro("visits", &NodeView::visits,
              "N(s): 1 + the sum of edge_visits once expanded, else 0; the sum alone where chance is to move.")
      .def_ro("in_flight", &NodeView::in_flight, "I(s).")
      .def_ro("value", &NodeView::value, "The evaluation, for the player to move; for player 0 if the game is over.")
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
      .def_ro("edges_in_flight", &NodeView::edges_in_flight, nb::rv_policy::automatic);

  forest.def("reset_many", &reset_many, "trees"_a, "states"_a, "Plants trees anew at `states` [trees, state_bytes].")
      .def("uproot_many", &uproot_many, "trees"_a, "Empties trees: nothing is selected until they are planted again.")
      .def("advance_many", &advance_many, "trees"_a, "moves"_a,
           "Moves each root along its action, or its outcome of chance: all of them, or none. Trees are given once.")
      .def("begin_many", &begin_many, "trees"_a, "num_simulations"_a, "keys"_a, "moves"_a, "explores"_a,
           "model_version"_a = 0,
           "Starts a search of each tree while others go on; `keys` and `moves` are the keys of their random numbers, "
           "without `explores` there is no noise at the root.")
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
      .def("root_states", &root_states, "trees"_a,
           nb::sig("def root_states(self, trees: NDArray[numpy.int32]) -> NDArray[numpy.uint8]"),
           "The positions at the roots, [trees, state_bytes].")
      .def(
          "roots", &roots, "trees"_a,
          nb::sig("def roots(self, trees: NDArray[numpy.int32]) -> tuple[NDArray[numpy.int32], NDArray[numpy.float32], "
                  "NDArray[numpy.float32], NDArray[numpy.float32]]"),
          "Visits, priors and Q [trees, A], and mean values for the player to move [trees].")
      .def("player_values", &player_values, "trees"_a,
           nb::sig("def player_values(self, trees: NDArray[numpy.int32]) -> NDArray[numpy.float32]"),
           "Mean values by player [trees, players], if there is a value per player.")
      .def("lines", &lines, "trees"_a, nb::sig("def lines(self, trees: NDArray[numpy.int32]) -> list[list[int]]"),
           "The most visited line of each tree.")
      .def("gumbel_roots", &gumbel_roots, "trees"_a,
           nb::sig("def gumbel_roots(self, trees: NDArray[numpy.int32]) -> tuple[NDArray[numpy.float32], "
                   "NDArray[numpy.int32]]"),
           "Improved policies [trees, A] and the actions to play [trees].")
      .def("harvest", &harvest, "trees"_a, "temperatures"_a, "keys"_a, "moves"_a,
           nb::sig("def harvest(self, trees: NDArray[numpy.int32], temperatures: NDArray[numpy.float64], keys: "
                   "NDArray[numpy.uint32], moves: NDArray[numpy.uint32]) -> tuple[NDArray[numpy.float32], "
                   "NDArray[numpy.float32], NDArray[numpy.int32]]"),
           "Policies to learn [trees, A], values for the player to move [trees] and actions to play [trees].")
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
