// rollout.h: the value of a position by random play; what people used before networks, and still the baseline.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "failure.h"
#include "game.h"
#include "random.h"

namespace windrow {

// One random game at a time, from any state.
class RandomGame {
 public:
  explicit RandomGame(const GameTable& game)
      : game_(game),
        state_(static_cast<size_t>(game.state_bytes) / sizeof(uint64_t)),
        before_(state_.size()),
        moves_(static_cast<size_t>(std::max(game.max_legal_actions, game.max_outcomes)) + 1),
        probabilities_(static_cast<size_t>(game.max_outcomes) + 1) {}
  ~RandomGame() { drop(); }
  RandomGame(const RandomGame&) = delete;
  RandomGame& operator=(const RandomGame&) = delete;

  void start(const std::byte* state) {
    drop();
    std::memcpy(state_.data(), state, static_cast<size_t>(game_.state_bytes));
    if (game_.retain != nullptr) game_.retain(game_.self, state_.data());
    is_owned_ = true;
  }

  int32_t to_play() const { return checked("to_play", game_.to_play(game_.self, state_.data())); }

  // Plays to the end and writes the result of every player.
  void finish(Stream& stream, float* returns) {
    for (int32_t player = to_play(); player != kTerminal; player = to_play()) {
      apply(player == kChance ? draw_outcome(stream) : draw_action(stream));
    }
    checked("returns", game_.returns(game_.self, state_.data(), returns));
  }

 private:
  int64_t draw_action(Stream& stream) {
    const int32_t count = checked("legal_actions", game_.legal_actions(game_.self, state_.data(), moves_.data()));
    check_count("legal_actions", count, game_.max_legal_actions);
    return moves_[(stream.next_bits() >> 32) * static_cast<uint32_t>(count) >> 32];
  }

  int64_t draw_outcome(Stream& stream) {
    if (game_.sample_outcome != nullptr) {
      int64_t outcome = 0;
      checked("sample_outcome", game_.sample_outcome(game_.self, state_.data(), stream.next_bits(), &outcome));
      return outcome;
    }
    const int32_t count = checked(
        "chance_outcomes", game_.chance_outcomes(game_.self, state_.data(), moves_.data(), probabilities_.data()));
    check_count("chance_outcomes", count, game_.max_outcomes);
    double left = stream.next_uniform();
    size_t i = 0;
    while (i + 1 < static_cast<size_t>(count) && (left -= probabilities_[i]) >= 0.0) ++i;
    return moves_[i];
  }

  void apply(int64_t move) {
    before_ = state_;
    checked("apply", game_.apply(game_.self, state_.data(), move));
    if (game_.release != nullptr) game_.release(game_.self, before_.data());
  }

  void drop() {
    if (is_owned_ && game_.release != nullptr) game_.release(game_.self, state_.data());
    is_owned_ = false;
  }

  static void check_count(const char* method, int32_t count, int32_t most) {
    if (count < 1 || count > most) {
      throw std::runtime_error(std::string(method) + " gave " + std::to_string(count) + ", not 1 to " +
                               std::to_string(most));
    }
  }

  int32_t checked(const char* method, int32_t answer) const {
    if (answer == kFailed) throw std::runtime_error(std::string(method) + ": " + why_failed(game_));
    return answer;
  }

  const GameTable& game_;
  std::vector<uint64_t> state_, before_;  // words, for the alignment that states are promised
  std::vector<int32_t> moves_;
  std::vector<double> probabilities_;
  bool is_owned_ = false;
};

// The mean result of `num_rollouts` random games from each of `count` states, [count, num_values], the player to move
// there first. The draws are keyed by the position's hash, so a position has the same value wherever and whenever it is
// asked for. Where no player is to move the values are in the order of the players.
inline void evaluate_by_rollout(const GameTable& game, const std::byte* states, int32_t count, int32_t num_rollouts,
                                uint64_t seed, float* values) {
  const size_t size = static_cast<size_t>(game.state_bytes), num_values = static_cast<size_t>(game.num_values),
               num_players = static_cast<size_t>(game.num_players);
  RandomGame random_game(game);
  std::vector<float> returns(num_players);
  std::vector<double> totals(num_values);
  for (int32_t row = 0; row < count; ++row) {
    const std::byte* state = states + static_cast<size_t>(row) * size;
    // uint64_t for the alignment that states are promised.
    std::vector<uint64_t> aligned(size / sizeof(uint64_t));
    std::memcpy(aligned.data(), state, size);
    uint64_t hash[2];
    if (game.hash(game.self, aligned.data(), hash) == kFailed) throw std::runtime_error("hash: " + why_failed(game));
    const RandomKey key{seed ^ hash[1], static_cast<uint32_t>(hash[0]), static_cast<uint32_t>(hash[0] >> 32)};
    std::fill(totals.begin(), totals.end(), 0.0);
    for (int32_t rollout = 0; rollout < num_rollouts; ++rollout) {
      Stream stream(key, Purpose::kRollout, static_cast<uint32_t>(rollout));
      random_game.start(state);
      const int32_t mover = std::max(random_game.to_play(), 0);
      random_game.finish(stream, returns.data());
      for (size_t i = 0; i < num_values; ++i) {
        totals[i] += static_cast<double>(returns[(static_cast<size_t>(mover) + i) % num_players]);
      }
    }
    for (size_t i = 0; i < num_values; ++i) {
      values[static_cast<size_t>(row) * num_values + i] = static_cast<float>(totals[i] / num_rollouts);
    }
  }
}

}  // namespace windrow
