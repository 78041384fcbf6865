#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/node/node.h"
#include "real_net/worker/placement.h"

namespace rehearsal::real {

// How soon a worker takes another one for dead, as texts such as 500ms, 10s or 2m. One left empty
// comes from the environment: REHEARSAL_PEER_TIMEOUT, REHEARSAL_HEARTBEAT and
// REHEARSAL_REFUSAL_LIMIT; else it is what NodeOptions says. The first two must be the same at all
// workers of a group: a worker with others is refused when it joins.
struct LivenessOptions {
  std::string peer_timeout;   // silence after which a peer is given up
  std::string heartbeat;      // alone left out: at most a sixth of the silence
  std::string refusal_limit;  // for how long its port must refuse; 0: that proves nothing
};

// A number with ms, s, m or h behind it, or 0. Nothing if it is none, or longer than a day.
[[nodiscard]] std::optional<Duration> parse_duration(std::string_view text);

// `node` with these times. The error (bad_arguments) is one line: what cannot be understood, or a
// heartbeat that is asked for here and more than half of the silence. One that only the program
// has left too long follows the silence (NodeOptions::heartbeat).
[[nodiscard]] Result<NodeOptions> with_liveness(NodeOptions node, const LivenessOptions& options,
                                                const Environment& environment);

}  // namespace rehearsal::real
