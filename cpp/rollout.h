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

// Plays on at random to the end of the game, as RandomGame does: a faster way that the rules may have, without a call
// of the table for every step. `actions` is scratch, [max_legal_actions].
using PlayOut = void (*)(const void* self, void* state, Stream& stream, int32_t* actions);

// One random game at a time, from any state.
class RandomGame {
 public:
  explicit RandomGame(const GameTable& game, PlayOut play_out)
      : game_(game),
        play_out_(play_out),
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

  void drop() {
    if (is_owned_ && game_.release != nullptr) game_.release(game_.self, state_.data());
    is_owned_ = false;
  }

  void hash(uint64_t* hash) const { checked("hash", game_.hash(game_.self, state_.data(), hash)); }
  int32_t to_play() const { return checked("to_play", game_.to_play(game_.self, state_.data())); }

  // Plays to the end and writes the result of every player.
  void finish(Stream& stream, float* returns) {
    if (play_out_ != nullptr) play_out_(game_.self, state_.data(), stream, moves_.data());
    for (int32_t player = to_play(); player != kTerminal; player = to_play()) {
      apply(player == kChance ? draw_outcome(stream) : draw_action(stream));
    }
    checked("returns", game_.returns(game_.self, state_.data(), returns));
  }

 private:
  int64_t draw_action(Stream& stream) {
    const int32_t count = checked("legal_actions", game_.legal_actions(game_.self, state_.data(), moves_.data()));
    check_count("legal_actions", count, game_.max_legal_actions);
    return moves_[stream.next_below(static_cast<uint32_t>(count))];
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
    if (game_.release != nullptr) before_ = state_;
    checked("apply", game_.apply(game_.self, state_.data(), move));
    if (game_.release != nullptr) game_.release(game_.self, before_.data());
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
  const PlayOut play_out_;
  std::vector<uint64_t> state_, before_;  // words, for the alignment that states are promised
  std::vector<int32_t> moves_;
  std::vector<double> probabilities_;
  bool is_owned_ = false;
};

// A random game from one of the positions met a fault in the rules.
class RolloutFault : public std::runtime_error {
 public:
  RolloutFault(const std::string& what, int32_t at_row) : std::runtime_error(what), row(at_row) {}
  int32_t row;
};

// Values positions by the mean result of `num_rollouts` random games from each, the player to move there first. The
// draws are keyed by the position's hash, so a position has the same value wherever and whenever it is asked for. Where
// no player is to move the values are in the order of the players. One caller at a time.
class Rollouts {
 public:
  Rollouts(const GameTable& game, int32_t num_rollouts, uint64_t seed, PlayOut play_out = nullptr)
      : game_(game),
        num_rollouts_(num_rollouts),
        seed_(seed),
        random_game_(game, play_out),
        returns_(static_cast<size_t>(game.num_players)),
        totals_(static_cast<size_t>(game.num_values)) {}

  // From the states [first, last) of [n, state_bytes] to the same rows of `values` [n, num_values].
  void evaluate(const std::byte* states, int32_t first, int32_t last, float* values) {
    for (int32_t row = first; row < last; ++row) {
      try {
        evaluate(states + row * int64_t{game_.state_bytes}, values + row * int64_t{game_.num_values});
      } catch (const std::runtime_error& error) {
        random_game_.drop();
        throw RolloutFault(error.what(), row);
      }
      random_game_.drop();
    }
  }

 private:
  void evaluate(const std::byte* state, float* values) {
    const size_t num_players = returns_.size();
    random_game_.start(state);
    uint64_t hash[2];
    random_game_.hash(hash);
    const RandomKey key{seed_ ^ hash[1], static_cast<uint32_t>(hash[0]), static_cast<uint32_t>(hash[0] >> 32)};
    const size_t mover = static_cast<size_t>(std::max(random_game_.to_play(), 0));
    std::fill(totals_.begin(), totals_.end(), 0.0);
    for (int32_t rollout = 0; rollout < num_rollouts_; ++rollout) {
      if (rollout > 0) random_game_.start(state);
      Stream stream(key, Purpose::kRollout, static_cast<uint32_t>(rollout));
      random_game_.finish(stream, returns_.data());
      for (size_t i = 0; i < totals_.size(); ++i) {
        totals_[i] += static_cast<double>(returns_[(mover + i) % num_players]);
      }
    }
    for (size_t i = 0; i < totals_.size(); ++i) values[i] = static_cast<float>(totals_[i] / num_rollouts_);
  }

  const GameTable& game_;
  const int32_t num_rollouts_;
  const uint64_t seed_;
  RandomGame random_game_;
  std::vector<float> returns_;
  std::vector<double> totals_;
};

}  // namespace windrow
