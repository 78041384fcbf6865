// The values of flags, from words. Each function throws WrongUse, in one line that names the flag
// and says what to type instead.
#pragma once

#include <cstdint>
#include <string>

#include "command_line/run_settings.h"

namespace rehearsal::command_line {

[[nodiscard]] uint64_t parse_whole(const std::string& flag, const std::string& text, uint64_t min,
                                   uint64_t max);

// "60s", "5m", "2h" or "500ms" in seconds.
[[nodiscard]] double parse_seconds(const std::string& flag, const std::string& text);

// "WORKER:N".
[[nodiscard]] CrashAt parse_crash_at(const std::string& text);

// In seconds; 0: none.
[[nodiscard]] double parse_watchdog(const std::string& text);

// In seconds; 0: without an end.
[[nodiscard]] double parse_virtual_time_max(const std::string& text);

}  // namespace rehearsal::command_line
