// check.h: how the C++ tests complain. A test is a program; the first check that fails ends it with status 1.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <source_location>
#include <string>
#include <string_view>

namespace windrow {

// What is being tested, printed by a check that fails: enough to run the same case again.
inline std::string& scene() {
  static std::string text;
  return text;
}

[[noreturn]] inline void fail(std::string_view message, std::source_location where = std::source_location::current()) {
  std::fprintf(stderr, "%s:%u: %.*s\n", where.file_name(), static_cast<unsigned>(where.line()),
               static_cast<int>(message.size()), message.data());
  if (!scene().empty()) std::fprintf(stderr, "  in: %s\n", scene().c_str());
  std::fflush(stderr);
  std::_Exit(1);
}

inline void check(bool is_true, std::string_view message,
                  std::source_location where = std::source_location::current()) {
  if (!is_true) fail(message, where);
}

// Runs `fn`, which must throw an Error; hands it back.
template <class Error, class Fn>
Error check_throws(const Fn& fn, std::string_view message,
                   std::source_location where = std::source_location::current()) {
  try {
    fn();
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    fail(std::string(message) + ": it threw something else: " + error.what(), where);
  }
  fail(std::string(message) + ": nothing was thrown", where);
}

}  // namespace windrow
