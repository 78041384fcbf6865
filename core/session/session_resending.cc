// Sessions: links that are made again, and what is sent again on them.
//
// Note [Links that do not live long]
// A link may break after one frame, and the next one, too. That each of them bring something
// forward takes three rules. The hello of each end says what it has received: the last number of
// each lane, so that neither lane waits for the other. On a link that was made again an end sends
// one message that has not arrived, and no other before the peer has told that this one has; every
// second time it is a large one, if there is any, so that one that never passes holds up no other.
// From then on two more leave for each that has arrived. The peer tells of the first one at once.
// So a link that carries a message brings it forward, whether or not word of it comes back, and
// little is sent in vain. Where the link before has carried many, half as many leave at once on
// this one: a link that breaks now and then on a long way costs a round trip, not one for each
// doubling.
// A message whose tensors were changed before it leaves again is replaced by a small one. That
// takes its turn among the small ones by its number, so that it overtakes none of them: the last
// number of a lane counts all before it. Its own arrival is told only when all before it have come;
// until then it may be sent again on the next link, and nothing waits for it. The first of all that
// have not arrived is waited for while it is the only one on its way, replaced or not.
#include <algorithm>
#include <utility>

#include "core/session/session.h"

namespace rehearsal {
namespace {

// So many messages of a link that was made again are acknowledged few at a time; only the first if
// the link before has brought so many.
constexpr uint64_t kToldSoon = 64;
constexpr uint64_t kCarriesMany = 16;

size_t index_of(Lane lane) { return static_cast<size_t>(lane); }

// It may send, too.
void tell_changed(NodeStrand& strand, const std::shared_ptr<CarriedTensors>& changed) {
  if (changed->on_changed) changed->on_changed(std::nullopt);
  strand.release_later(changed);
}

}  // namespace

void Sessions::begin_link(const Hello& hello, bool again) {
  const WorkerId id = hello.worker;
  Peer& to = peer(id);
  if (to.link.up) note_futile_link(to);
  if (!again) note_progress(to);
  ++to.links;
  to.link = {.up = true,
             .paced = again && !options_.mutants.on(Mutant::backlog_in_one_burst),
             .resends_below = to.next_sequence,
             .told_soon = to.link.arrived_messages < kCarriesMany ? kToldSoon : 1};
  to.suspected = false;
  to.refused.reset();
  to.heard = strand_.runtime().now();
  if (!to.unacked.empty()) strand_.mark("frames are resent");
  for (size_t i = 0; i < to.unacked.size(); ++i) to.unacked.at(i).sent = false;
  const bool ignored = options_.mutants.on(Mutant::no_deduplication) ||
                       options_.mutants.on(Mutant::deduplication_forgotten);
  // A peer that had not met us has received nothing.
  const bool told = again && hello.position.source == options_.incarnation && !ignored;
  if (told) take_position(to, hello.position.received);
  const uint64_t arrived = to.last_arrived[index_of(Lane::small)];
  if (told) to.link.trust = arrived - std::exchange(to.arrived_before, arrived);
  for (size_t i = 0; i < to.unacked.size(); ++i) {
    Unacked& unacked = to.unacked.at(i);
    unacked.arrived =
        !unacked.replaced && unacked.sequence <= to.last_arrived[index_of(unacked.lane)];
  }
  if (told) take_acknowledgement(id, hello.position.acknowledged);
  if (again && std::exchange(to.unanswered_frames, 0) > 0) progressed();  // Our hello has told.
  if (to.link.paced) return send_more(id);
  for (size_t i = 0; i < to.unacked.size(); ++i) {
    Unacked& unacked = to.unacked.at(i);  // `transmit_new` sends those that come later.
    if (unacked.sequence < to.link.resends_below && !unacked.arrived) (void)resend(id, unacked);
  }
}

// Returns whether its arrival is awaited: it is told by the last number of its lane or, of one that
// was replaced, with that of all before it, of which there must be none.
bool Sessions::resend(WorkerId id, Unacked& unacked) {
  Peer& to = peer(id);
  const std::shared_ptr<CarriedTensors> changed = replace_if_changed(to, unacked);
  if (unacked.sequence < to.link.resends_below)
    strand_.trace().on_event({.kind = EventKind::frame_resent,
                              .worker = options_.self,
                              .peer = id,
                              .number = unacked.sequence,
                              .bytes = unacked.body->bytes()});
  unacked.sent = true;
  const bool is_only = !to.link.open && unacked.sequence == to.unacked.front().sequence &&
                       !options_.mutants.on(Mutant::replacement_not_awaited);
  unacked.is_told = !unacked.replaced || is_only;
  const bool is_told = unacked.is_told;
  if (is_told) ++to.link.awaited;
  transmit(id, unacked);
  if (changed) tell_changed(strand_, changed);
  return is_told;
}

// Sends what the pace of a link that was made again permits.
void Sessions::send_more(WorkerId id) {
  Peer& to = peer(id);
  // Returns whether a message has gone over to the other lane, where it waits for its turn: it must
  // not overtake those before it there, see FrameHeader::received.
  const auto send_lane = [&](Lane lane) {
    Pace& pace = to.link.paces[index_of(lane)];
    while (pace.room > 0 && !to.unacked.empty()) {
      const uint64_t first = to.unacked.front().sequence;
      pace.next = std::max(pace.next, first);
      if (pace.next - first >= to.unacked.size()) break;
      Unacked& unacked = to.unacked.at(pace.next - first);
      ++pace.next;
      if (unacked.lane != lane || unacked.sent || unacked.arrived) continue;
      const std::shared_ptr<CarriedTensors> changed = replace_if_changed(to, unacked);
      const bool waits =
          unacked.lane != lane && to.link.paces[index_of(unacked.lane)].next <= unacked.sequence;
      if (!waits) {
        --pace.room;
        if (!resend(id, unacked)) ++pace.room;
      }
      if (changed) tell_changed(strand_, changed);
      if (waits) return true;
    }
    return false;
  };
  do open_up(to);
  while (send_lane(Lane::small) || send_lane(Lane::large));
}

// Lets the first message leave, or, once it has arrived, more of both lanes.
void Sessions::open_up(Peer& to) const {
  LinkState& link = to.link;
  const uint64_t trusted = link.trust / 2;
  const bool is_trusted = trusted >= kFewMessages;
  if (link.open || (link.awaited > 0 && !is_trusted)) return;
  std::array<bool, 2> waiting{};
  for (size_t i = 0; i < to.unacked.size(); ++i) {
    const Unacked& unacked = to.unacked.at(i);
    waiting[index_of(unacked.lane)] |= !unacked.sent && !unacked.arrived;
  }
  const bool any = waiting[0] || waiting[1];
  Pace& small = link.paces[index_of(Lane::small)];
  Pace& large = link.paces[index_of(Lane::large)];
  if (link.proven || is_trusted || !any || options_.mutants.on(Mutant::position_not_told)) {
    link.open = true;
    small.room = std::max({small.room, kFewMessages, std::min(trusted, options_.window_frames)});
    large.room = std::max<uint64_t>(large.room, 1);
    return;
  }
  const bool is_turn_of_large = to.links % 2 != 0;
  const bool takes_large =
      waiting[index_of(Lane::large)] && (is_turn_of_large || !waiting[index_of(Lane::small)]);
  small.room = takes_large ? 0 : 1;
  large.room = takes_large ? 1 : 0;
}

// The peer has said what it has received, by lane.
void Sessions::take_position(Peer& from, const std::array<uint64_t, 2>& received) {
  bool any = false;
  for (size_t lane = 0; lane < 2; ++lane) {
    any |= received[lane] > from.last_arrived[lane];
    from.last_arrived[lane] = std::max(from.last_arrived[lane], received[lane]);
  }
  if (any) note_progress(from);
  if (!from.link.paced) return;
  if (from.unacked.empty()) return;
  const uint64_t first = from.unacked.front().sequence;
  for (const Lane lane : {Lane::small, Lane::large}) {
    Pace& pace = from.link.paces[index_of(lane)];
    const uint64_t last = from.last_arrived[index_of(lane)];
    for (pace.seen = std::max(pace.seen, first - 1); pace.seen < last; ++pace.seen) {
      Unacked& unacked = from.unacked.at(pace.seen + 1 - first);
      if (unacked.lane == lane && !unacked.replaced) note_arrival(from, unacked);
    }
  }
}

void Sessions::note_arrival(Peer& from, Unacked& unacked) const {
  if (std::exchange(unacked.arrived, true) || !unacked.sent || !unacked.is_told) return;
  if (!from.link.paced) return;
  from.link.proven = true;
  --from.link.awaited;
  uint64_t& room = from.link.paces[index_of(unacked.lane)].room;
  room = std::min(room + 2, options_.window_frames);
}

void Sessions::note_progress(Peer& from) {
  from.futile_links = 0;
  from.futile_bytes = 0;
  from.progressed = strand_.runtime().now();
}

// The link is lost, and something has not arrived, as far as we know.
void Sessions::note_futile_link(Peer& from) {
  if (from.unacked.empty()) return;
  ++from.futile_links;
  from.futile_bytes = std::max(from.futile_bytes, from.link.largest_sent);
}

// The tensors of a message that was replaced; null if it was not.
std::shared_ptr<CarriedTensors> Sessions::replace_if_changed(Peer& to, Unacked& unacked) {
  if (!unacked.carried || !unacked.carried->have_changed()) return nullptr;
  strand_.mark("a tensor changed before it was resent");
  return replace(to, unacked);
}

// By what is to go in its place.
std::shared_ptr<CarriedTensors> Sessions::replace(Peer& to, Unacked& unacked) {
  to.unacked_bytes -= unacked.body->bytes();
  std::shared_ptr<CarriedTensors> carried = std::move(unacked.carried);
  unacked.body = codec_.encode(carried->instead);
  unacked.replaced = true;
  if (!unacked.on_large_lane) unacked.lane = lane_of_bytes(unacked.body->bytes());
  to.unacked_bytes += unacked.body->bytes();
  return carried;
}

}  // namespace rehearsal
