// chess_words.cpp: chess in words: names of moves, and the board as text.

#include <cctype>
#include <string>
#include <string_view>

#include "chess.h"
#include "square_board.h"

namespace windrow {

using namespace chess;

namespace {

constexpr std::string_view kLetters = ".pnbrqk";
constexpr std::string_view kPlayers[] = {"White", "Black"};

constexpr int32_t kTurn = 56;  // a square XOR this is the square that the other player sees there
// In standard chess: e1, and where the king stands after castling, g1 or c1.
constexpr int32_t kKingsStart = 4, kCastledRight = 6, kCastledLeft = 2;

std::string square_name(int32_t square) {
  return {static_cast<char>('a' + square % 8), static_cast<char>('1' + square / 8)};
}

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

bool is_square(std::string_view text) {
  return text.size() >= 2 && lower(text[0]) >= 'a' && lower(text[0]) <= 'h' && text[1] >= '1' && text[1] <= '8';
}

int32_t square_of(std::string_view text) { return (text[1] - '1') * 8 + lower(text[0]) - 'a'; }

// `turn` is kTurn for Black's moves and 0 for White's.
std::string name_of(const Move& move, int32_t turn) {
  std::string name = square_name(move.from ^ turn) + square_name(move.to ^ turn);
  if (move.promotion != kNothing) name += kLetters[static_cast<size_t>(move.promotion)];
  return name;
}

// Reads two squares and the letter of a promotion; returns how many characters it took, 0 if there are none. A
// promotion to a knight is none, as in the numbers of moves.
size_t parse_name(std::string_view text, int32_t turn, Move* move) {
  if (text.size() < 4 || !is_square(text) || !is_square(text.substr(2))) return 0;
  const int32_t from = square_of(text) ^ turn, to = square_of(text.substr(2)) ^ turn;
  size_t taken = 4;
  int32_t promotion = kNothing;
  // A b may also be the file of a move that follows without a space.
  const bool names_a_piece = text.size() > 4 && from / 8 == 6 && to / 8 == 7 && !is_square(text.substr(4));
  if (names_a_piece) {
    const size_t piece = kLetters.find(lower(text[4]));
    if (piece >= kKnight && piece <= kQueen) {
      taken = 5;
      promotion = piece == kKnight ? kNothing : static_cast<int32_t>(piece);
    }
  }
  *move = {.from = from, .to = to, .promotion = promotion};
  return taken;
}

// The same for the number of the move.
size_t to_number(size_t taken, const Move& move, int32_t* action) {
  const int32_t number = taken == 0 ? -1 : number_of_move(move.from, move.to, move.promotion);
  if (number < 0) return 0;
  *action = number;
  return taken;
}

}  // namespace

std::string ChessRules::action_name(int32_t action) const { return name_of(move_of_number(action), 0); }

size_t ChessRules::parse_action(std::string_view text, int32_t* action) const {
  Move move{};
  return to_number(parse_name(text, 0, &move), move, action);
}

std::string ChessRules::move_name(const State& state, int32_t action) const {
  const Position& position = state.position;
  Move move = move_of(position, action);
  const bool is_castling = position.kind_at(move.from) == kKing && (position.own >> move.to & 1) != 0;
  if (is_castling && variant_ == kStandard) move.to = move.to > move.from ? kCastledRight : kCastledLeft;
  return name_of(move, (position.side & 1) != 0 ? kTurn : 0);
}

size_t ChessRules::parse_move(const State& state, std::string_view text, int32_t* action) const {
  const Position& position = state.position;
  Move move{};
  const size_t taken = parse_name(text, (position.side & 1) != 0 ? kTurn : 0, &move);
  const bool is_king = taken != 0 && position.kind_at(move.from) == kKing && move.from == kKingsStart;
  if (is_king && variant_ == kStandard && (move.to == kCastledRight || move.to == kCastledLeft)) {
    move.to = move.to == kCastledRight ? 7 : 0;
  }
  return to_number(taken, move, action);
}

// White's pieces are capital letters:
//
//   8 r n b q k b n r
//   7 p p p p p p p p
//   6 . . . . . . . .
//   ...
//   1 R N B Q K B N R
//     a b c d e f g h
//   White to move
std::string ChessRules::render(const State& state) const {
  const Position& position = state.position;
  const bool is_black = (position.side & 1) != 0;
  std::string cells(64, kEmptyMark);
  for (int32_t square = 0; square < 64; ++square) {
    const int32_t kind = position.kind_at(square);
    if (kind == kNothing || kind > kKing) continue;
    const bool is_white = ((position.own >> square & 1) != 0) != is_black;
    const char letter = kLetters[static_cast<size_t>(kind)];
    // Cells count from the top: for White they are turned.
    cells[static_cast<size_t>(square ^ (is_black ? 0 : kTurn))] =
        is_white ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  const auto player = [&](bool is_opponent) { return std::string(kPlayers[is_opponent != is_black ? 1 : 0]); };
  std::string status;
  switch (state.ending) {
    case kNotOver:
      status = player(false) + " to move" + (find_threats(position).checkers != 0 ? ", in check" : "");
      break;
    case kMate:
      status = "checkmate, " + player(true) + " wins";
      break;
    case kStalemate:
      status = "draw by stalemate";
      break;
    case kDead:
      status = "draw by insufficient material";
      break;
    case kFiftyMoves:
      status = "draw by the fifty-move rule";
      break;
    default:
      status = "draw by threefold repetition";
  }
  return SquareBoard(8, SquareBoard::RowNumbers::kFromBottom).draw(cells, status);
}

}  // namespace windrow
