#include "core/base/checkpoints.h"

#include <algorithm>
#include <string_view>

namespace rehearsal {

bool is_checkpoint_name(const std::string& name) {
  constexpr size_t kLengthMax = 100;
  const auto allowed = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || std::string_view("-_.").find(letter) < 3;
  };
  return !name.empty() && name.size() <= kLengthMax && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace rehearsal
