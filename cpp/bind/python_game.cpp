// python_game.cpp: a game written as a Python class, as a GameTable.
//
// A state is 8 bytes: a reference to the Python object that the class knows it as. The tree retains and releases it as
// it comes and goes, so an object lives exactly as long as something refers to it. Every call holds the GIL; forests of
// such games do not give it up while they work (bound_forest.h).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../games/hash.h"
#include "bind.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using windrow::GameTable;
using windrow::kFailed;

using FloatRow = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

// `adapter` is a windrow.games.python_game.PythonGame: it knows the facts, and its `rules` is the user's object.
class PythonGame final : public windrow::NamedGame {
 public:
  explicit PythonGame(const nb::object& adapter) : name_(nb::cast<std::string>(adapter.attr("name"))) {
    const nb::object rules = adapter.attr("rules");
    apply_ = rules.attr("apply");
    to_play_ = rules.attr("to_play");
    legal_actions_ = rules.attr("legal_actions");
    returns_ = rules.attr("returns");
    observe_ = rules.attr("observe");
    initial_state_ = rules.attr("initial_state");
    flatten_ = adapter.attr("flatten");
    const std::string chance = nb::cast<std::string>(adapter.attr("chance"));
    if (chance == "listed") chance_outcomes_ = rules.attr("chance_outcomes");
    if (chance == "sampled") sample_outcome_ = rules.attr("sample_outcome");
    if (nb::cast<bool>(adapter.attr("has_hash"))) hash_ = rules.attr("hash");

    table_.abi_version = windrow::kGameAbiVersion;
    table_.self = this;
    table_.num_players = nb::cast<int32_t>(adapter.attr("num_players"));
    table_.num_values = nb::cast<int32_t>(adapter.attr("num_values"));
    table_.num_actions = nb::cast<int32_t>(adapter.attr("num_actions"));
    table_.max_legal_actions = nb::cast<int32_t>(adapter.attr("max_legal_actions"));
    table_.max_outcomes = chance == "listed" ? nb::cast<int32_t>(adapter.attr("max_outcomes")) : 0;
    table_.state_bytes = sizeof(PyObject*);
    for (const nb::handle part : adapter.attr("observation_parts")) {
      const auto [part_name, shape] = nb::cast<std::pair<std::string, std::vector<int32_t>>>(part);
      parts_.push_back({part_name, shape});
      int32_t size = 1;
      for (const int32_t dimension : shape) size *= dimension;
      table_.observation_floats += size;
    }
    for (const nb::handle symmetry : adapter.attr("symmetry_tables")) {
      symmetries_.push_back(nb::cast<std::pair<std::vector<int32_t>, std::vector<int32_t>>>(symmetry));
    }
    table_.num_symmetries = static_cast<int32_t>(symmetries_.size());

    table_.initial_state = [](void* self, void* state) {
      return guarded(self, [&](PythonGame& game) { return put(state, game.initial_state_()); });
    };
    table_.to_play = [](void* self, const void* state) {
      return guarded(self, [&](PythonGame& game) { return to_int(game.to_play_(get(state))); });
    };
    table_.legal_actions = [](void* self, const void* state, int32_t* actions) {
      return guarded(self, [&](PythonGame& game) { return game.read_actions(state, actions); });
    };
    table_.apply = [](void* self, void* state, int64_t move) {
      return guarded(self, [&](PythonGame& game) { return put(state, game.apply_(get(state), move)); });
    };
    table_.returns = [](void* self, const void* state, float* values) {
      return guarded(self, [&](PythonGame& game) { return game.read_returns(state, values); });
    };
    table_.observe = [](void* self, const void* state, float* row) {
      return guarded(self, [&](PythonGame& game) { return game.read_observation(state, row); });
    };
    if (chance_outcomes_.is_valid()) {
      table_.chance_outcomes = [](void* self, const void* state, int32_t* outcomes, double* probabilities) {
        return guarded(self, [&](PythonGame& game) { return game.read_outcomes(state, outcomes, probabilities); });
      };
    }
    if (sample_outcome_.is_valid()) {
      table_.sample_outcome = [](void* self, const void* state, uint64_t seed, int64_t* outcome) {
        return guarded(self, [&](PythonGame& game) {
          *outcome = to_int64(game.sample_outcome_(get(state), seed));
          return 0;
        });
      };
    }
    table_.hash = [](void* self, const void* state, uint64_t* hash) {
      return guarded(self, [&](PythonGame& game) { return game.read_hash(state, hash); });
    };
    table_.symmetry = [](void* self, int32_t index, int32_t* actions, int32_t* observation) {
      const auto& [of_actions, of_observation] =
          static_cast<PythonGame*>(self)->symmetries_[static_cast<size_t>(index)];
      std::copy(of_actions.begin(), of_actions.end(), actions);
      std::copy(of_observation.begin(), of_observation.end(), observation);
      return int32_t{0};
    };
    table_.retain = [](void*, const void* state) {
      const nb::gil_scoped_acquire gil;
      Py_INCREF(get(state).ptr());
    };
    table_.release = [](void*, const void* state) {
      const nb::gil_scoped_acquire gil;
      Py_DECREF(get(state).ptr());
    };
    table_.explain = [](void* self, char* text, int32_t size) {
      const nb::gil_scoped_acquire gil;
      const std::string& why = static_cast<PythonGame*>(self)->failures_[std::this_thread::get_id()].why;
      size_t length = std::min(why.size(), static_cast<size_t>(size) - 1);
      // Not in the middle of a character: what follows the first byte of one begins with the bits 10.
      while (length < why.size() && length > 0 && (static_cast<unsigned char>(why[length]) & 0xC0) == 0x80) --length;
      std::memcpy(text, why.data(), length);
      text[length] = '\0';
    };
  }

  ~PythonGame() override {
    // The last forest may be gone after a thread without the GIL.
    const nb::gil_scoped_acquire gil;
    for (nb::object* method : {&apply_, &to_play_, &legal_actions_, &returns_, &observe_, &initial_state_, &flatten_,
                               &chance_outcomes_, &sample_outcome_, &hash_}) {
      method->reset();
    }
    failures_.clear();
  }

  bool needs_gil() const override { return true; }
  nb::object take_error() {
    const auto found = failures_.find(std::this_thread::get_id());
    if (found == failures_.end()) return nb::none();
    nb::object error = std::move(found->second.error);
    failures_.erase(found);
    return error.is_valid() ? error : nb::none();
  }

  std::string name() const override { return name_; }
  windrow::GameOptions options() const override { return {}; }
  std::vector<windrow::ObservationPart> observation() const override { return parts_; }
  // Words are the adapter's, in Python.
  std::string render(const void*) const override { return name_; }
  std::string action_name(int32_t action) const override { return std::to_string(action); }
  size_t parse_action(std::string_view, int32_t*) const override { return 0; }

 private:
  static nb::handle get(const void* state) {
    PyObject* object;
    std::memcpy(&object, state, sizeof(PyObject*));
    return object;
  }
  static int32_t put(void* state, nb::object object) {
    if (object.is_none()) throw std::runtime_error("it returned None, not a state");
    PyObject* owned = object.release().ptr();
    std::memcpy(state, &owned, sizeof(PyObject*));
    return 0;
  }

  // What `call` answers; kFailed, and the reason kept, if it raises.
  template <class Call>
  static int32_t guarded(void* self, const Call& call) {
    const nb::gil_scoped_acquire gil;
    PythonGame& game = *static_cast<PythonGame*>(self);
    if (!game.failures_.empty()) game.failures_.erase(std::this_thread::get_id());  // nobody has asked for it
    try {
      return static_cast<int32_t>(call(game));
    } catch (nb::python_error& error) {
      // PyType_GetName is not in Python 3.10.
      const std::string why = to_text(PyObject_GetAttrString(error.type().ptr(), "__name__")) + ": " +
                              to_text(PyObject_Str(error.value().ptr()));
      game.failures_[std::this_thread::get_id()] = {nb::borrow(error.value()), why};
    } catch (const std::exception& error) {
      game.failures_[std::this_thread::get_id()] = {nb::object(), error.what()};
    }
    return kFailed;
  }

  // A new reference to a Python string, which may be null with an error set, as UTF-8 whatever is in it.
  static std::string to_text(PyObject* string) {
    const nb::object text = nb::steal(string);
    const nb::object bytes =
        nb::steal(text.is_valid() ? PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace") : nullptr);
    if (!bytes.is_valid()) {
      PyErr_Clear();
      return "(no text)";
    }
    return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
  }

  static int64_t to_int64(const nb::handle number) {
    const nb::object index = nb::steal(PyNumber_Index(number.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    const long long value = PyLong_AsLongLong(index.ptr());
    if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return value;
  }
  static int32_t to_int(const nb::handle number) {
    const int64_t value = to_int64(number);
    if (value <= INT32_MIN || value > INT32_MAX) throw std::out_of_range(std::to_string(value) + " is out of range");
    return static_cast<int32_t>(value);
  }
  static double to_double(const nb::handle number) {
    const double value = PyFloat_AsDouble(number.ptr());
    if (value == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return value;
  }
  // The items of any sequence, as a tuple: what nobody can change while it is read.
  static nb::object items(const nb::object& sequence) {
    const nb::object tuple = nb::steal(PySequence_Tuple(sequence.ptr()));
    if (!tuple.is_valid()) throw nb::python_error();
    return tuple;
  }
  static size_t count_of(const nb::object& tuple) { return static_cast<size_t>(PyTuple_GET_SIZE(tuple.ptr())); }
  static nb::handle item_of(const nb::object& tuple, size_t i) {
    return PyTuple_GET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i));
  }

  int32_t read_actions(const void* state, int32_t* actions) {
    const nb::object listed = items(legal_actions_(get(state)));
    const size_t count = count_of(listed);
    if (count > static_cast<size_t>(table_.max_legal_actions)) {
      throw std::length_error(std::to_string(count) + " actions, but max_legal_actions is " +
                              std::to_string(table_.max_legal_actions));
    }
    for (size_t i = 0; i < count; ++i) actions[i] = to_int(item_of(listed, i));
    return static_cast<int32_t>(count);
  }

  int32_t read_returns(const void* state, float* values) {
    const nb::object listed = items(returns_(get(state)));
    if (count_of(listed) != static_cast<size_t>(table_.num_players)) {
      throw std::length_error(std::to_string(count_of(listed)) + " values for " + std::to_string(table_.num_players) +
                              " players");
    }
    for (size_t i = 0; i < count_of(listed); ++i) values[i] = static_cast<float>(to_double(item_of(listed, i)));
    return 0;
  }

  int32_t read_observation(const void* state, float* row) {
    nb::object answer = observe_(get(state));
    FloatRow floats;
    if (parts_.size() != 1 || !nb::try_cast(answer, floats, false) || !has_shape(floats)) {
      floats = nb::cast<FloatRow>(flatten_(answer));  // or it says what is wrong
    }
    std::memcpy(row, floats.data(), floats.size() * sizeof(float));
    return 0;
  }
  bool has_shape(const FloatRow& floats) const {
    const std::vector<int32_t>& shape = parts_[0].shape;
    if (floats.ndim() != shape.size()) return false;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (floats.shape(i) != static_cast<size_t>(shape[i])) return false;
    }
    return true;
  }

  int32_t read_outcomes(const void* state, int32_t* outcomes, double* probabilities) {
    const nb::object listed = items(chance_outcomes_(get(state)));
    const size_t count = count_of(listed);
    if (count > static_cast<size_t>(table_.max_outcomes)) {
      throw std::length_error(std::to_string(count) + " outcomes, but max_outcomes is " +
                              std::to_string(table_.max_outcomes) + ": set it on the game");
    }
    for (size_t i = 0; i < count; ++i) {
      const nb::object pair = items(nb::borrow(item_of(listed, i)));
      if (count_of(pair) != 2) throw std::length_error("pairs of an outcome and its probability are needed");
      outcomes[i] = to_int(item_of(pair, 0));
      probabilities[i] = to_double(item_of(pair, 1));
    }
    return static_cast<int32_t>(count);
  }

  int32_t read_hash(const void* state, uint64_t* hash) {
    if (hash_.is_valid()) {
      const nb::object number = hash_(get(state));
      const nb::int_ mask(UINT64_MAX);
      hash[0] = nb::cast<uint64_t>(number & mask);
      hash[1] = nb::cast<uint64_t>((number >> nb::int_(64)) & mask);
      return 0;
    }
    // What a network is shown and what may be played: positions that are equal in both have equal evaluations.
    std::vector<float> row(static_cast<size_t>(table_.observation_floats));
    read_observation(state, row.data());
    std::vector<int32_t> actions(static_cast<size_t>(table_.max_legal_actions));
    const int32_t count = read_actions(state, actions.data());
    windrow::Hasher hasher;
    for (const float number : row) hasher.add(std::bit_cast<uint32_t>(number));
    for (int32_t i = 0; i < count; ++i) hasher.add(static_cast<uint64_t>(actions[static_cast<size_t>(i)]));
    hasher.finish(hash);
    return 0;
  }

  std::string name_;
  nb::object apply_, to_play_, legal_actions_, returns_, observe_, initial_state_, flatten_;
  nb::object chance_outcomes_, sample_outcome_, hash_;  // may be missing
  std::vector<windrow::ObservationPart> parts_;
  std::vector<std::pair<std::vector<int32_t>, std::vector<int32_t>>> symmetries_;
  // What was raised last in a thread, and the same in words; read and written under the GIL.
  struct Failure {
    nb::object error;
    std::string why;
  };
  std::unordered_map<std::thread::id, Failure> failures_;
};

}  // namespace

void bind_python_game(nb::module_& m) {
  m.def(
      "python_game", [](const nb::object& adapter) { return NativeGame{std::make_shared<PythonGame>(adapter)}; },
      "adapter"_a, nb::sig("def python_game(adapter: object) -> NativeGame"),
      "The core's view of a game in Python; `windrow.games.python_game` makes it. Its states are references.");
  m.def(
      "take_error",
      [](const NativeGame& game) {
        auto* python = dynamic_cast<PythonGame*>(game.game.get());
        return python != nullptr ? python->take_error() : nb::none();
      },
      "game"_a, nb::sig("def take_error(game: NativeGame) -> BaseException | None"),
      "What a game in Python raised last, once.");
  m.def(
      "objects_of",
      [](const nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& references) {
        nb::list objects;
        for (size_t i = 0; i < references.shape(0); ++i) {
          objects.append(nb::borrow(reinterpret_cast<PyObject*>(references.data()[i])));
        }
        return objects;
      },
      "references"_a, nb::sig("def objects_of(references: NDArray[numpy.uint64]) -> list[object]"),
      "The states behind references that a forest gave and still holds.");
}
