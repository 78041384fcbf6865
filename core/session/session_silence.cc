// How the sessions say that they live, and judge peers that do not, or that nothing reaches.
#include <algorithm>

#include "core/session/session.h"

namespace rehearsal {
namespace {

// So many connections must break in a row, without any progress, to be held against the peer.
constexpr uint64_t kFutileLinksMax = 8;

// A peer hears of us at least so many times in the silence that it bears.
constexpr int64_t kBeatsInASilence = 4;

constexpr Duration kTickMin = std::chrono::milliseconds(1);

// So many refused attempts: fewer may be an accident, however long it takes.
constexpr uint64_t kRefusalsMin = 3;

// A port that still refuses says so once a second.
constexpr Duration kRefusesStill = std::chrono::seconds(5);

std::string in_milliseconds(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) +
         " ms";
}

// "12 s", or "300 ms" of less than a second.
std::string in_seconds(Duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return seconds.count() == 0 ? in_milliseconds(time) : std::to_string(seconds.count()) + " s";
}

}  // namespace

Duration Sessions::heartbeat_to(const Peer& to) const {
  return to.heartbeat > Duration::zero() ? to.heartbeat : options_.heartbeat;
}

// As often as our own limits need it.
Duration Sessions::own_tick() const {
  return std::max(std::min(options_.heartbeat, options_.peer_timeout / 8), kTickMin);
}

void Sessions::set_tick_timer(Instant now) {
  Duration tick = own_tick();
  for (const Peer& peer : peers_)
    if (!peer.lost) tick = std::min(tick, std::max(heartbeat_to(peer), kTickMin));
  tick_due_ = now + tick;
  tick_timer_ = strand_.runtime().call_at(*tick_due_, [this] { judge_silence(); });
}

void Sessions::set_peer_timeout(WorkerId id, Duration peer_timeout) {
  Peer& to = peer(id);
  to.heartbeat = std::min(options_.heartbeat, peer_timeout / kBeatsInASilence);
  if (stopped_ || !tick_due_) return;
  const Instant now = strand_.runtime().now();
  if (now + std::max(heartbeat_to(to), kTickMin) >= *tick_due_) return;
  strand_.runtime().cancel(tick_timer_);
  set_tick_timer(now);
}

void Sessions::judge_silence() {
  if (stopped_) return;
  const Instant now = strand_.runtime().now();
  // A worker that was itself stopped for a while has not listened: its peers are not to blame.
  const bool was_away = now - *tick_due_ > own_tick();
  for (uint32_t id = 0; id < peers_.size(); ++id) {
    if (WorkerId{id} == options_.self) continue;
    if (was_away) peers_[id].heard = peers_[id].progressed = now;
    judge(WorkerId{id});
  }
  set_tick_timer(now);
  if (on_tick_ && !stopped_) on_tick_();
}

void Sessions::judge(WorkerId id) {
  Peer& from = peer(id);
  if (from.lost || from.incarnation.value == 0) return;
  const Instant now = strand_.runtime().now();
  if (from.link.up && now - from.spoke >= heartbeat_to(from))
    transmit_bare(id, FrameKind::heartbeat);
  if (from.may_be_silent || options_.mutants.on(Mutant::no_fencing)) return;
  if (now - from.heard >= options_.peer_timeout) {
    // Judged at the next tick only: what has arrived by now is handled before.
    if (std::exchange(from.suspected, true))
      give_up(id, "was lost: nothing was heard of it for " + in_milliseconds(now - from.heard));
  } else if (from.futile_links >= kFutileLinksMax &&
             now - from.progressed >= options_.peer_timeout) {
    give_up(id, "was lost: the last " + std::to_string(from.futile_links) +
                    " connections to it broke, one after another, before anything had passed; the "
                    "largest message on its way had " +
                    std::to_string(from.futile_bytes) + " bytes");
  }
}

void Sessions::give_up(WorkerId id, const std::string& why) {
  peer(id).has_died = true;
  const std::string& name = options_.names[id.value];
  fence(id, {.kind = ErrorKind::peer_lost, .text = "worker '" + name + "' " + why, .worker = name});
}

// Its process has ended, most likely: while it lives its port answers, and it would connect to us
// itself. It may have ended well; then silence, which takes longer, has the last word.
void Sessions::on_refused(WorkerId id, const Refusals& refusals) {
  if (stopped_ || id.value >= peers_.size() || id == options_.self) return;
  strand_.mark("a peer refuses connections");
  Peer& from = peer(id);
  const Instant now = strand_.runtime().now();
  from.refused = Refused{.since = now - refusals.lasting, .last = now, .at = refusals.at};
  if (from.lost || from.link.up || from.incarnation.value == 0) return;
  if (from.may_be_silent || options_.mutants.on(Mutant::no_fencing)) return;
  const Duration limit = options_.refusal_limit;
  const bool enough =
      limit > Duration::zero() && refusals.count >= kRefusalsMin && refusals.lasting >= limit;
  if (!enough && !options_.mutants.on(Mutant::one_refusal_is_death)) return;
  if (listener_.may_have_left(id)) return;
  give_up(id, "has ended: its port refuses connections (" + std::to_string(refusals.count) +
                  " in " + in_milliseconds(refusals.lasting) + ")");
}

std::vector<OwedAcknowledgement> Sessions::owed_acknowledgements() const {
  std::vector<OwedAcknowledgement> owed;
  for (uint32_t id = 0; id < peers_.size(); ++id) {
    const Peer& to = peers_[id];
    if (WorkerId{id} == options_.self || !to.link.up || to.unacked.empty()) continue;
    const Unacked& oldest = to.unacked.front();
    if (!to.link.paced || oldest.sent) owed.push_back({WorkerId{id}, oldest.sequence});
  }
  return owed;
}

std::string Sessions::absence(WorkerId id) const {
  if (id == options_.self) return {};
  const Peer& of = peer(id);
  const Instant now = strand_.runtime().now();
  if (of.refused && !of.link.up && now - of.refused->last <= kRefusesStill)
    return (of.refused->at.empty() ? "" : "at " + of.refused->at + ", ") + "refuses since " +
           in_seconds(now - of.refused->since);
  if (of.incarnation.value == 0) return "never met";
  if (of.lost) return of.lost->text;
  const Duration silence = now - of.heard;
  if (of.link.up && silence < options_.peer_timeout / 2) return {};
  return "silent for " + in_seconds(silence);
}

}  // namespace rehearsal
