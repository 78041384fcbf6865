#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "command_line/outcome.h"

namespace rehearsal::command_line {

// In how many runs each pair of sim/world/coverage.h came up, by its number.
using CoverageCounts = std::map<uint32_t, uint64_t>;

// A table for each kind of pairs, for people: a digit is the power of ten of the number of runs, a
// dot says that there was none.
[[nodiscard]] std::string coverage_text(const CoverageCounts& counts);

// By the names of the table, the row and the column; without pairs that never came.
[[nodiscard]] Json coverage_json(const CoverageCounts& counts);
// Throws std::exception for anything else.
[[nodiscard]] CoverageCounts coverage_from_json(const Json& json);

}  // namespace rehearsal::command_line
