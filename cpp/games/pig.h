// pig.h: roll a die as often as you dare. The smallest game with chance there is: the one to learn from.
//
// The player to move rolls one die, or holds. A roll of 2 to 6 adds to the turn total; a 1 loses it and ends the turn.
// Holding adds the turn total to the player's score and ends the turn; with a turn total of nothing there is nothing to
// hold, so a turn begins with a roll. (Otherwise two players could hold forever.)
// Who has `target` points, the turn total included, wins at once. In the usual words one must hold first; nobody would
// do anything else, and so no turn total is ever larger than the target.
//
// Options: target (100), from 2 to 1000.
// Actions: 0 is "roll", 1 is "hold".
// Chance: the face of the die, outcomes 1 to 6, each 1/6; named "1" to "6".
// Observation (3,): the score of the player to move, that of the opponent, and the turn total, each divided by the
//   target. While the die rolls, and when the game is over, it is that of the player whose turn it is or was.
// Symmetries: none but the identity.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "builtin.h"
#include "dice.h"
#include "hash.h"
#include "option_reader.h"
#include "two_player.h"

namespace windrow {

class PigRules {
 public:
  static constexpr const char* kName = "pig";
  static constexpr int32_t kNumPlayers = 2;
  static constexpr int32_t kMaxOutcomes = kNumFaces;
  static constexpr int32_t kRoll = 0;
  static constexpr int32_t kHold = 1;

  struct State {
    int16_t score[2];    // by player; points beyond the target are not counted
    int16_t turn_total;  // 0 in a finished game
    int8_t mover;        // whose turn it is; in a finished game: who won
    int8_t to_play;      // the mover, kChance while the die rolls, or kTerminal
  };
  static_assert(sizeof(State) == 8);

  explicit PigRules(const GameOptions& options) : PigRules(OptionReader(kName, options)) {}

  GameOptions options() const { return {{"target", int64_t{target_}}}; }
  int32_t num_actions() const { return 2; }
  int32_t num_symmetries() const { return 1; }
  std::vector<ObservationPart> observation() const { return {{"flat", {3}}}; }

  State initial_state() const { return {.score = {0, 0}, .turn_total = 0, .mover = 0, .to_play = 0}; }

  int32_t to_play(const State& state) const { return state.to_play; }

  int32_t legal_actions(const State& state, int32_t* actions) const {
    if (state.to_play < 0) return 0;
    actions[0] = kRoll;
    actions[1] = kHold;
    return state.turn_total > 0 ? 2 : 1;
  }

  void apply(State& state, int64_t move) const {
    if (state.to_play == kChance) {
      land(state, static_cast<int32_t>(move));
    } else if (move == kRoll) {
      state.to_play = kChance;
    } else {
      state.score[state.mover & 1] += state.turn_total;
      end_turn(state);
    }
  }

  int32_t chance_outcomes(const State& state, int32_t* outcomes, double* probabilities) const {
    if (state.to_play != kChance) return 0;
    for (int32_t face = 1; face <= kNumFaces; ++face) {
      outcomes[face - 1] = face;
      probabilities[face - 1] = 1.0 / kNumFaces;
    }
    return kNumFaces;
  }

  bool can_happen(const State&, int64_t outcome) const { return outcome >= 1 && outcome <= kNumFaces; }

  void returns(const State& state, float* values) const { write_returns(state.mover, values); }

  void observe(const State& state, float* row) const {
    const int32_t mover = state.mover & 1;
    row[0] = static_cast<float>(state.score[mover]) / static_cast<float>(target_);
    row[1] = static_cast<float>(state.score[1 - mover]) / static_cast<float>(target_);
    row[2] = static_cast<float>(state.turn_total) / static_cast<float>(target_);
  }

  void hash(const State& state, uint64_t* hash) const {
    Hasher hasher;
    hasher.add(uint64_t{static_cast<uint16_t>(state.score[0])} << 32 |
               uint64_t{static_cast<uint16_t>(state.score[1])} << 16 | static_cast<uint16_t>(state.turn_total));
    hasher.add(uint64_t{static_cast<uint8_t>(state.mover)} << 8 | static_cast<uint8_t>(state.to_play));
    hasher.finish(hash);
  }

  void symmetry(int32_t, int32_t* actions, int32_t* observation) const {
    for (int32_t action = 0; action < 2; ++action) actions[action] = action;
    for (int32_t i = 0; i < 3; ++i) observation[i] = i;
  }

  std::string render(const State& state) const {
    std::string text;
    for (const int32_t player : {0, 1}) {
      text.append({kPlayerMarks[player], ' '}).append(std::to_string(state.score[player])).append("\n");
    }
    text.append("turn total ").append(std::to_string(state.turn_total)).append("\n");
    if (state.to_play == kChance) return text.append({kPlayerMarks[state.mover & 1]}).append(" rolls");
    return text.append(status_line(state.to_play, state.mover));
  }

  std::string action_name(int32_t action) const { return action == kRoll ? "roll" : "hold"; }

  size_t parse_action(std::string_view text, int32_t* action) const {
    for (const int32_t candidate : {kRoll, kHold}) {
      const size_t taken = take_word(text, action_name(candidate));
      if (taken == 0) continue;
      *action = candidate;
      return taken;
    }
    return 0;
  }

  std::string outcome_name(int64_t outcome) const { return std::to_string(outcome); }

  size_t parse_outcome(std::string_view text, int64_t* outcome) const {
    const auto is_digit = [&](size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
    if (!is_digit(0) || is_digit(1) || text[0] < '1' || text[0] > '6') return 0;
    *outcome = text[0] - '0';
    return 1;
  }

 private:
  explicit PigRules(OptionReader reader) : target_(reader.integer("target", {.standard = 100, .min = 2, .max = 1000})) {
    reader.finish();
  }

  // The die shows `face`.
  void land(State& state, int32_t face) const {
    if (face == 1) return end_turn(state);
    state.turn_total = static_cast<int16_t>(state.turn_total + face);
    state.to_play = state.mover;
    const int32_t mover = state.mover & 1;
    if (state.score[mover] + state.turn_total < target_) return;
    state.score[mover] = static_cast<int16_t>(target_);
    state.turn_total = 0;
    state.to_play = kTerminal;
  }

  static void end_turn(State& state) {
    state.turn_total = 0;
    state.mover = static_cast<int8_t>(1 - state.mover);
    state.to_play = state.mover;
  }

  int32_t target_;
};

}  // namespace windrow
