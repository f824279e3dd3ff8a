// forest.cpp: the three verbs.
#include "forest.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace windrow {

namespace {

// Marks are 16 bits wide.
constexpr int32_t kMaxInFlight = 65535;
// So are actions and counts of edges.
constexpr int32_t kMaxActions = 65535;
// How far a value may lie outside [-1, 1]: the rounding of a half-precision network.
constexpr float kValueTolerance = 1e-2f;
// Simulations without an evaluation that a tree may do in one call of select: enough that the call costs nothing
// beside them, few enough that a search in which every game ends at once can still be stopped.
constexpr int64_t kMaxFreeSimulations = 4096;
// Descents a thread has under way at once: enough to hide the latency of memory behind one another.
constexpr int32_t kInterleave = 8;

constexpr float kLargestFloat = std::numeric_limits<float>::max();

// Whether no number is farther from 0 than `bound`; false if one is NaN.
bool all_within(const float* numbers, int64_t count, float bound) {
  Int4 is_within = {-1, -1, -1, -1};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Float4 group = load<Float4>(numbers + i);
    is_within &= (group >= -bound) & (group <= bound);
  }
  bool is_rest_within = true;
  for (; i < count; ++i) is_rest_within &= std::fabs(numbers[i]) <= bound;
  return is_rest_within && (is_within[0] & is_within[1] & is_within[2] & is_within[3]) != 0;
}

// Adds the time from its making to its end to a total.
class Timer {
 public:
  explicit Timer(double& total) : total_(total), start_(std::chrono::steady_clock::now()) {}
  ~Timer() { total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  double& total_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace

// One tree's round in the making.
struct Forest::Cursor {
  Round* round = nullptr;
  Tree* tree = nullptr;
  Ref at = kNone;
  int32_t depth = 0;
  int64_t wanted = 0;       // simulations still to select in this round
  int64_t num_free = 0;     // simulations of this call that needed no evaluation
  bool has_shared = false;  // a simulation of this round waits for a leaf of another batch
};

Forest::Forest(const GameTable& game, int32_t num_trees, const ForestOptions& options,
               std::shared_ptr<PredictionCache> cache)
    : game_(game),
      options_(options),
      reservation_(num_trees, slice_bytes(game, num_trees, options.max_memory)),
      cache_(std::move(cache)),
      pool_(options.num_threads) {
  if (options.leaves_per_tree < 1 || options.leaves_per_tree > kMaxInFlight) {
    throw std::invalid_argument("leaves_per_tree must be from 1 to " + std::to_string(kMaxInFlight));
  }
  if (cache_ != nullptr && cache_->is_canonical()) canonizer_ = std::make_unique<Canonizer>(game);
  if (!(options.rules.c_puct >= 0.0f)) throw std::invalid_argument("c_puct must not be negative");
  trees_.reserve(static_cast<size_t>(num_trees));
  for (int32_t i = 0; i < num_trees; ++i) {
    trees_.emplace_back(game_, i, reservation_.slice(i), reservation_.slice_bytes());
  }
}

// Each tree's share of the memory, once it is clear that the game can be searched at all.
size_t Forest::slice_bytes(const GameTable& game, int32_t num_trees, size_t max_memory) {
  if (num_trees < 1) throw std::invalid_argument("a forest needs at least one tree");
  if (game.abi_version != kGameAbiVersion) throw std::invalid_argument("the game was built for another version");
  if (game.num_players < 1 || game.num_players > 2) {
    throw std::invalid_argument("games of " + std::to_string(game.num_players) + " players cannot be searched yet");
  }
  if (game.num_actions > kMaxActions) throw std::invalid_argument("the game has too many actions");
  if (game.max_legal_actions < 1 || game.max_legal_actions > game.num_actions || game.state_bytes % 8 != 0) {
    throw std::invalid_argument("the game's max_legal_actions or state_bytes cannot be");
  }
  const size_t needed = to_lines(Tree::largest_root_bytes(game)) * kLineBytes, count = static_cast<size_t>(num_trees);
  if (max_memory / count < needed) {
    throw std::invalid_argument("max_memory is too small: " + std::to_string(num_trees) + " trees need at least " +
                                std::to_string(needed * count) + " bytes");
  }
  return max_memory / count;
}

// --- Roots -----------------------------------------------------------------------------------------------------

Tree& Forest::idle_tree(int32_t index, const char* verb) {
  Tree& tree = trees_.at(static_cast<size_t>(index));
  if (tree.num_batches_out > 0) {
    throw std::logic_error(std::string("cannot ") + verb + " a tree whose leaves are out for evaluation");
  }
  return tree;
}

void Forest::reset(int32_t tree, const void* state) { idle_tree(tree, "reset").reset(state); }

void Forest::advance(int32_t tree, int32_t action) {
  Tree& moved = idle_tree(tree, "advance");
  if (!moved.is_planted()) throw std::logic_error("cannot advance a tree that has no root");
  moved.advance(action);
}

void Forest::begin(int32_t first, int32_t last, int64_t num_simulations, uint32_t move, uint64_t model_version) {
  model_version_ = model_version;
  for (int32_t i = first; i < last; ++i) {
    Tree& tree = idle_tree(i, "begin a search of");
    if (!tree.is_planted()) throw std::logic_error("cannot begin a search of a tree that has no root");
    tree.begin(num_simulations, {options_.seed, static_cast<uint32_t>(i), move});
    if (tree.node(tree.root()).kind == NodeKind::kExpanded && options_.dirichlet_fraction > 0.0f) {
      tree.mix_noise(options_.dirichlet_alpha, options_.dirichlet_fraction);
    }
  }
}

void Forest::stop() {
  for (Tree& tree : trees_) tree.stop();
}

bool Forest::has_work(int32_t first, int32_t last) const {
  return std::any_of(trees_.begin() + first, trees_.begin() + last, [](const Tree& tree) {
    if (!tree.is_planted()) return false;
    const NodeKind kind = tree.node(tree.root()).kind;
    return kind == NodeKind::kNew || (kind == NodeKind::kExpanded && tree.remaining() > 0);
  });
}

// --- Select ----------------------------------------------------------------------------------------------------

bool Forest::is_ready(const Tree& tree, bool overlap) const {
  if (!tree.is_planted() || (tree.num_batches_out > 0 && !overlap)) return false;
  const Node& root = tree.node(tree.root());
  if (root.kind == NodeKind::kNew) return true;
  return root.kind == NodeKind::kExpanded && tree.remaining() > 0 &&
         root.in_flight + options_.leaves_per_tree <= kMaxInFlight;
}

Batch& Forest::take_batch() {
  const auto idle = std::find_if(batches_.begin(), batches_.end(), [](const auto& batch) { return !batch->is_out; });
  Batch* batch = nullptr;
  if (idle != batches_.end()) {
    batch = idle->get();
  } else {
    batches_.push_back(std::make_unique<Batch>());
    batch = batches_.back().get();
    batch->slot = static_cast<int32_t>(batches_.size()) - 1;
  }
  batch->serial = next_serial_++;
  batch->is_out = true;
  batch->num_rows = 0;
  batch->num_rounds = 0;
  ++num_batches_out_;
  return *batch;
}

void Forest::give_back(Batch& batch) {
  release_trees(batch);
  batch.is_out = false;
  --num_batches_out_;
}

void Forest::release_trees(Batch& batch) {
  for (int32_t i = 0; i < batch.num_rounds; ++i) {
    --trees_[static_cast<size_t>(batch.rounds[static_cast<size_t>(i)].tree)].num_batches_out;
  }
  batch.num_rounds = 0;
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
    const Timer timer(seconds_.select);
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
  const Timer timer(seconds_.encode);
  pool_.for_each(batch.num_rounds, piece_size(batch.num_rounds), [&](int32_t begin, int32_t end) {
    for_each_round(batch, begin, end, [&](const Round& round) {
      const Tree& tree = trees_[static_cast<size_t>(round.tree)];
      for (const Leaf& leaf : round.leaves) {
        if (!leaf.is_owner) continue;
        float* row = observations + static_cast<size_t>(leaf.row) * static_cast<size_t>(game_.observation_floats);
        game_.observe(game_.self, tree.state_of(leaf.node), row);
      }
    });
  });
  return batch;
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

// fn(round) for the rounds [begin, end) of a batch, fetching the leaves of rounds ahead.
template <class Fn>
void Forest::for_each_round(const Batch& batch, int32_t begin, int32_t end, const Fn& fn) {
  for (int32_t i = begin; i < end; ++i) {
    if (i + kInterleave < end) {
      const Round& ahead = batch.rounds[static_cast<size_t>(i + kInterleave)];
      if (!ahead.leaves.empty()) trees_[static_cast<size_t>(ahead.tree)].prefetch(ahead.leaves.front().node);
    }
    fn(batch.rounds[static_cast<size_t>(i)]);
  }
}

int32_t Forest::piece_size(int32_t count) const {
  // A few pieces per thread even out trees of unequal depth; small pieces would cost more than they even out.
  return std::max(8, count / (4 * pool_.num_threads()));
}

void Forest::gather_all(Batch& batch) {
  pool_.for_each(batch.num_rounds, piece_size(batch.num_rounds), [&](int32_t begin, int32_t end) {
    switch (options_.rules.in_flight) {
      case InFlight::kVisits:
        return gather<InFlight::kVisits>(batch, begin, end);
      case InFlight::kLoss:
        return gather<InFlight::kLoss>(batch, begin, end);
      case InFlight::kDilute:
        return gather<InFlight::kDilute>(batch, begin, end);
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

// Gives a leaf its key. True: the cache knew it, and its priors and value are written.
bool Forest::ask_cache(Tree& tree, Leaf& leaf) {
  const std::byte* state = tree.state_of(leaf.node);
  if (canonizer_ == nullptr) {
    uint64_t hash[2];
    game_.hash(game_.self, state, hash);
    leaf.key = make_key(hash, model_version_);
    return tree.fetch_priors(leaf.node, [&](int32_t count, float* priors, float* value) {
      return cache_->find(leaf.key, count, priors, value);
    });
  }
  const Canonizer::Position position = canonizer_->find(state, model_version_);
  leaf.key = position.key;
  leaf.symmetry = position.symmetry;
  return tree.fetch_priors(leaf.node, [&](int32_t count, float* priors, float* value) {
    std::vector<float> image(static_cast<size_t>(count));
    if (!cache_->find(leaf.key, count, image.data(), value)) return false;
    const std::vector<int32_t> order = canonizer_->order(leaf.symmetry, tree.actions(tree.node(leaf.node)));
    for (size_t i = 0; i < order.size(); ++i) priors[order[i]] = image[i];
    return true;
  });
}

void Forest::tell_cache(const Tree& tree, const Leaf& leaf, float value) {
  const Node& node = tree.node(leaf.node);
  const std::span<const float> priors = tree.priors(node);
  if (canonizer_ == nullptr) return cache_->insert(leaf.key, node.num_edges, priors.data(), value);
  std::vector<float> image;
  for (const int32_t place : canonizer_->order(leaf.symmetry, tree.actions(node))) {
    image.push_back(priors[static_cast<size_t>(place)]);
  }
  cache_->insert(leaf.key, node.num_edges, image.data(), value);
}

// Puts the cursor at the root for a new round. False: there is nothing to select.
bool Forest::start_round(Cursor& cursor, const Batch& batch) {
  Tree& tree = *cursor.tree;
  if (tree.node(tree.root()).kind == NodeKind::kNew) {
    take_leaf(tree, tree.root(), *cursor.round, batch);
    if (cursor.round->known.empty()) return false;
    expand(tree, tree.root(), tree.node(tree.root()).value);
    cursor.round->known.clear();
  }
  cursor.wanted = std::min<int64_t>(options_.leaves_per_tree, tree.remaining());
  cursor.has_shared = false;
  cursor.at = tree.root();
  cursor.depth = 0;
  tree.prefetch(tree.root());
  tree.prefetch_free();
  return cursor.wanted > 0;
}

// A round that needs no evaluation is complete at once, and its tree goes on. False: the tree is done for this batch.
bool Forest::end_round(Cursor& cursor, const Batch& batch) {
  Round& round = *cursor.round;
  if (!round.leaves.empty() || round.simulations.empty()) return false;
  for (const Ref leaf : round.known) expand(*cursor.tree, leaf, cursor.tree->node(leaf).value);
  for (const Ref leaf : round.simulations) cursor.tree->back_up(leaf);
  cursor.num_free += static_cast<int64_t>(round.simulations.size());
  round.known.clear();
  round.simulations.clear();
  // With simulations that wait for another batch, going on would only pile up more of them.
  return !cursor.has_shared && cursor.num_free < kMaxFreeSimulations && start_round(cursor, batch);
}

void Forest::expand(Tree& tree, Ref leaf, float value) {
  tree.expand(leaf, value);
  if (leaf == tree.root() && options_.dirichlet_fraction > 0.0f) {
    tree.mix_noise(options_.dirichlet_alpha, options_.dirichlet_fraction);
  }
}

Round& Forest::round_of(int32_t slot, int32_t tree) {
  Batch& owner = batch(slot);
  const auto end = owner.rounds.begin() + owner.num_rounds;
  return *std::find_if(owner.rounds.begin(), end, [tree](const Round& round) { return round.tree == tree; });
}

// Gathers the rounds [begin, end) of a batch. Several descents are under way at once, one step of each in turn, so
// that while one waits for its next node to arrive from memory the others work.
template <InFlight kRule>
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
    return --cursor.wanted > 0;
  };
  // One step. False: the round has ended.
  const auto step = [&](Cursor& cursor) {
    Tree& tree = *cursor.tree;
    Node& node = tree.node(cursor.at);
    switch (node.kind) {
      case NodeKind::kExpanded: {
        if (cursor.depth == max_depth) return end_simulation(cursor, *cursor.round);
        const Ref child = tree.step_down<kRule>(cursor.at, options_.rules);
        if (child == kNone) {
          tree.unmark(cursor.at);
          tree.set_full();
          return false;
        }
        tree.prefetch(child);
        cursor.at = child;
        ++cursor.depth;
        return true;
      }
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

void Forest::copy_states(const Batch& batch, std::byte* states) const {
  const size_t size = static_cast<size_t>(game_.state_bytes);
  for (int32_t i = 0; i < batch.num_rounds; ++i) {
    const Round& round = batch.rounds[static_cast<size_t>(i)];
    for (const Leaf& leaf : round.leaves) {
      if (!leaf.is_owner) continue;
      std::memcpy(states + static_cast<size_t>(leaf.row) * size,
                  trees_[static_cast<size_t>(round.tree)].state_of(leaf.node), size);
    }
  }
}

// --- Complete and cancel ---------------------------------------------------------------------------------------

void Forest::check_evaluation(const Batch& batch, const float* logits, const float* values) const {
  for (int32_t i = 0; i < batch.num_rounds; ++i) {
    const Round& round = batch.rounds[static_cast<size_t>(i)];
    const Tree& tree = trees_[static_cast<size_t>(round.tree)];
    for (const Leaf& leaf : round.leaves) {
      const int32_t row = leaf.row;
      const auto bad = [&](const std::string& what) {
        return BadEvaluation("row " + std::to_string(row) + ": " + what, round.tree, tree.actions_to(leaf.node));
      };
      for (const uint16_t action : tree.actions(tree.node(leaf.node))) {
        const float logit = logits[static_cast<size_t>(row) * static_cast<size_t>(game_.num_actions) + action];
        if (!std::isfinite(logit)) {
          throw bad("the logit of legal action " + std::to_string(action) + " is " + std::to_string(logit));
        }
      }
      if (!(std::fabs(values[row]) <= 1.0f + kValueTolerance)) {
        throw bad("the value is " + std::to_string(values[row]) + ", not a number in [-1, 1]");
      }
    }
  }
}

void Forest::complete(Batch& batch, const float* logits, const float* values) {
  if (!batch.is_out) throw std::logic_error("this batch is not out: it was completed or cancelled before");
  const Timer timer(seconds_.complete);
  // A quick look at everything; only if something is odd, a slow one at what is legal. Illegal logits may be anything.
  const bool is_plain = all_within(logits, int64_t{batch.num_rows} * game_.num_actions, kLargestFloat) &&
                        all_within(values, batch.num_rows, 1.0f);
  if (!is_plain) {
    try {
      check_evaluation(batch, logits, values);
    } catch (...) {
      cancel(batch);
      throw;
    }
  }
  pool_.for_each(batch.num_rounds, piece_size(batch.num_rounds), [&](int32_t begin, int32_t end) {
    for_each_round(batch, begin, end, [&](const Round& round) { expand_round(round, logits, values); });
    back_up_rounds(batch, begin, end);
  });
  give_back(batch);
}

void Forest::expand_round(const Round& round, const float* logits, const float* values) {
  Tree& tree = trees_[static_cast<size_t>(round.tree)];
  for (const Leaf& leaf : round.leaves) {
    tree.write_priors(leaf.node, logits + static_cast<size_t>(leaf.row) * static_cast<size_t>(game_.num_actions));
    if (cache_ != nullptr && leaf.is_owner) tell_cache(tree, leaf, values[leaf.row]);
    expand(tree, leaf.node, values[leaf.row]);
  }
  for (const Ref leaf : round.known) expand(tree, leaf, tree.node(leaf).value);
}

// Backs up the simulations of the rounds [begin, end), in the order of selection within each tree. Like the way down,
// the way up is taken in several trees at once, one step of each in turn.
void Forest::back_up_rounds(const Batch& batch, int32_t begin, int32_t end) {
  struct Climber {
    Tree* tree;
    const Round* round;
    size_t simulation;
    Ref at;
    double value;
  };
  Climber climbers[kInterleave];
  int32_t num_active = 0, next = begin;
  const auto start_simulation = [](Climber& climber) {
    climber.at = climber.round->simulations[climber.simulation];
    climber.value = climber.tree->value_for_first_player(climber.at);
    climber.tree->prefetch(climber.tree->node(climber.at).parent);
  };
  const auto take_next_round = [&](Climber& climber) {
    while (next < end) {
      const Round& round = batch.rounds[static_cast<size_t>(next++)];
      if (round.simulations.empty()) continue;
      climber.tree = &trees_[static_cast<size_t>(round.tree)];
      climber.round = &round;
      climber.simulation = 0;
      start_simulation(climber);
      return true;
    }
    return false;
  };
  while (num_active < kInterleave && take_next_round(climbers[num_active])) ++num_active;
  while (num_active > 0) {
    for (int32_t i = 0; i < num_active; ++i) {
      Climber& climber = climbers[i];
      Tree& tree = *climber.tree;
      climber.at = tree.climb(climber.at, climber.value);
      if (climber.at != tree.root()) {
        tree.prefetch(tree.node(climber.at).parent);
        continue;
      }
      ++tree.counters.simulations;
      if (++climber.simulation < climber.round->simulations.size()) {
        start_simulation(climber);
      } else if (!take_next_round(climber)) {
        climber = climbers[--num_active];
        --i;
      }
    }
  }
}

void Forest::cancel(Batch& batch) {
  if (!batch.is_out) return;
  for (int32_t i = 0; i < batch.num_rounds; ++i) {
    const Round& round = batch.rounds[static_cast<size_t>(i)];
    Tree& tree = trees_[static_cast<size_t>(round.tree)];
    for (const Leaf& leaf : round.leaves) tree.node(leaf.node).kind = NodeKind::kNew;
    for (const Ref leaf : round.known) {
      tree.node(leaf).kind = NodeKind::kNew;
      tree.node(leaf).value = 0.0f;
    }
    for (const Ref leaf : round.simulations) {
      tree.unmark(leaf);
      tree.cancel_simulation();
    }
  }
  give_back(batch);
}

void Forest::cancel_all() {
  for (const std::unique_ptr<Batch>& batch : batches_) cancel(*batch);
}

size_t Forest::bytes() const {
  size_t total = 0;
  for (const Tree& tree : trees_) total += tree.bytes();
  return total;
}

}  // namespace windrow
