// test_go.cpp: random games of Go beside rules that walk over the board and keep all earlier positions, with their
// images under all symmetries.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
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

constexpr int8_t kEmpty = -1;
using Board = std::vector<int8_t>;  // by point: the player of the stone, or kEmpty

class PlainGo {
 public:
  PlainGo(int32_t size, bool has_suicide, int32_t passes)
      : size_(size), has_suicide_(has_suicide), passes_(passes), board_(static_cast<size_t>(size * size), kEmpty) {
    seen_.insert(board_);
  }

  bool is_over() const { return num_passes_ == passes_ || num_moves_ == 2 * size_ * size_; }
  int32_t mover() const { return num_moves_ % 2; }
  int32_t pass() const { return size_ * size_; }
  size_t num_stones() const {
    return static_cast<size_t>(std::count_if(board_.begin(), board_.end(), [](int8_t cell) { return cell != kEmpty; }));
  }

  // The board after a stone there; nothing if that is not allowed.
  std::optional<Board> after(int32_t point) const {
    if (board_[static_cast<size_t>(point)] != kEmpty) return std::nullopt;
    Board board = board_;
    board[static_cast<size_t>(point)] = static_cast<int8_t>(mover());
    for (const int32_t beside : beside(point)) {
      if (board[static_cast<size_t>(beside)] == 1 - mover()) take_if_dead(board, beside);
    }
    if (take_if_dead(board, point) && !has_suicide_) return std::nullopt;
    if (seen_.contains(board)) return std::nullopt;
    return board;
  }

  std::vector<int32_t> legal() const {
    std::vector<int32_t> found;
    if (is_over()) return found;
    for (int32_t point = 0; point < pass(); ++point) {
      if (after(point)) found.push_back(point);
    }
    found.push_back(pass());
    return found;
  }

  void play(int32_t action) {
    if (action != pass()) {
      board_ = *after(action);
      seen_.insert(board_);
    }
    num_passes_ = action == pass() ? num_passes_ + 1 : 0;
    ++num_moves_;
  }

  int32_t area(int8_t player) const {
    int32_t count = 0;
    std::vector<bool> is_counted(board_.size());
    for (int32_t point = 0; point < pass(); ++point) {
      if (is_counted[static_cast<size_t>(point)]) continue;
      const int8_t cell = board_[static_cast<size_t>(point)];
      const auto [region, edges] = walk(board_, point);
      for (const int32_t one : region) is_counted[static_cast<size_t>(one)] = true;
      const bool is_own = cell == player || (cell == kEmpty && edges == std::set<int8_t>{player});
      count += is_own ? static_cast<int32_t>(region.size()) : 0;
    }
    return count;
  }

 private:
  std::vector<int32_t> beside(int32_t point) const {
    std::vector<int32_t> found;
    if (point >= size_) found.push_back(point - size_);
    if (point < size_ * (size_ - 1)) found.push_back(point + size_);
    if (point % size_ > 0) found.push_back(point - 1);
    if (point % size_ < size_ - 1) found.push_back(point + 1);
    return found;
  }

  // The points of one kind around `point`, and the kinds beside them.
  std::pair<std::vector<int32_t>, std::set<int8_t>> walk(const Board& board, int32_t point) const {
    std::vector<int32_t> region = {point};
    std::vector<bool> is_found(board.size());
    is_found[static_cast<size_t>(point)] = true;
    std::set<int8_t> edges;
    for (size_t i = 0; i < region.size(); ++i) {
      for (const int32_t other : beside(region[i])) {
        if (board[static_cast<size_t>(other)] != board[static_cast<size_t>(point)]) {
          edges.insert(board[static_cast<size_t>(other)]);
        } else if (!is_found[static_cast<size_t>(other)]) {
          is_found[static_cast<size_t>(other)] = true;
          region.push_back(other);
        }
      }
    }
    return {region, edges};
  }

  bool take_if_dead(Board& board, int32_t point) const {
    const auto [chain, edges] = walk(board, point);
    if (edges.contains(kEmpty)) return false;
    for (const int32_t stone : chain) board[static_cast<size_t>(stone)] = kEmpty;
    return true;
  }

  int32_t size_;
  bool has_suicide_;
  int32_t passes_, num_passes_ = 0, num_moves_ = 0;
  Board board_;
  std::set<Board> seen_;
};

// Players like to take stones, so that positions come again.
int32_t choose(Dice& dice, const PlainGo& plain, const std::vector<int32_t>& legal) {
  if (dice.one_in(20)) return plain.pass();
  std::vector<int32_t> takes;
  for (const int32_t point : legal) {
    if (point == plain.pass()) continue;
    const Board board = *plain.after(point);
    const auto is_stone = [](int8_t cell) { return cell != kEmpty; };
    if (static_cast<size_t>(std::count_if(board.begin(), board.end(), is_stone)) <= plain.num_stones()) {
      takes.push_back(point);
    }
  }
  if (!takes.empty() && !dice.one_in(4)) return dice.one_of(std::span<const int32_t>(takes));
  return dice.one_of(std::span<const int32_t>(legal));
}

void test_game(int64_t size, bool has_suicide, int64_t passes, int32_t num_games) {
  const std::unique_ptr<NamedGame> named =
      make_builtin("go", {{"size", size},
                          {"komi", std::string("0.5")},
                          {"suicide", std::string(has_suicide ? "allowed" : "forbidden")},
                          {"passes", passes}});
  const GameTable& game = named->table();
  scene() = "go " + std::to_string(size);
  check_facts(game);
  check_action_names(*named);
  Dice dice(static_cast<uint64_t>(size));
  std::map<Hash, std::vector<int32_t>> games;  // by hash: the moves that led there
  for (int32_t i = 0; i < num_games; ++i) {
    scene() = "go " + std::to_string(size) + ", game " + std::to_string(i);
    std::vector<int32_t> actions(static_cast<size_t>(game.num_actions));
    std::vector<int32_t> cells(static_cast<size_t>(game.observation_floats));
    check(game.symmetry(game.self, i % 8, actions.data(), cells.data()) == 0, "symmetry failed");
    PlainGo plain(static_cast<int32_t>(size), has_suicide, static_cast<int32_t>(passes));
    State state(game), image(game);
    std::vector<int32_t> moves;
    for (;;) {
      check_state(*named, state);
      const auto [known, is_new] = games.emplace(hash_of(game, state), moves);
      check(known->second == moves, "two games have one hash");
      const std::vector<int32_t> legal = legal_actions(game, state.data());
      check(legal == plain.legal(), "other legal moves");
      check(game.to_play(game.self, state.data()) == (plain.is_over() ? kTerminal : plain.mover()), "another mover");
      const double lead = plain.area(0) - plain.area(1) - 0.5;
      check(named->score(state.data()) == lead, "another score");
      const std::vector<float> row = observe(game, state), seen = observe(game, image);
      for (size_t at = 0; at < row.size(); ++at) {
        check(seen[at] == row[static_cast<size_t>(cells[at])], "the image of a game looks different");
      }
      if (plain.is_over()) {
        check(returns_of(game, state)[0] == (lead > 0 ? 1.0f : -1.0f), "the wrong player has won");
        check(returns_of(game, image) == returns_of(game, state), "the image of a game ends differently");
        break;
      }
      const int32_t action = choose(dice, plain, legal);
      plain.play(action);
      moves.push_back(action);
      check(state.apply(action), "apply failed");
      check(image.apply(std::find(actions.begin(), actions.end(), action) - actions.begin()), "apply failed");
    }
  }
}

}  // namespace

int main() {
  for (const bool has_suicide : {false, true}) {
    test_game(5, has_suicide, 4, 40);
    test_game(7, has_suicide, 2, 8);
    test_game(9, has_suicide, 3, 3);
  }
  test_game(10, true, 2, 1);
  test_game(14, false, 2, 1);
  test_game(19, false, 2, 1);
}
