// How the sessions say that they live, and judge peers that do not.
#include <algorithm>

#include "core/session/session.h"

namespace rehearsal {

Duration Sessions::tick() const {
  return std::max<Duration>(std::min(options_.heartbeat, options_.peer_timeout / 8),
                            std::chrono::milliseconds(1));
}

void Sessions::judge_silence() {
  if (stopped_) return;
  const Instant now = strand_.runtime().now();
  // A worker that was itself stopped for a while has not listened: its peers are not to blame.
  const bool was_away = now - last_tick_ > 2 * tick();
  last_tick_ = now;
  for (uint32_t id = 0; id < peers_.size(); ++id) {
    if (WorkerId{id} == options_.self) continue;
    if (was_away) peers_[id].heard = now;
    judge(WorkerId{id});
  }
  tick_timer_ = strand_.runtime().call_at(now + tick(), [this] { judge_silence(); });
}

void Sessions::judge(WorkerId id) {
  Peer& from = peer(id);
  if (from.lost || from.incarnation.value == 0) return;
  const Instant now = strand_.runtime().now();
  if (from.link_up && now - from.spoke >= options_.heartbeat)
    transmit_bare(id, FrameKind::heartbeat);
  if (from.may_be_silent || options_.mutants.on(Mutant::no_fencing)) return;
  if (now - from.heard < options_.peer_timeout) return;
  // Judged at the next tick only: what has arrived by now is handled before.
  if (!from.suspected) {
    from.suspected = true;
    return;
  }
  fence(
      id,
      {.kind = ErrorKind::peer_lost,
       .text =
           "worker '" + options_.names[id.value] + "' was lost: nothing was heard of it" + " for " +
           std::to_string(
               std::chrono::duration_cast<std::chrono::milliseconds>(now - from.heard).count()) +
           " ms",
       .worker = options_.names[id.value]});
}

}  // namespace rehearsal
