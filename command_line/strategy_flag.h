// --strategy and --redraw, as typed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "command_line/backends.h"

namespace rehearsal::command_line {

// The strategy for RunSettings; `hunt` also knows `portfolio`, which is none, and `guided`. Throws
// WrongUse.
[[nodiscard]] std::string checked_strategy(const std::string& command, const std::string& text,
                                           const Backends& backends);

// Throws WrongUse.
void check_redraw(const std::string& text, const Backends& backends);

// The bound, if the strategy is delay bounding with one: a hunt then tries every schedule within
// it.
[[nodiscard]] std::optional<uint64_t> delay_bound_of(const std::string& strategy);

}  // namespace rehearsal::command_line
