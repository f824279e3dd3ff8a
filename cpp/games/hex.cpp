#include "hex.h"

namespace windrow {

std::unique_ptr<NamedGame> make_hex(const GameOptions& options) {
  const int32_t size = OptionReader("hex", options).integer("size", kHexSizes);
  if (size <= 8) return std::make_unique<BuiltinGame<HexRules<8>>>(options);
  if (size <= 11) return std::make_unique<BuiltinGame<HexRules<11>>>(options);
  if (size <= 13) return std::make_unique<BuiltinGame<HexRules<13>>>(options);
  return std::make_unique<BuiltinGame<HexRules<19>>>(options);
}

}  // namespace windrow
