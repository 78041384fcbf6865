#pragma once

#include <cstdint>
#include <string>

#include "core/base/time.h"

// Numbers as findings say them.
namespace rehearsal::sim {

// "10,000"
[[nodiscard]] inline std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t place = text.size(); place > 3;) text.insert(place -= 3, ",");
  return text;
}

// "37.5 s"; to the millisecond.
[[nodiscard]] inline std::string in_seconds(Duration time) {
  std::string text = std::to_string(time / std::chrono::milliseconds(1));
  if (text.size() < 4) text.insert(0, 4 - text.size(), '0');
  text.insert(text.size() - 3, ".");
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + " s";
}

}  // namespace rehearsal::sim
