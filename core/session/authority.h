#pragma once

#include <optional>
#include <string_view>

#include "core/base/ids.h"
#include "core/session/session_options.h"
#include "core/wire/message.h"

namespace rehearsal {

// The field of a peer's message that breaks the protocol, and how.
struct Violation {
  std::string_view field;  // "Call.id"
  std::string_view why;
};

// Two lives that talk to each other.
struct Pair {
  WorkerId from;
  Incarnation sender;
  WorkerId self;
  Incarnation receiver;
};

// No program nests its calls so deeply.
inline constexpr uint32_t kCallDepthMax = uint32_t{1} << 24;

// Judges what a message says by itself: that each worker in it exists, and that each id which only
// its sender, or only its receiver, can have made says so. It never blames a worker for what an
// honest one may have been told by another: who passes on false names of contexts, passes or
// references is refused where these are looked up. The tables of the node judge the rest, each when
// it takes the message (core/README.md has the list). On the strand.
[[nodiscard]] std::optional<Violation> violation_of(const Message& message, const Pair& pair,
                                                    const SessionOptions& options);

}  // namespace rehearsal
