// tree.cpp: making nodes, and moving the root.
#include "tree.h"

#include <algorithm>
#include <string>

namespace windrow {

std::vector<int32_t> Tree::actions_to(Ref leaf) const {
  std::vector<int32_t> path;
  for (Ref at = leaf; at != root_; at = node(at).parent) {
    path.push_back(actions_of(node(node(at).parent))[node(at).parent_edge]);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

Ref Tree::find(std::span<const int32_t> path) const {
  Ref at = root_;
  for (const int32_t action : path) {
    const std::span<const uint16_t> legal = actions(node(at));
    const auto found = std::find(legal.begin(), legal.end(), action);
    if (found == legal.end() || !node(at).is_open) return kNone;
    at = children(node(at))[static_cast<size_t>(found - legal.begin())];
    if (at == kNone) return kNone;
  }
  return at;
}

std::vector<int32_t> Tree::principal_variation() const {
  std::vector<int32_t> line;
  for (Ref at = root_; at != kNone && node(at).is_open;) {
    const std::span<const int32_t> counts = visits(node(at));
    const auto most = std::max_element(counts.begin(), counts.end());
    if (*most == 0) break;
    const size_t edge = static_cast<size_t>(most - counts.begin());
    line.push_back(actions(node(at))[edge]);
    at = children(node(at))[edge];
  }
  return line;
}

int64_t Tree::count_in_flight() const {
  int64_t total = 0;
  for (size_t at = 0; at < used_lines_; at += lines_of(node(static_cast<Ref>(at)))) {
    const Node& n = node(static_cast<Ref>(at));
    if (n.kind == NodeKind::kMoved) continue;
    total += n.in_flight + (n.kind == NodeKind::kWaiting ? 1 : 0);
    if (!n.is_open) continue;
    for (const uint16_t mark : edges_in_flight(n)) total += mark;
  }
  return total;
}

// Makes the state in scratch_, which lies below `parent` in the present tree or nowhere, the root of an empty one. A
// fault of the game leaves the present tree as it is.
void Tree::plant(Ref parent, int32_t parent_edge) {
  Node root = describe(parent, parent_edge);
  root.parent = kNone;
  root.parent_edge = 0;
  uproot();
  root_ = place(root);
}

// The next `lines` of the slice; kNone if they are not there.
Ref Tree::allocate(size_t lines) {
  if (lines > quota_lines_ - used_lines_) return kNone;
  const Ref ref = static_cast<Ref>(used_lines_);
  used_lines_ += lines;
  mark_live(base_ + ref * kLineBytes, lines * kLineBytes);
  return ref;
}

// Leaves the state after `action` in scratch_.
void Tree::play(Ref parent, int32_t action) {
  std::memcpy(scratch_.data(), state_of(parent), static_cast<size_t>(game_->state_bytes));
  const int32_t code = game_->apply(game_->self, scratch_.data(), action);
  if (code == 0) return;
  std::vector<int32_t> path = actions_to(parent);
  path.push_back(action);
  throw GameFault("apply failed with code " + std::to_string(code), index_, std::move(path));
}

Ref Tree::make_child(Ref parent, int32_t edge) {
  // Room for the largest possible one, so that a game is not asked for nothing.
  if (largest_light_lines_ > quota_lines_ - used_lines_) return kNone;
  play(parent, actions_of(node(parent))[edge]);
  const Ref ref = place(describe(parent, edge));
  children_of(node(parent))[edge] = ref;
  return ref;
}

// What the game says of the state in scratch_; its legal actions are left in legal_.
Node Tree::describe(Ref parent, int32_t parent_edge) {
  const void* state = scratch_.data();
  const auto fault = [&](const std::string& what) {
    std::vector<int32_t> path;
    if (parent != kNone) {
      path = actions_to(parent);
      path.push_back(actions_of(node(parent))[parent_edge]);
    }
    return GameFault(what, index_, std::move(path));
  };
  Node made{};
  made.parent = parent;
  made.parent_edge = static_cast<uint16_t>(parent_edge);
  const int32_t player = game_->to_play(game_->self, state);
  made.to_play = static_cast<int8_t>(player);
  if (player == kTerminal) {
    float values[2] = {0.0f, 0.0f};
    game_->returns(game_->self, state, values);
    if (!(std::fabs(values[0]) <= 1.0f)) throw fault("returns gave " + std::to_string(values[0]));
    made.kind = NodeKind::kOver;
    made.value = values[0];
  } else {
    if (player < 0 || player >= game_->num_players) throw fault("to_play gave " + std::to_string(player));
    const int32_t count = game_->legal_actions(game_->self, state, legal_.data());
    if (count < 1 || count > game_->max_legal_actions) {
      throw fault(count == 0 ? "the position is not finished but has no legal action"
                             : "legal_actions gave " + std::to_string(count) + " actions");
    }
    bool is_ascending = legal_[0] >= 0 && legal_[static_cast<size_t>(count) - 1] < game_->num_actions;
    for (size_t i = 1; i < static_cast<size_t>(count); ++i) is_ascending &= legal_[i - 1] < legal_[i];
    if (!is_ascending) throw fault("legal_actions are not ascending numbers below num_actions");
    made.num_edges = static_cast<uint16_t>(count);
  }
  return made;
}

// Puts a light node into the slice, with the state in scratch_ and the actions in legal_. There is room for it.
Ref Tree::place(const Node& made) {
  const Ref ref = allocate(light_lines(made.num_slots()));
  node(ref) = made;
  std::memcpy(state_of(ref), scratch_.data(), static_cast<size_t>(game_->state_bytes));
  uint16_t* actions = actions_of(node(ref));
  for (int32_t edge = 0; edge < made.num_edges; ++edge) actions[edge] = static_cast<uint16_t>(legal_[edge]);
  ++num_nodes_;
  return ref;
}

// Makes an expanded light node again with room for the statistics of its edges; kNone if there is no memory. Only its
// parent refers to it: it has no children, and no simulation that ended at it is still in flight.
Ref Tree::open(Ref light) {
  const int32_t num_slots = node(light).num_slots();
  const Ref ref = allocate(open_lines(num_slots));
  if (ref == kNone) return kNone;
  std::memcpy(base_ + ref * kLineBytes, base_ + light * kLineBytes, light_bytes(*game_, num_slots));
  Node& opened = node(ref);
  opened.is_open = true;
  std::fill_n(value_sums_of(opened), num_slots, 0.0);
  std::fill_n(visits_of(opened), num_slots, 0);
  std::fill_n(children_of(opened), num_slots, kNone);
  std::fill_n(in_flight_of(opened), num_slots, uint16_t{0});
  if (light == root_) {
    root_ = ref;
  } else {
    children_of(node(opened.parent))[opened.parent_edge] = ref;
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
  const auto size_at = [&](Ref ref) { return static_cast<Ref>(lines_of(node(ref))); };
  num_nodes_ = 0;
  num_expanded_ = 0;
  for (Ref at = 0; at < end; at += size_at(at)) {
    Node& n = node(at);
    const bool stays =
        n.kind != NodeKind::kMoved && (at == new_root || (at > new_root && node(n.parent).forward != kNone));
    n.forward = stays ? next : kNone;
    if (!stays) continue;
    next += size_at(at);
    ++num_nodes_;
    if (n.kind == NodeKind::kExpanded) ++num_expanded_;
    if (at != new_root) {
      Node& parent = node(n.parent);
      children_of(parent)[n.parent_edge] = n.forward;
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
