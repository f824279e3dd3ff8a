// bind.h: what the binding files of windrow._core share.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "../games/builtin.h"
#include "../prediction_cache.h"

// A game as Python holds it. Shared, because a search keeps its game alive.
struct NativeGame {
  std::shared_ptr<windrow::NamedGame> game;
};

void bind_game(nanobind::module_& m);
void bind_cache(nanobind::module_& m);
void bind_forest(nanobind::module_& m);
void bind_foreign_game(nanobind::module_& m);
void bind_python_game(nanobind::module_& m);
void bind_solver(nanobind::module_& m);
