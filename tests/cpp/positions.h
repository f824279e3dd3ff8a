// positions.h: states of any game for tests, and an evaluator that needs nothing but their hashes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "check.h"
#include "dice.h"
#include "game.h"

namespace windrow {

// The bytes of one state, exactly as many as the game asks for, on the heap where ASan guards both ends. An owner of
// what they refer to, if the game's states refer to anything.
class State {
 public:
  explicit State(const GameTable& game) : State(game, Unset{}) {
    check(game.initial_state(game.self, data()) == 0, "initial_state failed");
    note(1);
  }
  State(const GameTable& game, const void* bytes) : State(game, Unset{}) {
    std::memcpy(data(), bytes, size());
    hold();
  }
  State(const State& other)
      : self_(other.self_),
        apply_(other.apply_),
        retain_(other.retain_),
        release_(other.release_),
        words_(other.words_) {
    hold();
  }
  State& operator=(State other) {
    std::swap(self_, other.self_);
    std::swap(apply_, other.apply_);
    std::swap(retain_, other.retain_);
    std::swap(release_, other.release_);
    words_.swap(other.words_);
    return *this;
  }
  ~State() {
    if (release_ == nullptr) return;
    release_(self_, data());
    note(-1);
  }

  // Whether it could be done; if not, the state is what it was.
  bool apply(int64_t move) {
    std::vector<uint64_t> before = words_;
    const int32_t status = apply_(self_, data(), move);
    check(status == 0 || status == kFailed, "apply gave a strange status");
    if (status == kFailed) {
      check(words_ == before, "apply failed and changed the state");
    } else if (release_ != nullptr) {
      release_(self_, before.data());
    }
    return status == 0;
  }

  void* data() { return words_.data(); }
  const void* data() const { return words_.data(); }
  size_t size() const { return words_.size() * sizeof(uint64_t); }

  // How many states of games whose states have owners the tests themselves hold at present.
  static int64_t num_owned() { return owned(); }

 private:
  struct Unset {};
  State(const GameTable& game, Unset)
      : self_(game.self),
        apply_(game.apply),
        retain_(game.retain),
        release_(game.release),
        words_(static_cast<size_t>(game.state_bytes) / sizeof(uint64_t)) {}

  void hold() {
    if (retain_ == nullptr) return;
    retain_(self_, data());
    note(1);
  }
  void note(int64_t change) {
    if (release_ != nullptr) owned() += change;
  }
  static int64_t& owned() {
    static thread_local int64_t count = 0;
    return count;
  }

  // Not the table itself, which may be gone before a state of it.
  void* self_;
  decltype(GameTable::apply) apply_;
  decltype(GameTable::retain) retain_;
  decltype(GameTable::release) release_;
  std::vector<uint64_t> words_;
};

// Whether two states are one position. Where states refer to something outside, equal ones need not have equal bytes.
inline bool is_same(const GameTable& game, const void* one, const void* other) {
  if (game.release == nullptr) return std::memcmp(one, other, static_cast<size_t>(game.state_bytes)) == 0;
  uint64_t hashes[2][2] = {};
  check(game.hash(game.self, one, hashes[0]) == 0 && game.hash(game.self, other, hashes[1]) == 0, "hash failed");
  return std::equal(hashes[0], hashes[0] + 2, hashes[1]);
}

inline std::vector<int32_t> legal_actions(const GameTable& game, const void* state) {
  std::vector<int32_t> actions(static_cast<size_t>(game.max_legal_actions));
  const int32_t count = game.legal_actions(game.self, state, actions.data());
  check(count >= 0 && count <= game.max_legal_actions, "the number of legal actions is out of range");
  actions.resize(static_cast<size_t>(count));
  return actions;
}

// What chance may do, if that can be listed.
struct OutcomeList {
  std::vector<int32_t> outcomes;
  std::vector<double> probabilities;
};

inline OutcomeList list_outcomes(const GameTable& game, const void* state) {
  OutcomeList list;
  list.outcomes.resize(static_cast<size_t>(game.max_outcomes));
  list.probabilities.resize(static_cast<size_t>(game.max_outcomes));
  const int32_t count = game.chance_outcomes(game.self, state, list.outcomes.data(), list.probabilities.data());
  check(count >= 0 && count <= game.max_outcomes, "the number of outcomes is out of range");
  list.outcomes.resize(static_cast<size_t>(count));
  list.probabilities.resize(static_cast<size_t>(count));
  return list;
}

inline int64_t sample_outcome(const GameTable& game, const void* state, uint64_t seed) {
  int64_t outcome = 0;
  check(game.sample_outcome(game.self, state, seed, &outcome) == 0, "sample_outcome failed");
  return outcome;
}

// Something that may be done in a state that is not finished: an action, or an outcome of chance, each as likely.
inline int64_t random_move(const GameTable& game, const void* state, Dice& dice) {
  if (game.to_play(game.self, state) != kChance) {
    const std::vector<int32_t> legal = legal_actions(game, state);
    return dice.one_of(std::span<const int32_t>(legal));
  }
  if (game.sample_outcome != nullptr) return sample_outcome(game, state, dice.bits());
  const OutcomeList list = list_outcomes(game, state);
  return dice.one_of(std::span<const int32_t>(list.outcomes));
}

// A state up to `max_moves` random moves after the first, not a finished one.
inline State random_state(const GameTable& game, Dice& dice, int32_t max_moves) {
  State state(game);
  for (int32_t move = dice.below(max_moves + 1); move > 0; --move) {
    State next = state;
    check(next.apply(random_move(game, state.data(), dice)), "apply failed");
    if (game.to_play(game.self, next.data()) == kTerminal) break;
    state = next;
  }
  return state;
}

// The same, but a player is to move: one from which a search can begin.
inline State random_decision(const GameTable& game, Dice& dice, int32_t max_moves) {
  for (;;) {
    State state = random_state(game, dice, max_moves);
    while (game.to_play(game.self, state.data()) == kChance) {
      check(state.apply(random_move(game, state.data(), dice)), "apply failed");
    }
    if (game.to_play(game.self, state.data()) != kTerminal) return state;
  }
}

// Logits and values that are a pure function of the position. They are dyadic: sums of values are exact, so that the
// order in which simulations are backed up cannot matter.
struct Evaluation {
  std::vector<float> logits;  // [rows, A]
  std::vector<float> values;  // [rows, num_values], the player to move first
};

inline void evaluate_one(const GameTable& game, const void* state, Evaluation& answer, bool with_logits = true) {
  uint64_t hash[2];
  check(game.hash(game.self, state, hash) == 0, "hash failed");
  for (int32_t seat = 0; seat < game.num_values; ++seat) {
    answer.values.push_back(static_cast<float>(static_cast<int32_t>((hash[1] >> seat) % 33) - 16) / 16.0f);
  }
  for (int32_t action = 0; with_logits && action < game.num_actions; ++action) {
    const uint64_t word = (hash[0] ^ static_cast<uint64_t>(action) * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    answer.logits.push_back(static_cast<float>(word >> 59) / 8.0f);
  }
}

inline Evaluation evaluate(const GameTable& game, const void* states, int32_t num_rows) {
  Evaluation answer;
  const std::byte* state = static_cast<const std::byte*>(states);
  for (int32_t row = 0; row < num_rows; ++row, state += game.state_bytes) evaluate_one(game, state, answer);
  return answer;
}

// The values alone, of one state.
inline std::vector<float> evaluate_values(const GameTable& game, const void* state) {
  Evaluation answer;
  evaluate_one(game, state, answer, false);
  return answer.values;
}

}  // namespace windrow
