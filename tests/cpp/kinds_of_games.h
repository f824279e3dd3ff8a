// kinds_of_games.h: games of every kind, for tests that hold for all of them: with and without chance, for one to three
// players, with states that have owners.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "games/builtin.h"
#include "trap_game.h"

namespace windrow {

// A trap game to be made.
struct TrapKind {
  std::string name;
  int32_t num_players = 2, num_values = 1;
  TrapRules::Chance chance = TrapRules::Chance::kAbsent;
  bool owns_states = false;
  int32_t traps_per_1024 = 200;
};

inline const std::vector<TrapKind>& trap_kinds() {
  using Chance = TrapRules::Chance;
  static const std::vector<TrapKind> kinds = {
      {.name = "trap"},
      {.name = "trap for one, owned", .num_players = 1, .owns_states = true},
      {.name = "listed", .chance = Chance::kListed},
      {.name = "sampled, owned", .chance = Chance::kSampled, .owns_states = true},
      {.name = "three, listed, owned",
       .num_players = 3,
       .num_values = 3,
       .chance = Chance::kListed,
       .owns_states = true},
      {.name = "three, sampled", .num_players = 3, .num_values = 3, .chance = Chance::kSampled},
  };
  return kinds;
}

inline std::unique_ptr<TrapRules> make_rules(const TrapKind& kind) {
  auto rules = std::make_unique<TrapRules>();
  rules->num_players = kind.num_players;
  rules->num_values = kind.num_values;
  rules->chance = kind.chance;
  rules->owns_states = kind.owns_states;
  rules->traps_per_1024 = kind.traps_per_1024;
  return rules;
}

// Tables of games, and what they refer to.
struct KindsOfGames {
  std::vector<std::unique_ptr<TrapRules>> traps;
  std::vector<std::unique_ptr<NamedGame>> builtins;
  std::vector<std::pair<std::string, GameTable>> all;

  void add_trap(const TrapKind& kind) {
    traps.push_back(make_rules(kind));
    all.emplace_back(kind.name, TrapGame::table(*traps.back()));
  }
  void add(const std::string& name, const GameOptions& options) {
    builtins.push_back(make_builtin(name, options));
    all.emplace_back(name, builtins.back()->table());
  }

  // All of them. Their returns are dyadic, so that sums of values are exact.
  static KindsOfGames every() {
    KindsOfGames games;
    for (const TrapKind& kind : trap_kinds()) games.add_trap(kind);
    games.add("tictactoe", {});
    games.add("connect4", {});
    games.add("othello", {});
    games.add("chess", {});
    games.add("gomoku", {{"size", int64_t{5}}});
    games.add("go", {{"size", int64_t{5}}});
    games.add("hex", {{"size", int64_t{4}}, {"swap", std::string("on")}});
    games.add_chance();
    return games;
  }
  void add_chance() {
    add("pig", {{"target", int64_t{12}}});
    add("backgammon", {{"scoring", std::string("wins")}});
    add("azul", {});
    add("azul", {{"players", int64_t{3}}});
  }
};

}  // namespace windrow
