// backgammon.h: backgammon by the full rules, one checker at a time, without the doubling cube.
//
// Options: scoring: "points" (a single game counts 1/3, a gammon 2/3, a backgammon 1) or "wins" (always 1).
//
// A turn is a roll and then moves of single checkers, all by the player who rolled. Only moves that belong to a whole
// turn the rules allow are legal: one that plays as many dice as can be played in any order, and the larger die if
// either could be played but not both. A turn ends by itself as soon as no remaining die can be played; only who cannot
// move at all has an action for it, "pass", and then no other.
//
// Actions: source * 6 + die - 1, seen by the player to move: sources 0 to 23 are the points 1 to 24 (home is 1 to 6),
//   source 24 is the bar; 150 is "pass". Names: "13/7", "bar/22", "6/off", "4/off(6)" with a die larger than needed.
// Chance: a roll is the number people write, larger die first: outcomes 11, 21, 22, ... 66 with probability 1/36
// (doubles)
//   or 1/18. The first roll of a game has no doubles and also says who begins: 100 + roll for x, 200 + roll for o, each
//   of the 30 with 1/30. Names: "65", "33"; "x65", "o65".
// Observation (203,), seen by the player to move (while chance rolls: whose turn it is; at the end: who has won):
//   0 to 95:    own checkers on the points 1 to 24, four units each: at least 1, 2, 3 of them, and (number - 3) / 12.
//   96 to 191:  those of the opponent on the same points, by the same numbers.
//   192 to 195: own on the bar, opponent's on the bar, own borne off, opponent's borne off, each divided by 15.
//   196 to 201: whether a 1, 2, ... 6 remains to be played.
//   202:        how many dice remain, divided by 4.
// Symmetries: none but the identity.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "builtin.h"
#include "dice.h"
#include "hash.h"
#include "option_reader.h"
#include "two_player.h"

namespace windrow {

class BackgammonRules {
 public:
  static constexpr const char* kName = "backgammon";
  static constexpr int32_t kNumPlayers = 2;
  static constexpr int32_t kNumPoints = 24;
  static constexpr int32_t kNumCheckers = 15;  // of each player
  static constexpr int32_t kBar = kNumPoints;  // as a source
  static constexpr int32_t kPass = (kNumPoints + 1) * kNumFaces;
  static constexpr int32_t kMaxOutcomes = 30;

  struct State {
    int8_t points[kNumPoints];  // i: x's point i + 1, which is o's point 24 - i. Checkers of x; below 0, of o
    int8_t bar[2];              // by player
    uint8_t dice[4];            // what remains to be played, larger first, then zeros; four of them after doubles
    int8_t mover;               // whose turn it is, kNobody before the first roll; in a finished game: who won
    int8_t to_play;             // the mover, kChance or kTerminal
  };
  static_assert(sizeof(State) == 32);

  explicit BackgammonRules(const GameOptions& options);

  GameOptions options() const { return {{"scoring", std::string(kScorings[scoring_])}}; }
  int32_t num_actions() const { return kPass + 1; }
  // Every checker on a point of its own, with either die.
  int32_t max_legal_actions() const { return 2 * kNumCheckers; }
  int32_t num_symmetries() const { return 1; }
  std::vector<ObservationPart> observation() const { return {{"flat", {kNumFloats}}}; }

  State initial_state() const;

  int32_t to_play(const State& state) const { return state.to_play; }

  int32_t legal_actions(const State& state, int32_t* actions) const {
    if (state.to_play < 0) return 0;
    const View view = view_of(state);
    const int32_t high = die_of(state, 0);
    const int32_t low = std::min<int32_t>(state.dice[1], kNumFaces);
    uint32_t with_high = sources(view.mine, view.open, high);
    uint32_t with_low = 0;
    // Equal dice need no looking ahead: two moves with the same number never take each other's place, so whichever are
    // chosen, the turn will be as long as it can be.
    if (low != 0 && low != high) {
      with_low = sources(view.mine, view.open, low);
      const uint32_t high_first = followed(view, with_high, high, low, with_low);
      const uint32_t low_first = followed(view, with_low, low, high, with_high);
      if ((high_first | low_first) != 0) {
        with_high = high_first;
        with_low = low_first;
      } else if (with_high != 0) {
        with_low = 0;
      }
    }

    int32_t count = 0;
    // The bound holds by itself for real positions; it is for bytes that are none.
    for (uint32_t rest = with_high | with_low; rest != 0 && count <= 2 * (kNumCheckers - 1); rest &= rest - 1) {
      const uint32_t source = rest & -rest;
      const int32_t first = std::countr_zero(rest) * kNumFaces - 1;
      actions[count] = first + low;
      count += (with_low & source) != 0 ? 1 : 0;
      actions[count] = first + high;
      count += (with_high & source) != 0 ? 1 : 0;
    }
    if (count == 0) actions[count++] = kPass;
    return count;
  }

  void apply(State& state, int64_t move) const {
    if (state.to_play == kChance) {
      start_turn(state, decode(move));
    } else if (move == kPass) {
      end_turn(state);
    } else {
      move_checker(state, static_cast<int32_t>(move) / kNumFaces, static_cast<int32_t>(move) % kNumFaces + 1);
    }
  }

  int32_t chance_outcomes(const State& state, int32_t* outcomes, double* probabilities) const;
  bool can_happen(const State& state, int64_t outcome) const;

  void returns(const State& state, float* values) const;

  void observe(const State& state, float* row) const;

  // Equal positions have equal bytes.
  void hash(const State& state, uint64_t* hash) const {
    uint64_t words[sizeof(State) / sizeof(uint64_t)];
    std::memcpy(words, &state, sizeof(State));
    Hasher hasher;
    for (const uint64_t word : words) hasher.add(word);
    hasher.finish(hash);
  }

  void symmetry(int32_t index, int32_t* actions, int32_t* observation) const;
  std::string render(const State& state) const;
  std::string action_name(int32_t action) const;
  size_t parse_action(std::string_view text, int32_t* action) const;
  std::string outcome_name(int64_t outcome) const;
  size_t parse_outcome(std::string_view text, int64_t* outcome) const;

 private:
  static constexpr std::string_view kScorings[] = {"points", "wins"};
  static constexpr int32_t kPoints = 0;
  static constexpr int32_t kNumHome = 6;
  static constexpr int32_t kUnits = 4;  // of the observation, for the checkers of one player on one point
  static constexpr int32_t kNumFloats = 2 * kUnits * kNumPoints + 4 + kNumFaces + 1;

  // A roll as its outcome says. `beginner` is kNobody unless it is the first roll of a game; `high` is 0 for a number
  // that is no outcome.
  struct Roll {
    int32_t beginner;
    int32_t high;
    int32_t low;
  };
  static Roll decode(int64_t outcome);

  // The board as the player whose turn it is sees it: bit i is point i + 1, bit kBar is the bar.
  struct View {
    uint32_t mine;    // at least one own checker
    uint32_t single;  // exactly one
    uint32_t open;    // points where at most one opposing checker is; they stay the same while the turn lasts
  };

  static View view_of(const State& state) {
    const int32_t player = state.mover & 1;
    const int32_t on_bar = state.bar[player];
    View view = player == 0 ? view_of_points<0>(state) : view_of_points<1>(state);
    if (on_bar > 0) view.mine |= uint32_t{1} << kBar;
    if (on_bar == 1) view.single |= uint32_t{1} << kBar;
    return view;
  }

  // Eight points at a time. A byte of `counts` is 128 plus the number of own checkers, or minus that of opposing ones;
  // so the top bit of a byte says whether a number is at least 0, or, with a little added, at least something else. The
  // last multiplication gathers the eight top bits in one byte, and turns their order around for o, whose points run
  // the other way.
  template <int kPlayer>
  static View view_of_points(const State& state) {
    static_assert(std::endian::native == std::endian::little, "the first point must be the lowest byte of its word");
    constexpr uint64_t kOnes = 0x0101010101010101u;
    View view{};
    for (int32_t word = 0; word < kNumPoints / 8; ++word) {
      uint64_t counts;
      std::memcpy(&counts, state.points + 8 * word, sizeof counts);
      counts ^= 0x80 * kOnes;
      if (kPlayer == 1) counts = ~counts + kOnes;
      const auto gather = [&](uint64_t bytes) {
        constexpr uint64_t kGather = kPlayer == 0 ? 0x0102040810204080u : 0x8040201008040201u;
        const uint32_t eight = static_cast<uint32_t>(((bytes >> 7 & kOnes) * kGather) >> 56);
        return eight << (kPlayer == 0 ? 8 * word : kNumPoints - 8 - 8 * word);
      };
      const uint64_t has_one = counts - kOnes;
      view.mine |= gather(has_one);
      view.single |= gather(has_one & ~(counts - 2 * kOnes));
      view.open |= gather(counts + kOnes);
    }
    return view;
  }

  // The own points after a checker of the point (or bar) `source` has moved by `die`.
  static uint32_t mine_after(const View& view, uint32_t source, int32_t die) {
    return (view.mine & ~(source & view.single)) | source >> die;  // shifted out: borne off
  }

  // The first or only kind of die that remains. In 1 to 6 even for bytes that are no position.
  static int32_t die_of(const State& state, int32_t index) {
    return std::clamp<int32_t>(state.dice[index], 1, kNumFaces);
  }

  // From where a checker can move by `die`, no other dice considered.
  static uint32_t sources(uint32_t mine, uint32_t open, int32_t die) {
    if ((mine >> kBar) != 0) return (open >> (kBar - die) & 1) << kBar;
    uint32_t found = mine & (open << die);
    if ((mine >> kNumHome) == 0) {
      // Bearing off: from the point of the die, or from the highest point if that is lower still.
      const uint32_t exact = uint32_t{1} << (die - 1);
      found |= mine >= exact ? mine & exact : std::bit_floor(mine);
    }
    return found;
  }

  // Those of the sources `from` of `die` after which the other die `next` can be played too; `from_next` are the
  // sources of `next` before that move.
  static uint32_t followed(const View& view, uint32_t from, int32_t die, int32_t next, uint32_t from_next) {
    // A checker that can move by `next` still can after another one has moved. Usually that answers it.
    const bool has_two_checkers = (from_next & (from_next - 1)) != 0 || (from_next & ~view.single) != 0;
    if (has_two_checkers) return from;
    const uint32_t unsure = from_next != 0 ? from & from_next : from;
    uint32_t found = from & ~unsure;
    for (uint32_t rest = unsure; rest != 0; rest &= rest - 1) {
      const uint32_t source = rest & -rest;
      if (sources(mine_after(view, source, die), view.open, next) != 0) found |= source;
    }
    return found;
  }

  static void move_checker(State& state, int32_t source, int32_t die);
  static void start_turn(State& state, const Roll& roll);
  static void end_turn(State& state) {
    std::memset(state.dice, 0, sizeof state.dice);
    state.mover = static_cast<int8_t>(1 - state.mover);
    state.to_play = kChance;
  }

  // How many checkers of `player` are on the board or the bar.
  static int32_t count_left(const State& state, int32_t player);
  // 1 for a single game, 2 for a gammon, 3 for a backgammon.
  static int32_t stakes(const State& state);

  int32_t scoring_;
};

}  // namespace windrow
