#pragma once

#include <source_location>
#include <sstream>
#include <string>

namespace rehearsal {

// Prints the failed condition with its values and place, then aborts. Called by REHEARSAL_CHECK.
[[noreturn, gnu::cold]] void check_failed(const char* condition, const std::string& values,
                                          const std::source_location& where);

template <class... Values>
std::string describe_values(const Values&... values) {
  std::ostringstream out;
  ((out << ' ' << values), ...);
  return out.str();
}

}  // namespace rehearsal

// States what our own code guarantees. Always on: a false condition is a bug of this library, never
// of the world, and ends the process. The values are evaluated only when the condition is false.
#define REHEARSAL_CHECK(condition, ...)                                                \
  do {                                                                                 \
    if (!(condition)) [[unlikely]]                                                     \
      ::rehearsal::check_failed(#condition, ::rehearsal::describe_values(__VA_ARGS__), \
                                std::source_location::current());                      \
  } while (false)
