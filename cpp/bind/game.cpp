// game.cpp: built-in games in Python. States are bytes; every method checks their length and copies them, because the
// rules need 8-byte alignment.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../failure.h"
#include "bind.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
using Vector = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

// A one-dimensional NumPy array that owns its memory.
template <class T>
struct NewVector {
  explicit NewVector(size_t count) : size(count), data(new T[size + 1]()) {}
  explicit NewVector(int32_t count) : NewVector(static_cast<size_t>(count)) {}

  Vector<T> to_python() { return to_shape<Vector<T>>({size}); }

  // As an array of `size` numbers in any shape.
  template <class Array>
  Array to_shape(std::initializer_list<size_t> shape) {
    nb::capsule owner(data.get(), [](void* memory) noexcept { delete[] static_cast<T*>(memory); });
    return Array(data.release(), shape, owner);
  }

  size_t size;
  std::unique_ptr<T[]> data;  // one more than asked for, so that an empty array has an address too
};

const windrow::GameTable& table(const NativeGame& self) { return self.game->table(); }

// A copy of a state's bytes, aligned for the rules.
class StateCopy {
 public:
  StateCopy(const NativeGame& self, const nb::bytes& state) : words_(state.size() / sizeof(uint64_t)) {
    const size_t expected = static_cast<size_t>(table(self).state_bytes);
    if (state.size() != expected) {
      throw std::invalid_argument("a state of " + self.game->name() + " has " + std::to_string(expected) +
                                  " bytes, not " + std::to_string(state.size()));
    }
    std::memcpy(words_.data(), state.data(), expected);
  }

  explicit StateCopy(const NativeGame& self) : words_(static_cast<size_t>(table(self).state_bytes) / 8) {}

  void* get() { return words_.data(); }
  const void* get() const { return words_.data(); }
  nb::bytes to_python() const { return nb::bytes(words_.data(), words_.size() * sizeof(uint64_t)); }

 private:
  std::vector<uint64_t> words_;
};

// A number of actions or outcomes; where nobody is to move there may be none.
int32_t checked_count(const NativeGame& self, const char* method, int32_t count, int32_t most) {
  if (count == windrow::kFailed) {
    throw std::runtime_error(self.game->name() + "." + method + " failed: " + windrow::why_failed(table(self)));
  }
  if (count < 0 || count > most) {
    throw std::runtime_error(self.game->name() + "." + method + " gave " + std::to_string(count) + ", not 0 to " +
                             std::to_string(most));
  }
  return count;
}

[[noreturn]] void fail(const NativeGame& self, const char* method) {
  throw std::runtime_error(self.game->name() + "." + method + " failed: " + windrow::why_failed(table(self)));
}

// What a function of the game answered, unless it failed.
int32_t checked(const NativeGame& self, const char* method, int32_t answer) {
  if (answer == windrow::kFailed) fail(self, method);
  return answer;
}

void check_action(const NativeGame& self, int32_t action) {
  if (action < 0 || action >= table(self).num_actions) {
    throw std::invalid_argument("action " + std::to_string(action) + " does not exist; the actions of " +
                                self.game->name() + " are 0 to " + std::to_string(table(self).num_actions - 1));
  }
}

NativeGame make_game(const std::string& name, const nb::typed<nb::dict, nb::str, windrow::OptionValue>& options) {
  windrow::GameOptions given;
  for (const auto& [key, value] : options) {
    given.emplace_back(nb::cast<std::string>(key), nb::cast<windrow::OptionValue>(value));
  }
  return {windrow::make_builtin(name, given)};
}

nb::typed<nb::dict, nb::str, windrow::OptionValue> options(const NativeGame& self) {
  nb::dict result;
  for (const auto& [name, value] : self.game->options()) result[name.c_str()] = nb::cast(value);
  return nb::borrow<nb::typed<nb::dict, nb::str, windrow::OptionValue>>(result);
}

std::vector<std::pair<std::string, std::vector<int32_t>>> observation(const NativeGame& self) {
  std::vector<std::pair<std::string, std::vector<int32_t>>> parts;
  for (const windrow::ObservationPart& part : self.game->observation()) parts.emplace_back(part.name, part.shape);
  return parts;
}

nb::bytes initial_state(const NativeGame& self) {
  StateCopy state(self);
  checked(self, "initial_state", table(self).initial_state(table(self).self, state.get()));
  return state.to_python();
}

int32_t to_play(const NativeGame& self, const nb::bytes& state) {
  return checked(self, "to_play", table(self).to_play(table(self).self, StateCopy(self, state).get()));
}

Vector<int32_t> legal_actions(const NativeGame& self, const nb::bytes& state) {
  NewVector<int32_t> actions(table(self).max_legal_actions);
  const int32_t count =
      checked_count(self, "legal_actions",
                    table(self).legal_actions(table(self).self, StateCopy(self, state).get(), actions.data.get()),
                    table(self).max_legal_actions);
  actions.size = static_cast<size_t>(count);
  return actions.to_python();
}

// Plays a move that a player or chance may make; throws std::invalid_argument for any other.
void play(const NativeGame& self, void* state, int64_t move, std::vector<int32_t>& legal) {
  const windrow::GameTable& rules = table(self);
  const int32_t player = checked(self, "to_play", rules.to_play(rules.self, state));
  if (player == windrow::kChance) {
    if (rules.apply(rules.self, state, move) == windrow::kFailed) {
      throw std::invalid_argument("outcome " + std::to_string(move) +
                                  " is not possible: " + windrow::why_failed(rules));
    }
    return;
  }
  if (player == windrow::kTerminal) throw std::invalid_argument("the game is over");
  legal.resize(static_cast<size_t>(rules.max_legal_actions) + 1);
  const int32_t count = checked_count(self, "legal_actions", rules.legal_actions(rules.self, state, legal.data()),
                                      rules.max_legal_actions);
  if (!std::binary_search(legal.begin(), legal.begin() + count, move)) {
    throw std::invalid_argument("action " + std::to_string(move) + " is not a legal move");
  }
  checked(self, "apply", rules.apply(rules.self, state, move));
}

nb::bytes apply(const NativeGame& self, const nb::bytes& state, int64_t move) {
  StateCopy copy(self, state);
  std::vector<int32_t> legal;
  play(self, copy.get(), move, legal);
  return copy.to_python();
}

const char* chance(const NativeGame& self) {
  if (table(self).chance_outcomes != nullptr) return "listed";
  return table(self).sample_outcome != nullptr ? "sampled" : "none";
}

void check_chance(const NativeGame& self, const StateCopy& state) {
  if (table(self).to_play(table(self).self, state.get()) != windrow::kChance) {
    throw std::invalid_argument("it is not chance's turn");
  }
}

std::pair<Vector<int32_t>, Vector<double>> chance_outcomes(const NativeGame& self, const nb::bytes& state) {
  const StateCopy copy(self, state);
  if (table(self).chance_outcomes == nullptr) throw std::invalid_argument("this game's outcomes cannot be listed");
  check_chance(self, copy);
  NewVector<int32_t> outcomes(table(self).max_outcomes);
  NewVector<double> probabilities(table(self).max_outcomes);
  const int32_t count = checked_count(
      self, "chance_outcomes",
      table(self).chance_outcomes(table(self).self, copy.get(), outcomes.data.get(), probabilities.data.get()),
      table(self).max_outcomes);
  outcomes.size = probabilities.size = static_cast<size_t>(count);
  return {outcomes.to_python(), probabilities.to_python()};
}

int64_t sample_outcome(const NativeGame& self, const nb::bytes& state, uint64_t seed) {
  const StateCopy copy(self, state);
  if (table(self).sample_outcome == nullptr) throw std::invalid_argument("this game does not draw its outcomes");
  check_chance(self, copy);
  int64_t outcome = 0;
  checked(self, "sample_outcome", table(self).sample_outcome(table(self).self, copy.get(), seed, &outcome));
  return outcome;
}

Vector<float> returns(const NativeGame& self, const nb::bytes& state) {
  StateCopy copy(self, state);
  if (table(self).to_play(table(self).self, copy.get()) != windrow::kTerminal) {
    throw std::invalid_argument("there are no returns yet: the game is not over");
  }
  NewVector<float> values(table(self).num_players);
  checked(self, "returns", table(self).returns(table(self).self, copy.get(), values.data.get()));
  return values.to_python();
}

Vector<float> observe(const NativeGame& self, const nb::bytes& state) {
  NewVector<float> row(table(self).observation_floats);
  checked(self, "observe", table(self).observe(table(self).self, StateCopy(self, state).get(), row.data.get()));
  return row.to_python();
}

std::pair<uint64_t, uint64_t> hash(const NativeGame& self, const nb::bytes& state) {
  uint64_t hash[2];
  checked(self, "hash", table(self).hash(table(self).self, StateCopy(self, state).get(), hash));
  return {hash[0], hash[1]};
}

std::pair<Vector<int32_t>, Vector<int32_t>> symmetry(const NativeGame& self, int32_t index) {
  if (index < 0 || index >= table(self).num_symmetries) {
    throw std::out_of_range(self.game->name() + " has symmetries 0 to " +
                            std::to_string(table(self).num_symmetries - 1));
  }
  NewVector<int32_t> actions(table(self).num_actions);
  NewVector<int32_t> observation(table(self).observation_floats);
  checked(self, "symmetry", table(self).symmetry(table(self).self, index, actions.data.get(), observation.data.get()));
  return {actions.to_python(), observation.to_python()};
}

std::string render(const NativeGame& self, const nb::bytes& state) {
  return self.game->render(StateCopy(self, state).get());
}

std::optional<double> score(const NativeGame& self, const nb::bytes& state) {
  return self.game->score(StateCopy(self, state).get());
}

std::string action_name(const NativeGame& self, int32_t action) {
  check_action(self, action);
  return self.game->action_name(action);
}

std::pair<int64_t, size_t> parse_outcome(const NativeGame& self, std::string_view text) {
  int64_t outcome = -1;
  const size_t consumed = self.game->parse_outcome(text, &outcome);
  return {outcome, consumed};
}

std::pair<int32_t, size_t> parse_action(const NativeGame& self, std::string_view text) {
  int32_t action = -1;
  const size_t consumed = self.game->parse_action(text, &action);
  return {action, consumed};
}

std::string move_name(const NativeGame& self, const nb::bytes& state, int32_t action) {
  check_action(self, action);
  return self.game->move_name(StateCopy(self, state).get(), action);
}

std::pair<int32_t, size_t> parse_move(const NativeGame& self, const nb::bytes& state, std::string_view text) {
  int32_t action = -1;
  const size_t consumed = self.game->parse_move(StateCopy(self, state).get(), text, &action);
  return {action, consumed};
}

uint64_t count_sequences(const NativeGame& self, const nb::bytes& state, int32_t depth) {
  if (depth < 0 || depth > 100) throw std::invalid_argument("depth must be from 0 to 100");
  const StateCopy copy(self, state);
  const nb::gil_scoped_release no_gil;
  return self.game->count_sequences(copy.get(), depth);
}

// --- Many states at once: rows of bytes [n, state_bytes]. The GIL is released.

using States = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Moves = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
using Matrix = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

// Calls `visit(row, state)` for every row, with a copy that is aligned for the rules.
template <class Visit>
void for_each_state(const NativeGame& self, const States& states, Visit visit) {
  const size_t size = static_cast<size_t>(table(self).state_bytes);
  if (states.shape(1) != size) {
    throw std::invalid_argument("states of " + self.game->name() + " are rows of " + std::to_string(size) +
                                " bytes, not " + std::to_string(states.shape(1)));
  }
  const nb::gil_scoped_release no_gil;
  StateCopy copy(self);
  for (size_t row = 0; row < states.shape(0); ++row) {
    std::memcpy(copy.get(), states.data() + row * size, size);
    visit(row, copy.get());
  }
}

Matrix<uint8_t> play_many(const NativeGame& self, const nb::bytes& initial, const Moves& moves) {
  StateCopy state(self, initial);
  const size_t size = static_cast<size_t>(table(self).state_bytes);
  const size_t num_moves = moves.shape(0);
  NewVector<uint8_t> states((num_moves + 1) * size);
  std::memcpy(states.data.get(), state.get(), size);
  {
    const nb::gil_scoped_release no_gil;
    std::vector<int32_t> legal;
    for (size_t ply = 0; ply < num_moves; ++ply) {
      try {
        play(self, state.get(), moves.data()[ply], legal);
      } catch (const std::invalid_argument& error) {
        throw std::invalid_argument("ply " + std::to_string(ply) + ": " + error.what());
      }
      std::memcpy(states.data.get() + (ply + 1) * size, state.get(), size);
    }
  }
  return states.to_shape<Matrix<uint8_t>>({num_moves + 1, size});
}

Matrix<float> observe_many(const NativeGame& self, const States& states) {
  const size_t width = static_cast<size_t>(table(self).observation_floats);
  NewVector<float> rows(states.shape(0) * width);
  for_each_state(self, states, [&](size_t row, const void* state) {
    checked(self, "observe", table(self).observe(table(self).self, state, rows.data.get() + row * width));
  });
  return rows.to_shape<Matrix<float>>({states.shape(0), width});
}

Vector<int8_t> to_play_many(const NativeGame& self, const States& states) {
  NewVector<int8_t> players(states.shape(0));
  for_each_state(self, states, [&](size_t row, const void* state) {
    players.data[row] = static_cast<int8_t>(checked(self, "to_play", table(self).to_play(table(self).self, state)));
  });
  return players.to_python();
}

Matrix<bool> legal_many(const NativeGame& self, const States& states) {
  const size_t width = static_cast<size_t>(table(self).num_actions);
  NewVector<bool> rows(states.shape(0) * width);
  std::vector<int32_t> legal(static_cast<size_t>(table(self).max_legal_actions) + 1);
  for_each_state(self, states, [&](size_t row, const void* state) {
    const int32_t count =
        checked_count(self, "legal_actions", table(self).legal_actions(table(self).self, state, legal.data()),
                      table(self).max_legal_actions);
    for (int32_t i = 0; i < count; ++i) rows.data[row * width + static_cast<size_t>(legal[i])] = true;
  });
  return rows.to_shape<Matrix<bool>>({states.shape(0), width});
}

}  // namespace

void bind_game(nb::module_& m) {
  nb::class_<NativeGame>(m, "NativeGame", "A built-in game over states of bytes; made by `make_game`.")
      .def_prop_ro("name", [](const NativeGame& self) { return self.game->name(); })
      .def_prop_ro("options", &options, "The options in force, defaults included.")
      .def_prop_ro("num_players", [](const NativeGame& self) { return table(self).num_players; })
      .def_prop_ro(
          "num_values", [](const NativeGame& self) { return table(self).num_values; },
          "1 if values are of the player to move alone, else the number of players.")
      .def_prop_ro("chance", &chance, "'none', 'listed' or 'sampled'.")
      .def_prop_ro("num_actions", [](const NativeGame& self) { return table(self).num_actions; })
      .def_prop_ro("state_bytes", [](const NativeGame& self) { return table(self).state_bytes; })
      .def_prop_ro("num_symmetries", [](const NativeGame& self) { return table(self).num_symmetries; })
      .def_prop_ro("observation", &observation, "The parts of an observation row, in order: name and shape.")
      .def("initial_state", &initial_state, "The state in which a game begins.")
      .def("to_play", &to_play, "state"_a, "The player to move, -1 for chance, -2 for a finished game.")
      .def("legal_actions", &legal_actions, "state"_a, "int32, ascending; empty in a finished game.")
      .def("apply", &apply, "state"_a, "move"_a,
           "The state after an action or an outcome of chance; ValueError if that is not possible here.")
      .def("chance_outcomes", &chance_outcomes, "state"_a, "What may happen, ascending, and how likely it is.")
      .def("sample_outcome", &sample_outcome, "state"_a, "seed"_a, "An outcome drawn by the game itself.")
      .def("returns", &returns, "state"_a, "float32, one value per player; ValueError if the game is not over.")
      .def("observe", &observe, "state"_a, "float32, one row, seen by the player to move.")
      .def("play_many", &play_many, "initial"_a, "moves"_a.noconvert(),
           "uint8 [moves + 1, state_bytes]: the states along one game; ValueError names the ply of an illegal move.")
      .def("observe_many", &observe_many, "states"_a.noconvert(),
           "float32 [n, floats]: the rows of `states` [n, state_bytes].")
      .def("to_play_many", &to_play_many, "states"_a.noconvert(), "int8 [n], as `to_play` says.")
      .def("legal_many", &legal_many, "states"_a.noconvert(),
           "bool [n, A]: which actions are legal; none in a finished game.")
      .def("hash", &hash, "state"_a, "The low and the high 64 bits; equal positions have equal hashes.")
      .def("symmetry", &symmetry, "index"_a, "The permutations of actions and of observation rows; 0 is the identity.")
      .def("render", &render, "state"_a, "The position as text.")
      .def("score", &score, "state"_a,
           "By how many points player 0 leads; None in a game that does not count points so.")
      .def("action_name", &action_name, "action"_a, "The name people use for `action`.")
      .def(
          "outcome_name", [](const NativeGame& self, int64_t outcome) { return self.game->outcome_name(outcome); },
          "outcome"_a, "The name people use for an outcome of chance.")
      .def("parse_outcome", &parse_outcome, "text"_a, "As `parse_action`, for outcomes of chance.")
      .def("parse_action", &parse_action, "text"_a,
           "The action named at the front of `text` and how many characters its name has; (-1, 0) if there is none.")
      .def_prop_ro(
          "names_depend_on_state", [](const NativeGame& self) { return self.game->names_depend_on_state(); },
          "Whether `move_name` and `parse_move` differ from `action_name` and `parse_action`.")
      .def("move_name", &move_name, "state"_a, "action"_a, "The name people use for `action` in this position.")
      .def("parse_move", &parse_move, "state"_a, "text"_a, "As `parse_action`, for the names that `move_name` gives.")
      .def("count_sequences", &count_sequences, "state"_a, "depth"_a,
           "How many sequences of `depth` moves there are; in chess draws end none (perft). Only without chance.");

  m.def("make_game", &make_game, "name"_a, "options"_a,
        "The built-in game of that name; ValueError for an unknown name, option or value.");
  m.def("game_names", &windrow::builtin_names, "The names of the built-in games.");
}
