#include "chess.h"

#include <algorithm>
#include <stdexcept>

#include "option_reader.h"

namespace windrow {

using namespace chess;

namespace {

// Row 0 of a plane is rank 8.
PlaneWriter planes_from_top() {
  int32_t bits[64];
  for (int32_t cell = 0; cell < 64; ++cell) bits[cell] = cell ^ 56;
  return PlaneWriter(bits);
}

int32_t run_length(const ChessRules::State& state) {
  return std::min<int32_t>(state.position.spare, ChessRules::kMaxRun);
}

// How often the position has occurred since the run began. Takes the moves back one by one and keeps, by player and bit
// of a kind, the squares on which the board then differs from that of now.
int32_t count_repetitions(const ChessRules::State& state) {
  const int32_t length = run_length(state);
  if (length < 4) return 0;
  int32_t count = 0;
  Squares changed[2][3] = {};
  for (int32_t back = 1; back <= length; ++back) {
    const uint32_t move = state.run[length - back];
    const Squares squares = bit(move & 63) | bit(move >> 6 & 63);
    Squares* const mine = changed[back & 1];
    for (int32_t i = 0; i < 3; ++i) mine[i] ^= squares & -Squares{move >> (12 + i) & 1};
    if ((back & 1) != 0) continue;
    Squares any = 0;
    for (const auto& player : changed) any |= player[0] | player[1] | player[2];
    count += any == 0 ? 1 : 0;
  }
  return std::min(count, 2);
}

ChessRules::Ending find_ending(const ChessRules::State& state) {
  const Threats threats = find_threats(state.position);
  if (!has_moves(state.position, threats)) {
    return threats.checkers != 0 ? ChessRules::kMate : ChessRules::kStalemate;
  }
  if (is_dead(state.position)) return ChessRules::kDead;
  if (state.position.clock >= ChessRules::kMaxClock) return ChessRules::kFiftyMoves;
  return state.repetitions >= 2 ? ChessRules::kThreefold : ChessRules::kNotOver;
}

}  // namespace

ChessRules::ChessRules(const GameOptions& options) : planes_(planes_from_top()) {
  OptionReader reader(kName, options);
  variant_ = reader.choice("variant", {kVariants[0], kVariants[1]});
  number_ = reader.integer("position", {.standard = kUsualStart, .min = 0, .max = 959});
  reader.finish();
  if (variant_ == kStandard && number_ != kUsualStart) {
    throw std::invalid_argument("chess: position must be 518 in standard chess, not " + std::to_string(number_) +
                                "; variant='chess960' has the others");
  }
  start_ = start_position(number_);
}

GameOptions ChessRules::options() const {
  return {{"variant", std::string(kVariants[variant_])}, {"position", int64_t{number_}}};
}

int32_t ChessRules::legal_actions(const State& state, int32_t* actions) const {
  if (state.ending != kNotOver) return 0;
  const Position& position = state.position;
  Squares targets_of[64];
  Squares sources = 0;
  visit_moves(position, find_threats(position), [&](int32_t from, Squares targets) {
    targets_of[from] = targets;
    sources |= bit(from);
    return false;
  });

  // The bound holds by itself for real positions; it is for bytes that are none.
  int32_t count = 0;
  for (Squares rest = sources; rest != 0; rest &= rest - 1) {
    const int32_t from = first_square(rest);
    for (Squares targets = targets_of[from]; targets != 0 && count < kMaxLegal; targets &= targets - 1) {
      actions[count++] = number_of_move(from, first_square(targets), kNothing);
    }
  }
  const Squares promoting = sources & position.pawns() & position.own & kRank1 << 48;
  for (Squares rest = promoting; rest != 0; rest &= rest - 1) {
    const int32_t from = first_square(rest);
    for (Squares targets = targets_of[from]; targets != 0; targets &= targets - 1) {
      for (const int32_t piece : kPromotions) {
        if (count < kMaxLegal) actions[count++] = number_of_move(from, first_square(targets), piece);
      }
    }
  }
  return count;
}

void ChessRules::apply(State& state, int32_t action) const {
  const Move move = move_of(state.position, action);
  const uint32_t piece = static_cast<uint32_t>(state.position.kind_at(move.from));
  const bool could_take_en_passant = state.position.en_passant != 0;
  const int32_t length = run_length(state);

  // A hundredth move ends the game: its run is not needed any more.
  if (play(state.position, move) && !could_take_en_passant && length < kMaxRun) {
    state.run[length] = static_cast<uint16_t>(static_cast<uint32_t>(move.from | move.to << 6) | piece << 12);
    state.position.spare = static_cast<uint8_t>(length + 1);
  } else {
    std::memset(state.run, 0, static_cast<size_t>(length) * sizeof state.run[0]);
    state.position.spare = 0;
  }
  state.repetitions = static_cast<uint8_t>(count_repetitions(state));
  state.ending = find_ending(state);
}

void ChessRules::observe(const State& state, float* row) const {
  const Position& position = state.position;
  const Squares own = position.own, theirs = ~own;
  const Squares kinds[6] = {position.pawns(), position.knights(), position.bishops(),
                            position.rooks(), position.queens(),  position.kings()};
  for (int32_t kind = 0; kind < 6; ++kind) {
    planes_.write(kinds[kind] & own, row + 64 * kind);
    planes_.write(kinds[kind] & theirs, row + 64 * (6 + kind));
  }
  planes_.write(position.rights | Squares{position.their_rights} << 56, row + 64 * 12);
  planes_.write(position.en_passant != 0 ? bit(40 + en_passant_file(position)) : 0, row + 64 * 13);
  std::fill_n(row + 64 * 14, 64, state.repetitions != 0 ? 1.0f : 0.0f);
  std::fill_n(row + 64 * 15, 64, static_cast<float>(position.clock) / static_cast<float>(kMaxClock));
}

void ChessRules::hash(const State& state, uint64_t* hash) const {
  const Position& position = state.position;
  Hasher hasher;
  hasher.add(position.own);
  for (const Squares kinds : position.kinds) hasher.add(kinds);
  hasher.add(uint64_t{position.rights} | uint64_t{position.their_rights} << 8 | uint64_t{position.en_passant} << 16 |
             uint64_t{position.clock} << 24 | uint64_t{position.side} << 32 | uint64_t{state.repetitions} << 40 |
             uint64_t{state.ending} << 48);
  hasher.finish(hash);
}

void ChessRules::symmetry(int32_t, int32_t* actions, int32_t* observation) const {
  for (int32_t action = 0; action < kNumMoves; ++action) actions[action] = action;
  for (int32_t i = 0; i < kNumPlanes * 64; ++i) observation[i] = i;
}

}  // namespace windrow
