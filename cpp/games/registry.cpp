// registry.cpp: the built-in games by name.

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "azul.h"
#include "backgammon.h"
#include "builtin.h"
#include "chess.h"
#include "connect4.h"
#include "go.h"
#include "gomoku.h"
#include "hex.h"
#include "othello.h"
#include "pig.h"
#include "tictactoe.h"

namespace windrow {

namespace {

struct Entry {
  const char* name;
  std::unique_ptr<NamedGame> (*make)(const GameOptions& options);
};

template <class Rules>
constexpr Entry entry() {
  return {Rules::kName, [](const GameOptions& options) -> std::unique_ptr<NamedGame> {
            return std::make_unique<BuiltinGame<Rules>>(options);
          }};
}

constexpr Entry kEntries[] = {
    entry<TicTacToeRules>(),  entry<Connect4Rules>(), entry<GomokuRules>(), entry<OthelloRules>(),
    entry<BackgammonRules>(), entry<PigRules>(),      entry<AzulRules>(),   {"hex", &make_hex},
    {"go", &make_go},         entry<ChessRules>(),
};

}  // namespace

std::unique_ptr<NamedGame> make_builtin(const std::string& name, const GameOptions& options) {
  for (const Entry& entry : kEntries) {
    if (name == entry.name) return entry.make(options);
  }
  std::string listed;
  for (const Entry& entry : kEntries) listed.append(listed.empty() ? "" : ", ").append(entry.name);
  throw std::invalid_argument("there is no built-in game '" + name + "'; there are " + listed);
}

std::vector<std::string> builtin_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

}  // namespace windrow
