// test_rollout.cpp: the value of a position by random play: whose it is, how large, and that nothing is left behind.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "dice.h"
#include "games/builtin.h"
#include "lottery.h"
#include "positions.h"
#include "rollout.h"
#include "trap_game.h"

using namespace windrow;

namespace {

// The values of states, [states, num_values], in a buffer of exactly that size.
std::vector<float> roll_out(const GameTable& game, const std::vector<State>& states, int32_t num_rollouts,
                            uint64_t seed = 1) {
  std::vector<std::byte> bytes;
  for (const State& state : states) {
    const std::byte* data = static_cast<const std::byte*>(state.data());
    bytes.insert(bytes.end(), data, data + state.size());
  }
  std::vector<float> values(states.size() * static_cast<size_t>(game.num_values), NAN);
  Rollouts(game, num_rollouts, seed).evaluate(bytes.data(), 0, static_cast<int32_t>(states.size()), values.data());
  return values;
}

State play(const GameTable& game, const std::vector<int64_t>& moves) {
  State state(game);
  for (const int64_t move : moves) check(state.apply(move), "apply failed");
  return state;
}

// Pig up to 2 points: who rolls wins with 2 to 6, and with a 1 the other one rolls. So who is to roll wins with
// probability p = 5/6 + 1/6 (1 - p), which is 6/7, and her value is 6/7 - 1/7 = 5/7. The result of a game has a
// standard deviation of at most 1, and the mean of 20,000 one of 0.0071: five of those are 0.036.
void test_pig() {
  scene() = "pig";
  const auto pig = make_builtin("pig", {{"target", int64_t{2}}});
  const GameTable& game = pig->table();
  // The first player is to move; her die rolls; it was a 1, and the second player is to move; his die rolls.
  const std::vector<State> states = {play(game, {}), play(game, {0}), play(game, {0, 1}), play(game, {0, 1, 0})};
  const std::vector<float> values = roll_out(game, states, 20000);
  // While a die rolls nobody is to move, and the value is the first player's.
  const double want[] = {5.0 / 7.0, 5.0 / 7.0, 5.0 / 7.0, -5.0 / 7.0};
  for (size_t i = 0; i < 4; ++i) {
    check(std::fabs(static_cast<double>(values[i]) - want[i]) < 0.036, "a value of pig: " + std::to_string(values[i]));
  }
}

// The draws belong to the position and the seed: neither the other rows nor their order matter.
void test_pure() {
  scene() = "pure";
  const auto pig = make_builtin("pig", {});
  const auto azul = make_builtin("azul", {{"players", int64_t{3}}});
  const auto backgammon = make_builtin("backgammon", {});
  for (const GameTable& game : {pig->table(), azul->table(), backgammon->table()}) {
    Dice dice(2);
    std::vector<State> states;
    for (int32_t i = 0; i < 5; ++i) states.push_back(random_state(game, dice, 10));
    const size_t width = static_cast<size_t>(game.num_values);
    const std::vector<float> all = roll_out(game, states, 20);
    std::vector<float> one_by_one(5 * width);
    for (size_t i = 5; i-- > 0;) {
      const std::vector<float> values = roll_out(game, {states[i]}, 20);
      std::copy(values.begin(), values.end(), one_by_one.begin() + static_cast<int64_t>(i * width));
    }
    check(all == one_by_one, "another row changes a value");
    check(roll_out(game, states, 20, 2) != all, "another seed draws the same");
    for (const float value : all) check(value >= -1.0f && value <= 1.0f, "a value is not in [-1, 1]");
  }
}

// The built-in games' own way to the end of a random game is that through the table.
void test_play_out() {
  for (const char* name : {"connect4", "go", "gomoku", "hex", "othello", "tictactoe"}) {
    scene() = name;
    const auto builtin = make_builtin(name, {});
    const GameTable& game = builtin->table();
    check(builtin->play_out() != nullptr, "no way of its own");
    Rollouts plain(game, 5, 3), quick(game, 5, 3, builtin->play_out());
    Dice dice(4);
    for (int32_t i = 0; i < 100; ++i) {
      const State state = random_state(game, dice, 30);
      const std::byte* bytes = static_cast<const std::byte*>(state.data());
      float want = NAN, got = NAN;
      plain.evaluate(bytes, 0, 1, &want);
      quick.evaluate(bytes, 0, 1, &got);
      check(got == want, "another value");
    }
  }
}

// Three players and only one outcome, 0: player 0 has -1, player 1 has 1, player 2 has -1. Values begin with the player
// to move, and with player 0 where nobody is.
void test_seats() {
  scene() = "seats";
  Lottery lottery;
  lottery.num_players = 3;
  lottery.num_rounds = 4;
  lottery.spread = 1;
  const GameTable game = lottery.table();
  const std::vector<State> states = {
      play(game, {}),                        // player 0 is to move
      play(game, {0}),                       // chance
      play(game, {0, 0}),                    // player 1
      play(game, {0, 0, 0, 0}),              // player 2
      play(game, {0, 0, 0, 0, 0, 0, 0, 0}),  // the end
  };
  const std::vector<float> want = {-1, 1, -1, -1, 1, -1, 1, -1, -1, -1, -1, 1, -1, 1, -1};
  check(roll_out(game, states, 3) == want, "a value is in another's seat");
}

// States that have owners: as many as before, whether the game goes well or fails somewhere.
void test_owners_and_faults() {
  using Chance = TrapRules::Chance;
  for (const TrapFault fault : {TrapFault::kSound, TrapFault::kApplyFails, TrapFault::kToPlayFails,
                                TrapFault::kLegalActionsFails, TrapFault::kNobodyCanMove, TrapFault::kReturnsFails,
                                TrapFault::kOutcomesFails, TrapFault::kSampleFails, TrapFault::kHashFails}) {
    int32_t num_faults = 0;
    for (const Chance chance : {Chance::kAbsent, Chance::kListed, Chance::kSampled}) {
      scene() = "owners, fault " + std::to_string(static_cast<int32_t>(fault));
      TrapRules rules;
      rules.num_players = rules.num_values = 3;
      rules.chance = chance;
      rules.owns_states = true;
      rules.traps_per_1024 = 300;
      rules.only = fault;
      const GameTable game = TrapGame::table(rules);
      Dice dice(6);
      for (int32_t i = 0; i < 30; ++i) {
        const std::vector<State> states(3, random_state(game, dice, 4));
        const int64_t num_owners = rules.num_owners;
        try {
          const Armed armed(&rules, fault != TrapFault::kSound);
          roll_out(game, states, 10);
          check(fault != TrapFault::kHashFails || TrapGame::fault_at(rules, states[0].data()) == TrapFault::kSound,
                "a fault is not noticed");
        } catch (const std::runtime_error& error) {
          ++num_faults;
          check(fault != TrapFault::kSound, "a game without faults has one");
          const std::string words = error.what();
          const bool is_known = words.starts_with(
              fault == TrapFault::kNobodyCanMove ? "legal_actions gave 0, not 1 to 9" : facts_of(fault).words);
          check(is_known, "a fault is called another: " + words);
          if (facts_of(fault).is_explained) check(words.find("trap ") != std::string::npos, "no reason: " + words);
        }
        check(rules.num_owners == num_owners, "a state is lost, or released twice");
      }
      check(rules.num_owners == 0, "a state is left");
    }
    check((num_faults > 5) == (fault != TrapFault::kSound), "few faults: " + std::to_string(num_faults));
  }
}

}  // namespace

int main() {
  test_pig();
  test_pure();
  test_seats();
  test_play_out();
  test_owners_and_faults();
}
