// azul_words.cpp: Azul in words: names of moves and deals, and the table as text.

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "azul.h"

namespace windrow {

namespace {

constexpr std::string_view kColours = "BYRKW";
constexpr std::string_view kWallColours = "byrkw";  // places of the wall that are still free
constexpr std::string_view kDestinations = "12345F";
constexpr char kCentre = 'Z';
constexpr char kNoTile = '-';
constexpr char kMarker = '*';

char upper(char letter) { return static_cast<char>(std::toupper(static_cast<unsigned char>(letter))); }

void add_tiles(const uint8_t* counts, std::string* text) {
  for (size_t colour = 0; colour < kColours.size(); ++colour) text->append(counts[colour], kColours[colour]);
}

// A display, with a mark for each tile that is missing.
std::string heap_name(uint8_t heap) {
  std::string name;
  add_tiles(azul::kHeaps.counts[heap & 127], &name);
  return name.append(azul::kDisplayTiles - name.size(), kNoTile);
}

std::string counted_tiles(const uint8_t* counts) {
  std::string text;
  for (size_t colour = 0; colour < kColours.size(); ++colour) {
    text.append(colour == 0 ? "" : " ").append(1, kColours[colour]).append(std::to_string(counts[colour]));
  }
  return text;
}

std::string padded(std::string text, size_t width, char filler = ' ') {
  if (text.size() < width) text.append(width - text.size(), filler);
  return text;
}

}  // namespace

std::string AzulRules::action_name(int32_t action) const {
  const int32_t source = action / kMovesPerSource;
  const char letter = source == num_displays_ ? kCentre : static_cast<char>('A' + source);
  const size_t colour = static_cast<size_t>(action / azul::kNumDestinations % azul::kNumColours);
  return {letter, kColours[colour], kDestinations[static_cast<size_t>(action % azul::kNumDestinations)]};
}

size_t AzulRules::parse_action(std::string_view text, int32_t* action) const {
  if (text.size() < 3) return 0;
  const char letter = upper(text[0]);
  const int32_t source = letter == kCentre ? num_displays_ : letter - 'A';
  const size_t colour = kColours.find(upper(text[1]));
  const size_t destination = kDestinations.find(upper(text[2]));
  const bool is_source = letter == kCentre || (source >= 0 && source < num_displays_);
  if (!is_source || colour == kColours.npos || destination == kDestinations.npos) return 0;
  *action = source * kMovesPerSource + static_cast<int32_t>(colour) * azul::kNumDestinations +
            static_cast<int32_t>(destination);
  return 3;
}

std::string AzulRules::outcome_name(int64_t outcome) const {
  const azul::Deal deal = azul::Deal::from_outcome(outcome);
  std::string name;
  for (int32_t i = 0; i < num_displays_; ++i) {
    name.append(i == 0 ? "" : "/").append(heap_name(deal.heaps[static_cast<size_t>(i)]));
  }
  return name;
}

// Names of deals have one length too, so nothing need stand behind them. Displays and their tiles may come in any
// order: the number is that of the deal put in order.
size_t AzulRules::parse_outcome(std::string_view text, int64_t* outcome) const {
  constexpr size_t kWidth = azul::kDisplayTiles + 1;
  const size_t length = static_cast<size_t>(num_displays_) * kWidth - 1;
  if (text.size() < length) return 0;
  azul::Deal deal;
  int32_t code = 0;
  for (size_t i = 0; i < length; ++i) {
    if (i % kWidth == azul::kDisplayTiles) {
      if (text[i] != '/') return 0;
      code = 0;
      continue;
    }
    const size_t colour = kColours.find(upper(text[i]));
    if (colour == kColours.npos && text[i] != kNoTile) return 0;
    if (colour != kColours.npos) code += azul::HeapTable::kCodeOfTile[colour];
    deal.heaps[i / kWidth] = azul::kHeaps.number_of_code[code];
  }
  deal.sort();
  *outcome = deal.to_outcome();
  return length;
}

// The offer; then, for each player side by side, pattern lines and wall, where small letters are places still free. A
// floor line shows the marker and all its tiles: eight, where the marker came when it was full.
//
//   round 1
//   A BBYR  B ----  C BKWW  D ----  E YRRK
//   Z YYK*
//   bag B17 Y16 R16 K15 W16
//   lid B0 Y0 R0 K0 W0
//
//   player 0: 0 points       player 1: 0 points
//       . | b y r k w            . | b y r k w
//      .. | w b y r k           .R | w b y r k
//     ... | k w b y r          ... | k w b y r
//    .... | r k w b y         .... | r k w b y
//   ..... | y r k w b        ..... | y r k w b
//   floor .......            floor .......
//   player 1 to move
std::string AzulRules::render(const State& state) const {
  const bool is_over = state.to_play == kTerminal;
  std::string text =
      is_over ? "after round " + std::to_string(state.round) : "round " + std::to_string(state.round + 1);
  text += '\n';
  for (int32_t i = 0; i < num_displays_; ++i) {
    text.append(i == 0 ? "" : "  ").append(1, static_cast<char>('A' + i)).append(" ");
    text.append(heap_name(state.displays[i]));
  }
  std::string centre;
  add_tiles(state.centre, &centre);
  if (state.is_marker_in_centre != 0) centre += kMarker;
  text.append("\n").append(1, kCentre).append(" ").append(centre.empty() ? std::string(1, kNoTile) : centre);
  text.append("\nbag ").append(counted_tiles(state.bag)).append("\nlid ").append(counted_tiles(state.lid)).append("\n");

  constexpr size_t kWidth = 25;
  std::vector<std::string> lines(kRows + 2);
  for (int32_t player = 0; player < players_; ++player) {
    const Board& board = state.boards[player];
    for (std::string& line : lines) line = padded(std::move(line), kWidth * static_cast<size_t>(player));
    lines[0] += "player " + std::to_string(player) + ": " + std::to_string(board.score) +
                (board.score == 1 ? " point" : " points");
    for (int32_t row = 0; row < kRows; ++row) {
      const int32_t num_tiles = std::min(tiles_in(board.lines[row]), row + 1);
      const char letter = kColours[static_cast<size_t>(colour_of(board.lines[row]) % azul::kNumColours)];
      std::string& line = lines[static_cast<size_t>(row + 1)];
      line.append(static_cast<size_t>(kRows - row - 1), ' ').append(static_cast<size_t>(row + 1 - num_tiles), '.');
      line.append(static_cast<size_t>(num_tiles), letter).append(" |");
      for (int32_t column = 0; column < kRows; ++column) {
        const bool is_laid = (board.wall >> (row * kRows + column) & 1) != 0;
        const size_t colour = static_cast<size_t>((column - row + azul::kNumColours) % azul::kNumColours);
        line.append(" ").append(1, (is_laid ? kColours : kWallColours)[colour]);
      }
    }
    std::string floor = has_marker(state, player) ? std::string(1, kMarker) : "";
    add_tiles(board.floor, &floor);
    lines.back() += "floor " + padded(std::move(floor), kFloorPlaces, '.');
  }
  for (const std::string& line : lines) text.append("\n").append(line);
  return text.append("\n").append(status_line(state));
}

std::string AzulRules::status_line(const State& state) const {
  if (state.to_play == kChance) return "tiles to be dealt, player " + std::to_string(viewer(state)) + " begins";
  if (state.to_play != kTerminal) return "player " + std::to_string(viewer(state)) + " to move";
  const uint32_t won = winners(state);
  std::vector<std::string> names;
  for (int32_t player = 0; player < players_; ++player) {
    if ((won >> player & 1) != 0) names.push_back(std::to_string(player));
  }
  if (names.size() == 1) return "player " + names[0] + " wins";
  std::string text = "players " + names[0];
  for (size_t i = 1; i < names.size(); ++i) text.append(i + 1 < names.size() ? ", " : " and ").append(names[i]);
  return text + " share the victory";
}

}  // namespace windrow
