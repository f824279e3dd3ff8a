// trap_faults.h: everything a game can do wrong, and how the core says so.
#pragma once

#include <cstdint>
#include <vector>

namespace windrow {

// The kinds of position of a trap game.
enum class TrapPlace { kDecision, kEnd, kListedChance, kSampledChance };

enum class TrapFault {
  kSound,
  kApplyFails,
  kToPlayFails,
  kUnknownPlayer,
  // Where a player is to move.
  kLegalActionsFails,
  kNobodyCanMove,
  kTooManyActions,
  kActionsDescend,
  kActionUnknown,
  kObserveFails,
  kHashFails,
  // Where the game is over.
  kReturnsFails,
  kReturnsTooLarge,
  kReturnsNoNumber,
  kReturnsNotOpposed,
  // Where chance is to move.
  kOutcomesFails,
  kNoOutcome,
  kTooManyOutcomes,
  kOutcomesDescend,
  kOutcomeTooLarge,
  kOutcomeImpossible,
  kProbabilitiesTooSmall,
  kProbabilityNoNumber,
  kSampleFails,
};

// How the message of a fault begins. Those that a function reported itself end with what `explain` says.
struct TrapFaultFacts {
  TrapFault fault;
  const char* words;
  bool is_explained;
};

inline const std::vector<TrapFaultFacts>& trap_faults() {
  static const std::vector<TrapFaultFacts> facts = {
      {TrapFault::kApplyFails, "apply: ", true},
      {TrapFault::kToPlayFails, "to_play: ", true},
      {TrapFault::kUnknownPlayer, "to_play gave ", false},
      {TrapFault::kLegalActionsFails, "legal_actions: ", true},
      {TrapFault::kNobodyCanMove, "the position is not finished but has no legal action", false},
      {TrapFault::kTooManyActions, "legal_actions gave 10, not 1 to 9", false},
      {TrapFault::kActionsDescend, "legal_actions are not ascending numbers below 9", false},
      {TrapFault::kActionUnknown, "legal_actions are not ascending numbers below 9", false},
      {TrapFault::kObserveFails, "observe: ", true},
      {TrapFault::kHashFails, "hash: ", true},
      {TrapFault::kReturnsFails, "returns: ", true},
      {TrapFault::kReturnsTooLarge, "returns gave 1.5", false},
      {TrapFault::kReturnsNoNumber, "returns gave ", false},
      {TrapFault::kReturnsNotOpposed, "returns of 1.000000 and 0.500000 do not sum to zero", false},
      {TrapFault::kOutcomesFails, "chance_outcomes: ", true},
      {TrapFault::kNoOutcome, "chance_outcomes gave 0, not 1 to 12", false},
      {TrapFault::kTooManyOutcomes, "chance_outcomes gave 13, not 1 to 12", false},
      {TrapFault::kOutcomesDescend, "chance_outcomes are not ascending numbers below 65536", false},
      {TrapFault::kOutcomeTooLarge, "chance_outcomes are not ascending numbers below 65536", false},
      {TrapFault::kOutcomeImpossible, "chance_outcomes gave probabilities", false},
      {TrapFault::kProbabilitiesTooSmall, "chance_outcomes gave probabilities", false},
      {TrapFault::kProbabilityNoNumber, "chance_outcomes gave probabilities", false},
      {TrapFault::kSampleFails, "sample_outcome: ", true},
  };
  return facts;
}

inline const TrapFaultFacts& facts_of(TrapFault fault) { return trap_faults()[static_cast<size_t>(fault) - 1]; }

// Whether a fault can be met at a position of that kind. `is_opposed`: one value says it all for two players.
inline bool can_be_at(TrapFault fault, TrapPlace place, bool is_opposed) {
  if (fault == TrapFault::kReturnsNotOpposed && !is_opposed) return false;
  if (fault <= TrapFault::kUnknownPlayer) return fault != TrapFault::kSound;
  switch (place) {
    case TrapPlace::kDecision:
      return fault <= TrapFault::kHashFails;
    case TrapPlace::kEnd:
      return fault >= TrapFault::kReturnsFails && fault <= TrapFault::kReturnsNotOpposed;
    case TrapPlace::kListedChance:
      return fault >= TrapFault::kOutcomesFails && fault <= TrapFault::kProbabilityNoNumber;
    case TrapPlace::kSampledChance:
      return fault == TrapFault::kSampleFails;
  }
  return false;
}

}  // namespace windrow
