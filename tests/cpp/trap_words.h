// trap_words.h: whether the core says of a trap what it is.
#pragma once

#include <string>

#include "check.h"
#include "positions.h"
#include "trap_game.h"
#include "tree.h"

namespace windrow {

// `state` is the position that the fault names.
inline void check_words(const GameFault& error, const TrapRules& rules, const State& state) {
  const std::string words = error.what();
  const TrapFault fault = TrapGame::fault_at(rules, state.data());
  check(fault != TrapFault::kSound, "a fault names a position that has none: " + words);
  check(words.starts_with(facts_of(fault).words), "a fault is called another: " + words);
  if (facts_of(fault).is_explained) {
    check(words == facts_of(fault).words + TrapGame::reason(state.data()), "the reason of another fault: " + words);
  }
}

}  // namespace windrow
