#include "go.h"

namespace windrow {

std::unique_ptr<NamedGame> make_go(const GameOptions& options) {
  const int32_t size = OptionReader("go", options).integer("size", kGoSizes);
  if (size <= 9) return std::make_unique<BuiltinGame<GoRules<9>>>(options);
  if (size <= 13) return std::make_unique<BuiltinGame<GoRules<13>>>(options);
  return std::make_unique<BuiltinGame<GoRules<19>>>(options);
}

}  // namespace windrow
