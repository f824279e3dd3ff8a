// test_nonsense.cpp: states that are no positions: bytes from elsewhere. Whatever a built-in game makes of them, it
// reads and writes nothing outside its arrays, and a search of them ends with an answer or with words.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "dice.h"
#include "forest.h"
#include "forest_law.h"
#include "games/builtin.h"
#include "plain_options.h"
#include "positions.h"

using namespace windrow;

namespace {

// Bytes at random, or those of a real position with some of them changed.
State nonsense(const GameTable& game, Dice& dice) {
  State state = random_state(game, dice, 30);
  unsigned char* bytes = static_cast<unsigned char*>(state.data());
  const int64_t size = static_cast<int64_t>(state.size());
  if (dice.one_in(3)) {
    for (int64_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(dice.bits());
  } else {
    for (int32_t changes = 1 + dice.below(4); changes > 0; --changes) {
      unsigned char& changed = bytes[dice.below(size)];
      const unsigned char any = static_cast<unsigned char>(dice.bits());
      changed = dice.one_of<unsigned char>({0, 1, 2, 127, 128, 254, 255, any, any});
    }
  }
  // Not the first and last int, with which a game could not even count: that is undefined, but reads nothing.
  for (int64_t i = 0; i < size; i += 4) {
    int32_t word;
    std::memcpy(&word, bytes + i, sizeof word);
    if (word < INT32_MIN + 1000 || word > INT32_MAX - 1000) bytes[i + 3] = 1;
  }
  return state;
}

// Asks everything that can be asked, and plays on with what the game itself offers.
void ask_everything(const NamedGame& named, State state, Dice& dice) {
  const GameTable& game = named.table();
  std::vector<float> row(static_cast<size_t>(game.observation_floats)), values(static_cast<size_t>(game.num_players));
  std::vector<int32_t> moves(static_cast<size_t>(game.max_legal_actions));
  std::vector<double> probabilities(static_cast<size_t>(game.max_outcomes));
  std::vector<int32_t> outcomes(static_cast<size_t>(game.max_outcomes));
  for (int32_t step = 0; step < 12; ++step) {
    uint64_t hash[2];
    std::fill(row.begin(), row.end(), std::numeric_limits<float>::quiet_NaN());
    game.observe(game.self, state.data(), row.data());
    check(std::none_of(row.begin(), row.end(), [](float x) { return std::isnan(x); }),
          "observe left a float unwritten");
    game.returns(game.self, state.data(), values.data());
    game.hash(game.self, state.data(), hash);
    named.render(state.data());
    const int32_t player = game.to_play(game.self, state.data());
    const int32_t count = game.legal_actions(game.self, state.data(), moves.data());
    check(count >= 0 && count <= game.max_legal_actions, "more legal actions than there may be");
    int64_t move = 0;
    if (player == kChance && game.chance_outcomes != nullptr) {
      const int32_t num_outcomes = game.chance_outcomes(game.self, state.data(), outcomes.data(), probabilities.data());
      check(num_outcomes >= 0 && num_outcomes <= game.max_outcomes, "more outcomes than there may be");
      if (num_outcomes == 0) return;
      move = outcomes[static_cast<size_t>(dice.below(num_outcomes))];
    } else if (player == kChance && game.sample_outcome != nullptr) {
      game.sample_outcome(game.self, state.data(), dice.bits(), &move);
    } else {
      if (count == 0 || player < 0 || player >= game.num_players) return;
      move = moves[static_cast<size_t>(dice.below(count))];
      check(move >= 0 && move < game.num_actions, "a legal action is not an action");
    }
    if (dice.one_in(4) && player == kChance) move = static_cast<int64_t>(dice.bits());
    if (!state.apply(move)) return;
  }
}

// Returns whether the forest took it for a position.
bool search(const NamedGame& named, const State& state) {
  ForestOptions options = plain_options();
  options.max_memory = size_t{1} << 22;
  options.leaves_per_tree = 3;
  Forest forest(named.table(), 1, options);
  bool is_taken = false;
  try {
    forest.reset(0, state.data());
    is_taken = true;
    forest.begin(0, 1, 20, 0);
    search_plainly(forest, 0);
  } catch (const GameFault&) {
  } catch (const std::logic_error&) {  // chance is to move
  }
  check(forest.num_batches_out() == 0, "a batch is left out");
  if (forest.tree(0).is_planted()) check(forest.tree(0).count_in_flight() == 0, "marks are left behind");
  return is_taken;
}

}  // namespace

int main() {
  const std::vector<std::pair<std::string, GameOptions>> games = {
      {"tictactoe", {}},
      {"connect4", {}},
      {"connect4", {{"rows", int64_t{2}}, {"columns", int64_t{21}}}},
      {"gomoku", {{"size", int64_t{5}}}},
      {"gomoku", {{"size", int64_t{19}}}},
      {"othello", {}},
      {"go", {{"size", int64_t{5}}, {"suicide", std::string("allowed")}}},
      {"go", {{"size", int64_t{9}}}},
      {"go", {{"size", int64_t{19}}, {"passes", int64_t{4}}}},
      {"hex", {{"size", int64_t{3}}, {"swap", std::string("on")}}},
      {"hex", {{"size", int64_t{11}}}},
      {"hex", {{"size", int64_t{19}}, {"swap", std::string("on")}}},
      {"chess", {}},
      {"chess", {{"variant", std::string("chess960")}}},
      {"pig", {}},
      {"backgammon", {}},
      {"azul", {}},
      {"azul", {{"players", int64_t{3}}}},
      {"azul", {{"players", int64_t{4}}, {"scoring", std::string("margin")}}},
  };
  for (const auto& [name, options] : games) {
    const std::unique_ptr<NamedGame> named = make_builtin(name, options);
    int32_t num_taken = 0;
    for (uint64_t seed = 0; seed < 3000; ++seed) {
      scene() = name + ", seed " + std::to_string(seed);
      Dice dice(seed);
      const State state = nonsense(named->table(), dice);
      ask_everything(*named, state, dice);
      if (seed % 4 == 0) num_taken += search(*named, state);
    }
    check(num_taken > 20, "nothing was taken for a position");
  }
}
