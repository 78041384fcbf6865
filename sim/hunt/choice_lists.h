#pragma once

#include <string>
#include <vector>

#include "sim/decisions/keyed_decisions.h"

// Lists of choices, as shrinking and those who print and repeat a run need them.
namespace rehearsal::sim {

// As KEY=VALUE each, and back. Throws std::invalid_argument with a line that says what is wrong.
[[nodiscard]] std::vector<std::string> texts_of(const std::vector<Override>& choices);
[[nodiscard]] std::vector<Override> parse_overrides(const std::vector<std::string>& texts);

// Whether a strategy chose it; its deviations from the order of instants say the same without it.
[[nodiscard]] bool is_of_strategy(const Override& choice);
[[nodiscard]] bool is_deviation(const Override& choice);

// Takes out those whose keys a run has not asked for: without them it is the same.
void drop_absent(std::vector<Override>& choices, const std::vector<std::string>& absent_keys);

// The order of a run's events helps to leave them out together; people and version control want
// one that stays.
void sort_by_key(std::vector<Override>& choices);

}  // namespace rehearsal::sim
