#include "net_fake/link.h"

#include <algorithm>
#include <string>
#include <utility>

#include "net_fake/corruption.h"
#include "net_fake/fake_transport.h"
#include "net_fake/network.h"

namespace rehearsal::net_fake {
namespace {

constexpr int kStepBits = 3;

// The weather breaks a link half as often at a frame that is sent again, each time: what has to be
// sent again gets through in the end, however much it is.
uint64_t worn_off(uint64_t millionths, uint64_t attempt) {
  return millionths >> std::min<uint64_t>(attempt, 32);
}

}  // namespace

Link::Link(Network& network, WorkerId first, WorkerId second)
    : network_(network),
      workers_{first, second},
      directions_{Direction(network.schedule_, network.decisions_, *this, network.options_,
                            {first, 0}, {second, 0}),
                  Direction(network.schedule_, network.decisions_, *this, network.options_,
                            {second, 0}, {first, 0})} {
  directions_[0].set_model(network.model(first, second));
  directions_[1].set_model(network.model(second, first));
  if (network.flows_)
    for (Direction& direction : directions_) direction.share_bandwidth(*network.flows_);
  update_ways();
}

Key Link::key(DecisionKind kind, uint64_t number) const { return directions_[0].key(kind, number); }

// Events.

uint64_t Link::ticket_of(Step step, int side, uint64_t serial) {
  return serial << (kStepBits + 1) | static_cast<uint64_t>(side) << kStepBits |
         static_cast<uint64_t>(step);
}

void Link::schedule(Step step, int side, uint64_t serial, Duration after) {
  network_.schedule_.at(network_.schedule_.now() + after, *this, ticket_of(step, side, serial));
}

WorkerId Link::worker(uint64_t ticket) const { return workers_[ticket >> kStepBits & 1]; }

Chain Link::chain(uint64_t ticket) const {
  const Step step = static_cast<Step>(ticket & ((1 << kStepBits) - 1));
  const size_t side = ticket >> kStepBits & 1;
  if (step != Step::attempt && step != Step::give_up)
    return {step == Step::ending && ends_[side].ending && ends_[side].ending->closed_by_peer
                ? Chain::Kind::closing
                : Chain::Kind::news,
            workers_[side].value, workers_[1 - side].value};
  return {Chain::Kind::connecting, std::min(workers_[0].value, workers_[1].value),
          std::max(workers_[0].value, workers_[1].value)};
}

bool Link::due(uint64_t ticket) const {
  const End& end = ends_[ticket >> kStepBits & 1];
  const uint64_t serial = ticket >> (kStepBits + 1);
  switch (static_cast<Step>(ticket & ((1 << kStepBits) - 1))) {
    case Step::attempt:
      return attempt_pending_ && serial == attempt_serial_;
    case Step::up:
      return end.up_pending && serial == connection_;
    case Step::ending:
      return end.ending.has_value() && serial == end.ending_serial;
    case Step::give_up:
      return serial == give_up_serial_ && (whole_ || ends_[0].ending || ends_[1].ending);
    case Step::drained:
      return whole_ && end.connection == serial;
  }
  return false;
}

void Link::happen(uint64_t ticket) {
  const int side = static_cast<int>(ticket >> kStepBits & 1);
  switch (static_cast<Step>(ticket & ((1 << kStepBits) - 1))) {
    case Step::attempt:
      return attempt();
    case Step::up:
      return tell_up(side);
    case Step::ending:
      return try_ending(side);
    case Step::give_up:
      return give_up();
    case Step::drained:
      return ends_[at(side)].transport->report_drained(workers_[at(1 - side)]);
  }
}

// Sending.

// A frame leaves whole, once it is filled.
void Link::send(int side, Frame&& frame) {
  std::deque<Frame>& held = ends_[at(side)].held[static_cast<size_t>(lane_of(frame))];
  const bool is_filled = frame.body == nullptr || frame.body->is_filled();
  if ((is_filled && held.empty()) || !stands_for(ends_[at(side)]))
    return hand_over(side, std::move(frame));
  held.push_back(std::move(frame));
}

void Link::send_on(int side) {
  for (std::deque<Frame>& held : ends_[at(side)].held) {
    while (!held.empty() && (held.front().body == nullptr || held.front().body->is_filled())) {
      Frame frame = std::move(held.front());
      held.pop_front();
      hand_over(side, std::move(frame));
    }
  }
}

void Link::hand_over(int side, Frame&& frame) {
  if (frame.body != nullptr) check_fits_frame(*frame.body);
  NetworkStats& stats = network_.stats_;
  End& end = ends_[at(side)];
  Direction& direction = out_of(side);
  const Direction::Name name = direction.name_next(frame);
  const bool message = frame.header.kind == FrameKind::message;
  ++(message ? stats.messages : stats.other_frames);
  if (!stands_for(end)) {
    ++stats.vanished;
    return;
  }
  stats.bytes += frame.bytes();
  if (network_.witness_ != nullptr)
    network_.witness_->on_sent(direction.from(), direction.to(), frame, name.attempt);
  Carried& carried = carried_[at(side)];
  const Action action = network_.judge(direction, frame, name, carried);
  if (action.is_cut())
    return break_connection(lost_error(side, "connection reset"), Cause::reset, {});
  if (has_lived(side, frame.header.kind))
    return break_connection(lost_error(side, "connection reset"), Cause::reset, {});
  ++carried.frames;
  carried.messages += message ? 1 : 0;
  carried.bytes += frame.bytes();
  frame = network_.carried(std::move(frame), ends_[at(1 - side)].transport->pool());
  if (!action.is_pass()) return direction.send_after(std::move(frame), action.delay());
  const Weather& weather = network_.weather_;
  const uint64_t cutting =
      direction.model().cut_millionths + worn_off(weather.cut_millionths, name.attempt);
  if (message &&
      happens(network_.decisions_, direction.key(DecisionKind::cut, name.number, name.attempt),
              std::min(cutting, kMillion)))
    return break_connection(lost_error(side, "connection reset"), Cause::reset, {});
  if (message && (direction.model().corrupt_millionths | weather.corrupt_millionths) > 0 &&
      corrupts(direction, frame, name))
    return break_connection(lost_error(side, "bad checksum"), Cause::reset, {});
  if (message && (weather.partition_millionths | weather.clog_millionths) > 0)
    network_.consider_trouble(direction, name);
  direction.send(std::move(frame), name, weather.retransmit_millionths);
}

// Whether the connection has carried as much as it will, and `next` breaks it. None is flaky in
// calm weather.
bool Link::has_lived(int side, FrameKind next) const {
  const Weather& weather = network_.weather_;
  const Carried& carried = carried_[at(side)];
  if (is_flaky_ && weather.life_frames > 0 && carried.frames >= weather.life_frames) return true;
  const uint64_t asked_for = directions_[at(side)].model().life_messages;
  const uint64_t by_chance = is_flaky_ ? weather.life_messages : 0;
  const uint64_t limit = asked_for > 0 ? asked_for : by_chance;
  return next == FrameKind::message && limit > 0 && carried.messages >= limit;
}

// A bit of the frame flips, and its receiver finds that it has.
bool Link::corrupts(const Direction& direction, const Frame& frame, Direction::Name name) {
  const uint64_t corrupting = direction.model().corrupt_millionths +
                              worn_off(network_.weather_.corrupt_millionths, name.attempt);
  if (!happens(network_.decisions_,
               direction.key(DecisionKind::corruption, name.number, name.attempt),
               std::min(corrupting, kMillion)))
    return false;
  const Key which = direction.key(DecisionKind::flipped_bit, name.number, name.attempt);
  const uint64_t bit = network_.decisions_.choose(which, wire_bits(frame));
  REHEARSAL_CHECK(!check_with_flipped_bit(frame, bit).ok(), "a flipped bit was not noticed", bit);
  ++network_.stats_.corrupted;
  return true;
}

uint64_t Link::queued_bytes(int side) {
  if (!whole_) return 0;
  uint64_t bytes = out_of(side).queued_bytes();
  for (const std::deque<Frame>& held : ends_[at(side)].held)
    for (const Frame& frame : held) bytes += frame.bytes();
  return bytes;
}

void Link::arrive(FifoLane& lane, Frame&& frame) {
  const int side = side_of(lane.worker(0));
  Direction& in = out_of(1 - side);
  End& end = ends_[at(side)];
  ++network_.stats_.delivered;
  if (in.arrived(frame) && whole_ && ends_[at(1 - side)].connection == connection_)
    schedule(Step::drained, 1 - side, connection_, {});
  if (end.connection == connection_ && network_.witness_ != nullptr)
    network_.witness_->on_arrived(in.from(), in.to(), frame);
  if (end.connection == connection_)
    end.transport->report_frame(workers_[at(1 - side)], std::move(frame));
  if (end.ending && in.empty()) schedule(Step::ending, side, ++end.ending_serial, {});
}

// Breaking.

void Link::reset(std::string_view why) {
  if (whole_) break_connection(lost_error(0, why), Cause::reset, {});
}

// Any suffix of what is on its way is gone. Each end that lives is told, unless chance has it that
// one does not hear of it: that one believes in the connection until its own clock runs out or the
// other end connects again.
void Link::break_connection(const Error& why, Cause cause, std::optional<int> dead_side) {
  REHEARSAL_CHECK(whole_);
  whole_ = false;
  if (network_.witness_ != nullptr)
    network_.witness_->on_broken(directions_[0].from(), directions_[1].from(), why.text);
  ++network_.stats_.losses;
  const uint64_t number = connection_ - connections_before_;
  for (const int side : {0, 1}) {
    if (dead_side && side != *dead_side)
      out_of(side).clear();  // Nobody is there to receive it.
    else
      out_of(side).lose_suffix(number);
  }
  const bool silent = happens(network_.decisions_, key(DecisionKind::silence, number),
                              network_.weather_.silence_millionths);
  const int silent_side = dead_side ? 1 - *dead_side : static_cast<int>(number & 1);
  for (const int side : {0, 1}) {
    if (side == dead_side) continue;
    if (ends_[at(side)].connection == connection_) {
      set_ending(side, ending_after_break(side, why, cause, silent && side == silent_side));
    } else {  // It was never told that the connection stood.
      ends_[at(side)].up_pending = false;
    }
  }
  consider_attempt(/*first=*/false);
}

Link::Ending Link::ending_after_break(int side, Error why, Cause cause, bool unheard) {
  why.worker = network_.names_[workers_[at(1 - side)].value];
  const Instant now = network_.schedule_.now();
  if (cause == Cause::timed_out) return {.why = std::move(why), .local = true, .not_before = now};
  if (unheard)
    return {
        .why = std::move(why), .local = true, .not_before = now + network_.options_.user_timeout};
  const Direction& in = out_of(1 - side);
  const Key name = in.key(DecisionKind::notice_latency, connection_ - connections_before_);
  const uint64_t draw = network_.decisions_.choose(name, Delay::kDraws);
  return {.why = std::move(why), .not_before = now + in.model().delay.sample(draw)};
}

// A partition has lasted for longer than a connection lives without an answer.
void Link::give_up() {
  if (whole_)
    return break_connection(lost_error(0, "no answer for too long"), Cause::timed_out, {});
  for (const int side : {0, 1}) {
    if (!ends_[at(side)].ending || ends_[at(side)].ending->local) continue;
    set_ending(side, {.why = lost_error(1 - side, "no answer for too long"),
                      .local = true,
                      .not_before = network_.schedule_.now()});
  }
}

void Link::crash(int side) {
  const bool was_whole = whole_;
  if (was_whole) break_connection(lost_error(side, "connection reset"), Cause::reset, side);
  const Key machine{.kind = DecisionKind::vacancy, .subject = out_of(side).from()};
  vacant_[at(side)] = network_.options_.dead_refuse && network_.decisions_.choose(machine, 2) == 1;
  ends_[at(side)] = End{};
  out_of(1 - side).clear();
  attempt_pending_ = false;
  consider_attempt(/*first=*/false);
}

void Link::stop(int side) {
  end_in_order(side, lost_error(side, "end of stream"), /*closing=*/false);
  vacant_[at(side)] = network_.options_.dead_refuse;
  ends_[at(side)] = End{};
  attempt_pending_ = false;
  consider_attempt(/*first=*/false);
}

void Link::close(int side, const Error& reason) {
  End& end = ends_[at(side)];
  if (end.transport == nullptr) return;
  end_in_order(side, reason, /*closing=*/true);
  forget(side);
  end.intent = LinkIntent::closed;
  end.reason = reason;
  end.closed_to = end.known;
  if (!whole_) consider_attempt(/*first=*/false);  // The other one learns of it when it tries.
}

// `side` hears nothing any more; the other end is told behind all that was sent to it.
void Link::end_in_order(int side, const Error& reason, bool closing) {
  out_of(1 - side).clear();
  End& other = ends_[at(1 - side)];
  if (!whole_) return;
  whole_ = false;
  other.up_pending = false;
  if (other.connection != connection_) return;
  set_ending(1 - side,
             {.why = reason, .closed_by_peer = closing, .not_before = network_.schedule_.now()});
}

void Link::set_ending(int side, Ending ending) {
  End& end = ends_[at(side)];
  const Instant when = ending.not_before;
  const Direction& in = out_of(1 - side);
  const bool waits = !ending.local && (!in.empty() || in.blocked());
  end.ending = std::move(ending);
  ++end.ending_serial;
  if (!waits) schedule(Step::ending, side, end.ending_serial, when - network_.schedule_.now());
}

// Tells the end if nothing that must come before is still on its way: the last frame, or the end of
// a partition, brings us here again.
void Link::try_ending(int side) {
  End& end = ends_[at(side)];
  const Direction& in = out_of(1 - side);
  if (!end.ending->local) {
    if (!in.empty() || in.blocked()) return;
    const Duration early = end.ending->not_before - network_.schedule_.now();
    if (early.count() > 0) return schedule(Step::ending, side, ++end.ending_serial, early);
  }
  tell_lost(side);
}

void Link::tell_lost(int side) {
  End& end = ends_[at(side)];
  const Ending ending = std::move(*end.ending);
  forget(side);
  if (ending.closed_by_peer) end.intent = LinkIntent::dismissed;
  end.transport->report_lost(workers_[at(1 - side)], ending.why, ending.closed_by_peer);
  consider_attempt(/*first=*/false);
}

// Nothing of the connection that `side` believes in reaches it any more.
void Link::forget(int side) {
  End& end = ends_[at(side)];
  end.connection = 0;
  end.up_pending = false;
  end.ending.reset();
  end.held = {};
  if (!whole_) out_of(1 - side).clear();
}

Error Link::lost_error(int side, std::string_view why) const {
  return {.kind = ErrorKind::peer_lost,
          .text = std::string(why),
          .worker = network_.names_[workers_[at(side)].value]};
}

void Link::update_ways() {
  bool changed = false;
  bool stopped = false;
  for (const int side : {0, 1}) {
    const WayState way = network_.way(workers_[at(side)], workers_[at(1 - side)]);
    changed |=
        out_of(side).set_blocked(way.stopped || way.jammed, connection_ - connections_before_);
    out_of(side).set_extra_delay(way.extra);
    stopped |= way.stopped;
  }
  if (stopped != stopped_) {
    stopped_ = stopped;
    ++give_up_serial_;
    if (stopped) schedule(Step::give_up, 0, give_up_serial_, network_.options_.user_timeout);
  }
  if (!changed || directions_[0].blocked() || directions_[1].blocked()) return;
  if (std::exchange(attempt_blocked_, false)) consider_attempt(/*first=*/false);
  for (const int side : {0, 1})
    if (ends_[at(side)].ending) schedule(Step::ending, side, ++ends_[at(side)].ending_serial, {});
}

}  // namespace rehearsal::net_fake
