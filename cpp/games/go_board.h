// go_board.h: stones, chains and captures on a board of Go.
//
// A chain with a single liberty is in atari. Which stones are is kept from move to move: it is all that the rules ask
// of liberties. A point is playable if it has an empty neighbour, a neighbour of the mover that is not in atari (its
// chain has another liberty), or one of the opponent that is (it is taken). Of a chain only as much is looked at as
// shows two liberties, which is a stone or two of most.
#pragma once

#include <cstdint>

#include "wide_bits.h"

namespace windrow {

template <int32_t kWords>
struct GoStones {
  WideBits<kWords> of[2];  // by player
  WideBits<kWords> atari;  // of both: those whose chain has one liberty
};

template <int32_t kWords>
class GoBoard : public WideBoard<kWords> {
 public:
  using Bits = WideBits<kWords>;
  using Stones = GoStones<kWords>;

  explicit GoBoard(int32_t size) : WideBoard<kWords>(size) {
    for (int32_t point = 0; point < this->num_cells(); ++point) beside_[point] = this->neighbours(Bits::of(point));
  }

  Bits empty(const Stones& stones) const { return this->cells() - (stones.of[0] | stones.of[1]); }

  // Where a stone of `player` has a liberty or takes something: all moves but suicide.
  Bits playable(const Stones& stones, int32_t player) const {
    const Bits free = empty(stones);
    return free & this->neighbours(free | (stones.of[player] - stones.atari) | (stones.of[1 - player] & stones.atari));
  }

  // The stones that leave the board when `player` plays on the empty `point`: the opponent's, or in a suicide the own
  // ones, the new one included.
  Bits taken(const Stones& stones, int32_t player, int32_t point) const {
    const Bits& own = stones.of[player];
    const Bits weak = stones.of[1 - player] & stones.atari, beside = beside_[point];
    const Bits seeds = beside & weak;
    if (seeds.any()) return grow(seeds, weak);
    if ((beside & (empty(stones) | (own - stones.atari))).any()) return {};
    return grow(beside & own, own) | Bits::of(point);
  }

  // Plays on the empty `point`; returns what was taken.
  Bits place(Stones& stones, int32_t player, int32_t point) const {
    const Bits gone = taken(stones, player, point), beside = beside_[point];
    Bits &own = stones.of[player], &other = stones.of[1 - player];
    own.set(point);
    own -= gone;
    other -= gone;
    stones.atari -= gone;
    if (gone.has(point)) {
      relieve(stones, this->neighbours(gone), other);
      return gone;
    }
    // Chains that the new stone joins are looked at below, and those beside what was taken have one more liberty.
    relieve(stones, gone.any() ? beside | this->neighbours(gone) : beside, own);
    const Bits free = empty(stones);
    mark(stones, point, own, free);
    for (Bits rest = beside & other; rest.any();) rest -= mark(stones, rest.first(), other, free);
    return gone;
  }

  // Finds the chains in atari of stones that were put on the board.
  void find_atari(Stones& stones) const {
    stones.atari = {};
    const Bits free = empty(stones);
    for (const Bits& own : stones.of) {
      for (Bits rest = own; rest.any();) rest -= mark(stones, rest.first(), own, free);
    }
  }

  // Points of `player`: the stones, and the empty points from which only these are reached.
  int32_t area(const Stones& stones, int32_t player) const {
    const Bits free = empty(stones);
    const auto reached_by = [&](const Bits& own) { return grow(this->neighbours(own) & free, free); };
    return stones.of[player].count() + (reached_by(stones.of[player]) - reached_by(stones.of[1 - player])).count();
  }

 private:
  // What `seeds` are connected to within `all`.
  Bits grow(Bits seeds, const Bits& all) const {
    Bits grown = {};
    for (; seeds.any(); seeds = (this->neighbours(seeds) & all) - grown) grown |= seeds;
    return grown;
  }

  // The chains of `own` that touch `points` are no longer in atari.
  void relieve(Stones& stones, const Bits& points, const Bits& own) const {
    const Bits weak = own & stones.atari, seeds = points & weak;
    if (seeds.any()) stones.atari -= grow(seeds, weak);
  }

  // Marks the chain of `point`, which is one of `own`, if it has a single liberty. Returns the stones it has looked at.
  Bits mark(Stones& stones, int32_t point, const Bits& own, const Bits& free) const {
    Bits chain = Bits::of(point), reach = beside_[point];
    for (;;) {
      if ((reach & free).several()) return chain;
      const Bits more = (reach & own) - chain;
      if (!more.any()) break;
      chain |= more;
      reach |= this->neighbours(more);
    }
    stones.atari |= chain;
    return chain;
  }

  Bits beside_[64 * kWords] = {};  // the neighbours of every point
};

}  // namespace windrow
