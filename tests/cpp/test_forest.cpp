// test_forest.cpp: long random walks over the forest's verbs. After every step all trees are walked, and whatever the
// law says about them must hold; at the end, what the walk found must be what the plain way of searching finds.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "census.h"
#include "check.h"
#include "dice.h"
#include "forest.h"
#include "games/builtin.h"
#include "positions.h"
#include "trap_game.h"

using namespace windrow;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A batch that is out, with the answer to it.
struct Out {
  Batch* batch;
  int64_t serial;
  std::vector<uint64_t> states;
  Evaluation answer;
};

Out take_out(const GameTable& game, const Forest& forest, Batch& batch) {
  Out out{&batch, batch.serial, {}, {}};
  out.states.resize(static_cast<size_t>(batch.num_rows) * static_cast<size_t>(game.state_bytes) / sizeof(uint64_t));
  forest.copy_states(batch, reinterpret_cast<std::byte*>(out.states.data()));
  out.answer = evaluate(game, out.states.data(), batch.num_rows);
  return out;
}

// A buffer of exactly the promised size; what is not written stays NaN.
std::vector<float> make_buffer(const GameTable& game, const Forest& forest, int32_t max_leaves) {
  return std::vector<float>(
      static_cast<size_t>(forest.rows_needed(max_leaves)) * static_cast<size_t>(game.observation_floats), kNan);
}

// The plain way: one tree, one batch at a time.
void search_plainly(const GameTable& game, Forest& forest, int32_t tree) {
  std::vector<float> observations = make_buffer(game, forest, 1);
  for (;;) {
    Batch& batch = forest.select(1, tree, tree + 1, false, observations.data());
    if (batch.num_rows == 0) return;
    const Out out = take_out(game, forest, batch);
    forest.complete(batch, out.answer.logits.data(), out.answer.values.data());
  }
}

// One search of one tree, as it happened.
struct SearchLog {
  int64_t budget = 0;
  uint32_t move = 0;
  int64_t num_done = 0;
  bool is_root_expanded = false;
  bool is_full = false;
  std::vector<int32_t> advances;  // after it
};

// What has happened to a tree since it was planted: enough to do it again.
struct TreeLog {
  std::vector<uint64_t> start;
  std::vector<int32_t> advances;  // before the first search
  std::vector<SearchLog> searches;
  bool has_cancelled = false;
  bool is_comparable = true;
  int64_t num_expanded_at_begin = 0;
};

class Walk {
 public:
  Walk(const GameTable& game, TrapRules* trap, const ForestOptions& options, int32_t num_trees, bool overlap,
       Dice& dice)
      : game_(game),
        trap_(trap),
        overlap_(overlap),
        dice_(dice),
        forest_(game, num_trees, options),
        logs_(static_cast<size_t>(num_trees)) {
    for (int32_t tree = 0; tree < num_trees; ++tree) plant(tree);
    check_all();
  }

  void run(int32_t num_steps) {
    for (int32_t i = 0; i < num_steps; ++i) {
      if (trap_ != nullptr) trap_->is_armed = dice_.one_in(2);
      step();
      if (trap_ != nullptr) trap_->is_armed = false;
      check_all();
    }
  }

  // Ends every search: with what it has, or with its whole budget.
  void finish(bool to_the_end) {
    if (!to_the_end) {
      for (const Out& out : outs_) note_cancelled(*out.batch);
      forest_.cancel_all();
      outs_.clear();
      check_all();
    }
    while (to_the_end) {
      if (select(0, num_trees(), 64) == 0) {
        if (outs_.empty() && !forest_.has_work(0, num_trees())) break;
        if (!outs_.empty()) complete(pick_out());
      }
    }
    check_all();
    check(forest_.num_batches_out() == 0, "a batch is out after the end");
    for (int32_t tree = 0; tree < num_trees(); ++tree) {
      const Tree& at = forest_.tree(tree);
      check(at.count_in_flight() == 0, "marks are left after the end");
      if (to_the_end && at.node(at.root()).kind != NodeKind::kOver && !at.is_full()) {
        check(at.counters.simulations == log(tree).searches.back().budget, "a budget was not spent exactly");
      }
    }
    if (to_the_end) check(!forest_.has_work(0, num_trees()), "there is work left after the end");
  }

  // Does it all again the plain way.
  void compare(const ForestOptions& options) {
    if (overlap_) return;
    ForestOptions plain = options;
    plain.num_threads = 1;
    Forest forest(game_, num_trees(), plain);
    for (int32_t tree = 0; tree < num_trees(); ++tree) {
      end_search(tree);
      const TreeLog& story = log(tree);
      if (!story.is_comparable) continue;
      ++num_compared;
      forest.reset(tree, story.start.data());
      for (const int32_t action : story.advances) forest.advance(tree, action);
      for (const SearchLog& search : story.searches) {
        // A search that was ended early had done whole rounds; a budget of just those gives the same rounds.
        forest.begin(tree, tree + 1, search.is_full ? search.budget : search.num_done, search.move);
        if (search.is_root_expanded) search_plainly(game_, forest, tree);
        check(forest.tree(tree).is_full() == search.is_full, "memory ends at another place");
        for (const int32_t action : search.advances) forest.advance(tree, action);
      }
      check(evaluated_only(record(game_, forest.tree(tree))) == evaluated_only(record(game_, forest_.tree(tree))),
            "the plain search finds something else");
    }
  }

  int32_t num_compared = 0;
  int32_t num_faults = 0;
  int32_t num_full = 0;
  int32_t num_bad = 0;
  int64_t num_collisions = 0;

 private:
  int32_t num_trees() const { return forest_.num_trees(); }
  const ForestOptions& options() const { return forest_.options(); }
  TreeLog& log(int32_t tree) { return logs_[static_cast<size_t>(tree)]; }
  size_t pick_out() { return static_cast<size_t>(dice_.below(static_cast<int64_t>(outs_.size()))); }

  void step() {
    const int32_t choice = dice_.below(100);
    if (choice < 45) {
      const int32_t first = dice_.one_in(3) ? dice_.below(num_trees()) : 0;
      const int32_t last = dice_.one_in(3) ? first + 1 + dice_.below(num_trees() - first) : num_trees();
      if (outs_.size() < 4) select(first, last, dice_.one_of({1, 2, 7, 64, 500}));
    } else if (choice < 70) {
      if (!outs_.empty()) complete(pick_out());
    } else if (choice < 75) {
      if (!outs_.empty()) complete_badly(pick_out());
    } else if (choice < 80) {
      if (!outs_.empty()) cancel(pick_out());
    } else if (choice < 81) {
      for (const Out& out : outs_) note_cancelled(*out.batch);
      forest_.cancel_all();
      outs_.clear();
    } else if (choice < 90) {
      begin(dice_.below(num_trees()));
    } else if (choice < 97) {
      advance(dice_.below(num_trees()));
    } else {
      replant(dice_.below(num_trees()));
    }
  }

  // --- The verbs -----------------------------------------------------------------------------------------------

  // Returns the number of rows.
  int32_t select(int32_t first, int32_t last, int32_t max_leaves) {
    std::vector<float> observations = make_buffer(game_, forest_, max_leaves);
    const bool was_idle = outs_.empty();
    Batch* batch = nullptr;
    try {
      batch = &forest_.select(max_leaves, first, last, overlap_, observations.data());
    } catch (const GameFault& fault) {
      ++num_faults;
      check_fault(fault, first, last);
      for (int32_t tree = first; tree < last; ++tree) log(tree).has_cancelled = true;
      return 0;
    }
    const size_t width = static_cast<size_t>(game_.observation_floats);
    if (batch->num_rows == 0) {
      check(!batch->is_out, "a batch of no rows is out");
      // Budgets here are too small for a tree to be interrupted among simulations that need no evaluation.
      if (was_idle) check(!forest_.has_work(first, last), "nothing is out, nothing is selected, and there is work");
      return 0;
    }
    check(batch->is_out && batch->num_rows <= forest_.rows_needed(max_leaves), "a batch has too many rows");
    for (const Out& out : outs_) check(out.batch != batch, "a batch that is out was handed out again");
    for (int32_t i = 0; i < batch->num_rounds; ++i) {
      const Round& round = batch->rounds[static_cast<size_t>(i)];
      check(round.tree >= first && round.tree < last, "a tree was selected that was not asked for");
    }
    outs_.push_back(take_out(game_, forest_, *batch));

    // The rows are what the game shows, and nothing is written behind them.
    const std::byte* state = reinterpret_cast<const std::byte*>(outs_.back().states.data());
    std::vector<float> row(width);
    for (size_t i = 0; i < observations.size() / width; ++i, state += game_.state_bytes) {
      const auto begin = observations.begin() + static_cast<int64_t>(i * width);
      if (i < static_cast<size_t>(batch->num_rows)) {
        game_.observe(game_.self, state, row.data());
        check(std::equal(row.begin(), row.end(), begin), "a row is not its leaf's observation");
      } else {
        check(std::all_of(begin, begin + static_cast<int64_t>(width), [](float x) { return std::isnan(x); }),
              "a row behind the last was written");
      }
    }
    return batch->num_rows;
  }

  void check_fault(const GameFault& fault, int32_t first, int32_t last) {
    check(trap_ != nullptr && trap_->is_armed, "a game without faults has one");
    check(fault.tree >= first && fault.tree < last, "a fault in a tree that was not asked for");
    check(!fault.actions.empty(), "a fault at the root");
    const Tree& tree = forest_.tree(fault.tree);
    State state(game_, tree.state_of(tree.root()));
    for (const int32_t action : fault.actions) game_.apply(game_.self, state.data(), action);
    check(TrapGame::fault_at(*trap_, *static_cast<const TrapGame::State*>(state.data())) != TrapGame::Fault::kSound,
          "a fault names a position that has none");
  }

  void complete(size_t index) {
    const Out out = std::move(outs_[index]);
    outs_.erase(outs_.begin() + static_cast<int64_t>(index));
    check(out.batch->serial == out.serial, "a batch that is out was used again");
    Evaluation answer = out.answer;
    if (dice_.one_in(3)) spoil_illegal(*out.batch, answer);
    forest_.complete(*out.batch, answer.logits.data(), answer.values.data());
    check(!out.batch->is_out, "a batch is out after it was completed");
    check_throws<std::logic_error>([&] { forest_.complete(*out.batch, answer.logits.data(), answer.values.data()); },
                                   "a batch is completed twice");
  }

  // Illegal logits may be anything.
  void spoil_illegal(const Batch& batch, Evaluation& answer) {
    for_each_row(batch, [&](int32_t row, const Tree& tree, Ref leaf) {
      const std::span<const uint16_t> legal = tree.actions(tree.node(leaf));
      for (int32_t action = 0; action < game_.num_actions; ++action) {
        if (std::find(legal.begin(), legal.end(), action) != legal.end()) continue;
        logit(answer, row, action) = dice_.one_of({kNan, -INFINITY, INFINITY, 1e30f});
      }
    });
  }

  void complete_badly(size_t index) {
    const Out out = std::move(outs_[index]);
    outs_.erase(outs_.begin() + static_cast<int64_t>(index));
    Evaluation answer = out.answer;
    const int32_t bad_row = dice_.below(out.batch->num_rows);
    int32_t bad_tree = -1;
    std::vector<int32_t> bad_path;
    for_each_row(*out.batch, [&](int32_t row, const Tree& tree, Ref leaf) {
      if (row != bad_row) return;
      bad_tree = tree.index();
      bad_path = tree.actions_to(leaf);
      if (dice_.one_in(2)) {
        logit(answer, row, dice_.one_of(tree.actions(tree.node(leaf)))) = dice_.one_of({kNan, INFINITY, -INFINITY});
      } else {
        answer.values[static_cast<size_t>(row)] = dice_.one_of({2.0f, -2.0f, kNan, INFINITY, -INFINITY});
      }
    });
    note_cancelled(*out.batch);
    const auto error = check_throws<BadEvaluation>(
        [&] { forest_.complete(*out.batch, answer.logits.data(), answer.values.data()); }, "a bad evaluation is taken");
    check(error.tree == bad_tree && error.actions == bad_path, "a bad evaluation is blamed on another position");
    check(!out.batch->is_out, "a batch is out after a bad evaluation");
    ++num_bad;
  }

  void cancel(size_t index) {
    Batch& batch = *outs_[index].batch;
    outs_.erase(outs_.begin() + static_cast<int64_t>(index));
    note_cancelled(batch);
    forest_.cancel(batch);
    forest_.cancel(batch);  // a second time does nothing
    check(!batch.is_out, "a batch is out after it was cancelled");
  }

  void begin(int32_t tree) {
    const int64_t budget = dice_.one_of({0, 1, 5, 64, 100});
    const uint32_t move = static_cast<uint32_t>(dice_.below(1000));
    if (must_refuse(tree, [&] { forest_.begin(tree, tree + 1, budget, move); })) return;
    end_search(tree);
    forest_.begin(tree, tree + 1, budget, move);
    log(tree).searches.push_back({.budget = budget, .move = move, .advances = {}});
    log(tree).num_expanded_at_begin = forest_.tree(tree).num_expanded();
  }

  void advance(int32_t tree) {
    const Tree& at = forest_.tree(tree);
    const Node& root = at.node(at.root());
    if (must_refuse(tree, [&] { forest_.advance(tree, 0); })) return;
    check_throws<std::invalid_argument>([&] { forest_.advance(tree, game_.num_actions); },
                                        "an illegal action is taken");
    if (root.kind == NodeKind::kOver) return plant(tree);
    const std::vector<int32_t> line = at.principal_variation();
    const int32_t action = line.empty() || dice_.one_in(4) ? dice_.one_of(at.actions(root)) : line.front();
    if (trap_ != nullptr) trap_->is_armed = false;
    end_search(tree);
    forest_.advance(tree, action);
    log(tree).searches.back().advances.push_back(action);
    // A search goes on from a fresh count.
    begin(tree);
  }

  void replant(int32_t tree) {
    const State start(game_);
    if (must_refuse(tree, [&] { forest_.reset(tree, start.data()); })) return;
    plant(tree);
  }

  void plant(int32_t tree) {
    if (trap_ != nullptr) trap_->is_armed = false;
    const State start = random_state(game_, dice_, 4);
    forest_.reset(tree, start.data());
    log(tree) = {};
    log(tree).start.resize(start.size() / sizeof(uint64_t));
    std::memcpy(log(tree).start.data(), start.data(), start.size());
    begin(tree);
  }

  // Whether the tree's leaves are out. Then `verb` must be refused and change nothing.
  template <class Verb>
  bool must_refuse(int32_t tree, const Verb& verb) {
    if (forest_.tree(tree).num_batches_out == 0) return false;
    const TreeRecord before = record(game_, forest_.tree(tree));
    check_throws<std::logic_error>(verb, "the root of a tree whose leaves are out is moved");
    check(record(game_, forest_.tree(tree)) == before, "what was refused changes the tree");
    return true;
  }

  // --- What was done -------------------------------------------------------------------------------------------

  void end_search(int32_t tree) {
    TreeLog& story = log(tree);
    if (story.searches.empty()) return;
    const Tree& at = forest_.tree(tree);
    SearchLog& search = story.searches.back();
    if (!search.advances.empty()) return;
    search.num_done = at.counters.simulations;
    search.is_root_expanded = at.node(at.root()).kind == NodeKind::kExpanded;
    search.is_full = at.is_full();
    num_collisions += at.counters.collisions;
    if (at.is_full()) {
      ++num_full;
      // Nodes of cancelled selections take memory; the plain way does not have them, so its memory ends later.
      if (story.has_cancelled) story.is_comparable = false;
    }
  }

  void note_cancelled(const Batch& batch) {
    for (int32_t i = 0; i < batch.num_rounds; ++i) log(batch.rounds[static_cast<size_t>(i)].tree).has_cancelled = true;
  }

  template <class Fn>
  void for_each_row(const Batch& batch, const Fn& fn) {
    int32_t row = 0;
    for (int32_t i = 0; i < batch.num_rounds; ++i) {
      const Round& round = batch.rounds[static_cast<size_t>(i)];
      for (const Leaf& leaf : round.leaves) {
        check(leaf.row == row && leaf.is_owner, "rows are not numbered in the order of leaves");
        fn(row++, forest_.tree(round.tree), leaf.node);
      }
    }
  }

  float& logit(Evaluation& answer, int32_t row, int32_t action) const {
    return answer
        .logits[static_cast<size_t>(row) * static_cast<size_t>(game_.num_actions) + static_cast<size_t>(action)];
  }

  // --- The law -------------------------------------------------------------------------------------------------

  void check_all() {
    check(forest_.num_batches_out() == static_cast<int32_t>(outs_.size()), "another number of batches is out");
    size_t bytes = 0;
    for (int32_t tree = 0; tree < num_trees(); ++tree) {
      check_one(tree);
      bytes += forest_.tree(tree).bytes();
    }
    check(forest_.bytes() == bytes && bytes <= options().max_memory, "bytes are not the sum, or above max_memory");
  }

  void check_one(int32_t index) {
    const Tree& tree = forest_.tree(index);
    const std::vector<Ref> nodes = check_tree(game_, tree);

    // What is out explains every mark: follow each simulation from its end to the root.
    std::map<std::pair<Ref, uint16_t>, int32_t> marks;
    std::map<Ref, int32_t> waiting;
    int64_t num_out = 0;
    int32_t num_batches = 0;
    for (const Out& out : outs_) {
      for (int32_t i = 0; i < out.batch->num_rounds; ++i) {
        const Round& round = out.batch->rounds[static_cast<size_t>(i)];
        if (round.tree != index) continue;
        ++num_batches;
        for (const Leaf& leaf : round.leaves) {
          check(waiting.emplace(leaf.node, out.batch->slot).second, "one leaf has two rows");
        }
        num_out += static_cast<int64_t>(round.simulations.size());
        if (!overlap_) {
          check(static_cast<int32_t>(round.simulations.size()) <= options().leaves_per_tree, "a round is too large");
        }
        for (const Ref end : round.simulations) {
          for (Ref at = end; at != tree.root(); at = tree.node(at).parent) {
            ++marks[{tree.node(at).parent, tree.node(at).parent_edge}];
          }
        }
      }
    }
    check(tree.num_batches_out == num_batches, "a tree counts another number of batches");
    if (!overlap_) check(num_batches <= 1, "a tree is in two batches without overlap");

    for (const Ref ref : nodes) {
      const Node& node = tree.node(ref);
      const auto row = waiting.find(ref);
      check((node.kind == NodeKind::kWaiting) == (row != waiting.end()),
            "a node waits that is not out, or the reverse");
      if (row != waiting.end()) check(node.batch == row->second, "a node waits for another batch");
      const EdgeRecord edges = edges_of(tree, node);
      for (uint16_t edge = 0; edge < node.num_edges; ++edge) {
        const auto mark = marks.find({ref, edge});
        check(edges.in_flight[edge] == (mark == marks.end() ? 0 : mark->second), "marks are not what is in flight");
        // A leaf that is never shared, and no limit of depth: each visit of the edge is one of the child.
        const Ref child = edges.children[edge];
        if (child == kNone || tree.node(child).kind != NodeKind::kExpanded) continue;
        if (!options().share_collisions && options().max_depth == 0) {
          check(edges.visits[edge] == tree.node(child).visits, "an edge and its child have different visits");
        }
      }
      if (node.kind == NodeKind::kExpanded) check_evaluation(tree, ref);
      if (options().max_depth > 0) {
        // Depth is counted from the root a node was searched from, which lay at most this far above.
        check(tree.actions_to(ref).size() <= static_cast<size_t>(options().max_depth), "a node lies below max_depth");
      }
    }

    // The budget, and one evaluation for every node.
    if (log(index).searches.empty()) return;
    const SearchLog& search = log(index).searches.back();
    if (tree.is_full()) {
      check(tree.remaining() == 0, "a full tree has work left");
    } else {
      check(tree.counters.simulations + num_out + tree.remaining() == search.budget,
            "simulations done, out and remaining do not make the budget");
    }
    check(tree.counters.evaluations == tree.num_expanded() - log(index).num_expanded_at_begin,
          "evaluations are not expanded nodes");
    check(tree.remaining() >= 0, "a budget was overdrawn");
  }

  // Prior and value are the evaluator's; only a root's priors may have noise.
  void check_evaluation(const Tree& tree, Ref ref) const {
    const Node& node = tree.node(ref);
    const State state(game_, tree.state_of(ref));
    const Evaluation answer = evaluate(game_, state.data(), 1);
    check(node.value == answer.values[0], "a value is not the evaluator's");
    if (ref == tree.root() && options().dirichlet_fraction > 0.0f) return;
    std::vector<float> priors;
    for (const uint16_t action : tree.actions(node)) priors.push_back(answer.logits[action]);
    priors.resize((priors.size() + 3) / 4 * 4, kPadding);
    softmax(priors.data(), static_cast<int32_t>(priors.size()));
    priors.resize(node.num_edges);
    const std::span<const float> got = tree.priors(node);
    check(std::equal(priors.begin(), priors.end(), got.begin(), got.end()), "priors are not the evaluator's");
  }

  const GameTable game_;
  TrapRules* const trap_;
  const bool overlap_;
  Dice& dice_;
  Forest forest_;
  std::vector<TreeLog> logs_;
  std::vector<Out> outs_;
};

struct Totals {
  int64_t compared = 0, faults = 0, full = 0, bad = 0, collisions = 0;
};

void test_walk(uint64_t seed, Totals& totals) {
  Dice dice(seed);
  TrapRules trap;
  trap.num_players = dice.one_in(4) ? 1 : 2;
  trap.traps_per_1024 = dice.one_of({0, 16, 100});
  std::unique_ptr<NamedGame> named;
  const char* const name = dice.one_of({"trap", "trap", "tictactoe", "connect4", "gomoku", "othello"});
  const bool is_trap = std::string(name) == "trap";
  GameOptions game_options;
  if (std::string(name) == "connect4") game_options = {{"rows", int64_t{4}}, {"columns", int64_t{5}}};
  if (std::string(name) == "gomoku") game_options = {{"size", int64_t{5}}};
  if (!is_trap) named = make_builtin(name, game_options);
  const GameTable game = is_trap ? TrapGame::table(trap) : named->table();

  ForestOptions options;
  options.rules.c_puct = dice.one_of({0.0f, 0.5f, 1.5f, 4.0f});
  options.rules.in_flight = dice.one_of({InFlight::kVisits, InFlight::kLoss, InFlight::kDilute});
  options.rules.virtual_loss = dice.one_of({0.0f, 1.0f, 3.0f});
  options.rules.first_play = dice.one_of({FirstPlay::kValue, FirstPlay::kParent});
  options.rules.first_play_value = dice.one_of({0.0f, 0.25f, -1.0f});
  options.share_collisions = dice.one_in(2);
  options.leaves_per_tree = dice.one_of({1, 1, 2, 3, 8, 64});
  options.max_depth = dice.one_in(5) ? dice.one_of({1, 2, 5}) : 0;
  options.dirichlet_fraction = dice.one_of({0.0f, 0.0f, 0.25f});
  options.seed = seed;
  options.num_threads = dice.one_of({1, 1, 2});
  const int32_t num_trees = dice.one_of({1, 2, 5, 20});
  const bool is_tight = dice.one_in(3);
  options.max_memory = static_cast<size_t>(num_trees) * (is_tight ? 4096 * dice.one_of({1, 2, 4}) : 1 << 22);
  const bool overlap = dice.one_in(3);
  scene() = "seed " + std::to_string(seed) + ", " + name + ", trees " + std::to_string(num_trees) + ", K " +
            std::to_string(options.leaves_per_tree) + ", rule " +
            std::to_string(static_cast<int32_t>(options.rules.in_flight)) +
            (options.share_collisions ? ", share" : ", skip") + (overlap ? ", overlap" : "") +
            (is_tight ? ", tight" : "") + ", max_depth " + std::to_string(options.max_depth);

  Walk walk(game, is_trap ? &trap : nullptr, options, num_trees, overlap, dice);
  walk.run(num_trees > 5 ? 60 : 120);
  walk.finish(dice.one_in(2));
  walk.compare(options);
  totals.compared += walk.num_compared;
  totals.faults += walk.num_faults;
  totals.full += walk.num_full;
  totals.bad += walk.num_bad;
  totals.collisions += walk.num_collisions;
}

}  // namespace

int main() {
  Totals totals;
  for (uint64_t seed = 0; seed < 1500; ++seed) test_walk(seed, totals);
  scene() = "compared " + std::to_string(totals.compared) + ", faults " + std::to_string(totals.faults) + ", full " +
            std::to_string(totals.full) + ", bad evaluations " + std::to_string(totals.bad) + ", collisions " +
            std::to_string(totals.collisions);
  // The walks must have been where it is dangerous.
  check(totals.compared > 1000 && totals.faults > 200 && totals.full > 200 && totals.bad > 1000 &&
            totals.collisions > 5000,
        "the walks were too tame");
}
