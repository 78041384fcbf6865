#include "core/base/json_bounds.h"

#include <stdexcept>
#include <string>
#include <vector>

namespace rehearsal {
namespace {

// The mark that ends the text whose first quotation mark is at `at`.
size_t end_of_text(std::string_view json, size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at)
    if (json[at] == '\\') ++at;
  return at;
}

struct Opened {
  bool is_object = false;
  size_t commas = 0;
};

}  // namespace

void check_json_bounds(std::string_view text) {
  std::vector<Opened> opened;
  for (size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (letter == '"') {
      at = end_of_text(text, at);
    } else if (letter == '[' || letter == '{') {
      if (opened.size() == kJsonDepthMax)
        throw std::length_error("JSON of more than " + std::to_string(kJsonDepthMax) + " levels");
      opened.push_back({.is_object = letter == '{'});
    } else if (opened.empty()) {
      continue;
    } else if (letter == ']' || letter == '}') {
      opened.pop_back();
    } else if (letter == ',' && opened.back().is_object &&
               ++opened.back().commas == kJsonNamesMax) {
      throw std::length_error("JSON with an object of more than " + std::to_string(kJsonNamesMax) +
                              " names");
    }
  }
}

}  // namespace rehearsal
