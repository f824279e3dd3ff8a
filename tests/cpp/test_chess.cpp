// test_chess.cpp: what every game obeys, in random games of chess and Chess960; names of moves; repetitions against a
// list of all positions of the game; and numbers of move sequences.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "dice.h"
#include "game_laws.h"
#include "games/builtin.h"
#include "games/chess.h"
#include "positions.h"

using namespace windrow;

namespace {

ChessRules::State chess_state(const State& state) {
  ChessRules::State copy;
  std::memcpy(&copy, state.data(), sizeof copy);
  return copy;
}

// All that makes positions equal.
std::string key_of(const ChessRules::State& state) {
  chess::Position position = state.position;
  position.clock = 0;
  position.plies = 0;
  position.spare = 0;
  return {reinterpret_cast<const char*>(&position), sizeof position};
}

// Names of the legal moves are different, and are read back, also with text behind them.
void check_move_names(const NamedGame& named, const State& state) {
  std::map<std::string, int32_t> names;
  for (const int32_t action : legal_actions(named.table(), state.data())) {
    const std::string name = named.move_name(state.data(), action);
    check(names.emplace(name, action).second, "two moves have one name: " + name);
    for (const char* const behind : {"", " ", " x"}) {
      const std::string text = name + behind;
      const std::vector<char> exact(text.begin(), text.end());
      int32_t parsed = -1;
      const size_t taken = named.parse_move(state.data(), std::string_view(exact.data(), exact.size()), &parsed);
      check(taken == name.size() && parsed == action, "a name is not read back: " + name);
    }
  }
}

// Plays a random game; returns how it ended. Pieces are moved back and forth if `style` says so, for repetitions.
uint8_t play_game(const NamedGame& named, Dice& dice) {
  const GameTable& game = named.table();
  State state(game);
  std::map<std::string, int32_t> seen;
  const bool is_quiet = dice.one_in(2);
  for (int32_t ply = 0;; ++ply) {
    check_state(named, state);
    check_move_names(named, state);
    const ChessRules::State now = chess_state(state);
    const int32_t before = seen[key_of(now)]++;
    if (now.position.clock < ChessRules::kMaxClock) {
      check(now.repetitions == std::min(before, 2), "repetitions are miscounted");
    }
    const bool is_over = game.to_play(game.self, state.data()) == kTerminal;
    check(is_over || (before < 2 && now.position.clock < ChessRules::kMaxClock), "a drawn game goes on");
    check(now.position.plies == ply && now.position.side == ply % 2, "moves are miscounted");
    if (is_over) return now.ending;
    const std::vector<int32_t> legal = legal_actions(game, state.data());
    int32_t action = dice.one_of(std::span<const int32_t>(legal));
    if (is_quiet && ply > 8) {
      // The last own move taken back, if there is one.
      const int32_t length = now.position.spare;
      const uint32_t last = length >= 2 ? now.run[length - 2] : 0;
      const int32_t back =
          chess::number_of_move(static_cast<int32_t>(last >> 6 & 63), static_cast<int32_t>(last & 63), chess::kNothing);
      if (length >= 2 && std::binary_search(legal.begin(), legal.end(), back) && !dice.one_in(4)) action = back;
    }
    check(state.apply(action), "apply failed");
  }
}

void test_variant(const std::string& variant, int64_t position, int32_t num_games,
                  std::map<uint8_t, int32_t>* endings) {
  scene() = variant + ", position " + std::to_string(position);
  const auto named = make_builtin("chess", {{"variant", variant}, {"position", position}});
  check_facts(named->table());
  check_action_names(*named);
  Dice dice(static_cast<uint64_t>(position));
  for (int32_t i = 0; i < num_games; ++i) ++(*endings)[play_game(*named, dice)];
}

// Counted by the movement rules alone, and by playing; and as others have counted.
void test_counts() {
  scene() = "counts";
  const auto named = make_builtin("chess", {});
  const State start(named->table());
  for (const auto& [depth, count] : {std::pair{0, 1u}, {1, 20u}, {2, 400u}, {3, 8902u}, {4, 197281u}}) {
    check(named->count_sequences(start.data(), depth) == count, "sequences are miscounted");
    if (depth < 4) {
      check(named->NamedGame::count_sequences(start.data(), depth) == count, "played sequences are miscounted");
    }
  }
}

}  // namespace

int main() {
  test_counts();
  std::map<uint8_t, int32_t> endings;
  test_variant("standard", 518, 60, &endings);
  for (const int64_t position : {0, 1, 320, 518, 700, 959}) test_variant("chess960", position, 12, &endings);
  check(endings.contains(ChessRules::kThreefold), "no game has ended by repetition");
  check(endings.contains(ChessRules::kDead), "no game has ended by insufficient material");
  check(endings.contains(ChessRules::kFiftyMoves), "no game has ended by the fifty-move rule");
}
