// tree.cpp: making nodes, and moving the root.
#include "tree.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "failure.h"

namespace windrow {

std::vector<int64_t> Tree::moves_to(Ref leaf) const {
  std::vector<int64_t> path;
  for (Ref at = leaf; at != root_; at = node(at).parent) {
    const Node& parent = node(node(at).parent);
    const int32_t edge = node(at).parent_edge;
    if (!layout_.is_table(parent)) {
      path.push_back(layout_.actions(parent)[edge]);
    } else if (edge != parent.table_size()) {  // from one table to the next nothing is played
      path.push_back(layout_.outcomes(parent)[edge]);
    }
  }
  std::reverse(path.begin(), path.end());
  return path;
}

Ref Tree::find(std::span<const int64_t> path) const {
  Ref at = root_;
  for (const int64_t move : path) {
    at = child_under(at, move);
    if (at == kNone) return kNone;
  }
  return at;
}

// kNone if it was never reached.
Ref Tree::child_under(Ref parent, int64_t move) const {
  const Node& from = node(parent);
  if (!from.is_open) return kNone;
  if (!layout_.is_table(from)) {
    const std::span<const uint16_t> moves = actions(from);
    const auto found = std::find(moves.begin(), moves.end(), move);
    return found == moves.end() ? kNone : children(from)[static_cast<size_t>(found - moves.begin())];
  }
  for (Ref at = parent; at != kNone; at = layout_.children(node(at))[node(at).table_size()]) {
    const int32_t place = place_in_table(node(at), move);
    if (place >= 0 && layout_.children(node(at))[place] != kNone) return layout_.children(node(at))[place];
  }
  return kNone;
}

Tree::Outcome Tree::outcome_of(const Node& chance, int32_t edge) const {
  const bool is_drawn = layout_.is_table(chance);
  return {is_drawn ? layout_.outcomes(chance)[edge] : layout_.actions(chance)[edge],
          is_drawn ? 0.0f : layout_.priors(chance)[edge],
          layout_.visits(chance)[edge],
          in_flight_of(layout_.in_flight(chance)[edge]),
          layout_.value_sums(chance)[edge],
          layout_.children(chance)[edge]};
}

std::vector<Tree::Outcome> Tree::outcomes(Ref chance) const {
  std::vector<Outcome> found;
  const Node& first = node(chance);
  if (!layout_.is_table(first)) {
    for (int32_t edge = 0; edge < first.num_edges; ++edge) found.push_back(outcome_of(first, edge));
    return found;
  }
  for (Ref at = chance; at != kNone; at = layout_.children(node(at))[node(at).table_size()]) {
    const Node& table = node(at);
    for (int32_t place = 0; place < table.table_size(); ++place) {
      if (layout_.children(table)[place] != kNone) found.push_back(outcome_of(table, place));
    }
  }
  std::sort(found.begin(), found.end(), [](const Outcome& a, const Outcome& b) { return a.outcome < b.outcome; });
  return found;
}

std::vector<int32_t> Tree::principal_variation(int32_t first) const {
  std::vector<int32_t> line;
  for (Ref at = root_; at != kNone && node(at).is_open && node(at).kind != NodeKind::kOfChance;) {
    const std::span<const int32_t> counts = visits(node(at));
    const std::span<const uint16_t> moves = actions(node(at));
    size_t edge = 0;
    if (at == root_ && first >= 0) {
      edge = static_cast<size_t>(std::find(moves.begin(), moves.end(), first) - moves.begin());
    } else if (proves_) {
      const std::vector<uint8_t> playable = playable_edges(node(at));
      for (size_t i = 0; i < counts.size(); ++i) {
        if (playable[i] != 0 && (playable[edge] == 0 || counts[i] > counts[edge])) edge = i;
      }
    } else {
      edge = static_cast<size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
    }
    if (counts[edge] == 0) break;
    line.push_back(moves[edge]);
    at = children(node(at))[edge];
  }
  return line;
}

int64_t Tree::count_in_flight() const {
  int64_t total = 0;
  for (size_t at = 0; at < used_lines_; at += layout_.lines(node(static_cast<Ref>(at)))) {
    const Node& n = node(static_cast<Ref>(at));
    if (n.kind == NodeKind::kMoved) continue;
    total += n.in_flight + (n.kind == NodeKind::kWaiting ? 1 : 0);
    if (!n.is_open) continue;
    for (const uint16_t mark : edges_in_flight(n)) total += in_flight_of(mark);
  }
  return total;
}

void Tree::uproot() {
  if (game_->release != nullptr) {
    for (size_t at = 0; at < used_lines_; at += layout_.lines(node(static_cast<Ref>(at)))) {
      const Ref ref = static_cast<Ref>(at);
      if (node(ref).kind != NodeKind::kMoved) game_->release(game_->self, state_of(ref));
    }
  }
  mark_dead(base_, used_lines_ * kLineBytes);
  used_lines_ = 0;
  num_nodes_ = 0;
  num_expanded_ = 0;
  clean_root_priors_.clear();
  root_ = kNone;
}

void Tree::prepare_advance(int64_t move) {
  const Node& root = node(root_);
  if (root.kind == NodeKind::kOver) throw std::invalid_argument("the game is over");
  if (!layout_.is_table(root)) {
    const std::span<const uint16_t> possible = actions(root);
    if (std::find(possible.begin(), possible.end(), move) == possible.end()) {
      throw std::invalid_argument(root.kind == NodeKind::kOfChance ? "not a possible outcome" : "not a legal action");
    }
  }
  next_root_ = child_under(root_, move);
  if (next_root_ == kNone) {
    play(root_, move);
    prepared_ = Node{};
    prepared_.parent = kNone;
    describe(prepared_, root_, move, values_);
  }
  is_prepared_ = true;
}

void Tree::finish_advance() {
  is_prepared_ = false;
  if (next_root_ != kNone) {
    keep_subtree(next_root_);
  } else {
    plant(prepared_, values_);
  }
}

void Tree::abandon_advance() {
  is_prepared_ = false;
  if (next_root_ == kNone) drop_scratch();
}

// Makes the state in scratch_, described by `root`, the root of an empty tree.
void Tree::plant(const Node& root, const float* values) {
  uproot();
  root_ = place(root, values);
}

// The next `lines` of the slice; kNone if they are not there.
Ref Tree::allocate(size_t lines) {
  if (lines > quota_lines_ - used_lines_) return kNone;
  const Ref ref = static_cast<Ref>(used_lines_);
  used_lines_ += lines;
  mark_live(base_ + ref * kLineBytes, lines * kLineBytes);
  return ref;
}

// Leaves the state after `move` in scratch_.
void Tree::play(Ref parent, int64_t move) {
  std::memcpy(scratch_.data(), state_of(parent), static_cast<size_t>(game_->state_bytes));
  if (game_->apply(game_->self, scratch_.data(), move) != kFailed) return;
  const std::string why = why_failed(*game_);
  std::vector<int64_t> path = moves_to(parent);
  path.push_back(move);
  throw GameFault("apply: " + why, index_, std::move(path));
}

void Tree::drop_scratch() {
  if (game_->release != nullptr) game_->release(game_->self, scratch_.data());
}

Ref Tree::make_child(Ref parent, int32_t edge, int64_t move) {
  // Room for the largest possible one, so that a game is not asked for nothing.
  if (largest_new_lines_ > quota_lines_ - used_lines_) return kNone;
  Node made{};
  made.parent = parent;
  made.parent_edge = static_cast<uint16_t>(edge);
  play(parent, move);
  float values[kMaxPlayers];
  describe(made, parent, move, values);
  const Ref ref = place(made, values);
  layout_.children(node(parent))[edge] = ref;
  return ref;
}

// Writes what the game says of the state in scratch_, which `move` led to from `parent`. Actions or outcomes are left
// in legal_, the probabilities of outcomes in probabilities_, the results of a finished game in `values`.
void Tree::describe(Node& made, Ref parent, int64_t move, float* values) {
  const int32_t player = game_->to_play(game_->self, scratch_.data());
  if (player < 0 || player >= game_->num_players) [[unlikely]] {
    return describe_rest(made, player, 0, parent, move, values);
  }
  // Nearly every position: a player is to move, and may.
  made.to_play = static_cast<int8_t>(player);
  const int32_t count = game_->legal_actions(game_->self, scratch_.data(), legal_.data());
  if (count < 1 || count > game_->max_legal_actions || !is_ascending(count, game_->num_actions)) [[unlikely]] {
    return describe_rest(made, player, count, parent, move, values);
  }
  made.num_edges = static_cast<uint16_t>(count);
}

bool Tree::is_ascending(int32_t count, int32_t limit) const {
  bool is_ascending = legal_[0] >= 0 && legal_[static_cast<size_t>(count) - 1] < limit;
  for (size_t i = 1; i < static_cast<size_t>(count); ++i) is_ascending &= legal_[i - 1] < legal_[i];
  return is_ascending;
}

// Where no player is to move, and faults of the game. `num_actions` is what legal_actions gave if one is.
void Tree::describe_rest(Node& made, int32_t player, int32_t num_actions, Ref parent, int64_t move, float* values) {
  try {
    if (player == kFailed) throw std::runtime_error("to_play: " + why_failed(*game_));
    if (player < kTerminal || player >= game_->num_players) {
      throw std::runtime_error("to_play gave " + std::to_string(player) + "; there are players 0 to " +
                               std::to_string(game_->num_players - 1));
    }
    made.to_play = static_cast<int8_t>(player);
    if (player == kTerminal) {
      describe_end(made, values);
    } else {
      describe_moves(made, num_actions);
    }
  } catch (const std::runtime_error& error) {
    drop_scratch();
    std::vector<int64_t> path;
    if (parent != kNone) {
      path = moves_to(parent);
      path.push_back(move);
    }
    throw GameFault(error.what(), index_, std::move(path));
  }
}

void Tree::describe_end(Node& made, float* values) {
  if (game_->returns(game_->self, scratch_.data(), values) == kFailed) {
    throw std::runtime_error("returns: " + why_failed(*game_));
  }
  for (int32_t player = 0; player < game_->num_players; ++player) {
    if (!(std::fabs(values[player]) <= 1.0f)) {
      throw std::runtime_error("returns gave " + std::to_string(values[player]) + ", not a number in [-1, 1]");
    }
  }
  if (!has_vectors() && game_->num_players == 2 && std::fabs(values[0] + values[1]) > 1e-5f) {
    throw std::runtime_error("returns of " + std::to_string(values[0]) + " and " + std::to_string(values[1]) +
                             " do not sum to zero");
  }
  made.kind = NodeKind::kOver;
  made.value = values[0];
}

void Tree::describe_moves(Node& made, int32_t num_actions) {
  const void* state = scratch_.data();
  const bool is_chance = made.to_play == kChance;
  if (is_chance) {
    made.kind = NodeKind::kOfChance;
    made.is_open = true;
    if (game_->sample_outcome != nullptr) {
      made.num_edges = kFirstTable + 1;
      return;
    }
    if (game_->chance_outcomes == nullptr) throw std::runtime_error("to_play gave chance, but the game has no chance");
  }
  const char* const method = is_chance ? "chance_outcomes" : "legal_actions";
  const int32_t most = is_chance ? game_->max_outcomes : game_->max_legal_actions;
  const int32_t limit = is_chance ? kMaxActions + 1 : game_->num_actions;
  const int32_t count =
      is_chance ? game_->chance_outcomes(game_->self, state, legal_.data(), probabilities_.data()) : num_actions;
  if (count == kFailed) throw std::runtime_error(std::string(method) + ": " + why_failed(*game_));
  if (count == 0 && !is_chance) throw std::runtime_error("the position is not finished but has no legal action");
  if (count < 1 || count > most) {
    throw std::runtime_error(std::string(method) + " gave " + std::to_string(count) + ", not 1 to " +
                             std::to_string(most));
  }
  if (!is_ascending(count, limit)) {
    throw std::runtime_error(std::string(method) + " are not ascending numbers below " + std::to_string(limit));
  }
  made.num_edges = static_cast<uint16_t>(count);
  if (!is_chance) return;
  double total = 0.0;
  bool is_possible = true;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    is_possible &= probabilities_[i] > 0.0;
    total += probabilities_[i];
  }
  if (!is_possible || std::fabs(total - 1.0) > 1e-6) {
    throw std::runtime_error("chance_outcomes gave probabilities that are not above 0 or do not sum to 1");
  }
}

// Puts a new node into the slice, with the state in scratch_, the moves in legal_ and, if the game is over, the results
// in `values`. There is room for it.
Ref Tree::place(const Node& made, const float* values) {
  const Ref ref = allocate(layout_.lines(made));
  Node& placed = node(ref);
  placed = made;
  std::memcpy(state_of(ref), scratch_.data(), static_cast<size_t>(game_->state_bytes));
  if (!layout_.is_table(made)) {
    uint16_t* actions = layout_.actions(placed);
    for (int32_t edge = 0; edge < made.num_edges; ++edge) actions[edge] = static_cast<uint16_t>(legal_[edge]);
  }
  if (made.kind == NodeKind::kOfChance) {
    clear_edges(placed);
    if (!layout_.is_table(made)) std::copy_n(probabilities_.begin(), made.num_edges, layout_.priors(placed));
  }
  if (layout_.has_squares()) std::fill_n(layout_.squares(placed), num_values(), 0.0);
  if (has_vectors()) {
    std::fill_n(layout_.player_values(placed).value_sums(), num_values(), 0.0);
    if (made.kind == NodeKind::kOver)
      std::copy_n(values, num_values(), layout_.player_values(placed).values(num_values()));
  }
  ++num_nodes_;
  return ref;
}

void Tree::clear_edges(Node& opened) {
  const int32_t num_slots = opened.num_slots();
  std::fill_n(layout_.value_sums(opened), num_slots, 0.0);
  std::fill_n(layout_.visits(opened), num_slots, 0);
  std::fill_n(layout_.children(opened), num_slots, kNone);
  std::fill_n(layout_.in_flight(opened), num_slots, uint16_t{0});
  // What is not there is not open.
  if (proves_)
    std::fill(layout_.in_flight(opened) + opened.num_edges, layout_.in_flight(opened) + num_slots, kProvenEdge);
}

// Turns the values of an evaluation, which begin with the player to move (null: they are in the block already), into
// values by player.
void Tree::seat_values(Node& at, const float* values) {
  const ValueBlock block = layout_.player_values(at);
  float* by_player = block.values(num_values());
  if (values != nullptr) std::copy_n(values, num_values(), by_player);
  at.value = by_player[0];
  std::rotate(by_player, by_player + (num_values() - at.to_play), by_player + num_values());
  for (int32_t player = 0; player < num_values(); ++player) {
    block.value_sums()[player] = static_cast<double>(by_player[player]);
  }
}

// --- Chance ------------------------------------------------------------------------------------------------------

Ref Tree::step_chance(Ref at, uint32_t draw) {
  Stream stream(key_, Purpose::kOutcome, draw, static_cast<uint32_t>(started_));
  const Node& from = node(at);
  if (!layout_.is_table(from)) {
    const std::span<const float> shares = priors(from);
    double total = 0.0;
    for (const float share : shares) total += static_cast<double>(share);
    const double drawn = stream.next_uniform() * total;
    double below = 0.0;
    int32_t edge = 0;
    for (; edge + 1 < from.num_edges; ++edge) {
      below += static_cast<double>(shares[static_cast<size_t>(edge)]);
      if (drawn < below) break;
    }
    return follow(at, edge);
  }
  int64_t outcome = 0;
  if (game_->sample_outcome(game_->self, state_of(at), stream.next_bits(), &outcome) == kFailed) {
    const std::string why = why_failed(*game_);
    throw GameFault("sample_outcome: " + why, index_, moves_to(at));
  }
  return follow_outcome(at, outcome);
}

// Where in a table an outcome is or would be; -1 if it is not there and the table takes no more.
int32_t Tree::place_in_table(const Node& table, int64_t outcome) const {
  const int32_t mask = table.table_size() - 1;
  const uint64_t mixed = static_cast<uint64_t>(outcome) * 0x9E3779B97F4A7C15u;
  int32_t place = static_cast<int32_t>(mixed >> 40) & mask;
  const Ref* children = layout_.children(table);
  const int64_t* outcomes = layout_.outcomes(table);
  while (children[place] != kNone && outcomes[place] != outcome) place = (place + 1) & mask;
  // A quarter stays free, so that looking for what is not there ends soon.
  const bool is_full = table.num_outcomes >= table.table_size() / 4 * 3;
  return children[place] == kNone && is_full ? -1 : place;
}

// As `follow`, along a drawn outcome.
Ref Tree::follow_outcome(Ref at, int64_t outcome) {
  const Ref first = at;
  const auto undo = [&] {
    if (at != first) unmark_between(at, first);
    return kNone;
  };
  for (;;) {
    const int32_t place = place_in_table(node(at), outcome);
    if (place >= 0) {
      Ref child = layout_.children(node(at))[place];
      if (child == kNone) {
        try {
          child = make_child(at, place, outcome);
        } catch (...) {
          undo();
          throw;
        }
        if (child == kNone) return undo();
        layout_.outcomes(node(at))[place] = outcome;
        ++node(at).num_outcomes;
      }
      mark(node(at), place);
      return child;
    }
    const int32_t last = node(at).table_size();
    Ref next = layout_.children(node(at))[last];
    if (next == kNone) next = make_next_table(at);
    if (next == kNone) return undo();
    mark(node(at), last);
    at = next;
  }
}

// A table of twice the size for the position of `full`, which has no room for another outcome; kNone if there is no
// memory for it.
Ref Tree::make_next_table(Ref full) {
  Node made{};
  made.parent = full;
  made.parent_edge = static_cast<uint16_t>(node(full).table_size());
  made.to_play = static_cast<int8_t>(kChance);
  made.kind = NodeKind::kOfChance;
  made.is_open = true;
  made.num_edges = static_cast<uint16_t>(std::min(2 * node(full).table_size(), kLargestTable) + 1);
  if (layout_.lines(made) > quota_lines_ - used_lines_) return kNone;
  std::memcpy(scratch_.data(), state_of(full), static_cast<size_t>(game_->state_bytes));
  if (game_->retain != nullptr) game_->retain(game_->self, scratch_.data());
  const Ref ref = place(made, nullptr);
  --num_nodes_;  // it is no position of its own
  layout_.children(node(full))[made.parent_edge] = ref;
  return ref;
}

// --- Rebuilding --------------------------------------------------------------------------------------------------

// Makes an expanded light node again with room for the statistics of its edges; kNone if there is no memory. Only its
// parent refers to it: it has no children, and no simulation that ended at it is still in flight.
Ref Tree::open(Ref light) {
  const int32_t num_slots = node(light).num_slots();
  const Ref ref = allocate(to_lines(layout_.bytes(num_slots, kOpenEdgeBytes)));
  if (ref == kNone) return kNone;
  std::memcpy(base_ + ref * kLineBytes, base_ + light * kLineBytes, layout_.bytes(num_slots, kLightEdgeBytes));
  Node& opened = node(ref);
  opened.is_open = true;
  clear_edges(opened);
  if (light == root_) {
    root_ = ref;
  } else {
    layout_.children(node(opened.parent))[opened.parent_edge] = ref;
  }
  node(light).kind = NodeKind::kMoved;
  return ref;
}

// Compacts the slice to the subtree under `new_root`, in place and without extra memory. Blocks lie parents before
// children, so one pass in that order knows of every node whether its parent stays. The first pass rewrites links,
// the second moves blocks, always towards the front.
void Tree::keep_subtree(Ref new_root) {
  Ref next = 0;
  const Ref end = static_cast<Ref>(used_lines_);
  const auto size_at = [&](Ref ref) { return static_cast<Ref>(layout_.lines(node(ref))); };
  num_nodes_ = 0;
  num_expanded_ = 0;
  for (Ref at = 0; at < end; at += size_at(at)) {
    Node& n = node(at);
    const bool stays =
        n.kind != NodeKind::kMoved && (at == new_root || (at > new_root && node(n.parent).forward != kNone));
    n.forward = stays ? next : kNone;
    if (!stays) {
      if (game_->release != nullptr && n.kind != NodeKind::kMoved) game_->release(game_->self, state_of(at));
      continue;
    }
    next += size_at(at);
    if (!is_next_table(n)) ++num_nodes_;
    if (n.kind == NodeKind::kExpanded) ++num_expanded_;
    if (at != new_root) {
      Node& parent = node(n.parent);
      layout_.children(parent)[n.parent_edge] = n.forward;
      n.parent = parent.forward;
    }
  }
  for (Ref at = new_root, size = 0; at < end; at += size) {
    size = size_at(at);
    const Ref to = node(at).forward;
    if (to == kNone) continue;
    std::memmove(base_ + to * kLineBytes, base_ + at * kLineBytes, size * kLineBytes);
  }
  root_ = kFirstRef;
  clean_root_priors_.clear();
  Node& root = node(root_);
  root.parent = kNone;
  root.parent_edge = 0;
  used_lines_ = next;
  mark_dead(base_ + used_lines_ * kLineBytes, (end - next) * kLineBytes);
}

}  // namespace windrow
