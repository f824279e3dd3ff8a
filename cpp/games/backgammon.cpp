#include "backgammon.h"

#include <array>

namespace windrow {

namespace {

// The rolls in ascending order, twice over: those of any turn, and those with which a game begins.
struct Rolls {
  int32_t outcomes[BackgammonRules::kMaxOutcomes];
  double probabilities[BackgammonRules::kMaxOutcomes];
  int32_t count;
};

constexpr Rolls later_rolls() {
  Rolls rolls{};
  for (int32_t high = 1; high <= kNumFaces; ++high) {
    for (int32_t low = 1; low <= high; ++low) {
      rolls.outcomes[rolls.count] = 10 * high + low;
      rolls.probabilities[rolls.count++] = high == low ? 1.0 / 36.0 : 1.0 / 18.0;
    }
  }
  return rolls;
}

constexpr Rolls first_rolls() {
  Rolls rolls{};
  for (const int32_t beginner : {0, 1}) {
    for (int32_t high = 2; high <= kNumFaces; ++high) {
      for (int32_t low = 1; low < high; ++low) {
        rolls.outcomes[rolls.count] = 100 * (beginner + 1) + 10 * high + low;
        rolls.probabilities[rolls.count++] = 1.0 / 30.0;
      }
    }
  }
  return rolls;
}

constexpr Rolls kLaterRolls = later_rolls();
constexpr Rolls kFirstRolls = first_rolls();
static_assert(kLaterRolls.count == 21 && kFirstRolls.count == 30);

// The units that show a number of checkers on a point, from -15 (that many of the other player: none to show) to 15.
using CountUnits = std::array<std::array<float, 4>, 2 * BackgammonRules::kNumCheckers + 1>;

constexpr CountUnits count_units() {
  CountUnits units{};
  for (size_t count = 1; count <= BackgammonRules::kNumCheckers; ++count) {
    std::array<float, 4>& shown = units[BackgammonRules::kNumCheckers + count];
    for (size_t unit = 0; unit < 3; ++unit) shown[unit] = count > unit ? 1.0f : 0.0f;
    shown[3] = count > 3 ? static_cast<float>(count - 3) / 12.0f : 0.0f;
  }
  return units;
}

constexpr CountUnits kCountUnits = count_units();

bool is_digit(std::string_view text, size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; }

// Reads the number of a point from the front; returns how many characters it took, 0 if there is none. All digits that
// stand together belong to it.
size_t take_point(std::string_view text, int32_t* point) {
  size_t end = 0;
  int32_t number = 0;
  while (is_digit(text, end)) {
    number = number * 10 + (text[end] - '0');
    if (number < 1 || number > BackgammonRules::kNumPoints) return 0;  // 0: it is written without leading zeros
    ++end;
  }
  *point = number;
  return end;
}

// As it stands in a row of the picture.
void append_right(std::string& text, const std::string& word) {
  text.append(word.size() < 4 ? 4 - word.size() : 0, ' ').append(word);
}

}  // namespace

BackgammonRules::BackgammonRules(const GameOptions& options) {
  OptionReader reader(kName, options);
  scoring_ = reader.choice("scoring", {kScorings[0], kScorings[1]});
  reader.finish();
}

BackgammonRules::State BackgammonRules::initial_state() const {
  State state{};
  const auto place = [&](int32_t point, int8_t count) {
    state.points[point - 1] = count;
    state.points[kNumPoints - point] = static_cast<int8_t>(-count);
  };
  place(24, 2);
  place(13, 5);
  place(8, 3);
  place(6, 5);
  state.mover = kNobody;
  state.to_play = kChance;
  return state;
}

BackgammonRules::Roll BackgammonRules::decode(int64_t outcome) {
  constexpr Roll kNone{kNobody, 0, 0};
  if (outcome < 0 || outcome >= 300) return kNone;
  const int32_t number = static_cast<int32_t>(outcome);
  const Roll roll{number / 100 - 1, number / 10 % 10, number % 10};
  const bool is_roll = roll.low >= 1 && roll.low <= roll.high && roll.high <= kNumFaces;
  const bool is_impossible = roll.beginner != kNobody && roll.low == roll.high;
  return is_roll && !is_impossible ? roll : kNone;
}

bool BackgammonRules::can_happen(const State& state, int64_t outcome) const {
  const Roll roll = decode(outcome);
  return roll.high != 0 && (roll.beginner != kNobody) == (state.mover == kNobody);
}

int32_t BackgammonRules::chance_outcomes(const State& state, int32_t* outcomes, double* probabilities) const {
  if (state.to_play != kChance) return 0;
  const Rolls& rolls = state.mover == kNobody ? kFirstRolls : kLaterRolls;
  std::copy_n(rolls.outcomes, rolls.count, outcomes);
  std::copy_n(rolls.probabilities, rolls.count, probabilities);
  return rolls.count;
}

void BackgammonRules::start_turn(State& state, const Roll& roll) {
  const bool is_double = roll.high == roll.low;
  for (int32_t i = 0; i < 4; ++i) {
    state.dice[i] = static_cast<uint8_t>(i == 0 || is_double ? roll.high : i == 1 ? roll.low : 0);
  }
  if (roll.beginner != kNobody) state.mover = static_cast<int8_t>(roll.beginner);
  state.to_play = state.mover;
}

void BackgammonRules::move_checker(State& state, int32_t source, int32_t die) {
  const View view = view_of(state);
  const uint32_t mine = mine_after(view, uint32_t{1} << source, die);
  const int32_t player = state.mover & 1;
  const int32_t own = 1 - 2 * player;
  const auto add = [&](int32_t place, int32_t count) {
    int8_t& there = state.points[player == 0 ? place : kNumPoints - 1 - place];
    if (there == -own && count == own) {
      there = 0;
      ++state.bar[1 - player];
    }
    there = static_cast<int8_t>(there + count);
  };
  if (source == kBar) {
    --state.bar[player];
  } else {
    add(source, -own);
  }
  if (source >= die) add(source - die, own);

  int32_t played = 0;
  while (played < 3 && state.dice[played] != die) ++played;
  std::copy(state.dice + played + 1, state.dice + 4, state.dice + played);
  state.dice[3] = 0;

  // What remains is of one kind: the other die, or more of the same.
  if (mine == 0) {
    std::memset(state.dice, 0, sizeof state.dice);
    state.to_play = kTerminal;
  } else if (state.dice[0] == 0 || sources(mine, view.open, die_of(state, 0)) == 0) {
    end_turn(state);
  }
}

int32_t BackgammonRules::count_left(const State& state, int32_t player) {
  const int32_t sign = 1 - 2 * player;
  int32_t count = state.bar[player];
  for (const int8_t checkers : state.points) count += std::max(0, sign * checkers);
  return count;
}

int32_t BackgammonRules::stakes(const State& state) {
  const int32_t winner = state.mover & 1;
  const int32_t loser = 1 - winner;
  if (count_left(state, loser) < kNumCheckers) return 1;
  bool is_caught = state.bar[loser] > 0;
  for (int32_t i = 0; i < kNumHome; ++i) {
    is_caught |= winner == 0 ? state.points[i] < 0 : state.points[kNumPoints - 1 - i] > 0;
  }
  return is_caught ? 3 : 2;
}

void BackgammonRules::returns(const State& state, float* values) const {
  write_returns(state.mover, values);
  if (scoring_ != kPoints) return;
  for (const int32_t player : {0, 1}) values[player] *= static_cast<float>(stakes(state)) / 3.0f;
}

void BackgammonRules::observe(const State& state, float* row) const {
  const int32_t player = state.mover == 1 ? 1 : 0;  // x looks at the position before the first roll
  float* mine = row;
  float* theirs = row + kUnits * kNumPoints;
  for (int32_t i = 0; i < kNumPoints; ++i) {
    const int32_t count = player == 0 ? state.points[i] : -state.points[kNumPoints - 1 - i];
    const int32_t index = kNumCheckers + std::clamp(count, -kNumCheckers, kNumCheckers);
    std::memcpy(mine + kUnits * i, &kCountUnits[static_cast<size_t>(index)], sizeof kCountUnits[0]);
    std::memcpy(theirs + kUnits * i, &kCountUnits[static_cast<size_t>(2 * kNumCheckers - index)],
                sizeof kCountUnits[0]);
  }

  float* rest = row + 2 * kUnits * kNumPoints;
  for (const int32_t side : {0, 1}) {
    const int32_t whose = side == 0 ? player : 1 - player;
    rest[side] = static_cast<float>(state.bar[whose]) / kNumCheckers;
    rest[2 + side] = static_cast<float>(kNumCheckers - count_left(state, whose)) / kNumCheckers;
  }
  float* faces = rest + 4;
  std::fill_n(faces, kNumFaces, 0.0f);
  int32_t num_dice = 0;
  for (const uint8_t die : state.dice) {
    if (die < 1 || die > kNumFaces) continue;
    faces[die - 1] = 1.0f;
    ++num_dice;
  }
  faces[kNumFaces] = static_cast<float>(num_dice) / 4.0f;
}

void BackgammonRules::symmetry(int32_t, int32_t* actions, int32_t* observation) const {
  for (int32_t action = 0; action < num_actions(); ++action) actions[action] = action;
  for (int32_t i = 0; i < kNumFloats; ++i) observation[i] = i;
}

// The board stays as x sees it; the numbers are those of the player whose turn it is, since names of moves use them.
std::string BackgammonRules::render(const State& state) const {
  const bool is_o = state.mover == 1;
  std::string text;
  // `place` counts x's points from 0.
  const auto add_row = [&](bool is_top, bool is_numbers) {
    for (int32_t column = 0; column < kNumPoints / 2; ++column) {
      const int32_t place = is_top ? kNumPoints / 2 + column : kNumPoints / 2 - 1 - column;
      const int32_t count = state.points[place];
      if (column == kNumPoints / 4) text.append(" |");
      if (is_numbers) {
        append_right(text, std::to_string(is_o ? kNumPoints - place : place + 1));
      } else if (count == 0) {
        append_right(text, {kEmptyMark});
      } else {
        append_right(text, std::to_string(count > 0 ? count : -count) + kPlayerMarks[count > 0 ? 0 : 1]);
      }
    }
    text += '\n';
  };
  add_row(true, true);
  add_row(true, false);
  text.append(4 * kNumPoints / 4, ' ').append(" |\n");
  add_row(false, false);
  add_row(false, true);

  const auto add_both = [&](std::string_view name, int32_t x, int32_t o) {
    text.append(name).append(" x ").append(std::to_string(x)).append(" o ").append(std::to_string(o));
  };
  add_both("bar", state.bar[0], state.bar[1]);
  add_both(", off", kNumCheckers - count_left(state, 0), kNumCheckers - count_left(state, 1));
  text += '\n';

  const char mark = kPlayerMarks[is_o ? 1 : 0];
  if (state.to_play == kChance) {
    return state.mover == kNobody ? text.append("first roll") : text.append({mark}).append(" rolls");
  }
  text.append(status_line(state.to_play, state.mover));
  if (state.to_play == kTerminal) {
    constexpr std::string_view kNames[] = {"", " a gammon", " a backgammon"};
    return scoring_ == kPoints ? text.append(kNames[stakes(state) - 1]) : text;
  }
  text.append(", to play:");
  for (const uint8_t die : state.dice) {
    if (die != 0) text.append(" ").append(std::to_string(die));
  }
  return text;
}

std::string BackgammonRules::action_name(int32_t action) const {
  if (action == kPass) return "pass";
  const int32_t source = action / kNumFaces;
  const int32_t die = action % kNumFaces + 1;
  const int32_t target = source + 1 - die;  // a point, or how far beyond 1 the die would go
  const std::string from = source == kBar ? "bar/" : std::to_string(source + 1) + "/";
  if (target > 0) return from + std::to_string(target);
  return target == 0 ? from + "off" : from + "off(" + std::to_string(die) + ")";
}

size_t BackgammonRules::parse_action(std::string_view text, int32_t* action) const {
  if (const size_t taken = take_word(text, "pass"); taken > 0) {
    *action = kPass;
    return taken;
  }
  int32_t from = kNumPoints + 1;
  size_t end = take_word(text, "bar");
  if (end == 0) end = take_point(text, &from);
  if (end == 0 || end >= text.size() || text[end] != '/') return 0;
  ++end;

  int32_t die = 0;
  if (const size_t taken = take_word(text.substr(end), "off"); taken > 0) {
    die = from;
    end += taken;
    if (end < text.size() && text[end] == '(') {
      if (!is_digit(text, end + 1) || end + 2 >= text.size() || text[end + 2] != ')') return 0;
      die = text[end + 1] - '0';
      end += 3;
      if (die < from) return 0;
    }
  } else {
    int32_t to = 0;
    const size_t length = take_point(text.substr(end), &to);
    if (length == 0) return 0;
    die = from - to;
    end += length;
    if (end < text.size() && text[end] == '*') ++end;  // the mark of a hit, which people write
  }
  if (die < 1 || die > kNumFaces) return 0;
  *action = (from - 1) * kNumFaces + die - 1;
  return end;
}

std::string BackgammonRules::outcome_name(int64_t outcome) const {
  const Roll roll = decode(outcome);
  if (roll.high == 0) return std::to_string(outcome);
  const std::string numbers = std::to_string(10 * roll.high + roll.low);
  return roll.beginner == kNobody ? numbers : kPlayerMarks[roll.beginner] + numbers;
}

// Either die may be written first.
size_t BackgammonRules::parse_outcome(std::string_view text, int64_t* outcome) const {
  int32_t beginner = kNobody;
  for (const int32_t player : {0, 1}) {
    if (take_word(text, {&kPlayerMarks[player], 1}) > 0) beginner = player;
  }
  const size_t start = beginner == kNobody ? 0 : 1;
  if (!is_digit(text, start) || !is_digit(text, start + 1) || is_digit(text, start + 2)) return 0;
  const int32_t one = text[start] - '0';
  const int32_t other = text[start + 1] - '0';
  const int32_t number = 100 * (beginner + 1) + 10 * std::max(one, other) + std::min(one, other);
  if (decode(number).high == 0) return 0;
  *outcome = number;
  return start + 2;
}

}  // namespace windrow
