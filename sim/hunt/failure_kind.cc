#include "sim/hunt/failure_kind.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace rehearsal::sim {

std::string kind_of_object(const std::string& object) {
  std::istringstream words(object);
  std::string kind;
  for (std::string word; words >> word;) {
    const bool named = std::any_of(word.begin(), word.end(),
                                   [](unsigned char letter) { return std::isdigit(letter) != 0; });
    kind += named ? "* " : word + " ";
  }
  return kind;
}

bool alike(const RunFailure& one, const RunFailure& other) {
  return one.oracle == other.oracle && kind_of_object(one.object) == kind_of_object(other.object);
}

}  // namespace rehearsal::sim
