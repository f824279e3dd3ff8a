// option_reader.h: takes a game's options apart, and complains in words a player understands.
//
//   OptionReader reader("gomoku", options);
//   size_ = reader.integer("size", {.standard = 15, .min = 5, .max = 19});
//   rule_ = reader.choice("rule", {"freestyle", "standard"});
//   reader.finish();
#pragma once

#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "builtin.h"

namespace windrow {

class OptionReader {
 public:
  struct IntegerRange {
    int32_t standard;  // the value when the option is not given
    int32_t min;
    int32_t max;  // included
  };

  // Keeps a reference to `given`.
  OptionReader(std::string_view game, const GameOptions& given) : game_(game), given_(given) {}

  int32_t integer(std::string_view name, IntegerRange range) {
    const OptionValue* value = find(name);
    if (value == nullptr) return range.standard;
    const int64_t* number = std::get_if<int64_t>(value);
    if (number == nullptr || *number < range.min || *number > range.max) {
      fail(name, "must be an integer from " + std::to_string(range.min) + " to " + std::to_string(range.max), *value);
    }
    return static_cast<int32_t>(*number);
  }

  // A multiple of a half, such as 7, "7.5" or "-0.5"; answers, and takes the range, in halves.
  int32_t twice(std::string_view name, IntegerRange range) {
    const OptionValue* value = find(name);
    if (value == nullptr) return range.standard;
    const int64_t* number = std::get_if<int64_t>(value);
    const std::optional<int64_t> halves =
        number != nullptr ? std::optional(*number) : read_halves(std::get<std::string>(*value));
    const int64_t scale = number != nullptr ? 2 : 1;
    if (!halves || *halves < range.min / scale || *halves > range.max / scale) {
      fail(name, "must be a multiple of 0.5 from " + show_halves(range.min) + " to " + show_halves(range.max), *value);
    }
    return static_cast<int32_t>(*halves * scale);
  }

  // The value of such an option: an integer if it is one.
  static OptionValue halves(int32_t halves) {
    if (halves % 2 == 0) return int64_t{halves / 2};
    return show_halves(halves);
  }

  // One of `words`, the first of which is the default; answers its index.
  int32_t choice(std::string_view name, std::initializer_list<std::string_view> words) {
    const OptionValue* value = find(name);
    if (value == nullptr) return 0;
    if (const std::string* given = std::get_if<std::string>(value)) {
      int32_t index = 0;
      for (const std::string_view word : words) {
        if (word == *given) return index;
        ++index;
      }
    }
    std::string listed;
    for (const std::string_view word : words) listed.append(listed.empty() ? "'" : " or '").append(word).append("'");
    fail(name, "must be " + listed, *value);
  }

  // Every option has been asked for by now: one that was given but not asked for does not exist.
  void finish() const {
    for (const auto& [name, value] : given_) {
      bool is_known = false;
      std::string listed;
      for (const std::string& known : known_) {
        is_known = is_known || known == name;
        listed.append(listed.empty() ? "" : ", ").append(known);
      }
      if (is_known) continue;
      throw std::invalid_argument(game_ + " has no option '" + name + "'; " +
                                  (listed.empty() ? "it has no options" : "its options are " + listed));
    }
  }

 private:
  static std::string show_halves(int32_t halves) {
    std::string text = halves < 0 ? "-" : "";
    text += std::to_string((halves < 0 ? -halves : halves) / 2);
    if (halves % 2 != 0) text += ".5";
    return text;
  }

  // Digits, and perhaps a sign, a point and .0 or .5; nothing if it is anything else.
  static std::optional<int64_t> read_halves(std::string_view text) {
    const bool is_negative = text.starts_with('-');
    if (is_negative) text.remove_prefix(1);
    int64_t halves = 0;
    if (text.ends_with(".5")) halves = 1;
    if (text.ends_with(".5") || text.ends_with(".0")) text.remove_suffix(2);
    if (text.empty() || text.size() > 6) return std::nullopt;
    int64_t whole = 0;
    for (const char digit : text) {
      if (digit < '0' || digit > '9') return std::nullopt;
      whole = 10 * whole + (digit - '0');
    }
    halves += 2 * whole;
    return is_negative ? -halves : halves;
  }

  const OptionValue* find(std::string_view name) {
    known_.emplace_back(name);
    for (const auto& [given_name, value] : given_) {
      if (given_name == name) return &value;
    }
    return nullptr;
  }

  [[noreturn]] void fail(std::string_view name, const std::string& demand, const OptionValue& value) const {
    const int64_t* number = std::get_if<int64_t>(&value);
    const std::string shown = number != nullptr ? std::to_string(*number) : "'" + std::get<std::string>(value) + "'";
    throw std::invalid_argument(game_ + ": " + std::string(name) + " " + demand + ", not " + shown);
  }

  std::string game_;
  const GameOptions& given_;
  std::vector<std::string> known_;
};

}  // namespace windrow
