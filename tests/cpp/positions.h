// positions.h: states of any game for tests, and an evaluator that needs nothing but their hashes.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "check.h"
#include "dice.h"
#include "game.h"

namespace windrow {

// The bytes of one state, exactly as many as the game asks for, on the heap where ASan guards both ends.
class State {
 public:
  explicit State(const GameTable& game) : words_(static_cast<size_t>(game.state_bytes) / sizeof(uint64_t)) {
    game.initial_state(game.self, data());
  }
  State(const GameTable& game, const void* bytes) : words_(static_cast<size_t>(game.state_bytes) / sizeof(uint64_t)) {
    std::memcpy(data(), bytes, size());
  }
  void* data() { return words_.data(); }
  const void* data() const { return words_.data(); }
  size_t size() const { return words_.size() * sizeof(uint64_t); }
  bool operator==(const State&) const = default;

 private:
  std::vector<uint64_t> words_;
};

inline std::vector<int32_t> legal_actions(const GameTable& game, const void* state) {
  std::vector<int32_t> actions(static_cast<size_t>(game.max_legal_actions));
  const int32_t count = game.legal_actions(game.self, state, actions.data());
  check(count >= 0 && count <= game.max_legal_actions, "the number of legal actions is out of range");
  actions.resize(static_cast<size_t>(count));
  return actions;
}

// A state up to `max_moves` random moves after the first, not a finished one.
inline State random_state(const GameTable& game, Dice& dice, int32_t max_moves) {
  State state(game);
  for (int32_t move = dice.below(max_moves + 1); move > 0; --move) {
    State next = state;
    const std::vector<int32_t> legal = legal_actions(game, state.data());
    check(game.apply(game.self, next.data(), dice.one_of(std::span<const int32_t>(legal))) == 0, "apply failed");
    if (game.to_play(game.self, next.data()) == kTerminal) break;
    state = next;
  }
  return state;
}

// Logits and values that are a pure function of the position. They are dyadic: sums of values are exact, so that the
// order in which simulations are backed up cannot matter.
struct Evaluation {
  std::vector<float> logits;  // [rows, A]
  std::vector<float> values;  // [rows]
};

inline Evaluation evaluate(const GameTable& game, const void* states, int32_t num_rows) {
  Evaluation answer;
  const std::byte* state = static_cast<const std::byte*>(states);
  for (int32_t row = 0; row < num_rows; ++row, state += game.state_bytes) {
    uint64_t hash[2];
    game.hash(game.self, state, hash);
    answer.values.push_back(static_cast<float>(static_cast<int32_t>(hash[1] % 33) - 16) / 16.0f);
    for (int32_t action = 0; action < game.num_actions; ++action) {
      const uint64_t word = (hash[0] ^ static_cast<uint64_t>(action) * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
      answer.logits.push_back(static_cast<float>(word >> 59) / 8.0f);
    }
  }
  return answer;
}

}  // namespace windrow
