#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace rehearsal::record {

// A whole number that a file of JSON, which anybody may have written, has to hold here. Throws
// std::range_error if it is none, or none that `Whole` holds: nlohmann's own conversion takes any
// number, and 1e30 for one that no program may rely on.
template <class Whole, class Json>
[[nodiscard]] Whole number_of(const Json& json) {
  if (json.is_number_unsigned()) {
    if (const auto number = json.template get<uint64_t>(); std::in_range<Whole>(number))
      return static_cast<Whole>(number);
  } else if (json.is_number_integer()) {
    if (const auto number = json.template get<int64_t>(); std::in_range<Whole>(number))
      return static_cast<Whole>(number);
  }
  throw std::range_error(std::string("not a whole number of this place: ") + json.type_name());
}

}  // namespace rehearsal::record
