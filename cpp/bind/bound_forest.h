// bound_forest.h: a forest as Python holds it.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "../forest.h"
#include "../games/builtin.h"

namespace nb = nanobind;

// A forest, the game it plays, its cache, and a guard against two Python threads inside it at once.
struct BoundForest {
  std::shared_ptr<windrow::NamedGame> game;
  windrow::Forest forest;
  std::atomic_flag is_busy = ATOMIC_FLAG_INIT;

  BoundForest(std::shared_ptr<windrow::NamedGame> the_game, int32_t num_trees, const windrow::ForestOptions& options,
              std::shared_ptr<windrow::PredictionCache> cache)
      : game(std::move(the_game)), forest(game->table(), num_trees, options, std::move(cache)) {}
};

// Holds the forest: nobody else may use it meanwhile.
class Holding {
 public:
  explicit Holding(BoundForest& bound) : bound_(bound) {
    if (bound_.is_busy.test_and_set()) throw std::logic_error("a forest can be used from one thread at a time");
  }
  ~Holding() { bound_.is_busy.clear(); }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

 private:
  BoundForest& bound_;
};

// Holds the forest and not the GIL; unless the game needs it so often that giving it up would only cost time.
class Working {
 public:
  explicit Working(BoundForest& bound) : holding_(bound) {
    if (!bound.game->needs_gil()) no_gil_.emplace();
  }

 private:
  Holding holding_;
  std::optional<nb::gil_scoped_release> no_gil_;
};

// What the roots are and have found; in roots.cpp.
void bind_roots(nanobind::module_& m, nanobind::class_<BoundForest>& forest);
