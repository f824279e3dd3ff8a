// node.h: one node of a tree, and what lies where in its block of cache lines.
//
// It has two forms, of which the first is the beginning of the second:
//
//   light  | Node 40 B | state | values | squares | prior f32 x n | action u16 x n |
//   open   | ... the same ...           | value_sum f64 x n | visits i32 x n | child u32 x n | in_flight u16 x n |
//                                                       n = legal actions, padded to kLanes
//
// It is made light when it is first reached. Most nodes of a tree are never passed, and stay so; with 225 actions
// that is a quarter of an open one. When the first simulation goes on from a node it is made again as an open one, with
// room for what its edges learn. With Connect-4 the forms have two lines and four.
//
// `values` is there only if the game has a value per player (ValueBlock below), and `squares`, sums of squared values,
// only if the search needs the spread of values. Where chance is to move a node is open from the start, its edges are
// outcomes and its priors their probabilities. If outcomes cannot be listed, n is a power of two and more, and the
// edges are a table of the outcomes drawn so far:
//
//   drawn  | ... as open ...  | outcome i64 x n |
//
// When it is full its last edge leads to a larger one for the same position, and so on. Such a node never moves, so
// that parents stay before children.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "arena.h"
#include "game.h"
#include "lanes.h"

namespace windrow {

// Where in its tree's slice a node is, in lines.
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

inline int32_t padded(int32_t num_edges) { return (num_edges + kLanes - 1) / kLanes * kLanes; }

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
  bool is_proven;  // `value`, or the values by player, are exact

  // Written by complete. For the player to move here; of player 0 at a terminal or proven chance node.
  float value;

  // N(s) and I(s).
  int32_t visits;
  int32_t in_flight;  // raised by select, lowered by complete and cancel; zero between rounds

  union {
    int32_t batch;         // which batch a waiting node's row is in
    int32_t num_outcomes;  // of a table of drawn outcomes: how many it has
    int32_t distance;      // of a proven node: moves to the end of the game
  };

  int32_t num_slots() const { return padded(num_edges); }
  // Of a table of drawn outcomes: its places. The one edge more leads to the next table.
  int32_t table_size() const { return num_edges - 1; }
};
static_assert(sizeof(Node) == 40);

inline constexpr int32_t kFirstTable = 4, kLargestTable = 32768;  // sizes
inline constexpr size_t kLightEdgeBytes = 6, kOpenEdgeBytes = 24, kDrawnEdgeBytes = 32;

// What a node has if there is a value per player, before its edges: sums of the values that came through it, and its
// own evaluation or result; by player, not by seat.
class ValueBlock {
 public:
  explicit ValueBlock(const std::byte* start) : start_(const_cast<std::byte*>(start)) {}
  double* value_sums() const { return reinterpret_cast<double*>(start_); }
  float* values(int32_t num_values) const {
    return reinterpret_cast<float*>(start_ + static_cast<size_t>(num_values) * sizeof(double));
  }
  static size_t bytes(const GameTable& game) {
    if (game.num_values == 1) return 0;
    const size_t bytes = static_cast<size_t>(game.num_values) * (sizeof(double) + sizeof(float));
    return (bytes + sizeof(double) - 1) / sizeof(double) * sizeof(double);
  }

 private:
  std::byte* start_;
};

// Finds the parts of the blocks of one game's nodes. A node given must lie in its block, except where only sizes are
// asked for.
class NodeLayout {
 public:
  NodeLayout(const GameTable& game, bool has_squares)
      : values_offset_(sizeof(Node) + static_cast<size_t>(game.state_bytes)),
        squares_offset_(values_offset_ + ValueBlock::bytes(game)),
        edges_offset_(squares_offset_ + (has_squares ? sizeof(double) * static_cast<size_t>(game.num_values) : 0)),
        draws_outcomes_(game.sample_outcome != nullptr) {}

  // What the largest root of a game may need; a slice must hold at least that.
  size_t largest_root_bytes(const GameTable& game) const {
    size_t edges = kLightEdgeBytes * static_cast<size_t>(padded(game.max_legal_actions));
    edges = std::max(edges, kOpenEdgeBytes * static_cast<size_t>(padded(game.max_outcomes)));
    if (game.sample_outcome != nullptr) {
      edges = std::max(edges, kDrawnEdgeBytes * static_cast<size_t>(padded(kFirstTable + 1)));
    }
    return edges_offset_ + edges;
  }

  // Whether a node's edges are a table of drawn outcomes.
  bool is_table(const Node& n) const { return n.kind == NodeKind::kOfChance && draws_outcomes_; }
  size_t bytes(int32_t num_slots, size_t bytes_per_edge) const {
    return edges_offset_ + bytes_per_edge * static_cast<size_t>(num_slots);
  }
  size_t lines(const Node& n) const { return to_lines(bytes(n.num_slots(), bytes_per_edge(n))); }

  // Of games with a value per player only.
  ValueBlock player_values(const Node& n) const { return ValueBlock(start_of(n) + values_offset_); }

  bool has_squares() const { return edges_offset_ > squares_offset_; }
  // If the search has them: sums of the squares of all values that came through and of the own evaluation, by player;
  // one if one value says it all.
  double* squares(const Node& n) const {
    return reinterpret_cast<double*>(const_cast<std::byte*>(start_of(n) + squares_offset_));
  }

  // One entry per slot.
  float* priors(const Node& n) const { return array<float>(n, 0); }
  uint16_t* actions(const Node& n) const { return array<uint16_t>(n, 4); }
  // Of open nodes only.
  double* value_sums(const Node& n) const { return array<double>(n, 6); }
  int32_t* visits(const Node& n) const { return array<int32_t>(n, 14); }
  Ref* children(const Node& n) const { return array<Ref>(n, 18); }
  uint16_t* in_flight(const Node& n) const { return array<uint16_t>(n, 22); }
  // Of tables only.
  int64_t* outcomes(const Node& n) const { return array<int64_t>(n, 24); }

 private:
  static const std::byte* start_of(const Node& n) { return reinterpret_cast<const std::byte*>(&n); }
  template <class T>
  T* array(const Node& n, size_t bytes_per_edge_before) const {
    const std::byte* edges = start_of(n) + edges_offset_;
    return reinterpret_cast<T*>(
        const_cast<std::byte*>(edges + bytes_per_edge_before * static_cast<size_t>(n.num_slots())));
  }
  size_t bytes_per_edge(const Node& n) const {
    if (!n.is_open) return kLightEdgeBytes;
    return is_table(n) ? kDrawnEdgeBytes : kOpenEdgeBytes;
  }

  size_t values_offset_;
  size_t squares_offset_;
  size_t edges_offset_;
  bool draws_outcomes_;
};

}  // namespace windrow
