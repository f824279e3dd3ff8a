// forest_select.cpp: the way down: which trees, which leaves, their rows and their observations.
#include <algorithm>
#include <optional>

#include "failure.h"
#include "forest.h"

namespace windrow {

namespace {

// Simulations without an evaluation that a tree may do in one call of select: enough that the call costs nothing
// beside them, few enough that a search in which every game ends at once can still be stopped.
constexpr int64_t kMaxFreeSimulations = 4096;

}  // namespace

// One tree's round in the making.
struct Forest::Cursor {
  Round* round = nullptr;
  Tree* tree = nullptr;
  Ref at = kNone;
  int32_t depth = 0;        // actions from the root; what chance does is not counted
  uint32_t num_draws = 0;   // of chance, in this simulation
  int64_t wanted = 0;       // simulations still to select in this round
  int64_t num_free = 0;     // simulations of this call that needed no evaluation
  bool has_shared = false;  // a simulation of this round waits for a leaf of another batch
};

bool Forest::is_ready(const Tree& tree, bool overlap) const {
  if (!tree.is_planted() || (tree.num_batches_out > 0 && !overlap)) return false;
  const Node& root = tree.node(tree.root());
  if (root.kind == NodeKind::kNew) return true;
  return root.kind == NodeKind::kExpanded && tree.remaining() > 0 &&
         root.in_flight + options_.leaves_per_tree <= kMaxInFlight;
}

// Gives the batch a round for every tree that is ready, in turn, as long as the rows are sure to fit. Looks at no more
// than `num_left` trees; returns how many of those it did not get to.
int32_t Forest::choose_trees(Batch& batch, int32_t max_leaves, int32_t first, int32_t last, bool overlap,
                             int32_t num_left) {
  int64_t rows = 0;
  for (; num_left > 0; --num_left) {
    Tree& tree = trees_[static_cast<size_t>(turn_)];
    if (is_ready(tree, overlap)) {
      // A new root is one row, unless the cache knows it: then a round follows at once.
      const bool is_only_root = tree.node(tree.root()).kind == NodeKind::kNew && cache_ == nullptr;
      const int64_t wanted =
          is_only_root ? 1 : std::max<int64_t>(std::min<int64_t>(options_.leaves_per_tree, tree.remaining()), 1);
      if (rows > 0 && rows + wanted > max_leaves) break;
      rows += wanted;
      if (batch.rounds.size() == static_cast<size_t>(batch.num_rounds)) batch.rounds.emplace_back();
      Round& round = batch.rounds[static_cast<size_t>(batch.num_rounds++)];
      round.tree = turn_;
      round.leaves.clear();
      round.known.clear();
      round.simulations.clear();
      ++tree.num_batches_out;
    }
    if (++turn_ == last) turn_ = first;
  }
  return num_left;
}

Batch& Forest::select(int32_t max_leaves, int32_t first, int32_t last, bool overlap, float* observations) {
  Batch& batch = take_batch();
  {
    const Timer timer(*this, seconds_.select);
    if (turn_ < first || turn_ >= last) turn_ = first;
    // Trees whose games all end within reach need no evaluation: then the next ones are tried, each tree once.
    for (int32_t num_left = last - first; num_left > 0 && batch.num_rows == 0;) {
      release_trees(batch);
      num_left = choose_trees(batch, max_leaves, first, last, overlap, num_left);
      try {
        gather_all(batch);
      } catch (...) {
        cancel(batch);
        throw;
      }
      number_rows(batch);
    }
  }
  if (batch.num_rows == 0) {
    give_back(batch);
    return batch;
  }
  if (observations == nullptr) return batch;
  const Timer timer(*this, seconds_.encode);
  try {
    write_observations(batch, observations);
  } catch (...) {
    cancel(batch);
    throw;
  }
  return batch;
}

void Forest::write_observations(const Batch& batch, float* observations) {
  pool_.for_each(batch.num_rounds, piece_size(batch.num_rounds), [&](int32_t begin, int32_t end) {
    for_each_round(batch, begin, end, [&](const Round& round) {
      const Tree& tree = trees_[static_cast<size_t>(round.tree)];
      for (const Leaf& leaf : round.leaves) {
        if (!leaf.is_owner) continue;
        float* row = observations + static_cast<size_t>(leaf.row) * static_cast<size_t>(game_.observation_floats);
        if (game_.observe(game_.self, tree.state_of(leaf.node), row) == kFailed) {
          const std::string why = why_failed(game_);
          throw GameFault("observe: " + why, tree.index(), tree.moves_to(leaf.node));
        }
      }
    });
  });
}

// Gives every leaf its row. With a cache, equal positions share one: a small hash table by key says whether a position
// has come before.
void Forest::number_rows(Batch& batch) {
  size_t num_leaves = 0;
  for (int32_t i = 0; i < batch.num_rounds; ++i) num_leaves += batch.rounds[static_cast<size_t>(i)].leaves.size();
  size_t mask = 1;
  if (cache_ != nullptr) {
    while (mask < 2 * num_leaves) mask *= 2;
    batch.rows_by_key.assign(mask, -1);
    batch.owners.clear();
  }
  --mask;
  for (int32_t i = 0; i < batch.num_rounds; ++i) {
    for (Leaf& leaf : batch.rounds[static_cast<size_t>(i)].leaves) {
      leaf.row = batch.num_rows;
      if (cache_ != nullptr) {
        // Images of one position have one key, but answers of their own.
        const auto is_equal = [&](const Leaf& other) {
          return other.key == leaf.key && other.symmetry == leaf.symmetry;
        };
        size_t place = leaf.key.place & mask;
        while (batch.rows_by_key[place] >= 0 &&
               !is_equal(*batch.owners[static_cast<size_t>(batch.rows_by_key[place])])) {
          place = (place + 1) & mask;
        }
        if (batch.rows_by_key[place] >= 0) {
          leaf.row = batch.rows_by_key[place];
          leaf.is_owner = false;
          continue;
        }
        batch.rows_by_key[place] = batch.num_rows;
        batch.owners.push_back(&leaf);
      }
      ++batch.num_rows;
    }
  }
}

void Forest::gather_all(Batch& batch) {
  pool_.for_each(batch.num_rounds, piece_size(batch.num_rounds), [&](int32_t begin, int32_t end) {
    const bool is_uniform = options_.rules.are_uniform();
    const auto gather_by = [&]<InFlight kRule>() {
      if (options_.proves) {
        return is_uniform ? gather<kRule, Proofs::kMarked, true>(batch, begin, end)
                          : gather<kRule, Proofs::kMarked, false>(batch, begin, end);
      }
      return is_uniform ? gather<kRule, Proofs::kNone, true>(batch, begin, end)
                        : gather<kRule, Proofs::kNone, false>(batch, begin, end);
    };
    switch (options_.rules.in_flight) {
      case InFlight::kVisits:
        return gather_by.template operator()<InFlight::kVisits>();
      case InFlight::kLoss:
        return gather_by.template operator()<InFlight::kLoss>();
      case InFlight::kDilute:
        return gather_by.template operator()<InFlight::kDilute>();
    }
  });
}

// A leaf that was never evaluated joins the round: with what the cache knows, or with a row to be evaluated.
void Forest::take_leaf(Tree& tree, Ref leaf, Round& round, const Batch& batch) {
  Leaf taken{.node = leaf};
  if (cache_ != nullptr && ask_cache(tree, taken)) {
    round.known.push_back(leaf);
    ++tree.counters.cache_hits;
  } else {
    round.leaves.push_back(taken);
  }
  Node& node = tree.node(leaf);
  node.kind = NodeKind::kWaiting;
  node.batch = batch.slot;
}

// Gives a leaf its key. True: the cache knew it, and its priors and values are written.
bool Forest::ask_cache(Tree& tree, Leaf& leaf) {
  const std::byte* state = tree.state_of(leaf.node);
  const auto fail = [&](const char* method) {
    const std::string why = why_failed(game_);
    throw GameFault(std::string(method) + ": " + why, tree.index(), tree.moves_to(leaf.node));
  };
  if (canonizer_ == nullptr) {
    uint64_t hash[2];
    if (game_.hash(game_.self, state, hash) == kFailed) fail("hash");
    leaf.key = make_key(hash, model_version_);
    if (game_.num_values == 1) {
      return tree.fetch_priors(leaf.node, [&](int32_t count, float* priors, float* value) {
        return cache_->find(leaf.key, count, priors, value);
      });
    }
  } else {
    const std::optional<Canonizer::Position> position = canonizer_->find(state, model_version_);
    if (!position) fail("observe");
    leaf.key = position->key;
    leaf.symmetry = position->symmetry;
  }
  return tree.fetch_priors(leaf.node, [&](int32_t count, float* priors, float* values) {
    // The other players' values come after the priors.
    const int32_t num_others = game_.num_values - 1;
    std::vector<float> known(static_cast<size_t>(count + num_others));
    if (!cache_->find(leaf.key, count + num_others, known.data(), values)) return false;
    std::copy_n(known.begin() + count, num_others, values + 1);
    if (canonizer_ == nullptr) {
      std::copy_n(known.begin(), count, priors);
    } else {
      const std::vector<int32_t> order = canonizer_->order(leaf.symmetry, tree.actions(tree.node(leaf.node)));
      for (size_t i = 0; i < order.size(); ++i) priors[order[i]] = known[i];
    }
    return true;
  });
}

void Forest::tell_cache(const Tree& tree, const Leaf& leaf, const float* values) {
  const Node& node = tree.node(leaf.node);
  const std::span<const float> priors = tree.priors(node);
  if (canonizer_ == nullptr && game_.num_values == 1) {
    return cache_->insert(leaf.key, node.num_edges, priors.data(), values[0]);
  }
  std::vector<float> known(priors.begin(), priors.end());
  if (canonizer_ != nullptr) {
    known.clear();
    for (const int32_t place : canonizer_->order(leaf.symmetry, tree.actions(node))) {
      known.push_back(priors[static_cast<size_t>(place)]);
    }
  }
  known.insert(known.end(), values + 1, values + game_.num_values);
  cache_->insert(leaf.key, static_cast<int32_t>(known.size()), known.data(), values[0]);
}

// Puts the cursor at the root for a new round. False: there is nothing to select.
bool Forest::start_round(Cursor& cursor, const Batch& batch) {
  Tree& tree = *cursor.tree;
  cursor.at = tree.root();
  if (tree.node(tree.root()).kind == NodeKind::kNew) {
    take_leaf(tree, tree.root(), *cursor.round, batch);
    if (cursor.round->known.empty()) return false;
    expand(tree, tree.root(), nullptr);
    cursor.round->known.clear();
  }
  tree.begin_round(options_.rules);
  cursor.wanted = std::min<int64_t>(options_.leaves_per_tree, tree.remaining());
  cursor.has_shared = false;
  cursor.depth = 0;
  cursor.num_draws = 0;
  tree.prefetch(tree.root());
  tree.prefetch_free();
  return cursor.wanted > 0;
}

// A round that needs no evaluation is complete at once, and its tree goes on. False: the tree is done for this batch.
bool Forest::end_round(Cursor& cursor, const Batch& batch) {
  Round& round = *cursor.round;
  if (!round.leaves.empty() || round.simulations.empty()) return false;
  for (const Ref leaf : round.known) expand(*cursor.tree, leaf, nullptr);
  for (const Ref leaf : round.simulations) cursor.tree->back_up(leaf);
  cursor.num_free += static_cast<int64_t>(round.simulations.size());
  round.known.clear();
  round.simulations.clear();
  // With simulations that wait for another batch, going on would only pile up more of them.
  return !cursor.has_shared && cursor.num_free < kMaxFreeSimulations && start_round(cursor, batch);
}

void Forest::expand(Tree& tree, Ref leaf, const float* values) {
  tree.expand(leaf, values);
  if (leaf == tree.root()) prepare_priors(tree);
}

Round& Forest::round_of(int32_t slot, int32_t tree) {
  Batch& owner = batch(slot);
  const auto end = owner.rounds.begin() + owner.num_rounds;
  return *std::find_if(owner.rounds.begin(), end, [tree](const Round& round) { return round.tree == tree; });
}

// Gathers the rounds [begin, end) of a batch. Several descents are under way at once, one step of each in turn, so
// that while one waits for its next node to arrive from memory the others work.
template <InFlight kRule, Proofs kProofs, bool kUniform>
void Forest::gather(Batch& batch, int32_t begin, int32_t end) {
  Cursor cursors[kInterleave];
  int32_t num_active = 0, next = begin;
  const int32_t max_depth = options_.max_depth > 0 ? options_.max_depth : INT32_MAX;

  const auto take_next_tree = [&](Cursor& cursor) {
    while (next < end) {
      cursor.round = &batch.rounds[static_cast<size_t>(next++)];
      cursor.tree = &trees_[static_cast<size_t>(cursor.round->tree)];
      cursor.num_free = 0;
      if (start_round(cursor, batch)) return true;
    }
    return false;
  };
  // One simulation has reached its end. False: so has the round.
  const auto end_simulation = [&](Cursor& cursor, Round& owner) {
    Tree& tree = *cursor.tree;
    owner.simulations.push_back(cursor.at);
    tree.start_simulation();
    tree.counters.depth_sum += cursor.depth;
    tree.counters.max_depth = std::max(tree.counters.max_depth, cursor.depth);
    cursor.at = tree.root();
    cursor.depth = 0;
    cursor.num_draws = 0;
    return --cursor.wanted > 0;
  };
  const auto move_to = [](Cursor& cursor, Ref child) {
    Tree& tree = *cursor.tree;
    if (child == kNone) {
      tree.unmark(cursor.at);
      tree.set_full();
      return false;
    }
    tree.prefetch(child);
    cursor.at = child;
    return true;
  };
  // One step. False: the round has ended.
  const auto step = [&](Cursor& cursor) {
    Tree& tree = *cursor.tree;
    Node& node = tree.node(cursor.at);
    if constexpr (kProofs == Proofs::kMarked) {
      if (node.is_proven && node.kind != NodeKind::kOver) return end_simulation(cursor, *cursor.round);
    }
    switch (node.kind) {
      case NodeKind::kExpanded: {
        if (cursor.depth == max_depth) return end_simulation(cursor, *cursor.round);
        const bool is_root = cursor.depth++ == 0;
        if (is_root && options_.gumbel.max_considered > 0) return move_to(cursor, tree.step_down_gumbel(cursor.at));
        if (!is_root && options_.improves_interior) {
          return move_to(cursor, tree.step_down_improved(cursor.at, options_.gumbel));
        }
        return move_to(cursor, tree.step_down<kRule, kProofs, kUniform>(cursor.at, options_.rules));
      }
      case NodeKind::kOfChance:
        return move_to(cursor, tree.step_chance(cursor.at, cursor.num_draws++));
      case NodeKind::kNew:
        take_leaf(tree, cursor.at, *cursor.round, batch);
        return end_simulation(cursor, *cursor.round);
      case NodeKind::kWaiting:
        ++tree.counters.collisions;
        if (!options_.share_collisions) {
          tree.unmark(cursor.at);
          return false;
        }
        if (node.batch == batch.slot) return end_simulation(cursor, *cursor.round);
        cursor.has_shared = true;
        return end_simulation(cursor, round_of(node.batch, tree.index()));
      case NodeKind::kOver:
        ++tree.counters.terminal_hits;
        return end_simulation(cursor, *cursor.round);
      case NodeKind::kMoved:  // nothing leads to these
        break;
    }
    return false;
  };

  while (num_active < kInterleave && take_next_tree(cursors[num_active])) ++num_active;
  try {
    while (num_active > 0) {
      for (int32_t i = 0; i < num_active; ++i) {
        Cursor& cursor = cursors[i];
        if (step(cursor)) continue;
        cursor.at = cursor.tree->root();
        if (end_round(cursor, batch) || take_next_tree(cursor)) continue;
        cursor = cursors[--num_active];
        --i;
      }
    }
  } catch (...) {
    for (int32_t i = 0; i < num_active; ++i) cursors[i].tree->unmark(cursors[i].at);
    throw;
  }
}

}  // namespace windrow
