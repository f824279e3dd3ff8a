// builtin.h: a game written in C++ here: the table the search needs, and the words people need.
//
// A game is written as a `Rules` struct with a trivially copyable `State`; `BuiltinGame<Rules>` turns it into a
// GameTable. Options are validated by the Rules' constructor, which throws std::invalid_argument with a message that
// names the option and its range. A Rules may also have:
//
//   int32_t num_players() const                 if that depends on options, instead of kNumPlayers
//   int32_t max_legal_actions() const           if far fewer than num_actions() can be legal at once
//   static constexpr int32_t kMaxOutcomes       with chance_outcomes: chance that can be listed
//   int32_t chance_outcomes(const State&, int32_t* outcomes, double* probabilities) const
//   int64_t sample_outcome(const State&, uint64_t seed) const      chance that cannot
//   bool can_happen(const State&, int64_t outcome) const           with either
//   std::string outcome_name(int64_t outcome) const                with either
//   size_t parse_outcome(std::string_view, int64_t*) const         with either, as parse_action
//   double score(const State&) const            in games that count points, see NamedGame
//   std::string move_name(const State&, int32_t action) const      if the name of an action depends on the position,
//   size_t parse_move(const State&, std::string_view, int32_t*) const              both together
//   uint64_t count_sequences(const State&, int32_t depth) const    if there is a faster way than to play them all
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "../game.h"
#include "../rollout.h"

namespace windrow {

using OptionValue = std::variant<int64_t, std::string>;
// Pairs rather than a map: a game lists its options in the order in which people name them.
using GameOptions = std::vector<std::pair<std::string, OptionValue>>;

// One named part of an observation row: a contiguous slice with a shape.
struct ObservationPart {
  std::string name;
  std::vector<int32_t> shape;
};

class NamedGame {
 public:
  virtual ~NamedGame() = default;
  const GameTable& table() const { return table_; }

  virtual std::string name() const = 0;
  // Whether its functions are Python's: whoever calls them must be able to take the GIL.
  virtual bool needs_gil() const { return false; }
  // For random games from a player's turn to the end; null if there is only the table.
  virtual PlayOut play_out() const { return nullptr; }
  // The options this game was made with, defaults included.
  virtual GameOptions options() const = 0;
  virtual std::vector<ObservationPart> observation() const = 0;
  // The position as text, several lines, no newline at the end. Ends with who is to move, or with the result.
  virtual std::string render(const void* state) const = 0;
  // By how many points player 0 leads, in a game of two players that counts points; nothing in others.
  virtual std::optional<double> score(const void*) const { return std::nullopt; }
  virtual std::string action_name(int32_t action) const = 0;
  // Reads one action name from the front of `text`; returns how many characters it took, 0 if there is no name.
  virtual size_t parse_action(std::string_view text, int32_t* action) const = 0;
  // Whether the name of an action depends on the position; if so, people read and write these two.
  virtual bool names_depend_on_state() const { return false; }
  virtual std::string move_name(const void*, int32_t action) const { return action_name(action); }
  virtual size_t parse_move(const void*, std::string_view text, int32_t* action) const {
    return parse_action(text, action);
  }
  // The same for outcomes of chance.
  virtual std::string outcome_name(int64_t outcome) const { return std::to_string(outcome); }
  virtual size_t parse_outcome(std::string_view, int64_t*) const { return 0; }
  // How many sequences of `depth` moves there are from a state; those that end sooner do not count. Chance may not be
  // to move anywhere.
  virtual uint64_t count_sequences(const void* state, int32_t depth) const;

 protected:
  GameTable table_{};
};

template <class Rules>
class BuiltinGame final : public NamedGame {
  using State = typename Rules::State;
  static_assert(std::is_trivially_copyable_v<State> && sizeof(State) % 8 == 0);
  // No padding: states are compared and hashed by their bytes outside the core.
  static_assert(std::has_unique_object_representations_v<State>);

 public:
  static constexpr bool kListsChance =
      requires(const Rules& r, const State& s, int32_t* o, double* p) { r.chance_outcomes(s, o, p); };
  static constexpr bool kSamplesChance = requires(const Rules& r, const State& s) { r.sample_outcome(s, uint64_t{}); };
  static constexpr bool kHasChance = kListsChance || kSamplesChance;
  static_assert(!(kListsChance && kSamplesChance));
  static constexpr bool kHasNamesByState =
      requires(const Rules& r, const State& s, int32_t* a) { r.move_name(s, *a), r.parse_move(s, "", a); };

  explicit BuiltinGame(const GameOptions& options) : rules_(options) {
    table_.abi_version = kGameAbiVersion;
    table_.self = &rules_;
    if constexpr (requires { rules_.num_players(); }) {
      table_.num_players = rules_.num_players();
    } else {
      table_.num_players = Rules::kNumPlayers;
    }
    table_.num_values = table_.num_players > 2 ? table_.num_players : 1;
    table_.num_actions = rules_.num_actions();
    table_.max_legal_actions = rules_.num_actions();
    if constexpr (requires { rules_.max_legal_actions(); }) table_.max_legal_actions = rules_.max_legal_actions();
    table_.state_bytes = sizeof(State);
    int32_t floats = 0;
    for (const ObservationPart& part : rules_.observation()) {
      int32_t size = 1;
      for (int32_t dimension : part.shape) size *= dimension;
      floats += size;
    }
    table_.observation_floats = floats;
    table_.num_symmetries = rules_.num_symmetries();
    table_.initial_state = [](void* self, void* state) {
      *to(state) = rules(self).initial_state();
      return int32_t{0};
    };
    table_.to_play = [](void* self, const void* state) { return rules(self).to_play(*to(state)); };
    table_.legal_actions = [](void* self, const void* state, int32_t* actions) {
      return rules(self).legal_actions(*to(state), actions);
    };
    table_.apply = [](void* self, void* state, int64_t move) {
      if constexpr (kHasChance) {
        if (rules(self).to_play(*to(state)) == kChance && !rules(self).can_happen(*to(state), move)) return kFailed;
        rules(self).apply(*to(state), move);
      } else {
        rules(self).apply(*to(state), static_cast<int32_t>(move));
      }
      return int32_t{0};
    };
    table_.returns = [](void* self, const void* state, float* values) {
      rules(self).returns(*to(state), values);
      return int32_t{0};
    };
    table_.observe = [](void* self, const void* state, float* row) {
      rules(self).observe(*to(state), row);
      return int32_t{0};
    };
    table_.hash = [](void* self, const void* state, uint64_t* hash) {
      rules(self).hash(*to(state), hash);
      return int32_t{0};
    };
    table_.symmetry = [](void* self, int32_t index, int32_t* actions, int32_t* observation) {
      rules(self).symmetry(index, actions, observation);
      return int32_t{0};
    };
    if constexpr (kListsChance) {
      table_.max_outcomes = Rules::kMaxOutcomes;
      table_.chance_outcomes = [](void* self, const void* state, int32_t* outcomes, double* probabilities) {
        return rules(self).chance_outcomes(*to(state), outcomes, probabilities);
      };
    }
    if constexpr (kSamplesChance) {
      table_.sample_outcome = [](void* self, const void* state, uint64_t seed, int64_t* outcome) {
        *outcome = rules(self).sample_outcome(*to(state), seed);
        return int32_t{0};
      };
    }
    if constexpr (kHasChance) {
      // The one thing that can go wrong.
      table_.explain = [](void*, char* text, int32_t size) {
        std::snprintf(text, static_cast<size_t>(size), "chance has no such outcome here");
      };
    }
  }

  std::string name() const override { return Rules::kName; }
  PlayOut play_out() const override {
    if constexpr (kHasChance) return nullptr;
    return [](const void* self, void* state, Stream& stream, int32_t* actions) {
      const Rules& game = *static_cast<const Rules*>(self);
      State at = *to(state);  // a copy that the compiler can keep in registers
      while (game.to_play(at) != kTerminal) {
        const int32_t count = game.legal_actions(at, actions);
        game.apply(at, actions[stream.next_below(static_cast<uint32_t>(count))]);
      }
      *to(state) = at;
    };
  }
  GameOptions options() const override { return rules_.options(); }
  std::vector<ObservationPart> observation() const override { return rules_.observation(); }
  std::string render(const void* state) const override { return rules_.render(*to(state)); }
  std::optional<double> score(const void* state) const override {
    if constexpr (requires { rules_.score(*to(state)); }) return rules_.score(*to(state));
    return NamedGame::score(state);
  }
  std::string action_name(int32_t action) const override { return rules_.action_name(action); }
  size_t parse_action(std::string_view text, int32_t* action) const override {
    return rules_.parse_action(text, action);
  }
  bool names_depend_on_state() const override { return kHasNamesByState; }
  std::string move_name(const void* state, int32_t action) const override {
    if constexpr (kHasNamesByState) return rules_.move_name(*to(state), action);
    return NamedGame::move_name(state, action);
  }
  size_t parse_move(const void* state, std::string_view text, int32_t* action) const override {
    if constexpr (kHasNamesByState) return rules_.parse_move(*to(state), text, action);
    return NamedGame::parse_move(state, text, action);
  }
  uint64_t count_sequences(const void* state, int32_t depth) const override {
    if constexpr (requires { rules_.count_sequences(*to(state), depth); }) {
      return rules_.count_sequences(*to(state), depth);
    }
    return NamedGame::count_sequences(state, depth);
  }
  std::string outcome_name(int64_t outcome) const override {
    if constexpr (kHasChance) return rules_.outcome_name(outcome);
    return NamedGame::outcome_name(outcome);
  }
  size_t parse_outcome(std::string_view text, int64_t* outcome) const override {
    if constexpr (kHasChance) return rules_.parse_outcome(text, outcome);
    return NamedGame::parse_outcome(text, outcome);
  }

 private:
  static const Rules& rules(void* self) { return *static_cast<const Rules*>(self); }
  static State* to(void* state) { return static_cast<State*>(state); }
  static const State* to(const void* state) { return static_cast<const State*>(state); }

  Rules rules_;
};

// The built-in game of that name; throws std::invalid_argument for an unknown name or option.
std::unique_ptr<NamedGame> make_builtin(const std::string& name, const GameOptions& options);
std::vector<std::string> builtin_names();

}  // namespace windrow
