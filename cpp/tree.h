// tree.h: one search tree in one slice of memory.
//
// A node is a block of cache lines (node.h). A child is found by its position in the slice (a Ref, in lines), and a
// node knows its parent, so a leaf alone names the whole path of a simulation. Blocks lie in the order in which they
// were made, parents before children, which lets `advance` compact the tree in place.
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
#include "node.h"
#include "random.h"
#include "rules.h"

namespace windrow {

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
  int64_t proven_nodes = 0;  // decisions and chance nodes whose value became exact
  int64_t depth_sum = 0;     // over selected simulations
  int32_t max_depth = 0;
};

class Tree {
 public:
  // `growth` must outlive the tree.
  Tree(const GameTable& game, const NodeLayout& layout, const GrowthTable& growth, int32_t index, bool proves,
       std::byte* slice, size_t slice_bytes)
      : game_(&game),
        layout_(layout),
        growth_(&growth),
        index_(index),
        proves_(proves),
        base_(slice),
        quota_lines_(std::min<size_t>(slice_bytes / kLineBytes, kNone)),
        largest_new_lines_(to_lines(layout.largest_root_bytes(game))),
        scratch_(static_cast<size_t>(game.state_bytes) / sizeof(uint64_t)),
        legal_(static_cast<size_t>(std::max(game.max_legal_actions, game.max_outcomes)) + 1),
        probabilities_(static_cast<size_t>(game.max_outcomes) + 1) {}

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

  // Flattens the expanded root's priors and mixes noise into them, in place of what an earlier search did; or only
  // undoes that, if the present search does not explore.
  void prepare_priors(float temperature, double alpha, float fraction) {
    Node& root = node(root_);
    const std::span<float> priors(layout_.priors(root), root.num_edges);
    if (clean_root_priors_.empty()) {
      clean_root_priors_.assign(priors.begin(), priors.end());
    } else {
      std::copy(clean_root_priors_.begin(), clean_root_priors_.end(), priors.begin());
    }
    if (!explores_) return;
    if (temperature != 1.0f) flatten(priors, temperature);
    if (fraction > 0.0f) mix_root_noise(key_, alpha, fraction, actions(root), priors);
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
    return actions(root)[static_cast<size_t>(gumbel_.best_edge(edges_of(root, nothing), playable_edges(root)))];
  }
  // The action of the highest lower confidence bound on its mean value, which is `deviations` standard errors wide,
  // among the playable ones with at least a tenth of the most visits; without visits, the one of highest prior.
  int32_t surest_action(float deviations) const;
  // The policy that a Gumbel search found, over the root's legal actions. Of a proven root it is the move to play.
  std::vector<float> gumbel_policy() const {
    const Node& root = node(root_);
    if (root.is_proven) {
      const std::vector<uint8_t> playable = playable_edges(root);
      return {playable.begin(), playable.end()};
    }
    const std::vector<int32_t> nothing(root.num_edges);
    return gumbel_.policy(edges_of(root, nothing));
  }

  // Moves the root to the child under `move`, an action or an outcome of chance, keeping its subtree. A child never
  // reached becomes a fresh root. In two steps, so that many trees move together or not at all: what can go wrong goes
  // wrong in the first, which changes nothing; then one of the other two follows.
  void prepare_advance(int64_t move);
  bool is_prepared() const { return is_prepared_; }
  void finish_advance();
  void abandon_advance();

  // A round begins: until it is backed up, the spread of the values at the root stays as it is.
  void begin_round(const Rules& rules) {
    if (rules.value_scale == ValueScale::kTree) root_scale_ = scale_of(node(root_));
  }

  // --- Walking down --------------------------------------------------------------------------------------------

  // One step of a simulation from an expanded node: takes the best edge, marks it in flight, and returns the child,
  // made now if this is its first visit. kNone: there is no memory for it, and nothing was marked. `at` is updated if
  // the node had to be opened.
  template <InFlight kRule, Proofs kProofs, bool kUniform>
  Ref step_down(Ref& at, const Rules& rules) {
    if (!make_open(at)) return kNone;
    const Node& from = node(at);
    const FirstPlay& first = !kUniform && at == root_ ? rules.root_first_play : rules.first_play;
    const float first_play = first.is_parent
                                 ? static_cast<float>(from.value_sum) / static_cast<float>(from.visits) - first.value
                                 : first.value;
    const float sqrt_visits = std::sqrt(static_cast<float>(from.visits + from.in_flight));
    const float constant = kUniform ? rules.c_puct : exploration(from, rules);
    return follow(
        at, best_edge<kRule, kProofs>(statistics_of(from), constant, sqrt_visits, rules.virtual_loss, first_play));
  }

  // The same below a root, along the edge whose share of the visits lags most behind the improved policy.
  Ref step_down_improved(Ref& at, const GumbelOptions& options) {
    if (!make_open(at)) return kNone;
    return follow(at, gumbel_.lagging_edge(options, edges_of(node(at), {})));
  }

  // The same from a root whose search was begun by `begin_gumbel`.
  Ref step_down_gumbel(Ref& at) {
    if (!make_open(at)) return kNone;
    return follow(at, gumbel_.next_edge(edges_of(node(root_), {}), started_));
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
    const uint16_t* actions = layout_.actions(at);
    float* priors = layout_.priors(at);
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
    float* priors = layout_.priors(at);
    float* values = has_vectors() ? layout_.player_values(at).values(num_values()) : &at.value;
    if (!fetch(at.num_edges, priors, values)) return false;
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
    if (layout_.has_squares()) set_squares(at);
    at.visits = 1;
    at.kind = NodeKind::kExpanded;
    ++num_expanded_;
    ++counters.evaluations;
  }

  // A simulation that ended at `leaf`, whose value is known, is backed up in steps: begin with `at` = leaf and the
  // value for player 0, and climb until the root is reached.
  double value_for_first_player(Ref leaf) const {
    const Node& end = node(leaf);
    // With one player there is nobody else; with two, the other's value is the negative. Where nobody is to move it is
    // the first player's already.
    return end.to_play <= 0 ? end.value : -end.value;
  }
  // Lowers the marks of the edge that leads to `at` and adds the value to it, for the player who moved there.
  template <bool kSquares>
  Ref climb(Ref at, double value) {
    const Node& child = node(at);
    Node& parent = node(child.parent);
    if constexpr (kSquares) layout_.squares(parent)[0] += value * value;
    return pass_up(child, parent, parent.to_play <= 0 ? value : -value);
  }
  // The same with the values of `leaf`, one per player.
  template <bool kSquares>
  Ref climb_with_vectors(Ref at, Ref leaf) {
    const Node& child = node(at);
    Node& parent = node(child.parent);
    const float* values = layout_.player_values(node(leaf)).values(num_values());
    double* sums = layout_.player_values(parent).value_sums();
    for (int32_t player = 0; player < num_values(); ++player) sums[player] += static_cast<double>(values[player]);
    if constexpr (kSquares) {
      double* squares = layout_.squares(parent);
      for (int32_t player = 0; player < num_values(); ++player) squares[player] += square(values[player]);
    }
    return pass_up(child, parent, static_cast<double>(values[std::max<int32_t>(parent.to_play, 0)]));
  }
  // Both again for searches that prove: what is proven at `at` is noted above it, and what is proven there takes the
  // place of what was carried up.
  template <bool kSquares>
  Ref climb_and_prove(Ref at, double& value) {
    const Ref up = climb<kSquares>(at, value);
    if (node(at).is_proven) note_proof(at);
    if (node(up).is_proven) value = value_for_first_player(up);
    return up;
  }
  template <bool kSquares>
  Ref climb_with_vectors_and_prove(Ref at, Ref& leaf) {
    const Ref up = climb_with_vectors<kSquares>(at, leaf);
    if (node(at).is_proven) note_proof(at);
    if (node(up).is_proven) leaf = up;
    return up;
  }
  // A simulation that ended here is about to be backed up.
  void note_end(Ref leaf) {
    if (node(leaf).kind == NodeKind::kOver) node(leaf).is_proven = true;
  }
  void back_up(Ref leaf) {
    if (layout_.has_squares()) {
      back_up_with<true>(leaf);
    } else {
      back_up_with<false>(leaf);
    }
    ++counters.simulations;
  }
  template <bool kSquares>
  void back_up_with(Ref leaf) {
    if (proves_) {
      note_end(leaf);
      double value = value_for_first_player(leaf);
      for (Ref at = leaf; at != root_;) {
        at = has_vectors() ? climb_with_vectors_and_prove<kSquares>(at, leaf) : climb_and_prove<kSquares>(at, value);
      }
    } else if (has_vectors()) {
      for (Ref at = leaf; at != root_;) at = climb_with_vectors<kSquares>(at, leaf);
    } else {
      const double value = value_for_first_player(leaf);
      for (Ref at = leaf; at != root_;) at = climb<kSquares>(at, value);
    }
  }

  // --- Reading -------------------------------------------------------------------------------------------------

  bool is_planted() const { return root_ != kNone; }
  Ref root() const { return root_; }
  Node& node(Ref ref) { return *reinterpret_cast<Node*>(base_ + ref * kLineBytes); }
  const Node& node(Ref ref) const { return *reinterpret_cast<const Node*>(base_ + ref * kLineBytes); }
  std::byte* state_of(Ref ref) { return base_ + ref * kLineBytes + sizeof(Node); }
  const std::byte* state_of(Ref ref) const { return base_ + ref * kLineBytes + sizeof(Node); }

  std::span<const float> priors(const Node& n) const { return {layout_.priors(n), n.num_edges}; }
  std::span<const uint16_t> actions(const Node& n) const { return {layout_.actions(n), n.num_edges}; }
  // Of open nodes only.
  std::span<const double> value_sums(const Node& n) const { return {layout_.value_sums(n), n.num_edges}; }
  std::span<const int32_t> visits(const Node& n) const { return {layout_.visits(n), n.num_edges}; }
  std::span<const Ref> children(const Node& n) const { return {layout_.children(n), n.num_edges}; }
  // With marks of proven children (rules.h).
  std::span<const uint16_t> edges_in_flight(const Node& n) const { return {layout_.in_flight(n), n.num_edges}; }

  bool proves() const { return proves_; }
  // Of an expanded node, [edges]: which moves may be played, those that no proven move beats. Of a proven node it is
  // the one that wins soonest, or holds out longest.
  std::vector<uint8_t> playable_edges(const Node& n) const;
  // A proven node's value for a player.
  float proven_value(const Node& n, int32_t player) const {
    if (has_vectors()) return layout_.player_values(n).values(num_values())[player];
    return std::max<int32_t>(n.to_play, 0) == player ? n.value : 0.0f - n.value;  // a draw is 0 for both, not -0
  }

  // Whether there is a value per player; else one value says it all.
  bool has_vectors() const { return game_->num_values > 1; }
  int32_t num_values() const { return game_->num_values; }
  // With a value per player: sums of all that came through a node, by player.
  std::span<const double> player_value_sums(const Node& n) const {
    return {layout_.player_values(n).value_sums(), static_cast<size_t>(num_values())};
  }
  bool has_squares() const { return layout_.has_squares(); }
  // With squares: sums of all squared values that came through a node, by player; one if one value says it all.
  std::span<const double> square_sums(const Node& n) const {
    return {layout_.squares(n), static_cast<size_t>(num_values())};
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
  // The most visited line from the root, ties to the lowest action; it ends where chance is to move. It begins with
  // `first` if that is given, a legal action.
  std::vector<int32_t> principal_variation(int32_t first = -1) const;
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
  int64_t remaining() const { return is_full_ || is_stopped_ || node(root_).is_proven ? 0 : budget_ - started_; }
  void start_simulation() { ++started_; }
  void stop() { is_stopped_ = true; }
  void cancel_simulation() { --started_; }
  bool is_full() const { return is_full_; }
  void set_full() { is_full_ = true; }

  TreeCounters counters;
  int32_t num_batches_out = 0;

 private:
  void seat_values(Node& at, const float* values);
  static double square(float value) { return static_cast<double>(value) * static_cast<double>(value); }
  // Begins the sums of squares with the node's own evaluation.
  void set_squares(Node& at) {
    double* squares = layout_.squares(at);
    const float* values = has_vectors() ? layout_.player_values(at).values(num_values()) : &at.value;
    for (int32_t player = 0; player < num_values(); ++player) squares[player] = square(values[player]);
  }

  Ref pass_up(const Node& child, Node& parent, double mover_value) {
    --parent.in_flight;
    ++parent.visits;
    parent.value_sum += mover_value;
    --layout_.in_flight(parent)[child.parent_edge];
    ++layout_.visits(parent)[child.parent_edge];
    layout_.value_sums(parent)[child.parent_edge] += mover_value;
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
    Ref child = layout_.children(from)[edge];
    if (child == kNone) {
      child = make_child(at, edge, layout_.actions(from)[edge]);
      if (child == kNone) return kNone;
    }
    mark(from, edge);
    return child;
  }
  void mark(Node& from, int32_t edge) {
    ++from.in_flight;
    ++layout_.in_flight(from)[edge];
  }
  // The edges of an expanded node; of one that is not open, with `nothing` for its visits.
  EdgeSpans edges_of(const Node& n, std::span<const int32_t> nothing) const {
    if (!n.is_open) return {priors(n), nothing, {}, {}, n.value};
    return {priors(n), visits(n), value_sums(n), edges_in_flight(n), n.value};
  }
  // c(s) of the selection formula (rules.h) where it is not constant.
  float exploration(const Node& n, const Rules& rules) const {
    float constant = rules.c_puct;
    if (rules.c_puct_growth > 0.0f) constant += growth_->at(rules, n.visits + n.in_flight);
    if (rules.value_scale == ValueScale::kTree) constant *= root_scale_;
    if (rules.value_scale == ValueScale::kNode) constant *= scale_of(n);
    return constant;
  }
  // The spread of the values at an expanded node, relative to the usual one.
  float scale_of(const Node& n) const { return static_cast<float>(deviation(n, n.to_play) / kUsualDeviation); }
  // The standard deviation of the values at a node that simulations have passed, for a player.
  double deviation(const Node& n, int32_t player) const {
    if (!has_vectors()) return deviation_of(n.value_sum, layout_.squares(n)[0], n.visits);
    return deviation_of(player_value_sums(n)[static_cast<size_t>(player)], layout_.squares(n)[player], n.visits);
  }

  // Forest keeps the number of simulations in flight within kMaxInFlight.
  EdgeStatistics statistics_of(const Node& n) const {
    return {n.num_slots(), layout_.value_sums(n), layout_.priors(n), layout_.visits(n), layout_.in_flight(n)};
  }

  void note_proof(Ref at);
  void prove_decision(Node& n);
  void prove_chance(Node& n);
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
    return n.parent != kNone && layout_.is_table(n) && layout_.is_table(node(n.parent)) &&
           n.parent_edge == node(n.parent).table_size();
  }
  Outcome outcome_of(const Node& chance, int32_t edge) const;
  Ref make_next_table(Ref full);
  // Takes the marks between two nodes of one path away again.
  void unmark_between(Ref low, Ref high) {
    for (Ref at = low; at != high;) {
      const Node& child = node(at);
      Node& parent = node(child.parent);
      --parent.in_flight;
      --layout_.in_flight(parent)[child.parent_edge];
      at = child.parent;
    }
  }
  int32_t place_in_table(const Node& table, int64_t outcome) const;
  Ref child_under(Ref parent, int64_t move) const;
  Ref open(Ref light);
  void keep_subtree(Ref new_root);

  const GameTable* game_;
  NodeLayout layout_;
  const GrowthTable* growth_;
  float root_scale_ = 1.0f;  // of the present round, if it is needed
  int32_t index_;
  bool proves_;
  std::byte* base_;
  size_t quota_lines_;
  size_t largest_new_lines_;
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
