// module.cpp: windrow._core, the native half of windrow.
#include <nanobind/nanobind.h>

#include "bind.h"

NB_MODULE(_core, m) {
  m.doc() = "The native core of windrow: games, trees and the forest. Private; use the windrow package.";
  // A game that a user's module, notebook or test runner still holds when Python ends is not a leak of ours.
  nanobind::set_leak_warnings(false);
  bind_game(m);
  bind_cache(m);
  bind_forest(m);
  bind_foreign_game(m);
  bind_python_game(m);
  bind_solver(m);
}
