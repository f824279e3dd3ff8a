// tree.h: one search tree in one slice of memory.
//
// A node is one block of cache lines, and has two forms, of which the first is the beginning of the second:
//
//   light  | Node 40 B | state | values | prior f32 x n | action u16 x n |
//   open   | ... the same ...           | value_sum f64 x n | visits i32 x n | child u32 x n | in_flight u16 x n |
//                                                       n = legal actions, padded to kLanes
//
// It is made light when it is first reached. Most nodes of a tree are never passed, and stay so; with 225 actions
// that is a quarter of an open one. When the first simulation goes on from a node it is made again as an open one, with
// room for what its edges learn. With Connect-4 the forms have two lines and four.
//
// `values` is there only if the game has a value per player (ValueBlock below): two-player games are none the wider for
// it. Where chance is to move a node is open from the start, its edges are outcomes and its priors their probabilities.
// If outcomes cannot be listed, n is a power of two and more, and the edges are a table of the outcomes drawn so far:
//
//   drawn  | ... as open ...  | outcome i64 x n |
//
// When it is full its last edge leads to a larger one for the same position, and so on. Such a node never moves, so
// that parents stay before children.
//
// A child is found by its position in the slice (a Ref, in lines), and a node knows its parent, so a leaf alone names
// the whole path of a simulation. Blocks lie in the order in which they were made, parents before children, which lets
// `advance` compact the tree in place.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arena.h"
#include "game.h"
#include "gumbel.h"
#include "random.h"
#include "rules.h"

namespace windrow {

using Ref = uint32_t;
inline constexpr Ref kNone = 0xFFFFFFFFu;
inline constexpr Ref kFirstRef = 0;

enum class NodeKind : uint8_t {
  kNew,       // reached, not evaluated
  kWaiting,   // its evaluation is out
  kExpanded,  // has priors and a value
  kOver,      // the game has ended here
  kOfChance,  // chance is to move; has no evaluation
  kMoved,     // not a node any more: it was made again elsewhere
};

struct Node {
  // Written by backup: the own evaluation and every value that came through, for the player to move here; of player 0
  // where chance is to move.
  double value_sum;

  // Fixed once the node is made, except by advance.
  Ref parent;
  Ref forward;           // scratch of advance
  uint16_t parent_edge;  // index among the parent's edges
  uint16_t num_edges;
  int8_t to_play;  // a player, kTerminal or kChance
  NodeKind kind;
  bool is_open;

  // Written by complete. For the player to move here; of player 0 at a terminal node.
  float value;

  // N(s) and I(s).
  int32_t visits;
  int32_t in_flight;  // raised by select, lowered by complete and cancel; zero between rounds

  union {
    int32_t batch;         // which batch a waiting node's row is in
    int32_t num_outcomes;  // of a table of drawn outcomes: how many it has
  };

  int32_t num_slots() const { return (num_edges + kLanes - 1) / kLanes * kLanes; }
};
static_assert(sizeof(Node) == 40);

// Something is wrong at one position of one tree.
class PositionError : public std::runtime_error {
 public:
  PositionError(const std::string& what, int32_t at_tree, std::vector<int64_t> path)
      : std::runtime_error(what), tree(at_tree), moves(std::move(path)) {}
  int32_t tree;
  std::vector<int64_t> moves;  // from the root to the position: actions and outcomes of chance
};

// A fault in the game's own rules, met while growing a tree.
class GameFault : public PositionError {
 public:
  using PositionError::PositionError;
};

// What a search of one tree has done since `begin`.
struct TreeCounters {
  int64_t simulations = 0;
  int64_t evaluations = 0;  // nodes expanded
  int64_t collisions = 0;
  int64_t cache_hits = 0;  // evaluations that the cache knew
  int64_t terminal_hits = 0;
  int64_t depth_sum = 0;  // over selected simulations
  int32_t max_depth = 0;
};

class Tree {
 public:
  Tree(const GameTable& game, int32_t index, std::byte* slice, size_t slice_bytes)
      : game_(&game),
        index_(index),
        base_(slice),
        quota_lines_(std::min<size_t>(slice_bytes / kLineBytes, kNone)),
        largest_new_lines_(to_lines(largest_root_bytes(game))),
        edges_offset_(sizeof(Node) + static_cast<size_t>(game.state_bytes) + values_bytes(game)),
        scratch_(static_cast<size_t>(game.state_bytes) / sizeof(uint64_t)),
        legal_(static_cast<size_t>(std::max(game.max_legal_actions, game.max_outcomes)) + 1),
        probabilities_(static_cast<size_t>(game.max_outcomes) + 1) {}

  // What the largest root of a game may need; a slice must hold at least that.
  static size_t largest_root_bytes(const GameTable& game) {
    const size_t head = sizeof(Node) + static_cast<size_t>(game.state_bytes) + values_bytes(game);
    size_t edges = kLightEdgeBytes * static_cast<size_t>(padded(game.max_legal_actions));
    edges = std::max(edges, kOpenEdgeBytes * static_cast<size_t>(padded(game.max_outcomes)));
    if (game.sample_outcome != nullptr) {
      edges = std::max(edges, kDrawnEdgeBytes * static_cast<size_t>(padded(kFirstTable + 1)));
    }
    return head + edges;
  }

  // --- Building ------------------------------------------------------------------------------------------------

  // Forgets everything and starts at `state`.
  void reset(const void* state) {
    std::memcpy(scratch_.data(), state, static_cast<size_t>(game_->state_bytes));
    if (game_->retain != nullptr) game_->retain(game_->self, scratch_.data());
    float values[kMaxPlayers];
    Node root{};
    root.parent = kNone;
    describe(root, kNone, 0, values);
    plant(root, values);
  }

  // Forgets everything.
  void uproot();

  // Starts one search of the present root.
  void begin(int64_t num_simulations, RandomKey key, bool explores = true) {
    budget_ = num_simulations;
    started_ = 0;
    key_ = key;
    explores_ = explores;
    is_full_ = false;
    is_stopped_ = false;
    counters = {};
  }

  // Mixes the present search's noise, if it has any, into the expanded root's priors, in place of an earlier search's.
  void mix_noise(double alpha, float fraction) {
    Node& root = node(root_);
    const std::span<float> priors(priors_of(root), root.num_edges);
    if (clean_root_priors_.empty()) {
      clean_root_priors_.assign(priors.begin(), priors.end());
    } else {
      std::copy(clean_root_priors_.begin(), clean_root_priors_.end(), priors.begin());
    }
    if (explores_) mix_root_noise(key_, alpha, fraction, actions(root), priors);
  }

  // Lets the present search spend its simulations at the root by sequential halving.
  void begin_gumbel(const GumbelOptions& options, float scale) {
    const Node& root = node(root_);
    gumbel_.begin(options, scale, key_, budget_, actions(root),
                  root.is_open ? visits(root) : std::span<const int32_t>());
  }
  // The action that such a search would play.
  int32_t gumbel_action() const {
    const Node& root = node(root_);
    const std::vector<int32_t> nothing(root.num_edges);
    return actions(root)[static_cast<size_t>(gumbel_.best_edge(root_edges(nothing)))];
  }
  // The policy that such a search found, over the root's legal actions.
  std::vector<float> gumbel_policy() const {
    const std::vector<int32_t> nothing(node(root_).num_edges);
    return gumbel_.policy(root_edges(nothing));
  }

  // Moves the root to the child under `move`, an action or an outcome of chance, keeping its subtree. A child never
  // reached becomes a fresh root. In two steps, so that many trees move together or not at all: what can go wrong goes
  // wrong in the first, which changes nothing; then one of the other two follows.
  void prepare_advance(int64_t move);
  bool is_prepared() const { return is_prepared_; }
  void finish_advance();
  void abandon_advance();

  // --- Walking down --------------------------------------------------------------------------------------------

  // One step of a simulation from an expanded node: takes the best edge, marks it in flight, and returns the child,
  // made now if this is its first visit. kNone: there is no memory for it, and nothing was marked. `at` is updated if
  // the node had to be opened.
  template <InFlight kRule>
  Ref step_down(Ref& at, const Rules& rules) {
    if (!make_open(at)) return kNone;
    const Node& from = node(at);
    const float first_play =
        rules.first_play == FirstPlay::kValue
            ? rules.first_play_value
            : static_cast<float>(from.value_sum) / static_cast<float>(from.visits) - rules.first_play_value;
    const float root = std::sqrt(static_cast<float>(from.visits + from.in_flight));
    return follow(at, best_edge<kRule>(statistics_of(from), rules.c_puct, root, rules.virtual_loss, first_play));
  }

  // The same from a root whose search was begun by `begin_gumbel`.
  Ref step_down_gumbel(Ref& at) {
    if (!make_open(at)) return kNone;
    return follow(at, gumbel_.next_edge(root_edges({}), started_));
  }

  // The same from a node where chance is to move. `draw` counts the draws of this simulation so far: with the search's
  // key and the number of the simulation it decides the outcome, so a simulation that is undone is drawn again alike.
  Ref step_chance(Ref at, uint32_t draw);

  // Takes the marks of a simulation that ended at `leaf` away again.
  void unmark(Ref leaf) { unmark_between(leaf, root_); }

  // --- Putting answers back ------------------------------------------------------------------------------------

  // Writes the priors of a leaf: the law's softmax over its legal logits, which must be finite. Changes nothing another
  // simulation could see before `expand`.
  void write_priors(Ref leaf, const float* logits) {
    Node& at = node(leaf);
    const uint16_t* actions = actions_of(at);
    float* priors = priors_of(at);
    for (int32_t edge = 0; edge < at.num_edges; ++edge) priors[edge] = logits[actions[edge]];
    std::fill(priors + at.num_edges, priors + at.num_slots(), kPadding);
    softmax(priors, at.num_slots());
    std::fill(priors + at.num_edges, priors + at.num_slots(), kPadding);
  }

  // The same from elsewhere: `fetch(count, priors, values)` writes what it knows of a leaf, or returns false. The
  // values [num_values] are kept in the node until `expand`, which is then given none.
  template <class Fetch>
  bool fetch_priors(Ref leaf, const Fetch& fetch) {
    Node& at = node(leaf);
    float* priors = priors_of(at);
    if (!fetch(at.num_edges, priors, has_vectors() ? block_of(at).values(num_values()) : &at.value)) return false;
    std::fill(priors + at.num_edges, priors + at.num_slots(), kPadding);
    return true;
  }
  // What fetch_priors put there is no longer wanted.
  void forget_values(Ref leaf) { node(leaf).value = 0.0f; }

  // Makes a waiting leaf, its priors already written, a node simulations can pass. `values` [num_values] begin with the
  // player to move; null: those that fetch_priors kept.
  void expand(Ref leaf, const float* values) {
    Node& at = node(leaf);
    if (has_vectors()) {
      seat_values(at, values);
    } else if (values != nullptr) {
      at.value = *values;
    }
    at.value_sum = static_cast<double>(at.value);
    at.visits = 1;
    at.kind = NodeKind::kExpanded;
    ++num_expanded_;
    ++counters.evaluations;
  }

  // A simulation that ended at `leaf`, whose value is known, is backed up in steps: begin with `at` = leaf and the
  // value for player 0, and climb until the root is reached.
  double value_for_first_player(Ref leaf) const {
    const Node& end = node(leaf);
    // With one player there is nobody else; with two, the other's value is the negative.
    return end.kind == NodeKind::kOver || end.to_play == 0 ? end.value : -end.value;
  }
  // Lowers the marks of the edge that leads to `at` and adds the value to it, for the player who moved there.
  Ref climb(Ref at, double value) {
    const Node& child = node(at);
    Node& parent = node(child.parent);
    return pass_up(child, parent, parent.to_play <= 0 ? value : -value);
  }
  // The same with the values of `leaf`, one per player.
  Ref climb_with_vectors(Ref at, Ref leaf) {
    const Node& child = node(at);
    Node& parent = node(child.parent);
    const float* values = block_of(node(leaf)).values(num_values());
    double* sums = block_of(parent).value_sums();
    for (int32_t player = 0; player < num_values(); ++player) sums[player] += static_cast<double>(values[player]);
    return pass_up(child, parent, static_cast<double>(values[std::max<int32_t>(parent.to_play, 0)]));
  }
  void back_up(Ref leaf) {
    if (has_vectors()) {
      for (Ref at = leaf; at != root_;) at = climb_with_vectors(at, leaf);
    } else {
      const double value = value_for_first_player(leaf);
      for (Ref at = leaf; at != root_;) at = climb(at, value);
    }
    ++counters.simulations;
  }

  // --- Reading -------------------------------------------------------------------------------------------------

  bool is_planted() const { return root_ != kNone; }
  Ref root() const { return root_; }
  Node& node(Ref ref) { return *reinterpret_cast<Node*>(base_ + ref * kLineBytes); }
  const Node& node(Ref ref) const { return *reinterpret_cast<const Node*>(base_ + ref * kLineBytes); }
  std::byte* state_of(Ref ref) { return base_ + ref * kLineBytes + sizeof(Node); }
  const std::byte* state_of(Ref ref) const { return base_ + ref * kLineBytes + sizeof(Node); }

  std::span<const float> priors(const Node& n) const { return {priors_of(n), n.num_edges}; }
  std::span<const uint16_t> actions(const Node& n) const { return {actions_of(n), n.num_edges}; }
  // Of open nodes only.
  std::span<const double> value_sums(const Node& n) const { return {value_sums_of(n), n.num_edges}; }
  std::span<const int32_t> visits(const Node& n) const { return {visits_of(n), n.num_edges}; }
  std::span<const Ref> children(const Node& n) const { return {children_of(n), n.num_edges}; }
  std::span<const uint16_t> edges_in_flight(const Node& n) const { return {in_flight_of(n), n.num_edges}; }

  // Whether there is a value per player; else one value says it all.
  bool has_vectors() const { return game_->num_values > 1; }
  int32_t num_values() const { return game_->num_values; }
  // With a value per player: sums of all that came through a node, by player.
  std::span<const double> player_value_sums(const Node& n) const {
    return {block_of(n).value_sums(), static_cast<size_t>(num_values())};
  }
  // The outcomes that a node of chance has had or, if they are listed, may have, and how often each came.
  struct Outcome {
    int64_t outcome;
    float probability;  // 0 if it is not known
    int32_t visits;
    int32_t in_flight;
    double value_sum;
    Ref child;  // kNone if it never came
  };
  std::vector<Outcome> outcomes(Ref chance) const;  // ascending

  // The moves that lead from the root to `leaf`: actions and outcomes of chance.
  std::vector<int64_t> moves_to(Ref leaf) const;
  // The node that `path` leads to from the root; kNone if it was never reached.
  Ref find(std::span<const int64_t> path) const;
  // The most visited line from the root, ties to the lowest action; it ends where chance is to move.
  std::vector<int32_t> principal_variation() const;
  // All in-flight marks, counted by a walk over the whole tree: for tests and checks.
  int64_t count_in_flight() const;

  int64_t num_nodes() const { return num_nodes_; }
  int64_t num_expanded() const { return num_expanded_; }
  size_t bytes() const { return used_lines_ * kLineBytes; }
  int32_t index() const { return index_; }
  // Where the next node will be made.
  void prefetch_free() const { prefetch(static_cast<Ref>(used_lines_)); }
  void prefetch(Ref ref) const {
    const std::byte* block = base_ + ref * kLineBytes;
    for (size_t line = 0; line < 4; ++line) __builtin_prefetch(block + line * kLineBytes, 1);
  }

  // The budget of the present search. `started` counts simulations that were selected and not cancelled.
  int64_t remaining() const { return is_full_ || is_stopped_ ? 0 : budget_ - started_; }
  void start_simulation() { ++started_; }
  void stop() { is_stopped_ = true; }
  void cancel_simulation() { --started_; }
  bool is_full() const { return is_full_; }
  void set_full() { is_full_ = true; }

  TreeCounters counters;
  int32_t num_batches_out = 0;

 private:
  // What a node has if there is a value per player, before its edges: sums of the values that came through it, and its
  // own evaluation or result; by player, not by seat.
  class ValueBlock {
   public:
    explicit ValueBlock(const std::byte* start) : start_(const_cast<std::byte*>(start)) {}
    double* value_sums() const { return reinterpret_cast<double*>(start_); }
    float* values(int32_t num_values) const {
      return reinterpret_cast<float*>(start_ + static_cast<size_t>(num_values) * sizeof(double));
    }

   private:
    std::byte* start_;
  };
  static size_t values_bytes(const GameTable& game) {
    if (game.num_values == 1) return 0;
    const size_t bytes = static_cast<size_t>(game.num_values) * (sizeof(double) + sizeof(float));
    return (bytes + sizeof(double) - 1) / sizeof(double) * sizeof(double);
  }
  ValueBlock block_of(const Node& n) const {
    return ValueBlock(reinterpret_cast<const std::byte*>(&n) + sizeof(Node) + game_->state_bytes);
  }
  void seat_values(Node& at, const float* values);

  Ref pass_up(const Node& child, Node& parent, double mover_value) {
    --parent.in_flight;
    ++parent.visits;
    parent.value_sum += mover_value;
    --in_flight_of(parent)[child.parent_edge];
    ++visits_of(parent)[child.parent_edge];
    value_sums_of(parent)[child.parent_edge] += mover_value;
    return child.parent;
  }
  bool make_open(Ref& at) {
    if (node(at).is_open) return true;
    const Ref opened = open(at);
    if (opened == kNone) return false;
    at = opened;
    return true;
  }
  // Marks an edge of an open node in flight and returns the child it leads to; kNone if there is no memory for one.
  Ref follow(Ref at, int32_t edge) {
    Node& from = node(at);
    Ref child = children_of(from)[edge];
    if (child == kNone) {
      child = make_child(at, edge, actions_of(from)[edge]);
      if (child == kNone) return kNone;
    }
    mark(from, edge);
    return child;
  }
  void mark(Node& from, int32_t edge) {
    ++from.in_flight;
    ++in_flight_of(from)[edge];
  }
  // The root's edges; of a root that is not open, with `nothing` for its visits.
  RootEdges root_edges(std::span<const int32_t> nothing) const {
    const Node& root = node(root_);
    if (!root.is_open) return {priors(root), nothing, {}, {}, root.value};
    return {priors(root), visits(root), value_sums(root), edges_in_flight(root), root.value};
  }

  // A mark is 16 bits wide; Forest keeps the number of simulations in flight below that.
  EdgeStatistics statistics_of(const Node& n) const {
    return {n.num_slots(), value_sums_of(n), priors_of(n), visits_of(n), in_flight_of(n)};
  }
  template <class T>
  T* array_of(const Node& n, size_t bytes_per_edge_before) const {
    const std::byte* edges = reinterpret_cast<const std::byte*>(&n) + edges_offset_;
    return reinterpret_cast<T*>(
        const_cast<std::byte*>(edges + bytes_per_edge_before * static_cast<size_t>(n.num_slots())));
  }
  float* priors_of(const Node& n) const { return array_of<float>(n, 0); }
  uint16_t* actions_of(const Node& n) const { return array_of<uint16_t>(n, 4); }
  double* value_sums_of(const Node& n) const { return array_of<double>(n, 6); }
  int32_t* visits_of(const Node& n) const { return array_of<int32_t>(n, 14); }
  Ref* children_of(const Node& n) const { return array_of<Ref>(n, 18); }
  uint16_t* in_flight_of(const Node& n) const { return array_of<uint16_t>(n, 22); }
  int64_t* outcomes_of(const Node& n) const { return array_of<int64_t>(n, 24); }
  static constexpr size_t kLightEdgeBytes = 6, kOpenEdgeBytes = 24, kDrawnEdgeBytes = 32;
  // A table of drawn outcomes: its places, and one edge more that leads to the next table.
  static constexpr int32_t kFirstTable = 4, kLargestTable = 32768;
  static int32_t table_size(const Node& n) { return n.num_edges - 1; }
  bool is_table(const Node& n) const { return n.kind == NodeKind::kOfChance && game_->sample_outcome != nullptr; }

  static int32_t padded(int32_t count) { return (count + kLanes - 1) / kLanes * kLanes; }
  size_t block_bytes(int32_t num_slots, size_t bytes_per_edge) const {
    return edges_offset_ + bytes_per_edge * static_cast<size_t>(num_slots);
  }
  size_t bytes_per_edge(const Node& n) const {
    if (!n.is_open) return kLightEdgeBytes;
    return is_table(n) ? kDrawnEdgeBytes : kOpenEdgeBytes;
  }
  size_t lines_of(const Node& n) const { return to_lines(block_bytes(n.num_slots(), bytes_per_edge(n))); }

  Ref allocate(size_t lines);
  void play(Ref parent, int64_t move);
  void drop_scratch();
  void describe(Node& made, Ref parent, int64_t move, float* values);
  void describe_rest(Node& made, int32_t player, int32_t num_actions, Ref parent, int64_t move, float* values);
  bool is_ascending(int32_t count, int32_t limit) const;
  void describe_end(Node& made, float* values);
  void describe_moves(Node& made, int32_t num_actions);
  Ref place(const Node& made, const float* values);
  void clear_edges(Node& opened);
  void plant(const Node& root, const float* values);
  Ref make_child(Ref parent, int32_t edge, int64_t move);
  Ref follow_outcome(Ref at, int64_t outcome);
  // Whether a node is the continuation of a table of outcomes, and no position of its own.
  bool is_next_table(const Node& n) const {
    return n.parent != kNone && is_table(n) && is_table(node(n.parent)) && n.parent_edge == table_size(node(n.parent));
  }
  Outcome outcome_of(const Node& chance, int32_t edge) const;
  Ref make_next_table(Ref full);
  // Takes the marks between two nodes of one path away again.
  void unmark_between(Ref low, Ref high) {
    for (Ref at = low; at != high;) {
      const Node& child = node(at);
      Node& parent = node(child.parent);
      --parent.in_flight;
      --in_flight_of(parent)[child.parent_edge];
      at = child.parent;
    }
  }
  int32_t place_in_table(const Node& table, int64_t outcome) const;
  Ref child_under(Ref parent, int64_t move) const;
  Ref open(Ref light);
  void keep_subtree(Ref new_root);

  const GameTable* game_;
  int32_t index_;
  std::byte* base_;
  size_t quota_lines_;
  size_t largest_new_lines_;
  size_t edges_offset_;                // of a block: where its edges begin
  std::vector<uint64_t> scratch_;      // the state of a node in the making, owned by it until it is placed
  std::vector<int32_t> legal_;         // scratch: its actions, or its outcomes
  std::vector<double> probabilities_;  // scratch: of its outcomes

  bool is_prepared_ = false;
  // Between prepare_advance and what follows it.
  Ref next_root_ = kNone;        // the child that is there, else:
  Node prepared_{};              // a new one, its state in scratch_
  float values_[kMaxPlayers]{};  // and its results, if the game is over there

  Ref root_ = kNone;
  GumbelRoot gumbel_;
  std::vector<float> clean_root_priors_;  // the root's priors before noise; empty while they have none
  size_t used_lines_ = 0;
  int64_t num_nodes_ = 0;
  int64_t num_expanded_ = 0;

  RandomKey key_;
  bool explores_ = true;
  int64_t budget_ = 0;
  int64_t started_ = 0;
  bool is_full_ = false;     // there is no memory for another node
  bool is_stopped_ = false;  // the search was asked to end
};

}  // namespace windrow
