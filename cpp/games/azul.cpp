// azul.cpp: Azul between the moves: deals, the end of a round and of the game, observations.

#include "azul.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "hash.h"
#include "option_reader.h"

namespace windrow {

using azul::Deal;
using azul::kHeaps;
using azul::kNumColours;
using azul::Tiles;

namespace {

constexpr float kFullLead = 50.0f;  // the lead in points that is worth 1 when margins are scored

// What the first so many places of the floor line cost together: 1 1 2 2 2 3 3.
constexpr int32_t kFloorCost[AzulRules::kFloorPlaces + 1] = {0, 1, 2, 4, 6, 8, 11, 14};

Tiles tiles_of(const uint8_t (&counts)[kNumColours]) { return {counts[0], counts[1], counts[2], counts[3], counts[4]}; }

bool fits_into(const Tiles& some, const Tiles& all) {
  for (size_t colour = 0; colour < kNumColours; ++colour) {
    if (some[colour] > all[colour]) return false;
  }
  return true;
}

Tiles heap_tiles(uint8_t heap) {
  Tiles tiles{};
  for (size_t colour = 0; colour < kNumColours; ++colour) tiles[colour] = kHeaps.counts[heap][colour];
  return tiles;
}

// Whether the deal can have begun with all tiles of the bag, and gone on with others. Displays are filled one after
// another, so the bag filled some displays completely and one other in part. Which ones is not known any more: all
// choices are tried. Deals in which the bag runs out are rare, and there are at most 2^9 choices.
bool can_begin_with(const Tiles& bag, const Deal& deal, int32_t num_full) {
  const int32_t filled = azul::count_tiles(bag) / azul::kDisplayTiles;
  for (uint32_t choice = 0; choice < 1u << azul::kMaxDisplays; ++choice) {
    if (std::popcount(choice) != filled) continue;
    Tiles rest = bag;
    bool is_possible = true;
    for (size_t i = 0; i < azul::kMaxDisplays; ++i) {
      if ((choice >> i & 1) == 0) continue;
      const Tiles tiles = heap_tiles(deal.heaps[i]);
      is_possible = is_possible && kHeaps.sizes[deal.heaps[i]] == azul::kDisplayTiles && fits_into(tiles, rest);
      for (size_t colour = 0; colour < kNumColours; ++colour) rest[colour] -= tiles[colour];
    }
    if (!is_possible) continue;
    if (azul::count_tiles(rest) == 0) return true;
    for (size_t i = 0; i < azul::kMaxDisplays; ++i) {
      // A display that stays short is the last one.
      const bool is_next = kHeaps.sizes[deal.heaps[i]] == azul::kDisplayTiles || filled == num_full;
      if ((choice >> i & 1) == 0 && is_next && fits_into(rest, heap_tiles(deal.heaps[i]))) return true;
    }
  }
  return false;
}

}  // namespace

AzulRules::AzulRules(const GameOptions& options) {
  OptionReader reader(kName, options);
  players_ = reader.integer("players", {.standard = 2, .min = 2, .max = 4});
  max_rounds_ = reader.integer("max_rounds", {.standard = 30, .min = 1, .max = 1000});
  is_margin_ = reader.choice("scoring", {"wins", "margin"}) == 1;
  reader.finish();
  num_displays_ = 2 * players_ + 1;
}

GameOptions AzulRules::options() const {
  return {{"players", int64_t{players_}},
          {"max_rounds", int64_t{max_rounds_}},
          {"scoring", std::string(is_margin_ ? "margin" : "wins")}};
}

AzulRules::State AzulRules::initial_state() const {
  State state{};
  for (uint8_t& count : state.bag) count = azul::kTilesPerColour;
  state.to_play = static_cast<int8_t>(kChance);
  state.is_marker_in_centre = 1;
  return state;
}

// --- Deals.

int32_t AzulRules::deal_size(const State& state) const {
  const int32_t tiles = azul::count_tiles(tiles_of(state.bag)) + azul::count_tiles(tiles_of(state.lid));
  return std::min(tiles, num_displays_ * azul::kDisplayTiles);
}

// Tile by tile, as people do: from the bag, and when that is empty from what was in the lid.
int64_t AzulRules::sample_outcome(const State& state, uint64_t seed) const {
  azul::Dice dice(seed);
  Tiles bag = tiles_of(state.bag);
  int32_t num_left = azul::count_tiles(bag);
  Deal deal;
  int32_t size = deal_size(state);
  for (size_t display = 0; size > 0; ++display) {
    int32_t code = 0;
    for (int32_t tile = 0; tile < azul::kDisplayTiles && size > 0; ++tile, --size) {
      if (num_left == 0) {
        bag = tiles_of(state.lid);
        num_left = azul::count_tiles(bag);
      }
      int32_t drawn = static_cast<int32_t>(dice.below(static_cast<uint32_t>(num_left--)));
      size_t colour = 0;
      while (drawn >= bag[colour]) drawn -= bag[colour++];
      --bag[colour];
      code += azul::HeapTable::kCodeOfTile[colour];
    }
    deal.heaps[display] = kHeaps.number_of_code[code];
  }
  deal.sort();
  return deal.to_outcome();
}

bool AzulRules::can_happen(const State& state, int64_t outcome) const {
  if (outcome < 0) return false;
  const Deal deal = Deal::from_outcome(outcome);
  int32_t num_full = 0, num_some = 0;
  for (size_t i = 0; i < azul::kMaxDisplays; ++i) {
    if (deal.heaps[i] >= azul::kNumHeaps || (deal.heaps[i] != 0 && static_cast<int32_t>(i) >= num_displays_))
      return false;
    num_full += kHeaps.sizes[deal.heaps[i]] == azul::kDisplayTiles ? 1 : 0;
    num_some += deal.heaps[i] != 0 ? 1 : 0;
  }
  const Tiles dealt = deal.tiles(), bag = tiles_of(state.bag);
  const int32_t size = deal_size(state);
  const int32_t num_short = size % azul::kDisplayTiles != 0 ? 1 : 0;
  if (!deal.is_sorted() || azul::count_tiles(dealt) != size) return false;
  if (num_full != size / azul::kDisplayTiles || num_some != num_full + num_short) return false;
  if (azul::count_tiles(bag) >= size) return fits_into(dealt, bag);

  Tiles all = tiles_of(state.lid);
  for (size_t colour = 0; colour < kNumColours; ++colour) all[colour] += bag[colour];
  return fits_into(bag, dealt) && fits_into(dealt, all) && can_begin_with(bag, deal, num_full);
}

void AzulRules::deal(State& state, int64_t outcome) const {
  const Deal deal = Deal::from_outcome(outcome);
  const Tiles dealt = deal.tiles();
  const bool is_lid_used = azul::count_tiles(tiles_of(state.bag)) < azul::count_tiles(dealt);
  for (size_t colour = 0; colour < kNumColours; ++colour) {
    if (is_lid_used) {
      state.bag[colour] += state.lid[colour];
      state.lid[colour] = 0;
    }
    state.bag[colour] -= static_cast<uint8_t>(dealt[colour]);
  }
  std::copy(deal.heaps.begin(), deal.heaps.end(), state.displays);
  state.to_play = static_cast<int8_t>(state.starter);
}

// --- The end of a round, and of the game.

int32_t AzulRules::points_for_tile(uint32_t wall, int32_t row, int32_t column) {
  const auto has = [wall](int32_t r, int32_t c) {
    return r >= 0 && r < kRows && c >= 0 && c < kRows && (wall >> (r * kRows + c) & 1) != 0;
  };
  int32_t across = 1, down = 1;
  for (int32_t c = column - 1; has(row, c); --c) ++across;
  for (int32_t c = column + 1; has(row, c); ++c) ++across;
  for (int32_t r = row - 1; has(r, column); --r) ++down;
  for (int32_t r = row + 1; has(r, column); ++r) ++down;
  if (across == 1) return down;  // 1 for a tile without neighbours
  return down == 1 ? across : across + down;
}

int32_t AzulRules::complete_rows(uint32_t wall) {
  int32_t count = 0;
  for (int32_t row = 0; row < kRows; ++row) count += (wall >> (row * kRows) & kFullRow) == kFullRow ? 1 : 0;
  return count;
}

int32_t AzulRules::end_bonus(uint32_t wall) {
  int32_t bonus = 2 * complete_rows(wall);
  for (int32_t i = 0; i < kRows; ++i) {
    uint32_t column = 0, colour = 0;
    for (int32_t row = 0; row < kRows; ++row) {
      column |= 1u << (row * kRows + i);
      colour |= 1u << (row * kRows + wall_column(row, i));
    }
    if ((wall & column) == column) bonus += 7;
    if ((wall & colour) == colour) bonus += 10;
  }
  return bonus;
}

void AzulRules::end_round(State& state) const {
  bool is_over = ++state.round >= max_rounds_;
  for (int32_t player = 0; player < players_; ++player) {
    Board& board = state.boards[player];
    int32_t score = board.score;
    for (int32_t row = 0; row < kRows; ++row) {
      if (tiles_in(board.lines[row]) != row + 1) continue;
      const int32_t colour = colour_of(board.lines[row]);
      const int32_t column = wall_column(row, colour);
      board.wall |= 1u << (row * kRows + column);
      score += points_for_tile(board.wall, row, column);
      board.lines[row] = 0;
      state.lid[colour % kNumColours] += static_cast<uint8_t>(row);  // all but the one on the wall
    }
    score -= kFloorCost[floor_places(state, player)];
    board.score = static_cast<uint16_t>(std::max(score, 0));
    for (int32_t colour = 0; colour < kNumColours; ++colour) {
      state.lid[colour] += board.floor[colour];
      board.floor[colour] = 0;
    }
    is_over = is_over || complete_rows(board.wall) > 0;
  }
  state.is_marker_in_centre = 1;
  state.to_play = static_cast<int8_t>(kChance);
  if (!is_over && deal_size(state) > 0) return;

  for (int32_t player = 0; player < players_; ++player) {
    Board& board = state.boards[player];
    board.score = static_cast<uint16_t>(board.score + end_bonus(board.wall));
  }
  state.starter = 0;  // nobody will begin
  state.to_play = static_cast<int8_t>(kTerminal);
}

uint32_t AzulRules::winners(const State& state) const {
  uint32_t best = 0, found = 0;
  for (int32_t player = 0; player < players_; ++player) {
    const Board& board = state.boards[player];
    // Points first; complete rows, at most 5, break ties.
    const uint32_t rank = uint32_t{board.score} * 8 + static_cast<uint32_t>(complete_rows(board.wall));
    if (rank > best || player == 0) found = 0;
    if (rank >= best) found |= 1u << player;
    best = std::max(best, rank);
  }
  return found;
}

void AzulRules::returns(const State& state, float* values) const {
  const float num_others = static_cast<float>(players_ - 1);
  if (is_margin_) {
    int32_t total = 0;
    for (int32_t player = 0; player < players_; ++player) total += state.boards[player].score;
    for (int32_t player = 0; player < players_; ++player) {
      const int32_t score = state.boards[player].score;
      const float lead = static_cast<float>(score) - static_cast<float>(total - score) / num_others;
      values[player] = std::clamp(lead / kFullLead, -1.0f, 1.0f);
    }
    return;
  }
  const uint32_t won = winners(state);
  const float num_winners = static_cast<float>(std::popcount(won));
  const float share = (static_cast<float>(players_) - num_winners) / (num_winners * num_others);
  for (int32_t player = 0; player < players_; ++player) {
    values[player] = (won >> player & 1) != 0 ? share : -1.0f / num_others;
  }
}

// --- What a network sees, and what tells positions apart.

std::vector<ObservationPart> AzulRules::observation() const {
  const int32_t offer = kNumColours * (num_displays_ + 3) + 1;
  return {{"board", {3 * players_, kRows, kRows}}, {"flat", {offer + 8 * players_ + 2}}};
}

int32_t AzulRules::viewer(const State& state) const {
  if (state.to_play == kChance) return state.starter % players_;
  return state.to_play >= 0 && state.to_play < players_ ? state.to_play : 0;
}

void AzulRules::observe(const State& state, float* row) const {
  constexpr int32_t kCells = kRows * kRows;
  const int32_t first = viewer(state);
  float* plane = row;
  for (int32_t seat = 0; seat < players_; ++seat, plane += 3 * kCells) {
    const Board& board = state.boards[(first + seat) % players_];
    wall_plane_.write(board.wall, plane);
    std::fill_n(plane + kCells, kCells, 0.0f);
    for (int32_t line = 0; line < kRows; ++line) {
      const float fullness = static_cast<float>(tiles_in(board.lines[line])) / static_cast<float>(line + 1);
      plane[kCells + line * kRows + wall_column(line, colour_of(board.lines[line]))] = fullness;
      std::fill_n(plane + 2 * kCells + line * kRows, kRows, fullness);
    }
  }

  float* flat = plane;
  const auto add_counts = [&flat](const uint8_t* counts, float scale) {
    for (int32_t colour = 0; colour < kNumColours; ++colour) *flat++ = static_cast<float>(counts[colour]) / scale;
  };
  for (int32_t i = 0; i < num_displays_; ++i) add_counts(kHeaps.counts[state.displays[i] & 127], 4.0f);
  add_counts(state.centre, 10.0f);
  add_counts(state.bag, 20.0f);
  add_counts(state.lid, 20.0f);
  *flat++ = state.is_marker_in_centre != 0 ? 1.0f : 0.0f;
  for (int32_t seat = 0; seat < players_; ++seat) {
    const int32_t player = (first + seat) % players_;
    add_counts(state.boards[player].floor, 7.0f);
    *flat++ = static_cast<float>(kFloorCost[floor_places(state, player)]) / 14.0f;
    *flat++ = static_cast<float>(state.boards[player].score) / 100.0f;
    *flat++ = state.starter == player ? 1.0f : 0.0f;
  }
  *flat++ = std::min(static_cast<float>(state.round) / 10.0f, 1.0f);
  *flat++ = static_cast<float>(state.round) / static_cast<float>(max_rounds_);
}

void AzulRules::hash(const State& state, uint64_t* hash) const {
  uint64_t words[sizeof(State) / sizeof(uint64_t)];
  std::memcpy(words, &state, sizeof(State));
  Hasher hasher;
  constexpr size_t kBoardWords = sizeof(Board) / sizeof(uint64_t);
  for (size_t i = 0; i < kBoardWords * static_cast<size_t>(players_); ++i) hasher.add(words[i]);
  for (size_t i = kBoardWords * kMaxBoards; i < std::size(words); ++i) hasher.add(words[i]);
  hasher.finish(hash);
}

void AzulRules::symmetry(int32_t, int32_t* actions, int32_t* observation) const {
  for (int32_t action = 0; action < num_actions(); ++action) actions[action] = action;
  int32_t num_floats = 0;
  for (const ObservationPart& part : this->observation()) {
    int32_t size = 1;
    for (const int32_t dimension : part.shape) size *= dimension;
    num_floats += size;
  }
  for (int32_t i = 0; i < num_floats; ++i) observation[i] = i;
}

}  // namespace windrow
