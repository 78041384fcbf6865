#include "command_line/flag_values.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include "command_line/wrong_use.h"

namespace rehearsal::command_line {

uint64_t parse_whole(const std::string& flag, const std::string& text, uint64_t min, uint64_t max) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end || number < min || number > max) {
    throw WrongUse(flag + " " + text + ": type a whole number from " + std::to_string(min) +
                   " to " + std::to_string(max));
  }
  return number;
}

double parse_seconds(const std::string& flag, const std::string& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::map<std::string, double> units = {{"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}};
  const auto unit = units.find(text.substr(digits));
  if (digits == 0 || digits > 9 || unit == units.end()) {
    throw WrongUse(flag + " " + text + ": type a time, for example 60s, 5m or 2h");
  }
  return std::stod(text.substr(0, digits)) * unit->second;
}

CrashAt parse_crash_at(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    throw WrongUse("--crash-at " + text + ": type WORKER:N, for example trainer0:12");
  }
  return {text.substr(0, colon), parse_whole("--crash-at: N", text.substr(colon + 1), 0,
                                             std::numeric_limits<uint64_t>::max())};
}

double parse_watchdog(const std::string& text) {
  constexpr double kSecondsMin = 0.1;
  constexpr double kSecondsMax = 24 * 3600;
  if (text == "0") return 0;
  const double seconds = parse_seconds("--watchdog", text);
  if (seconds == 0 || (seconds >= kSecondsMin && seconds <= kSecondsMax)) return seconds;
  throw WrongUse("--watchdog " + text + ": type a time from 100ms to 24h, or 0 for none");
}

double parse_virtual_time_max(const std::string& text) {
  constexpr double kSecondsMax = 10'000 * 3600;
  if (text == "0") return 0;
  const double seconds = parse_seconds("--virtual-time-max", text);
  if (seconds <= kSecondsMax) return seconds;
  throw WrongUse("--virtual-time-max " + text +
                 ": type a time of up to 10000h, or 0 for one without an end");
}

}  // namespace rehearsal::command_line
