#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/hash.h"
#include "core/base/ids.h"

namespace rehearsal {

// Where a call belongs in a trace that goes through several systems: what the header `traceparent`
// of W3C Trace Context says. It is carried and handed on; nothing is decided by it.
struct TraceContext {
  Hash128 trace;        // names the whole trace; not zero
  uint64_t parent = 0;  // the span that makes the call; not zero
  uint8_t flags = 0;    // of these, kTraceFlags
  bool operator==(const TraceContext&) const = default;
};

// The flags that have a meaning: sampled, and that the name of the trace is random.
inline constexpr uint8_t kTraceFlags = 3;

// Reads a traceparent, strictly: lower case, nothing before or behind. A later version than 00 is
// read as far as 00 goes, as the standard asks for. Nothing if it is malformed.
[[nodiscard]] std::optional<TraceContext> parse_traceparent(std::string_view text);

// As version 00.
[[nodiscard]] std::string to_traceparent(const TraceContext& context);

// The context of what a call makes in its turn: the same trace, and the call as the span.
[[nodiscard]] TraceContext within(const TraceContext& context, const CallId& call);

}  // namespace rehearsal
