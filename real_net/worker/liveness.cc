#include "real_net/worker/liveness.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace rehearsal::real {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// One time, by its flag and its variable; unset if neither is there.
Result<std::optional<Duration>> time_of(const std::string& flag_text, const char* flag,
                                        const char* variable, const Environment& environment,
                                        Duration least) {
  const std::optional<std::string> from_outside =
      flag_text.empty() ? environment(variable) : std::nullopt;
  const std::string text = from_outside.value_or(flag_text);
  if (text.empty()) return std::optional<Duration>();
  const std::optional<Duration> time = parse_duration(text);
  const std::string name = from_outside ? variable + std::string("=") : flag + std::string(" ");
  if (!time) return wrong_arguments(name + text + ": type a time, for example 500ms, 10s or 2m");
  if (*time < least) return wrong_arguments(name + text + ": it must be at least 1ms");
  return time;
}

std::string text_of(Duration time) {
  return std::to_string(std::chrono::duration_cast<milliseconds>(time).count()) + "ms";
}

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  if (text == "0") return Duration::zero();
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || number < 0) return std::nullopt;
  const std::string_view unit(stop, static_cast<size_t>(end - stop));
  constexpr std::array<std::pair<std::string_view, Duration>, 5> kUnits = {{{"us", microseconds(1)},
                                                                            {"ms", milliseconds(1)},
                                                                            {"s", seconds(1)},
                                                                            {"m", minutes(1)},
                                                                            {"h", hours(1)}}};
  for (const auto& [name, one] : kUnits)
    if (unit == name && number <= hours(24) / one) return one * number;
  return std::nullopt;
}

Result<NodeOptions> with_liveness(NodeOptions node, const LivenessOptions& options,
                                  const Environment& environment) {
  const Duration least = milliseconds(1);
  const auto peer_timeout =
      time_of(options.peer_timeout, "--peer-timeout", "REHEARSAL_PEER_TIMEOUT", environment, least);
  if (!peer_timeout.ok()) return peer_timeout.error();
  const auto heartbeat =
      time_of(options.heartbeat, "--heartbeat", "REHEARSAL_HEARTBEAT", environment, least);
  if (!heartbeat.ok()) return heartbeat.error();
  const auto refusal_limit = time_of(options.refusal_limit, "--refusal-limit",
                                     "REHEARSAL_REFUSAL_LIMIT", environment, Duration::zero());
  if (!refusal_limit.ok()) return refusal_limit.error();
  if (peer_timeout.value()) {
    node.peer_timeout = *peer_timeout.value();
    node.heartbeat = std::clamp<Duration>(node.peer_timeout / 6, least, node.heartbeat);
  }
  if (heartbeat.value()) node.heartbeat = *heartbeat.value();
  if (refusal_limit.value()) node.refusal_limit = *refusal_limit.value();
  if (heartbeat.value() && node.heartbeat > node.peer_timeout / 2)
    return wrong_arguments(
        "a heartbeat every " + text_of(node.heartbeat) + " and a peer time-out of " +
        text_of(node.peer_timeout) +
        ": a worker that is well would be taken for dead; the heartbeat is at most half "
        "of the time-out");
  return node;
}

}  // namespace rehearsal::real
