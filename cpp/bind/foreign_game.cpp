// foreign_game.cpp: a game whose functions were compiled by somebody else (numba), given by their addresses.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Permutations = std::vector<std::pair<std::vector<int32_t>, std::vector<int32_t>>>;

// The functions have the signatures of GameTable's; those given ignore `self`.
class ForeignGame final : public windrow::NamedGame {
 public:
  ForeignGame(std::string name, const nb::dict& facts, const nb::dict& functions,
              std::vector<windrow::ObservationPart> parts, Permutations symmetries, nb::object owner)
      : name_(std::move(name)), parts_(std::move(parts)), symmetries_(std::move(symmetries)), owner_(std::move(owner)) {
    table_.abi_version = windrow::kGameAbiVersion;
    table_.self = this;
    table_.num_players = fact(facts, "num_players");
    table_.num_values = fact(facts, "num_values");
    table_.num_actions = fact(facts, "num_actions");
    table_.max_legal_actions = fact(facts, "max_legal_actions");
    table_.max_outcomes = fact(facts, "max_outcomes");
    table_.state_bytes = fact(facts, "state_bytes");
    for (const windrow::ObservationPart& part : parts_) {
      int32_t size = 1;
      for (const int32_t dimension : part.shape) size *= dimension;
      table_.observation_floats += size;
    }
    table_.num_symmetries = static_cast<int32_t>(symmetries_.size());
    set(table_.initial_state, functions, "initial_state");
    set(table_.to_play, functions, "to_play");
    set(table_.legal_actions, functions, "legal_actions");
    set(table_.apply, functions, "apply");
    set(table_.returns, functions, "returns");
    set(table_.observe, functions, "observe");
    set(table_.hash, functions, "hash");
    if (functions.contains("chance_outcomes")) set(table_.chance_outcomes, functions, "chance_outcomes");
    if (functions.contains("sample_outcome")) set(table_.sample_outcome, functions, "sample_outcome");
    table_.symmetry = [](void* self, int32_t index, int32_t* actions, int32_t* observation) {
      const auto& [of_actions, of_observation] =
          static_cast<ForeignGame*>(self)->symmetries_[static_cast<size_t>(index)];
      std::copy(of_actions.begin(), of_actions.end(), actions);
      std::copy(of_observation.begin(), of_observation.end(), observation);
      return int32_t{0};
    };
    table_.explain = [](void*, char* text, int32_t size) {
      std::snprintf(text, static_cast<size_t>(size), "the compiled function raised an exception");
    };
  }

  ~ForeignGame() override {
    const nb::gil_scoped_acquire gil;
    owner_.reset();
  }

  std::string name() const override { return name_; }
  windrow::GameOptions options() const override { return {}; }
  std::vector<windrow::ObservationPart> observation() const override { return parts_; }
  // Words are Python's.
  std::string render(const void*) const override { return name_; }
  std::string action_name(int32_t action) const override { return std::to_string(action); }
  size_t parse_action(std::string_view, int32_t*) const override { return 0; }

 private:
  static int32_t fact(const nb::dict& facts, const char* name) { return nb::cast<int32_t>(facts[name]); }

  template <class Function>
  static void set(Function& function, const nb::dict& functions, const char* name) {
    const uintptr_t address = nb::cast<uintptr_t>(functions[name]);
    if (address == 0) throw std::invalid_argument(std::string(name) + " has no address");
    function = reinterpret_cast<Function>(address);
  }

  std::string name_;
  std::vector<windrow::ObservationPart> parts_;
  Permutations symmetries_;
  nb::object owner_;  // of the compiled code
};

}  // namespace

void bind_foreign_game(nb::module_& m) {
  m.def(
      "foreign_game",
      [](const std::string& name, const nb::dict& facts, const nb::dict& functions,
         const std::vector<std::pair<std::string, std::vector<int32_t>>>& observation, const Permutations& symmetries,
         const nb::object& owner) {
        std::vector<windrow::ObservationPart> parts;
        parts.reserve(observation.size());
        for (const auto& [part, shape] : observation) parts.push_back({part, shape});
        return NativeGame{std::make_shared<ForeignGame>(name, facts, functions, parts, symmetries, owner)};
      },
      "name"_a, "facts"_a, "functions"_a, "observation"_a, "symmetries"_a, "owner"_a,
      nb::sig("def foreign_game(name: str, facts: dict[str, int], functions: dict[str, int], observation: list[tuple["
              "str, list[int]]], symmetries: list[tuple[list[int], list[int]]], owner: object) -> NativeGame"),
      "A game of compiled functions, by their addresses; see cpp/game.h for their signatures. `owner` keeps them "
      "alive.");
}
