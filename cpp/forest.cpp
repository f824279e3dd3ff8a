// forest.cpp: roots, batches, complete and cancel; forest_select.cpp has the way down.
#include "forest.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace windrow {

namespace {

constexpr float kLargestValue = 1.0f;
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

// A number with all its digits: one that is just above 1 must not read as 1.
std::string spell(float number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(number));
  return text;
}

}  // namespace

Forest::Forest(const GameTable& game, int32_t num_trees, const ForestOptions& options,
               std::shared_ptr<PredictionCache> cache)
    : game_(game),
      options_(options),
      growth_(options.rules),
      reservation_(num_trees, slice_bytes(game, num_trees, options)),
      cache_(std::move(cache)),
      pool_(options.num_threads, std::chrono::microseconds(options.spin_us)) {
  if (options.leaves_per_tree < 1 || options.leaves_per_tree > kMaxInFlight) {
    throw std::invalid_argument("leaves_per_tree must be from 1 to " + std::to_string(kMaxInFlight));
  }
  if (cache_ != nullptr && cache_->is_canonical()) canonizer_ = std::make_unique<Canonizer>(game);
  if (!(options.rules.c_puct >= 0.0f)) throw std::invalid_argument("c_puct must not be negative");
  if (options.gumbel.max_considered < 0) throw std::invalid_argument("max_considered must not be negative");
  const NodeLayout layout = layout_for(game, options);
  trees_.reserve(static_cast<size_t>(num_trees));
  is_finished_.resize(static_cast<size_t>(num_trees));
  for (int32_t i = 0; i < num_trees; ++i) {
    trees_.emplace_back(game_, layout, growth_, i, options_.proves, reservation_.slice(i), reservation_.slice_bytes());
  }
}

Forest::~Forest() {
  if (game_.release == nullptr) return;
  for (Tree& tree : trees_) tree.uproot();
}

NodeLayout Forest::layout_for(const GameTable& game, const ForestOptions& options) {
  return {game, options.rules.value_scale != ValueScale::kFixed || options.lcb_deviations > 0.0f};
}

// Each tree's share of the memory, once it is clear that the game can be searched at all.
size_t Forest::slice_bytes(const GameTable& game, int32_t num_trees, const ForestOptions& options) {
  if (num_trees < 1) throw std::invalid_argument("a forest needs at least one tree");
  if (game.abi_version != kGameAbiVersion) throw std::invalid_argument("the game was built for another version");
  if (game.num_players < 1 || game.num_players > kMaxPlayers) {
    throw std::invalid_argument("games of " + std::to_string(game.num_players) +
                                " players cannot be searched; at most " + std::to_string(kMaxPlayers));
  }
  if (game.num_values != game.num_players && (game.num_values != 1 || game.num_players > 2)) {
    throw std::invalid_argument("the game's num_values cannot be: 1 with one or two players, else one per player");
  }
  if (game.num_actions > kMaxActions || game.max_outcomes > kMaxActions) {
    throw std::invalid_argument("the game has too many actions or outcomes; at most " + std::to_string(kMaxActions));
  }
  if (game.max_legal_actions < 1 || game.max_legal_actions > game.num_actions || game.state_bytes % 8 != 0 ||
      (game.chance_outcomes != nullptr) != (game.max_outcomes > 0)) {
    throw std::invalid_argument("the game's max_legal_actions, max_outcomes or state_bytes cannot be");
  }
  const size_t needed = to_lines(layout_for(game, options).largest_root_bytes(game)) * kLineBytes;
  const size_t count = static_cast<size_t>(num_trees);
  if (options.max_memory / count < needed) {
    throw std::invalid_argument("max_memory is too small: " + std::to_string(num_trees) + " trees need at least " +
                                std::to_string(needed * count) + " bytes");
  }
  return options.max_memory / count;
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

void Forest::uproot(int32_t tree) {
  idle_tree(tree, "uproot").uproot();
  is_finished_[static_cast<size_t>(tree)] = 0;
}

void Forest::advance(std::span<const int32_t> trees, std::span<const int64_t> moves) {
  size_t num_prepared = 0;
  try {
    for (; num_prepared < trees.size(); ++num_prepared) {
      Tree& tree = idle_tree(trees[num_prepared], "advance");
      if (!tree.is_planted()) throw std::logic_error("cannot advance a tree that has no root");
      if (tree.is_prepared()) throw std::invalid_argument("a tree is given twice");
      tree.prepare_advance(moves[num_prepared]);
    }
  } catch (...) {
    for (size_t i = 0; i < num_prepared; ++i) trees_[static_cast<size_t>(trees[i])].abandon_advance();
    throw;
  }
  for (const int32_t tree : trees) trees_[static_cast<size_t>(tree)].finish_advance();
}

void Forest::begin(int32_t first, int32_t last, int64_t num_simulations, uint32_t count, uint64_t model_version) {
  model_version_ = model_version;
  for (int32_t i = first; i < last; ++i) begin({i, num_simulations, static_cast<uint32_t>(i), count, true});
}

void Forest::begin(std::span<const SearchOrder> orders, uint64_t model_version) {
  model_version_ = model_version;
  for (const SearchOrder& order : orders) begin(order);
}

void Forest::begin(const SearchOrder& order) {
  Tree& tree = idle_tree(order.tree, "begin a search of");
  if (!tree.is_planted()) throw std::logic_error("cannot begin a search of a tree that has no root");
  if (tree.node(tree.root()).kind == NodeKind::kOfChance) {
    throw std::logic_error("cannot begin a search where chance is to move");
  }
  tree.begin(order.num_simulations, {options_.seed, order.key, order.count}, order.explores);
  const NodeKind kind = tree.node(tree.root()).kind;
  if (options_.gumbel.max_considered > 0 && kind != NodeKind::kOver) {
    tree.begin_gumbel(options_.gumbel, order.explores ? options_.gumbel.scale : 0.0f);
  }
  if (kind == NodeKind::kExpanded) prepare_priors(tree);
  is_finished_[static_cast<size_t>(order.tree)] = 0;
  note_if_finished(tree);
}

void Forest::prepare_priors(Tree& tree) {
  if (options_.dirichlet_fraction == 0.0f && options_.root_policy_temperature == 1.0f) return;
  tree.prepare_priors(options_.root_policy_temperature, options_.dirichlet_alpha, options_.dirichlet_fraction);
}

// A tree is finished when it has an answer and nothing left to do, and nothing of it is out.
void Forest::note_if_finished(const Tree& tree) {
  const NodeKind kind = tree.node(tree.root()).kind;
  if (tree.num_batches_out == 0 && tree.remaining() == 0 && kind != NodeKind::kNew) {
    is_finished_[static_cast<size_t>(tree.index())] = 1;
    has_news_ = true;
  }
}

std::vector<int32_t> Forest::take_finished() {
  std::vector<int32_t> finished;
  for (size_t i = 0; i < is_finished_.size(); ++i) {
    if (is_finished_[i] == 0) continue;
    is_finished_[i] = 0;
    finished.push_back(static_cast<int32_t>(i));
  }
  return finished;
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

// --- Batches ---------------------------------------------------------------------------------------------------

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
    Tree& tree = trees_[static_cast<size_t>(batch.rounds[static_cast<size_t>(i)].tree)];
    --tree.num_batches_out;
    note_if_finished(tree);
  }
  batch.num_rounds = 0;
}

int32_t Forest::piece_size(int32_t count) const {
  // A few pieces per thread even out trees of unequal depth; small pieces would cost more than they even out.
  return std::max(8, count / (4 * pool_.num_threads()));
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
        return BadEvaluation("row " + std::to_string(row) + ": " + what, round.tree, tree.moves_to(leaf.node));
      };
      for (const uint16_t action : tree.actions(tree.node(leaf.node))) {
        const float logit = logits[static_cast<size_t>(row) * static_cast<size_t>(game_.num_actions) + action];
        if (!std::isfinite(logit)) {
          throw bad("the logit of legal action " + std::to_string(action) + " is " + std::to_string(logit));
        }
      }
      for (int32_t seat = 0; seat < game_.num_values; ++seat) {
        const float value = values[row * game_.num_values + seat];
        if (!(std::fabs(value) <= kLargestValue)) {
          throw bad("the value is " + spell(value) + ", not a number in [-1, 1]");
        }
      }
    }
  }
}

void Forest::complete(Batch& batch, const float* logits, const float* values) {
  if (!batch.is_out) throw std::logic_error("this batch is not out: it was completed or cancelled before");
  const Timer timer(*this, seconds_.complete);
  // A quick look at everything; only if something is odd, a slow one at what is legal. Illegal logits may be anything.
  const bool is_plain = all_within(logits, int64_t{batch.num_rows} * game_.num_actions, kLargestFloat) &&
                        all_within(values, int64_t{batch.num_rows} * game_.num_values, kLargestValue);
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
    const auto back_up = [&]<Proofs kProofs, bool kSquares>() {
      if (game_.num_values > 1) return back_up_rounds<true, kProofs, kSquares>(batch, begin, end);
      return back_up_rounds<false, kProofs, kSquares>(batch, begin, end);
    };
    const bool has_squares = layout_for(game_, options_).has_squares();
    if (options_.proves) {
      has_squares ? back_up.template operator()<Proofs::kMarked, true>()
                  : back_up.template operator()<Proofs::kMarked, false>();
    } else {
      has_squares ? back_up.template operator()<Proofs::kNone, true>()
                  : back_up.template operator()<Proofs::kNone, false>();
    }
  });
  give_back(batch);
}

void Forest::expand_round(const Round& round, const float* logits, const float* values) {
  Tree& tree = trees_[static_cast<size_t>(round.tree)];
  for (const Leaf& leaf : round.leaves) {
    tree.write_priors(leaf.node, logits + static_cast<size_t>(leaf.row) * static_cast<size_t>(game_.num_actions));
    const float* row_values = values + static_cast<size_t>(leaf.row) * static_cast<size_t>(game_.num_values);
    if (cache_ != nullptr && leaf.is_owner) tell_cache(tree, leaf, row_values);
    expand(tree, leaf.node, row_values);
  }
  for (const Ref leaf : round.known) expand(tree, leaf, nullptr);
}

// Backs up the simulations of the rounds [begin, end), in the order of selection within each tree. Like the way down,
// the way up is taken in several trees at once, one step of each in turn.
template <bool kVectors, Proofs kProofs, bool kSquares>
void Forest::back_up_rounds(const Batch& batch, int32_t begin, int32_t end) {
  struct Climber {
    Tree* tree;
    const Round* round;
    size_t simulation;
    Ref at;
    Ref leaf;      // with a value per player: whose values are carried up
    double value;  // else: the value
  };
  Climber climbers[kInterleave];
  int32_t num_active = 0, next = begin;
  const auto start_simulation = [](Climber& climber) {
    climber.at = climber.leaf = climber.round->simulations[climber.simulation];
    if constexpr (kProofs == Proofs::kMarked) climber.tree->note_end(climber.leaf);
    if constexpr (!kVectors) climber.value = climber.tree->value_for_first_player(climber.at);
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
      if constexpr (kProofs == Proofs::kNone) {
        climber.at = kVectors ? tree.climb_with_vectors<kSquares>(climber.at, climber.leaf)
                              : tree.climb<kSquares>(climber.at, climber.value);
      } else {
        climber.at = kVectors ? tree.climb_with_vectors_and_prove<kSquares>(climber.at, climber.leaf)
                              : tree.climb_and_prove<kSquares>(climber.at, climber.value);
      }
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
      tree.forget_values(leaf);
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
