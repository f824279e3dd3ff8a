// test_chance_games.cpp: random games of the built-in games with chance, at the extremes of their options. What can be
// counted is counted: checkers and tiles do not get lost, and chance does only what it may.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "check.h"
#include "dice.h"
#include "game_laws.h"
#include "games/azul.h"
#include "games/builtin.h"
#include "positions.h"

using namespace windrow;

namespace {

// --- What must stay the same ---------------------------------------------------------------------------------------

// Points are never more than the target, and only who has them has won.
void check_pig(const GameTable& game, const State& state) {
  const std::vector<float> row = observe(game, state);
  for (const float share : row) check(share >= 0.0f && share <= 1.0f, "points below nothing or beyond the target");
  check((row[0] == 1.0f || row[1] == 1.0f) == (game.to_play(game.self, state.data()) == kTerminal),
        "the game is over without a winner, or the reverse");
}

// Fifteen checkers each, on points, on the bar or borne off: read from the observation.
void check_backgammon(const GameTable& game, const State& state) {
  const std::vector<float> row = observe(game, state);
  for (const float x : row) check(x >= 0.0f && x <= 1.0f, "an observation is not in [0, 1]");
  for (const size_t side : {0u, 1u}) {
    float count = 15.0f * (row[192 + side] + row[194 + side]);
    for (size_t point = 0; point < 24; ++point) {
      const float* units = row.data() + 96 * side + 4 * point;
      check(units[0] >= units[1] && units[1] >= units[2] && (units[3] == 0.0f || units[2] == 1.0f),
            "units of a point contradict each other");
      count += units[0] + units[1] + units[2] + 12.0f * units[3];
    }
    check(std::fabs(count - 15.0f) < 1e-3f, "a checker is lost, or there is one too many");
  }
}

// Twenty tiles of every colour, wherever they are.
void check_azul(const GameTable& game, const State& state) {
  const auto& at = *static_cast<const AzulRules::State*>(state.data());
  for (const float x : observe(game, state)) check(x >= 0.0f && x <= 3.0f, "an observation is out of range");
  for (int32_t colour = 0; colour < azul::kNumColours; ++colour) {
    int32_t count = at.centre[colour] + at.bag[colour] + at.lid[colour];
    for (const uint8_t heap : at.displays) count += azul::kHeaps.counts[heap][colour];
    for (const AzulRules::Board& board : at.boards) {
      count += board.floor[colour];
      for (int32_t row = 0; row < AzulRules::kRows; ++row) {
        const int32_t column = (colour + row) % azul::kNumColours;
        count += static_cast<int32_t>(board.wall >> (row * AzulRules::kRows + column) & 1);
        const uint8_t line = board.lines[row];
        if ((line & 7) != 0 && line >> 3 == colour) count += line & 7;
        check((line & 7) <= row + 1, "a pattern line is too long");
      }
    }
    check(count == azul::kTilesPerColour, "a tile is lost, or there is one too many");
  }
  std::array<uint8_t, azul::kMaxDisplays> left{};
  std::copy_if(at.displays, at.displays + azul::kMaxDisplays, left.begin(), [](uint8_t heap) { return heap != 0; });
  check(std::is_sorted(left.begin(), left.end(), std::greater<>()), "displays are not in order");
  for (size_t player = static_cast<size_t>(game.num_players); player < 4; ++player) {
    const AzulRules::Board nobody{};
    check(std::memcmp(&at.boards[player], &nobody, sizeof nobody) == 0, "a board that is not in use has something");
  }
}

// --- Chance ----------------------------------------------------------------------------------------------------------

// The words of a failure, in buffers of several sizes that ASan guards.
void check_explained(const GameTable& game) {
  for (const int32_t size : {1, 5, 100}) {
    std::vector<char> text(static_cast<size_t>(size), '?');
    game.explain(game.self, text.data(), size);
    const auto end = std::find(text.begin(), text.end(), '\0');
    check(end != text.end() && (size == 1 || end != text.begin()), "a failure has no words, or they do not end");
  }
}

// Tries outcomes, most of which cannot be. `possible` says which may happen; with null, nobody knows, and those that
// are taken must lead to positions that can be.
template <class CheckPosition>
void check_refused(const NamedGame& named, const State& state, Dice& dice, const std::vector<int32_t>* possible,
                   const CheckPosition& check_position) {
  const GameTable& game = named.table();
  std::vector<int64_t> numbers = {INT64_MIN, INT64_MIN + 1, -1, 65535, 65536, INT64_MAX - 1, INT64_MAX};
  for (int64_t number = -3; number < 320; ++number) numbers.push_back(number);
  for (int32_t i = 0; i < 20; ++i) numbers.push_back(static_cast<int64_t>(dice.bits()));
  if (possible != nullptr) {
    for (const int32_t outcome : *possible) numbers.push_back(outcome + (int64_t{1} << 32));
  } else {
    const int64_t outcome = sample_outcome(game, state.data(), dice.bits());
    for (int32_t bit = 0; bit < 64; ++bit) numbers.push_back(outcome ^ static_cast<int64_t>(uint64_t{1} << bit));
  }
  for (const int64_t number : numbers) {
    State next = state;
    const bool is_taken = next.apply(number);  // if not, it is unchanged: State::apply looks
    if (possible != nullptr) {
      check(is_taken == (std::find(possible->begin(), possible->end(), number) != possible->end()),
            "chance does what it may not, or the reverse: " + std::to_string(number));
    } else if (is_taken) {
      check_state(named, next);
      check_position(game, next);
    }
    if (!is_taken) check_explained(game);
  }
}

template <class CheckPosition>
void check_chance(const NamedGame& named, const State& state, Dice& dice, const CheckPosition& check_position) {
  const GameTable& game = named.table();
  if (game.chance_outcomes != nullptr) {
    const OutcomeList list = list_outcomes(game, state.data());
    check(!list.outcomes.empty() && list.outcomes.front() >= 0 && list.outcomes.back() <= kMaxActions, "odd outcomes");
    check(std::adjacent_find(list.outcomes.begin(), list.outcomes.end(), std::greater_equal<>()) == list.outcomes.end(),
          "outcomes do not ascend");
    for (const double share : list.probabilities) check(share > 0.0, "an outcome that never comes is listed");
    const double total = std::accumulate(list.probabilities.begin(), list.probabilities.end(), 0.0);
    check(std::fabs(total - 1.0) < 1e-12, "probabilities do not sum to 1");
    std::set<std::string> names;
    for (const int32_t outcome : list.outcomes) {
      const std::string name = named.outcome_name(outcome);
      names.insert(name);
      int64_t parsed = -1;
      check(parse_outcome_exactly(named, name, &parsed) == name.size() && parsed == outcome,
            "the name of an outcome is not read back: " + name);
      State next = state;
      check(next.apply(outcome), "an outcome that is listed cannot be");
    }
    check(names.size() == list.outcomes.size(), "two outcomes have one name");
    return check_refused(named, state, dice, &list.outcomes, check_position);
  }
  for (int32_t i = 0; i < 3; ++i) {
    const uint64_t seed = dice.one_in(3) ? static_cast<uint64_t>(dice.below(3)) : dice.bits();
    const int64_t outcome = sample_outcome(game, state.data(), seed);
    const State copy(game, state.data());
    check(sample_outcome(game, copy.data(), seed) == outcome, "one seed draws two outcomes");
    State next = state, again = state;
    check(next.apply(outcome) && again.apply(outcome), "an outcome that was drawn cannot be");
    check(is_same(game, next.data(), again.data()), "one outcome leads to two positions");
    const std::string name = named.outcome_name(outcome);
    int64_t parsed = -1;
    check(parse_outcome_exactly(named, name, &parsed) == name.size() && parsed == outcome,
          "the name of an outcome is not read back: " + name);
  }
  check_refused(named, state, dice, nullptr, check_position);
}

// Names cut short or changed are read as outcomes or not at all, and never beyond their end.
void check_outcome_words(const NamedGame& named, const std::vector<std::string>& names, Dice& dice) {
  for (int32_t i = 0; i < 1000; ++i) {
    std::string text = dice.one_of(std::span<const std::string>(names));
    for (int32_t changes = dice.below(3); changes > 0; --changes) {
      text[static_cast<size_t>(dice.below(static_cast<int64_t>(text.size())))] = static_cast<char>(dice.below(256));
    }
    text.resize(static_cast<size_t>(dice.below(static_cast<int64_t>(text.size()) + 1)));
    int64_t outcome = -1;
    const size_t taken = parse_outcome_exactly(named, text, &outcome);
    check(taken <= text.size(), "a name is read beyond its end");
    if (taken == 0) continue;
    // What was read has a name, which means the same.
    const std::string again = named.outcome_name(outcome);
    int64_t parsed = -1;
    check(parse_outcome_exactly(named, again, &parsed) == again.size() && parsed == outcome,
          "a name that was read means something else: " + text);
  }
}

// --- Games -----------------------------------------------------------------------------------------------------------

// `styles`: players who choose at random, who take the first action and who take the last. `is_balanced`: what one
// wins others lose, however many there are.
template <class CheckPosition>
void test_game(const std::string& name, const GameOptions& options, int32_t num_games, bool is_balanced,
               const CheckPosition& check_position) {
  scene() = name;
  for (const auto& [key, value] : options) {
    const int64_t* number = std::get_if<int64_t>(&value);
    scene() += " " + key + "=" + (number != nullptr ? std::to_string(*number) : std::get<std::string>(value));
  }
  const std::unique_ptr<NamedGame> named = make_builtin(name, options);
  const GameTable& game = named->table();
  check_facts(game);
  check_action_names(*named);
  check(game.to_play(game.self, State(game).data()) == (name == "pig" ? 0 : kChance), "another beginning");

  Dice dice(7);
  std::map<std::vector<uint64_t>, Hash> hashes;
  std::set<Hash> different;
  std::vector<std::string> names;
  std::set<std::vector<float>> results;
  for (int32_t i = 0; i < num_games; ++i) {
    State state(game);
    const int32_t style = i % 3;
    for (int32_t move = 0;; ++move) {
      // Long games are looked at now and then.
      const bool is_looked_at = move < 60 || dice.one_in(20);
      const int32_t player = game.to_play(game.self, state.data());
      if (is_looked_at || player == kTerminal) {
        check_state(*named, state);
        check_position(game, state);
        const uint64_t* words = static_cast<const uint64_t*>(state.data());
        const Hash hash = hash_of(game, state);
        const auto [known, is_new] =
            hashes.emplace(std::vector<uint64_t>(words, words + state.size() / sizeof(uint64_t)), hash);
        check(known->second == hash, "one position has two hashes");
        if (is_new) check(different.insert(hash).second, "two positions have one hash");
      }
      if (player == kTerminal) break;
      check(move < 200'000, "a game does not end");
      if (player == kChance && is_looked_at) check_chance(*named, state, dice, check_position);
      int64_t next = random_move(game, state.data(), dice);
      if (player == kChance && names.size() < 50) names.push_back(named->outcome_name(next));
      if (player != kChance && style > 0 && !dice.one_in(10)) {
        const std::vector<int32_t> legal = legal_actions(game, state.data());
        next = style == 1 ? legal.front() : legal.back();
      }
      State copy(game, state.data());
      check(state.apply(next) && copy.apply(next), "apply failed");
      check(is_same(game, state.data(), copy.data()), "a copy goes on differently");
    }
    const std::vector<float> values = returns_of(game, state);
    results.insert(values);
    const float total = std::accumulate(values.begin(), values.end(), 0.0f);
    if (is_balanced) check(std::fabs(total) < 1e-5f, "the returns do not sum to zero");
  }
  check(results.size() > 1, "always the same player wins");
  check_outcome_words(*named, names, dice);
}

}  // namespace

int main() {
  for (const int64_t target : {2, 3, 100, 1000}) test_game("pig", {{"target", target}}, 30, true, check_pig);
  for (const char* const scoring : {"points", "wins"}) {
    test_game("backgammon", {{"scoring", std::string(scoring)}}, 24, true, check_backgammon);
  }
  for (const int64_t players : {2, 3, 4}) {
    for (const int64_t max_rounds : {1, 3, 30}) {
      for (const char* const scoring : {"wins", "margin"}) {
        const bool is_margin = std::string(scoring) == "margin";
        test_game("azul", {{"players", players}, {"max_rounds", max_rounds}, {"scoring", std::string(scoring)}}, 9,
                  !is_margin, check_azul);
      }
    }
  }
}
