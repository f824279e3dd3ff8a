// canonical.h: one key for all images of a position under the game's symmetries.
//
// The images of an observation are hashed and the smallest hash is the key; the symmetry that gave it says how the
// policy of the position lies in the policy of the key. A network need not answer alike for the images of a position,
// so a search with canonical keys is not exactly the one without: it trades that for fewer evaluations.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "game.h"
#include "prediction_cache.h"

namespace windrow {

// The tables of a game's symmetries. Constant once made; the scratch of a call is its own.
class Canonizer {
 public:
  explicit Canonizer(const GameTable& game) : game_(game) {
    const size_t num_actions = static_cast<size_t>(game.num_actions),
                 floats = static_cast<size_t>(game.observation_floats);
    std::vector<int32_t> actions(num_actions), observation(floats);
    for (int32_t symmetry = 0; symmetry < game.num_symmetries; ++symmetry) {
      game.symmetry(game.self, symmetry, actions.data(), observation.data());
      // The image has row[observation[i]] at i, and policy[actions[a]] at a: where a cell and an action go to.
      Image image{std::vector<int32_t>(num_actions), std::vector<Weight>(floats)};
      for (size_t a = 0; a < num_actions; ++a) image.action[static_cast<size_t>(actions[a])] = static_cast<int32_t>(a);
      for (size_t i = 0; i < floats; ++i) image.weight[static_cast<size_t>(observation[i])] = weight_of(i);
      images_.push_back(std::move(image));
    }
  }

  struct Position {
    PositionKey key;
    int32_t symmetry;  // the image that gave the key
  };

  // Nothing if the state cannot be observed.
  std::optional<Position> find(const void* state, uint64_t version) const {
    thread_local std::vector<float> row;
    row.resize(static_cast<size_t>(game_.observation_floats));
    if (game_.observe(game_.self, state, row.data()) == kFailed) return std::nullopt;
    uint64_t best[2] = {};
    int32_t best_symmetry = -1;
    for (size_t symmetry = 0; symmetry < images_.size(); ++symmetry) {
      uint64_t hash[2] = {};
      const std::vector<Weight>& weights = images_[symmetry].weight;
      for (size_t i = 0; i < row.size(); ++i) {
        uint32_t bits;
        std::memcpy(&bits, &row[i], sizeof bits);
        if (bits == 0) continue;  // most of a board is empty
        hash[0] += weights[i].first * bits;
        hash[1] += weights[i].second * bits;
      }
      if (best_symmetry < 0 || hash[0] < best[0] || (hash[0] == best[0] && hash[1] < best[1])) {
        best[0] = hash[0];
        best[1] = hash[1];
        best_symmetry = static_cast<int32_t>(symmetry);
      }
    }
    return Position{make_key(best, version), best_symmetry};
  }

  // order[i]: which of the position's legal actions stands at place i among the key's, both ascending.
  std::vector<int32_t> order(int32_t symmetry, std::span<const uint16_t> actions) const {
    const std::vector<int32_t>& to = images_[static_cast<size_t>(symmetry)].action;
    std::vector<int32_t> by_image(to.size(), -1), order;
    for (size_t i = 0; i < actions.size(); ++i) by_image[static_cast<size_t>(to[actions[i]])] = static_cast<int32_t>(i);
    order.reserve(actions.size());
    for (const int32_t place : by_image) {
      if (place >= 0) order.push_back(place);
    }
    return order;
  }

 private:
  // Two odd numbers for a cell of an observation.
  struct Weight {
    uint64_t first, second;
  };
  static Weight weight_of(uint64_t cell) {
    const uint64_t seed[2] = {cell + 1, ~cell};
    const PositionKey mixed = make_key(seed, cell);
    return {mixed.place | 1, mixed.check | 1};
  }

  struct Image {
    std::vector<int32_t> action;  // by action: its image
    std::vector<Weight> weight;   // by cell: the weight of its image
  };

  const GameTable game_;
  std::vector<Image> images_;
};

}  // namespace windrow
