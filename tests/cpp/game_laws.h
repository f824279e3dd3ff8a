// game_laws.h: what every built-in game obeys, in every position.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "check.h"
#include "dice.h"
#include "games/builtin.h"
#include "positions.h"

namespace windrow {

using Hash = std::array<uint64_t, 2>;

inline Hash hash_of(const GameTable& game, const State& state) {
  Hash hash = {};
  check(game.hash(game.self, state.data(), hash.data()) == 0, "hash failed");
  return hash;
}

inline std::vector<float> observe(const GameTable& game, const State& state) {
  std::vector<float> row(static_cast<size_t>(game.observation_floats), std::numeric_limits<float>::quiet_NaN());
  check(game.observe(game.self, state.data(), row.data()) == 0, "observe failed");
  for (const float x : row) check(std::isfinite(x), "observe left a float unwritten");
  return row;
}

inline std::vector<float> returns_of(const GameTable& game, const State& state) {
  std::vector<float> values(static_cast<size_t>(game.num_players), std::numeric_limits<float>::quiet_NaN());
  check(game.returns(game.self, state.data(), values.data()) == 0, "returns failed");
  return values;
}

inline void check_facts(const GameTable& game) {
  check(game.abi_version == kGameAbiVersion && game.state_bytes > 0 && game.state_bytes % 8 == 0, "odd facts");
  check(game.num_players >= 1 && game.num_players <= kMaxPlayers, "a strange number of players");
  check(game.num_values == (game.num_players > 2 ? game.num_players : 1), "a strange number of values");
  check(game.max_legal_actions >= 1 && game.max_legal_actions <= game.num_actions, "a strange max_legal_actions");
  check((game.max_outcomes > 0) == (game.chance_outcomes != nullptr), "a strange max_outcomes");
  check(game.chance_outcomes == nullptr || game.sample_outcome == nullptr, "chance is both listed and drawn");
  check(game.retain == nullptr && game.release == nullptr, "a state refers to something");
}

// Everything a single state must obey.
inline void check_state(const NamedGame& named, const State& state) {
  const GameTable& game = named.table();
  const State before = state;
  const int32_t player = game.to_play(game.self, state.data());
  const std::vector<int32_t> legal = legal_actions(game, state.data());
  check(std::adjacent_find(legal.begin(), legal.end(), std::greater_equal<>()) == legal.end(),
        "legal actions do not ascend");
  if (player >= 0) {
    check(player < game.num_players, "to_play is nobody");
    check(!legal.empty(), "the player to move cannot");
    check(legal.front() >= 0 && legal.back() < game.num_actions, "a legal action is not an action");
  } else {
    check(player == kTerminal || (player == kChance && (game.max_outcomes > 0 || game.sample_outcome != nullptr)),
          "to_play is nobody");
    check(legal.empty(), "a player can move who is not to");
  }
  if (player == kTerminal) {
    const std::vector<float> values = returns_of(game, state);
    for (const float value : values) check(std::fabs(value) <= 1.0f, "a return is not in [-1, 1]");
    if (game.num_players == 2) check(values[0] + values[1] == 0.0f, "returns are not zero-sum");
  }

  // The same bytes elsewhere are the same state.
  const auto elsewhere = std::make_unique<State>(game, state.data());
  check(hash_of(game, *elsewhere) == hash_of(game, state), "a copy has another hash");
  check(observe(game, *elsewhere) == observe(game, state), "a copy looks different");
  check(legal_actions(game, elsewhere->data()) == legal, "a copy has other legal actions");
  const std::string text = named.render(elsewhere->data());
  check(text == named.render(state.data()), "a copy renders differently");
  check(text.size() > 1 && text.back() != '\n' && text.find('\0') == std::string::npos, "a strange picture");
  check(is_same(game, state.data(), before.data()), "asking about a state changes it");
}

// Reads a name that lies on the heap without a terminator, so that ASan sees a parser that reads on.
inline size_t parse_action_exactly(const NamedGame& named, std::string_view text, int32_t* action) {
  const std::vector<char> exact(text.begin(), text.end());
  return named.parse_action(std::string_view(exact.data(), exact.size()), action);
}
inline size_t parse_outcome_exactly(const NamedGame& named, std::string_view text, int64_t* outcome) {
  const std::vector<char> exact(text.begin(), text.end());
  return named.parse_outcome(std::string_view(exact.data(), exact.size()), outcome);
}

// Every action has a name of its own, which is read back; and nothing else is read as something that is no action.
inline void check_action_names(const NamedGame& named) {
  std::set<std::string> names;
  const int32_t num_actions = named.table().num_actions;
  for (int32_t action = 0; action < num_actions; ++action) {
    const std::string name = named.action_name(action);
    names.insert(name);
    for (const char* const behind : {"", " ", " x"}) {
      int32_t parsed = -1;
      check(parse_action_exactly(named, name + behind, &parsed) == name.size() && parsed == action,
            "a name is not read back: " + name);
    }
  }
  check(names.size() == static_cast<size_t>(num_actions), "two actions have one name");

  const auto try_to_read = [&](std::string_view text) {
    int32_t action = -1;
    const size_t taken = parse_action_exactly(named, text, &action);
    check(taken <= text.size() && (taken == 0 || (action >= 0 && action < num_actions)),
          "a strange name is read as a strange action: " + std::string(text));
  };
  for (const char* const text : {"", "0", "00", "99999999999999999999", "a", "a0", "zz", "-1", " 1", "h", "\xff"}) {
    try_to_read(text);
  }
  // Names cut short, and with letters changed.
  Dice dice(11);
  const std::vector<std::string> known(names.begin(), names.end());
  for (int32_t i = 0; i < 2000; ++i) {
    std::string text = dice.one_of(std::span<const std::string>(known));
    for (int32_t changes = dice.below(3); changes > 0 && !text.empty(); --changes) {
      text[static_cast<size_t>(dice.below(static_cast<int64_t>(text.size())))] = static_cast<char>(dice.below(256));
    }
    try_to_read(text.substr(0, static_cast<size_t>(dice.below(static_cast<int64_t>(text.size()) + 1))));
    try_to_read(text);
  }
}

}  // namespace windrow
