// test_games.cpp: random games of the built-in board games, at the extremes of their options. test_chance_games.cpp has
// those with chance.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "dice.h"
#include "game_laws.h"
#include "games/builtin.h"
#include "positions.h"

using namespace windrow;

namespace {

struct Symmetry {
  std::vector<int32_t> actions;      // the image of a policy is policy[actions[a]] at a
  std::vector<int32_t> observation;  // the image of a row is row[observation[i]] at i
};

// All symmetries of a game, after checking that they are permutations, all different, the first the identity.
std::vector<Symmetry> symmetries_of(const GameTable& game) {
  const auto check_permutation = [](std::vector<int32_t> permutation) {
    std::sort(permutation.begin(), permutation.end());
    for (size_t i = 0; i < permutation.size(); ++i) {
      check(permutation[i] == static_cast<int32_t>(i), "a symmetry is not a permutation");
    }
  };
  std::vector<Symmetry> found;
  std::set<std::vector<int32_t>> different;
  for (int32_t index = 0; index < game.num_symmetries; ++index) {
    Symmetry symmetry;
    symmetry.actions.assign(static_cast<size_t>(game.num_actions), -1);
    symmetry.observation.assign(static_cast<size_t>(game.observation_floats), -1);
    game.symmetry(game.self, index, symmetry.actions.data(), symmetry.observation.data());
    check_permutation(symmetry.actions);
    check_permutation(symmetry.observation);
    if (index == 0) {
      check(std::is_sorted(symmetry.actions.begin(), symmetry.actions.end()), "symmetry 0 moves actions");
      check(std::is_sorted(symmetry.observation.begin(), symmetry.observation.end()), "symmetry 0 moves planes");
    }
    different.insert(symmetry.observation);
    found.push_back(std::move(symmetry));
  }
  check(different.size() == found.size(), "two symmetries are the same");
  return found;
}

// Boards are shown in zeros and ones.
std::vector<float> observe_board(const GameTable& game, const State& state) {
  std::vector<float> row = observe(game, state);
  for (const float x : row) check(x == 0.0f || x == 1.0f, "observe wrote something strange");
  return row;
}

std::vector<float> image(const std::vector<float>& row, const std::vector<int32_t>& permutation) {
  std::vector<float> seen;
  for (const int32_t source : permutation) seen.push_back(row[static_cast<size_t>(source)]);
  return seen;
}

// For games of lines on a board: whether a plane of 0 and 1 has a run that wins, by looking at every run.
struct LineRule {
  int32_t length = 0;     // 0: not a game of lines
  bool is_exact = false;  // longer runs do not win
};

bool has_line(const float* plane, int32_t rows, int32_t columns, LineRule rule) {
  const auto at = [&](int32_t row, int32_t column) {
    return row >= 0 && row < rows && column >= 0 && column < columns && plane[row * columns + column] == 1.0f;
  };
  for (int32_t row = 0; row < rows; ++row) {
    for (int32_t column = 0; column < columns; ++column) {
      for (const auto& [down, right] : {std::pair{0, 1}, std::pair{1, 0}, std::pair{1, 1}, std::pair{1, -1}}) {
        if (!at(row, column) || at(row - down, column - right)) continue;  // not the start of a run
        int32_t length = 1;
        while (at(row + length * down, column + length * right)) ++length;
        if (rule.is_exact ? length == rule.length : length >= rule.length) return true;
      }
    }
  }
  return false;
}

// Random games. Some players are stubborn (each keeps to one action while it is legal) and some are copycats (each
// repeats the last action), so that long lines of stones come up too.
int32_t choose(Dice& dice, int32_t style, int32_t player, int32_t last, const std::vector<int32_t>& legal) {
  const int32_t wish = style == 1 ? player : style == 2 ? last : -1;
  if (std::find(legal.begin(), legal.end(), wish) != legal.end()) return wish;
  return dice.one_of(std::span<const int32_t>(legal));
}

// `num_first_symmetries`: how many symmetries the first position must have. Returns whether somebody won.
bool test_game(const std::string& name, const GameOptions& options, LineRule rule, size_t num_first_symmetries,
               int32_t num_games) {
  scene() = name;
  for (const auto& [key, value] : options) {
    const int64_t* number = std::get_if<int64_t>(&value);
    scene() += " " + key + "=" + (number != nullptr ? std::to_string(*number) : std::get<std::string>(value));
  }
  const std::unique_ptr<NamedGame> named = make_builtin(name, options);
  const GameTable& game = named->table();
  check_facts(game);
  check(game.num_players == 2 && game.num_values == 1 && game.max_outcomes == 0, "odd facts of a board game");
  check_action_names(*named);
  const std::vector<int32_t> shape = named->observation().front().shape;
  const std::vector<Symmetry> symmetries = symmetries_of(game);
  const std::vector<float> first_row = observe_board(game, State(game));

  Dice dice(7);
  std::map<std::pair<int32_t, std::vector<float>>, Hash> hashes;
  std::set<Hash> different;
  std::set<size_t> symmetries_tried;
  std::set<float> results;
  for (int32_t i = 0; i < num_games; ++i) {
    // A game and, move by move, its image under one of the symmetries that the first position has.
    const size_t index = static_cast<size_t>(i) % symmetries.size();
    const Symmetry& symmetry = symmetries[index];
    const bool has_image = image(first_row, symmetry.observation) == first_row;
    if (has_image) symmetries_tried.insert(index);
    State state(game), reflected(game);
    const int32_t style = dice.below(3);
    int32_t last = -1;
    for (int32_t move = 0;; ++move) {
      check_state(*named, state);
      const int32_t player = game.to_play(game.self, state.data());
      const std::vector<float> row = observe_board(game, state);
      const Hash hash = hash_of(game, state);
      const auto [known, is_new] = hashes.emplace(std::pair{player, row}, hash);
      check(known->second == hash, "one position has two hashes");
      if (is_new) check(different.insert(hash).second, "two positions have one hash");

      if (rule.length > 0) {
        // Plane 1 is the player who has just moved.
        const size_t plane = row.size() / 2;
        const bool is_won = has_line(row.data() + plane, shape[1], shape[2], rule);
        check(!has_line(row.data(), shape[1], shape[2], rule), "the player to move has won before");
        const bool is_full = std::count(row.begin(), row.end(), 1.0f) == static_cast<int64_t>(plane);
        check((player == kTerminal) == (is_won || is_full), "the game ends at the wrong move");
        if (player == kTerminal) {
          float values[2];
          game.returns(game.self, state.data(), values);
          check(values[(move + 1) % 2] == (is_won ? 1.0f : 0.0f), "the wrong player has won");
        }
      }
      if (has_image) {
        check(image(row, symmetry.observation) == observe_board(game, reflected),
              "the image of a game looks different");
        check(player == game.to_play(game.self, reflected.data()), "the image of a game has another player to move");
      }
      if (player == kTerminal) {
        float values[2], image_values[2];
        game.returns(game.self, state.data(), values);
        game.returns(game.self, (has_image ? reflected : state).data(), image_values);
        check(values[0] == image_values[0], "the image of a game ends differently");
        results.insert(values[0]);
        break;
      }
      check(move < 2 * game.num_actions * shape[1], "a game does not end");

      const std::vector<int32_t> legal = legal_actions(game, state.data());
      const int32_t action = last = choose(dice, style, player, last, legal);
      if (has_image) {
        const auto place = std::find(symmetry.actions.begin(), symmetry.actions.end(), action);
        const int32_t image_action = static_cast<int32_t>(place - symmetry.actions.begin());
        const std::vector<int32_t> image_legal = legal_actions(game, reflected.data());
        check(image_legal.size() == legal.size(), "the image of a game has other legal actions");
        check(std::find(image_legal.begin(), image_legal.end(), image_action) != image_legal.end(),
              "the image of a legal action is not legal");
        check(reflected.apply(image_action), "apply failed");
      }
      State copy(game, state.data());
      check(state.apply(action) && copy.apply(action), "apply failed");
      check(is_same(game, copy.data(), state.data()), "a copy goes on differently");
    }
  }
  check(symmetries_tried.size() == num_first_symmetries, "the first position has not the symmetries it should have");
  return results.contains(1.0f) || results.contains(-1.0f);
}

void test_options() {
  scene() = "options";
  const auto refuses = [](const std::string& name, const GameOptions& options) {
    check_throws<std::invalid_argument>([&] { make_builtin(name, options); }, "a wrong option is taken");
  };
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  refuses("checkers", {});
  for (const std::string& name : builtin_names()) refuses(name, {{"colour", int64_t{1}}});
  for (const int64_t bad : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{32}, int64_t{1} << 32, kHuge, -kHuge}) {
    refuses("connect4", {{"rows", bad}});
    refuses("connect4", {{"columns", bad}});
    refuses("connect4", {{"connect", bad}});
    refuses("gomoku", {{"size", bad}});
    refuses("hex", {{"size", bad}});
  }
  for (const char* bad : {"", "-", ".5", "7.25", "1e1", "7.5 ", "81.5", "-82", "9999999999999999999", "nan"}) {
    refuses("go", {{"komi", std::string(bad)}});
  }
  for (const int64_t bad : {int64_t{82}, int64_t{-82}, kHuge, -kHuge}) refuses("go", {{"komi", bad}});
  for (const int64_t bad : {int64_t{1}, int64_t{5}, int64_t{1} << 32}) refuses("go", {{"passes", bad}});
  refuses("go", {{"size", int64_t{4}}});
  refuses("go", {{"history", int64_t{0}}});
  refuses("hex", {{"size", int64_t{2}}});
  refuses("hex", {{"size", int64_t{20}}});
  refuses("hex", {{"swap", int64_t{1}}});
  refuses("connect4", {{"rows", int64_t{8}}, {"columns", int64_t{8}}});
  refuses("connect4", {{"rows", std::string("6")}});
  refuses("gomoku", {{"size", int64_t{4}}});
  refuses("gomoku", {{"size", int64_t{21}}});
  refuses("gomoku", {{"rule", std::string("renju")}});
  refuses("gomoku", {{"rule", int64_t{0}}});
  for (const int64_t bad : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{1001}, int64_t{1} << 32, kHuge, -kHuge}) {
    refuses("pig", {{"target", bad}});
    refuses("azul", {{"players", bad}});
    if (bad != 1) refuses("azul", {{"max_rounds", bad}});
  }
  refuses("pig", {{"target", std::string("100")}});
  refuses("backgammon", {{"scoring", std::string("cube")}});
  refuses("backgammon", {{"scoring", int64_t{1}}});
  refuses("azul", {{"players", int64_t{5}}});
  refuses("azul", {{"scoring", std::string("points")}});
}

}  // namespace

int main() {
  test_options();
  test_game("tictactoe", {}, {.length = 3}, 8, 400);
  test_game("othello", {}, {}, 4, 60);
  test_game("connect4", {}, {.length = 4}, 2, 200);
  // Every board of at most 64 bits that is as tall or as wide as it can be, with the shortest and the longest line.
  for (int32_t columns = 2; columns <= 21; ++columns) {
    const int32_t tallest = std::min(31, 64 / columns - 1);
    for (const int32_t rows : {2, tallest}) {
      const int32_t longest = std::max(rows, columns);
      for (const int32_t connect : {2, std::min(3, longest), std::min(4, longest), longest}) {
        const GameOptions options = {
            {"rows", int64_t{rows}}, {"columns", int64_t{columns}}, {"connect", int64_t{connect}}};
        const bool is_won = test_game("connect4", options, {.length = connect}, 2, 12);
        check(is_won || (connect > 4 && rows > 2 && columns > 2), "nobody ever wins");
      }
    }
  }
  for (const int64_t size : {5, 6, 8, 9, 15, 19, 20}) {
    for (const char* rule : {"freestyle", "standard"}) {
      const bool is_exact = std::string(rule) == "standard";
      test_game("gomoku", {{"size", size}, {"rule", std::string(rule)}}, {.length = 5, .is_exact = is_exact}, 8,
                size < 10 ? 48 : 8);
    }
  }
  // The reflections that exchange the players have an image of the first position in which o is to move.
  for (int64_t size = 3; size <= 19; ++size) {
    for (const char* swap : {"off", "on"}) {
      const bool is_won = test_game("hex", {{"size", size}, {"swap", std::string(swap)}}, {}, 2, size < 10 ? 48 : 8);
      check(is_won, "nobody ever wins");
    }
  }
}
