// dice.h: what the games with dice share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace windrow {

inline constexpr int32_t kNumFaces = 6;

// How many characters `word` (in small letters) takes at the front of `text`, in either case; 0 if it is not there.
// Not std::tolower: that depends on the process' locale.
inline size_t take_word(std::string_view text, std::string_view word) {
  if (text.size() < word.size()) return 0;
  for (size_t i = 0; i < word.size(); ++i) {
    const char letter = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
    if (letter != word[i]) return 0;
  }
  return word.size();
}

}  // namespace windrow
