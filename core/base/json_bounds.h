#pragma once

#include <cstddef>
#include <string_view>

// JSON that anybody may have written. Its readers go through nested values by recursion, and look
// for each name of an object among those before it.
namespace rehearsal {

inline constexpr size_t kJsonDepthMax = 64;
inline constexpr size_t kJsonNamesMax = 10'000;  // of one object

// Throws std::length_error if values are nested more deeply, or an object has more names. Says
// nothing else about a text, which may be no JSON.
void check_json_bounds(std::string_view text);

// The value of a text within these bounds; `Json` is one of nlohmann's. Throws what its `parse`
// throws, too: all are of std::exception.
template <class Json>
[[nodiscard]] Json parse_bounded(std::string_view text) {
  check_json_bounds(text);
  return Json::parse(text);
}

}  // namespace rehearsal
