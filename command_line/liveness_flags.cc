#include "command_line/liveness_flags.h"

#include "command_line/wrong_use.h"
#include "real_net/worker/liveness.h"

namespace rehearsal::command_line {

LivenessTexts parse_liveness(const Flags& flags, Net net) {
  const bool given =
      !flags.peer_timeout.empty() || !flags.heartbeat.empty() || !flags.refusal_limit.empty();
  if (net == Net::sim) {
    if (given)
      throw WrongUse(
          "--peer-timeout, --heartbeat and --refusal-limit need --net tcp: a simulated run has a "
          "time of its own");
    return {};
  }
  const Result<NodeOptions> node = real::with_liveness(
      {}, {flags.peer_timeout, flags.heartbeat, flags.refusal_limit}, real::process_environment);
  if (!node.ok()) throw WrongUse(Result<NodeOptions>(node).error().text);
  return {flags.peer_timeout, flags.heartbeat, flags.refusal_limit};
}

}  // namespace rehearsal::command_line
