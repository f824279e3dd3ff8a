// azul.h: Azul for two to four players, on the side of the board with the coloured wall.
//
// Options:
//   players (2): 2, 3 or 4 play with 5, 7 or 9 factory displays.
//   max_rounds (30): after so many rounds the game ends and is scored as it stands. The rules alone know no such end:
//     players who drop everything to the floor line complete nothing, and the same tiles come back from the lid for
//     ever. It is far away: among people games take 5 or 6 rounds, and the longest of 60,000 random ones took 17.
//   scoring ('wins'): what `returns` are. 'wins': the winner of n players has 1, everybody else -1 / (n - 1); k winners
//     who share have (n - k) / (k * (n - 1)) each, the mean of the places they take. 'margin': the lead over the mean
//     of the others' points, in 50 points, at most 1 either way.
// Every game ends: a move takes a tile from the offer, which has at most 36, so a round has at most 36 moves, and there
// are at most max_rounds of them.
//
// Chance deals the tiles before each round; player 0 begins the first. A deal is drawn, not listed; its number is that
// of the displays in order (azul_displays.h), its name their tiles: BBYR/KKWW/... with - for a missing tile.
// Actions: (source * 5 + colour) * 6 + destination. Sources are the displays and last the centre; colours are blue,
// yellow, red, black (K) and white; destinations the five pattern lines and last the floor line. Names have three
// letters: AB3 takes the blue tiles of display A to pattern line 3, ZKF the black ones of the centre to the floor.
// A deal lays out its displays in descending order, and each keeps its letter for the round; one that has been taken
// stays empty. Of equal displays only the first may be chosen, since taking from another would be the same move.
//
// Where the printed rules are silent: a marker that finds the floor line full costs nothing; if nobody took the marker
// (nothing ever lay in the centre), the same player begins again; if no tile at all is left to deal (four players can
// have all 100 on their boards), the game is over.
//
// Observation, the player to move first, then the others in turn (in a finished game: from player 0; before a deal:
// from the player who will begin):
//   board (3 * players, 5, 5), for each player
//     plane 0: the wall, 1 where there is a tile.
//     plane 1: how full each pattern line is, at the place of the wall where its tile will go.
//     plane 2: the same all along the row.
//   flat (N): each display's tiles by colour / 4; the centre's / 10, the bag's / 20, the lid's / 20; 1 if the marker is
//     in the centre; for each player the tiles on the floor line by colour / 7, what the floor line will cost / 14,
//     points / 100, 1 if as things stand this player begins the next round; rounds played / 10 (at most 1) and
//     / max_rounds.
// Symmetries: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "azul_displays.h"
#include "bits.h"
#include "builtin.h"

namespace windrow {

class AzulRules {
 public:
  static constexpr const char* kName = "azul";

  static constexpr int32_t kMaxBoards = 4;
  static constexpr int32_t kRows = 5;
  static constexpr int32_t kFloorPlaces = 7;

  struct Board {
    uint32_t wall;  // bit row * 5 + column
    uint16_t score;
    uint8_t lines[kRows];              // pattern line: colour * 8 + number of tiles, 0 if there are none
    uint8_t floor[azul::kNumColours];  // tiles on the floor line by colour; their order does not matter
  };
  static_assert(sizeof(Board) == 16);

  // bag, lid, the offer and the boards have 20 tiles of each colour together. What is not in use is zero.
  struct State {
    Board boards[kMaxBoards];
    uint8_t displays[azul::kMaxDisplays];  // numbers of heaps, descending but for the empty ones among them
    uint8_t centre[azul::kNumColours];     // how many tiles of each colour
    uint8_t bag[azul::kNumColours];
    uint8_t lid[azul::kNumColours];
    int8_t to_play;
    uint8_t starter;              // who begins the next round as things stand: who has the marker, or had it last
    uint8_t is_marker_in_centre;  // else the starter has it
    uint8_t unused0;
    uint16_t round;  // how many have been played
    uint16_t unused1;
  };
  static_assert(sizeof(State) == 96);

  explicit AzulRules(const GameOptions& options);

  GameOptions options() const;
  int32_t num_players() const { return players_; }
  int32_t num_actions() const { return (num_displays_ + 1) * kMovesPerSource; }
  // A display has at most four colours. (In a real position equal displays and an empty centre make it fewer still,
  // but bytes from elsewhere must not overrun the array either.)
  int32_t max_legal_actions() const {
    return num_displays_ * azul::kDisplayTiles * azul::kNumDestinations + kMovesPerSource;
  }
  int32_t num_symmetries() const { return 1; }
  std::vector<ObservationPart> observation() const;

  State initial_state() const;

  int32_t to_play(const State& state) const { return state.to_play; }

  int32_t legal_actions(const State& state, int32_t* actions) const {
    if (state.to_play < 0 || state.to_play >= players_) return 0;
    const uint64_t open = open_moves(state.boards[state.to_play]);
    uint64_t sources[azul::kMaxDisplays + 1];  // the moves from each, before anybody asks where the tiles may go
    uint8_t previous = 0;
    for (int32_t source = 0; source < num_displays_; ++source) {
      const uint8_t heap = state.displays[source] & 127;
      sources[source] = heap == previous ? 0 : azul::kHeaps.moves[heap];  // of equal ones the first; none of empty ones
      previous = heap == 0 ? previous : heap;
    }
    uint32_t colours = 0;
    for (int32_t colour = 0; colour < azul::kNumColours; ++colour) {
      colours |= static_cast<uint32_t>(state.centre[colour] != 0) << colour;
    }
    sources[num_displays_] = kSpread[colours] * 0b111111u;

    // Two sources at a time (their number is even), because the processor stumbles once at the end of every word.
    int32_t count = 0;
    for (int32_t source = 0; source < num_displays_; source += 2) {
      const uint64_t moves = (sources[source] & open) | (sources[source + 1] & open) << kMovesPerSource;
      count += write_indices(moves, source * kMovesPerSource, actions + count);
    }
    return count;
  }

  void apply(State& state, int64_t move) const {
    if (state.to_play == kChance) {
      deal(state, move);
      return;
    }
    const int32_t action = static_cast<int32_t>(move);
    const int32_t source = action / kMovesPerSource;
    const int32_t colour = action / azul::kNumDestinations % azul::kNumColours;
    const int32_t taken =
        source < num_displays_ ? take_from_display(state, source, colour) : take_from_centre(state, colour);
    place(state, colour, taken, action % azul::kNumDestinations);

    int32_t left = 0;
    for (const uint8_t heap : state.displays) left |= heap;
    for (const uint8_t count : state.centre) left |= count;
    if (left == 0) {
      end_round(state);
    } else {
      state.to_play = static_cast<int8_t>(state.to_play + 1 == players_ ? 0 : state.to_play + 1);
    }
  }

  void returns(const State& state, float* values) const;

  int64_t sample_outcome(const State& state, uint64_t seed) const;
  bool can_happen(const State& state, int64_t outcome) const;
  std::string outcome_name(int64_t outcome) const;
  size_t parse_outcome(std::string_view text, int64_t* outcome) const;

  void observe(const State& state, float* row) const;
  void hash(const State& state, uint64_t* hash) const;
  void symmetry(int32_t index, int32_t* actions, int32_t* observation) const;

  std::string render(const State& state) const;
  std::string action_name(int32_t action) const;
  size_t parse_action(std::string_view text, int32_t* action) const;

 private:
  static constexpr int32_t kMovesPerSource = azul::kNumColours * azul::kNumDestinations;
  static constexpr uint32_t kFullRow = 0b11111;

  static int32_t tiles_in(uint8_t line) { return line & 7; }
  static int32_t colour_of(uint8_t line) { return line >> 3; }
  // Every row of the wall has the colours one place further to the right than the row above.
  static int32_t wall_column(int32_t row, int32_t colour) { return (colour + row) % azul::kNumColours; }

  // The moves that the board's pattern lines and wall allow, whatever the source: bit colour * 6 + destination.
  static uint32_t open_moves(const Board& board) {
    constexpr uint32_t kEveryColour = 0b000001'000001'000001'000001'000001;
    uint32_t open = kEveryColour << azul::kFloor;
    for (int32_t row = 0; row < kRows; ++row) {
      const int32_t num_tiles = tiles_in(board.lines[row]);
      // From columns to colours: turned to the left by as many places as the row has been turned to the right.
      const uint32_t columns = ~(board.wall >> (row * kRows)) & kFullRow;
      const uint32_t missing = (columns >> row | columns << (kRows - row)) & kFullRow;
      const uint32_t begun = 1u << (colour_of(board.lines[row]) & 7);
      const uint32_t colours = missing & (num_tiles == 0 ? kFullRow : num_tiles <= row ? begun : 0);
      open |= kSpread[colours] << row;
    }
    return open;
  }

  static int32_t take_from_display(State& state, int32_t source, int32_t colour) {
    const uint8_t* counts = azul::kHeaps.counts[state.displays[source] & 127];
    for (int32_t other = 0; other < azul::kNumColours; ++other) state.centre[other] += counts[other];
    state.centre[colour] -= counts[colour];
    state.displays[source] = 0;
    return counts[colour];
  }

  static int32_t take_from_centre(State& state, int32_t colour) {
    if (state.is_marker_in_centre != 0) {
      state.is_marker_in_centre = 0;
      state.starter = static_cast<uint8_t>(state.to_play);
    }
    const int32_t taken = state.centre[colour];
    state.centre[colour] = 0;
    return taken;
  }

  static void place(State& state, int32_t colour, int32_t taken, int32_t destination) {
    Board& board = state.boards[state.to_play];
    int32_t excess = taken;
    if (destination != azul::kFloor) {
      const int32_t before = tiles_in(board.lines[destination]);
      const int32_t placed = std::min(taken, destination + 1 - before);
      board.lines[destination] = static_cast<uint8_t>(colour << 3 | (before + placed));
      excess -= placed;
    }
    const int32_t dropped = std::min(excess, kFloorPlaces - floor_places(state, state.to_play));
    board.floor[colour] += static_cast<uint8_t>(dropped);
    state.lid[colour] += static_cast<uint8_t>(excess - dropped);
  }

  static bool has_marker(const State& state, int32_t player) {
    return state.is_marker_in_centre == 0 && state.starter == player;
  }

  // How many places of the floor line are taken. Seven tiles and the marker: it came when the line was full.
  static int32_t floor_places(const State& state, int32_t player) {
    int32_t places = has_marker(state, player) ? 1 : 0;
    for (const uint8_t count : state.boards[player].floor) places += count;
    return std::min(places, kFloorPlaces);
  }

  // Bit c of the index becomes bit 6 * c.
  static constexpr std::array<uint32_t, 32> kSpread = [] {
    std::array<uint32_t, 32> spread{};
    for (uint32_t colours = 0; colours < 32; ++colours) {
      for (uint32_t c = 0; c < azul::kNumColours; ++c) spread[colours] |= (colours >> c & 1) << (6 * c);
    }
    return spread;
  }();

  void deal(State& state, int64_t outcome) const;
  // How many tiles the next deal lays out.
  int32_t deal_size(const State& state) const;
  void end_round(State& state) const;
  // The points for a tile that has just been laid at that place of the wall.
  static int32_t points_for_tile(uint32_t wall, int32_t row, int32_t column);
  static int32_t complete_rows(uint32_t wall);
  static int32_t end_bonus(uint32_t wall);
  // Bit p: player p has won, alone or with others.
  uint32_t winners(const State& state) const;
  // Whose view an observation is.
  int32_t viewer(const State& state) const;
  std::string status_line(const State& state) const;

  int32_t players_;
  int32_t num_displays_;
  int32_t max_rounds_;
  bool is_margin_;
  PlaneWriter wall_plane_ = PlaneWriter::in_order(kRows * kRows);
};

}  // namespace windrow
