// go.h: Go by area, with positional superko (the rules of Tromp and Taylor).
//
// Options:
//   size (9), from 5 to 19.
//   komi (7.5): points for White, a multiple of 0.5; an integer makes draws possible.
//   suicide ("forbidden"), or "allowed": a move may take the mover's own stones, if it takes none of the opponent's.
//   passes (2), from 2 to 4: so many in a row end the game.
//   history (8), from 1 to 8: how many positions the observation shows.
// x (player 0) is Black and moves first. No move may make a position of the whole board that has been there before,
// whoever was to move; passing is always allowed. The game also ends after 2 * size * size moves, so that it is bounded
// for a network. The board is then scored as it is: every stone counts as alive.
// Actions: point = row * size + column, row 0 on top; names such as e5, columns without i, rows numbered from the
// bottom; the last action is "pass".
// Observation (2 * history + 3, size, size):
//   planes 2 i and 2 i + 1: 1 where the player to move, and the opponent, had a stone i moves ago; 0 before the first.
//   then: 1 where a stone, of either, is in a chain with a single liberty.
//   then: everywhere, the passes in a row, as a share of those after which the next one ends the game.
//   last: 1 everywhere if the player to move is White.
// Symmetries: the eight of the square.
//
// Superko needs all earlier positions. A state has the first position and the moves, two bytes a move at most, from
// which they could be made again; that is hardly ever done. A stone can only be on a point in an earlier position again
// if it has been taken from there in between. So a move is suspect only if the mover has lost a stone on that point
// before; and going back from now, no earlier position can come again than the last move whose stone is still there and
// whose point has not been emptied before. The last seven positions are at hand, since the observation shows them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "builtin.h"
#include "go_board.h"
#include "hash.h"
#include "option_reader.h"
#include "square_board.h"
#include "two_player.h"

namespace windrow {

inline constexpr OptionReader::IntegerRange kGoSizes = {.standard = 9, .min = 5, .max = 19};

// Boards of up to kLargest * kLargest points; smaller ones have smaller states.
template <int32_t kLargest>
class GoRules {
 public:
  static constexpr const char* kName = "go";
  static constexpr int32_t kNumPlayers = 2;
  static constexpr int32_t kWords = (kLargest * kLargest + 63) / 64;
  static constexpr int32_t kMostHistory = 8;
  static constexpr int32_t kRecent = kMostHistory - 1;
  using Bits = WideBits<kWords>;
  using Stones = GoStones<kWords>;
  using Move = std::conditional_t < kLargest* kLargest<256, uint8_t, uint16_t>;
  // Two a point, and what fills the last eight bytes of the state.
  static constexpr size_t kMoveSlots =
      ((size_t{2} * kLargest * kLargest * sizeof(Move) + 4 + 7) / 8 * 8 - 4) / sizeof(Move);

  struct State {
    Stones stones;
    Bits lost[2];          // by player: the points on which a stone of his has been taken
    Bits start[2];         // the stones before the first move
    Bits recent[kRecent];  // what was taken by move i, at i % kRecent
    Move moves[kMoveSlots];
    int16_t num_moves;
    int8_t first;   // the player of the first move
    int8_t passes;  // since the last stone
  };
  static_assert(sizeof(State) == (7 + kRecent) * sizeof(Bits) + kMoveSlots * sizeof(Move) + 4);

  explicit GoRules(const GameOptions& options) : GoRules(OptionReader(kName, options)) {}

  GameOptions options() const {
    return {{"size", int64_t{board_.size()}},
            {"komi", OptionReader::halves(twice_komi_)},
            {"suicide", std::string(kSuicideWords[has_suicide_ ? 1 : 0])},
            {"passes", int64_t{passes_}},
            {"history", int64_t{history_}}};
  }
  int32_t num_actions() const { return board_.num_cells() + 1; }
  int32_t num_symmetries() const { return SquareBoard::kNumSymmetries; }
  std::vector<ObservationPart> observation() const { return {{"board", {num_planes(), board_.size(), board_.size()}}}; }

  State initial_state() const { return {}; }

  int32_t to_play(const State& state) const {
    return state.passes >= passes_ || state.num_moves >= limit() ? kTerminal : player_of(state, state.num_moves);
  }

  int32_t legal_actions(const State& state, int32_t* actions) const {
    if (to_play(state) == kTerminal) return 0;
    const int32_t count = playable(state).write_cells(actions);
    actions[count] = pass();
    return count + 1;
  }

  void apply(State& state, int32_t action) const {
    const int32_t time = num_moves(state), mover = player_of(state, time);
    Bits gone = {};
    if (action == pass()) {
      state.passes = static_cast<int8_t>(std::min(state.passes + 1, passes_));
    } else {
      gone = board_.place(state.stones, mover, action);
      state.lost[gone.has(action) ? mover : 1 - mover] |= gone;
      state.passes = 0;
    }
    state.recent[time % kRecent] = gone;
    if (time >= limit()) return;  // not a state of a game
    state.moves[time] = static_cast<Move>(action);
    state.num_moves = static_cast<int16_t>(time + 1);
  }

  void returns(const State& state, float* values) const { write_returns(winner(state), values); }

  // By how many points Black leads on the board as it is, komi subtracted.
  double score(const State& state) const { return twice_score(state) / 2.0; }

  void observe(const State& state, float* row) const {
    const int32_t plane = board_.num_cells(), now = num_moves(state), mover = player_of(state, now);
    Past past(state, now);
    for (int32_t step = 0; step < history_; ++step, row += 2 * plane) {
      board_.write_plane(past.stones[mover], row);
      board_.write_plane(past.stones[1 - mover], row + plane);
      if (past.time == 0) {
        std::fill(row + 2 * plane, row + 2 * plane * (history_ - step), 0.0f);
        row += 2 * plane * (history_ - step);
        break;
      }
      if (step + 1 < history_) past.undo(state, board_.num_cells());
    }
    board_.write_plane(state.stones.atari, row);
    const int32_t most = passes_ - 1;
    board_.fill_plane(static_cast<float>(std::min<int32_t>(state.passes, most)) / static_cast<float>(most),
                      row + plane);
    board_.fill_plane(mover == 1 ? 1.0f : 0.0f, row + 2 * plane);
  }

  // Takes in the whole game: superko makes positions with equal stones and other histories different ones.
  void hash(const State& state, uint64_t* hash) const {
    Hasher hasher;
    const int32_t count = num_moves(state);
    hasher.add(static_cast<uint64_t>(count) << 2 | static_cast<uint64_t>(player_of(state, count)));
    for (const Bits& stones : state.start) add(hasher, stones);
    for (const Bits& stones : state.stones.of) add(hasher, stones);
    for (int32_t first = 0; first < count; first += 4) {
      uint64_t word = 0;
      for (int32_t i = first; i < std::min(first + 4, count); ++i) word = word << 16 | state.moves[i];
      hasher.add(word);
    }
    hasher.finish(hash);
  }

  void symmetry(int32_t index, int32_t* actions, int32_t* observation) const {
    names_.write_symmetry(index, 1, actions);
    actions[pass()] = pass();
    names_.write_symmetry(index, num_planes(), observation);
  }

  std::string render(const State& state) const {
    std::string cells(static_cast<size_t>(board_.num_cells()), kEmptyMark);
    for (int32_t point = 0; point < board_.num_cells(); ++point) {
      for (const int32_t player : {0, 1}) {
        if (state.stones.of[player].has(point)) cells[static_cast<size_t>(point)] = kPlayerMarks[player];
      }
    }
    return names_.draw(cells, status_line(to_play(state), winner(state)));
  }

  std::string action_name(int32_t action) const {
    return action == pass() ? std::string(kPass) : names_.square_name(action);
  }
  size_t parse_action(std::string_view text, int32_t* action) const {
    if (!starts_with_word(text, kPass)) return names_.parse_square(text, action);
    *action = pass();
    return kPass.size();
  }

 private:
  static constexpr std::string_view kPass = "pass";
  static constexpr std::string_view kSuicideWords[] = {"forbidden", "allowed"};

  // The stones some moves ago.
  struct Past {
    Bits stones[2];
    int32_t time;  // how many moves had been made

    Past(const State& state, int32_t now) : stones{state.stones.of[0], state.stones.of[1]}, time(now) {}

    // Takes the last move back; it must be one of the last kRecent.
    void undo(const State& state, int32_t num_points) {
      --time;
      const int32_t point = state.moves[time], player = player_of(state, time);
      if (point >= num_points) return;
      const Bits& gone = state.recent[time % kRecent];
      stones[gone.has(point) ? player : 1 - player] |= gone;
      stones[player] -= Bits::of(point);
    }
  };

  // A move that may repeat a position, and the position it makes.
  struct Suspect {
    int32_t point;
    int32_t since;  // no position of an earlier time can be the same
    Bits stones[2];

    bool is(const Bits* others) const { return stones[0] == others[0] && stones[1] == others[1]; }
  };

  explicit GoRules(OptionReader reader)
      : board_(reader.integer("size", kGoSizes)),
        names_(board_.size(), SquareBoard::RowNumbers::kFromBottom, SquareBoard::Letters::kWithoutI),
        twice_komi_(
            reader.twice("komi", {.standard = 15, .min = -2 * board_.num_cells(), .max = 2 * board_.num_cells()})),
        has_suicide_(reader.choice("suicide", {kSuicideWords[0], kSuicideWords[1]}) != 0),
        passes_(reader.integer("passes", {.standard = 2, .min = 2, .max = 4})),
        history_(reader.integer("history", {.standard = kMostHistory, .min = 1, .max = kMostHistory})) {
    reader.finish();
  }

  int32_t pass() const { return board_.num_cells(); }
  int32_t limit() const { return 2 * board_.num_cells(); }
  int32_t num_planes() const { return 2 * history_ + 3; }
  int32_t num_moves(const State& state) const { return std::clamp<int32_t>(state.num_moves, 0, limit()); }
  static int32_t player_of(const State& state, int32_t time) { return (state.first + time) & 1; }

  int32_t twice_score(const State& state) const {
    return 2 * (board_.area(state.stones, 0) - board_.area(state.stones, 1)) - twice_komi_;
  }
  int32_t winner(const State& state) const {
    const int32_t lead = twice_score(state);
    return lead == 0 ? kNobody : lead > 0 ? 0 : 1;
  }

  static void add(Hasher& hasher, const Bits& bits) {
    for (const uint64_t word : bits.words) hasher.add(word);
  }

  // The points on which the player to move may put a stone.
  Bits playable(const State& state) const {
    const int32_t now = num_moves(state), mover = player_of(state, now);
    Bits found = board_.playable(state.stones, mover);
    Bits suspects = found & state.lost[mover];
    if (has_suicide_) {
      const Bits suicides = board_.empty(state.stones) - found;
      suspects |= suicides;
      found |= suicides;
    }
    if (suspects.any()) found -= repetitions(state, suspects, now, mover);
    return found;
  }

  // Which of the moves make a position that has been there before.
  Bits repetitions(const State& state, Bits suspects, int32_t now, int32_t mover) const {
    Suspect unclear[kLargest * kLargest];
    int32_t num_unclear = 0;
    Bits found = {};
    for (; suspects.any(); suspects.drop_first()) {
      Suspect& suspect = unclear[num_unclear];
      suspect.point = suspects.first();
      const Bits gone = board_.taken(state.stones, mover, suspect.point);
      for (const int32_t player : {0, 1}) suspect.stones[player] = state.stones.of[player] - gone;
      if (!gone.has(suspect.point)) suspect.stones[mover].set(suspect.point);
      if (is_recent(state, suspect, now)) {
        found.set(suspect.point);
      } else if (suspect.since < now - kRecent) {
        ++num_unclear;
      }
    }
    if (num_unclear > 0) replay(state, std::span<const Suspect>(unclear, static_cast<size_t>(num_unclear)), now, found);
    return found;
  }

  // Whether one of the last positions was the same; finds out how far back any could be.
  bool is_recent(const State& state, Suspect& suspect, int32_t now) const {
    Past past(state, now);
    suspect.since = 0;
    for (; !suspect.is(past.stones); past.undo(state, board_.num_cells())) {
      if (past.time == 0 || past.time == now - kRecent) break;
      if (stays(state, suspect, past.time - 1)) {
        suspect.since = past.time;
        return false;
      }
    }
    if (suspect.is(past.stones)) return true;
    suspect.since = past.time;
    while (suspect.since > 0 && !stays(state, suspect, suspect.since - 1)) --suspect.since;
    return false;
  }

  // Whether the stone of the move at `time` is on the board, on a point where its player has lost none.
  bool stays(const State& state, const Suspect& suspect, int32_t time) const {
    const int32_t point = state.moves[time], player = player_of(state, time);
    return point < board_.num_cells() && suspect.stones[player].has(point) && !state.lost[player].has(point);
  }

  // Makes the positions before the recent ones again.
  void replay(const State& state, std::span<const Suspect> suspects, int32_t now, Bits& found) const {
    Stones stones = {.of = {state.start[0], state.start[1]}, .atari = {}};
    board_.find_atari(stones);
    for (int32_t time = 0;; ++time) {
      for (const Suspect& suspect : suspects) {
        if (time >= suspect.since && suspect.is(stones.of)) found.set(suspect.point);
      }
      if (time + 1 >= now - kRecent) return;
      const int32_t point = state.moves[time];
      if (point < board_.num_cells() && board_.empty(stones).has(point)) {
        board_.place(stones, player_of(state, time), point);
      }
    }
  }

  GoBoard<kWords> board_;
  SquareBoard names_;
  int32_t twice_komi_;
  bool has_suicide_;
  int32_t passes_, history_;
};

// The rules for the board's size.
std::unique_ptr<NamedGame> make_go(const GameOptions& options);

}  // namespace windrow
