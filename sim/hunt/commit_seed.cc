#include "sim/hunt/commit_seed.h"

#include <charconv>
#include <stdexcept>
#include <string>

namespace rehearsal::sim {
namespace {

constexpr size_t kDigits = 7;  // what git abbreviates an id to
constexpr size_t kDigitsMax = 64;

}  // namespace

Seed seed_of_commit(std::string_view id) {
  const bool hexadecimal = id.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  if (!hexadecimal || id.size() < kDigits || id.size() > kDigitsMax)
    throw std::invalid_argument("'" + std::string(id) +
                                "' is no commit: give its id, 7 to 64 hexadecimal digits");
  Seed seed{};
  std::from_chars(id.data(), id.data() + kDigits, seed.value, 16);
  return seed;
}

}  // namespace rehearsal::sim
