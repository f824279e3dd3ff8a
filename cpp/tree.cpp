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
    if (found == legal.end()) return kNone;
    at = children(node(at))[static_cast<size_t>(found - legal.begin())];
    if (at == kNone) return kNone;
  }
  return at;
}

std::vector<int32_t> Tree::principal_variation() const {
  std::vector<int32_t> line;
  for (Ref at = root_; at != kNone && node(at).kind == NodeKind::kExpanded;) {
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
  for (size_t at = 0; at < used_lines_; at += block_lines(node(static_cast<Ref>(at)).num_slots)) {
    const Node& n = node(static_cast<Ref>(at));
    total += n.in_flight + (n.kind == NodeKind::kWaiting ? 1 : 0);
    for (const uint16_t mark : edges_in_flight(n)) total += mark;
  }
  return total;
}

void Tree::clear() {
  mark_dead(base_, used_lines_ * kLineBytes);
  used_lines_ = 0;
  num_nodes_ = 0;
  num_expanded_ = 0;
  root_ = kNone;
  clean_root_priors_.clear();
  mark_live(base_, largest_block_lines_ * kLineBytes);
}

void Tree::apply(std::byte* state, int32_t action, Ref parent) const {
  const int32_t code = game_->apply(game_->self, state, action);
  if (code == 0) return;
  std::vector<int32_t> path = actions_to(parent);
  path.push_back(action);
  throw GameFault("apply failed with code " + std::to_string(code), index_, std::move(path));
}

Ref Tree::make_child(Ref parent, int32_t edge) {
  // Room for the largest possible node, since its size is known only after its state is.
  if (used_lines_ + largest_block_lines_ > quota_lines_) return kNone;
  const Ref ref = static_cast<Ref>(used_lines_);
  mark_live(base_ + ref * kLineBytes, largest_block_lines_ * kLineBytes);
  std::byte* state = state_of(ref);
  std::memcpy(state, state_of(parent), static_cast<size_t>(game_->state_bytes));
  apply(state, actions_of(node(parent))[edge], parent);
  finish_node(ref, parent, edge);
  children_of(node(parent))[edge] = ref;
  return ref;
}

// Turns the block at the end of the slice, its state already written, into a node.
Ref Tree::finish_node(Ref ref, Ref parent, int32_t parent_edge) {
  Node& made = node(ref);
  made = Node{};
  made.parent = parent;
  made.parent_edge = static_cast<uint16_t>(parent_edge);
  const std::byte* state = state_of(ref);
  const int32_t player = game_->to_play(game_->self, state);
  const auto fault = [&](const std::string& what) {
    std::vector<int32_t> path;
    if (parent != kNone) {
      path = actions_to(parent);
      path.push_back(actions_of(node(parent))[parent_edge]);
    }
    return GameFault(what, index_, std::move(path));
  };
  made.to_play = static_cast<int8_t>(player);
  if (player == kTerminal) {
    float values[2] = {0.0f, 0.0f};
    game_->returns(game_->self, state, values);
    made.kind = NodeKind::kOver;
    made.value = values[0];
  } else {
    if (player < 0 || player >= game_->num_players) throw fault("to_play gave " + std::to_string(player));
    const int32_t count = game_->legal_actions(game_->self, state, legal_.data());
    if (count < 1 || count > game_->max_legal_actions) {
      throw fault(count == 0 ? "the position is not finished but has no legal action"
                             : "legal_actions gave " + std::to_string(count) + " actions");
    }
    made.num_edges = static_cast<uint16_t>(count);
    made.num_slots = static_cast<uint16_t>(padded(count));
    const size_t slots = made.num_slots;
    std::fill_n(value_sums_of(made), slots, 0.0);
    std::fill_n(priors_of(made), slots, kPaddingPrior);
    std::fill_n(visits_of(made), slots, 0);
    std::fill_n(children_of(made), slots, kNone);
    std::fill_n(in_flight_of(made), slots, uint16_t{0});
    uint16_t* actions = actions_of(made);
    for (int32_t edge = 0; edge < count; ++edge) actions[edge] = static_cast<uint16_t>(legal_[edge]);
  }
  used_lines_ = ref + block_lines(made.num_slots);
  mark_dead(base_ + used_lines_ * kLineBytes, (largest_block_lines_ - block_lines(made.num_slots)) * kLineBytes);
  ++num_nodes_;
  return ref;
}

// Compacts the slice to the subtree under `new_root`, in place and without extra memory. Blocks lie parents before
// children, so one pass in that order knows of every node whether its parent stays. The first pass rewrites links,
// the second moves blocks, always towards the front.
void Tree::keep_subtree(Ref new_root) {
  Ref next = 0;
  const Ref end = static_cast<Ref>(used_lines_);
  const auto lines_of = [&](Ref ref) { return static_cast<Ref>(block_lines(node(ref).num_slots)); };
  num_nodes_ = 0;
  num_expanded_ = 0;
  for (Ref at = 0; at < end; at += lines_of(at)) {
    Node& n = node(at);
    const bool stays = at == new_root || (at > new_root && node(n.parent).forward != kNone);
    n.forward = stays ? next : kNone;
    if (!stays) continue;
    next += lines_of(at);
    ++num_nodes_;
    if (n.kind == NodeKind::kExpanded) ++num_expanded_;
    if (at != new_root) {
      Node& parent = node(n.parent);
      children_of(parent)[n.parent_edge] = n.forward;
      n.parent = parent.forward;
    }
  }
  for (Ref at = new_root, size = 0; at < end; at += size) {
    size = lines_of(at);
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
