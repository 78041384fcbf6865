// The link's part of connecting: attempts, refusals, and what a new connection begins with.
#include <algorithm>
#include <utility>

#include "net_fake/fake_transport.h"
#include "net_fake/link.h"
#include "net_fake/network.h"

namespace rehearsal::net_fake {
namespace {

// For how long the end of a link knocks at a port that refuses.
constexpr Duration kKnocking = std::chrono::seconds(10);

}  // namespace

void Link::attach(int side, FakeTransport& transport) {
  End& end = ends_[at(side)];
  REHEARSAL_CHECK(end.transport == nullptr, workers_[at(side)]);
  end.transport = &transport;
  const End& other = ends_[at(1 - side)];
  const LifeId here = transport.life();
  const LifeId there =
      other.transport != nullptr ? other.transport->life() : directions_[at(1 - side)].from();
  out_of(side).set_lives(here, there);
  out_of(1 - side).set_lives(there, here);
  connections_before_ = connection_;
  attempts_ = 0;
  refusals_ = 0;
  vacant_[at(side)] = false;
}

void Link::open(int side) {
  End& end = ends_[at(side)];
  if (end.intent == LinkIntent::open) return;
  end.intent = LinkIntent::open;
  consider_attempt(/*first=*/true);
}

// Plans an attempt to connect if anybody wants one and both are there to take part.
void Link::consider_attempt(bool first) {
  if (attempt_pending_ || !(can_connect() || knocker())) return;
  plan_attempt(first ? Duration{} : back_off(failures_));
}

void Link::plan_attempt(Duration waiting) {
  const Delay& model = directions_[0].model().connect;
  const uint64_t draw =
      network_.decisions_.choose(key(DecisionKind::connect_latency, attempts_), Delay::kDraws);
  attempt_pending_ = true;
  schedule(Step::attempt, 0, ++attempt_serial_, waiting + model.sample(draw));
}

bool Link::can_connect() const {
  if (whole_ || ends_[0].transport == nullptr || ends_[1].transport == nullptr) return false;
  if (ends_[0].intent != LinkIntent::open && ends_[1].intent != LinkIntent::open) return false;
  return ends_[0].intent != LinkIntent::none && ends_[1].intent != LinkIntent::none;
}

bool Link::refuses(int side) {
  End& end = ends_[at(side)];
  if (end.intent != LinkIntent::closed) return false;
  const Incarnation who = ends_[at(1 - side)].transport->hello().incarnation;
  if (end.closed_to.value == 0) end.closed_to = who;
  return end.closed_to == who;
}

void Link::attempt() {
  attempt_pending_ = false;
  const std::optional<int> alone = knocker();
  if (!alone && !can_connect()) return;
  if (directions_[0].blocked() || directions_[1].blocked()) {
    attempt_blocked_ = true;
    refusals_ = 0;
    return;
  }
  if (alone) {
    tell_nobody_there(*alone);
    // An end that has drawn no conclusion by then never will.
    if (network_.schedule_.now() - refused_since_ < kKnocking) consider_attempt(/*first=*/false);
    return;
  }
  if (refuses(0)) return tell_refusal(1);
  if (refuses(1)) return tell_refusal(0);
  const uint64_t number = attempts_++;
  if (refused_by_chance(number)) {
    const bool first_dials = ends_[0].intent == LinkIntent::open && ends_[0].connection == 0;
    tell_nobody_there(first_dials ? 0 : 1);
    return consider_attempt(/*first=*/false);
  }
  if (hangs(number)) {
    refusals_ = 0;
    ++failures_;
    return plan_attempt(network_.options_.connect_timeout + back_off(failures_));
  }
  connect();
}

// The end that tries to reach a life that has ended, where its port refuses connections.
std::optional<int> Link::knocker() const {
  for (const int side : {0, 1}) {
    const End& end = ends_[at(side)];
    const bool tries = end.transport != nullptr && end.intent == LinkIntent::open &&
                       end.connection == 0 && !end.up_pending && !whole_;
    if (tries && vacant_[at(1 - side)] && ends_[at(1 - side)].transport == nullptr) return side;
  }
  return std::nullopt;
}

// A worker that lives does not refuse for so long that it is taken for dead.
bool Link::refused_by_chance(uint64_t attempt) {
  const bool long_enough =
      refusals_ > 0 && network_.schedule_.now() - refused_since_ >= network_.options_.refusals_max;
  const uint64_t refusing =
      std::max(directions_[0].model().refuse_millionths, directions_[1].model().refuse_millionths) +
      (long_enough ? 0 : network_.weather_.refuse_millionths);
  return happens(network_.decisions_, key(DecisionKind::refusal, attempt),
                 std::min(refusing, kMillion));
}

// The attempt of `side` was refused: nobody listens at the other end, as far as it can see.
void Link::tell_nobody_there(int side) {
  const Instant now = network_.schedule_.now();
  ++network_.stats_.refusals;
  ++failures_;
  if (refusals_++ == 0) refused_since_ = now;
  const Refusals refusals{refusals_, now - refused_since_};
  if (ends_[at(side)].intent == LinkIntent::open && ends_[at(side)].connection == 0)
    ends_[at(side)].transport->report_refused(workers_[at(1 - side)], refusals);
}

// Nobody answers, and who tries gives up after a time. The next attempt is answered.
bool Link::hangs(uint64_t attempt) {
  const uint64_t hanging =
      std::max(directions_[0].model().hang_millionths, directions_[1].model().hang_millionths) +
      network_.weather_.hang_millionths;
  hung_ = !hung_ && happens(network_.decisions_, key(DecisionKind::hang, attempt),
                            std::min(hanging, kMillion));
  if (hung_) ++network_.stats_.hangs;
  return hung_;
}

// `side` wanted a connection; the other end has closed for good.
void Link::tell_refusal(int side) {
  End& end = ends_[at(side)];
  if (end.intent != LinkIntent::open) return;
  ++network_.stats_.refusals;
  forget(side);
  end.intent = LinkIntent::dismissed;
  end.transport->report_lost(workers_[at(1 - side)], ends_[at(1 - side)].reason,
                             /*closed_by_peer=*/true);
}

void Link::connect() {
  ++network_.stats_.connections;
  ++connection_;
  whole_ = true;
  failures_ = 0;
  refusals_ = 0;
  carried_ = {};
  draw_life();
  for (Direction& direction : directions_) direction.clear();
  const uint64_t number = connection_ - connections_before_;
  for (const int side : {0, 1}) {
    End& end = ends_[at(side)];
    end.intent = LinkIntent::open;
    end.ending.reset();
    end.held = {};
    end.up_pending = true;
    end.peer_hello = ends_[at(1 - side)].transport->hello_to(workers_[at(side)]);
    // The one that was connected to knows at once; the other one when the answer arrives.
    const Key name = out_of(1 - side).key(DecisionKind::connect_latency, ~number);
    const Duration late = side == 0 ? Duration{}
                                    : out_of(1 - side).model().connect.sample(
                                          network_.decisions_.choose(name, Delay::kDraws));
    out_of(1 - side).set_earliest(network_.schedule_.now() + late);
    schedule(Step::up, side, connection_, late);
  }
}

// Once for each pair of lives: a link that is flaky stays so as long as the weather does.
void Link::draw_life() {
  const Weather& weather = network_.weather_;
  is_flaky_ = happens(network_.decisions_, key(DecisionKind::short_life, 0),
                      weather.life_messages + weather.life_frames > 0 ? kMillion / 2 : 0);
}

void Link::tell_up(int side) {
  End& end = ends_[at(side)];
  end.up_pending = false;
  end.connection = connection_;
  end.known = end.peer_hello.incarnation;
  end.transport->report_up(std::move(end.peer_hello));
}

Duration Link::back_off(uint64_t failures) {
  const NetworkOptions& options = network_.options_;
  const Duration base = options.back_off_min * (uint64_t{1} << std::min<uint64_t>(failures, 16));
  const Key name = key(DecisionKind::back_off, attempts_);
  const uint64_t draw = network_.decisions_.choose(name, Delay::kDraws);
  return Delay::uniform({}, std::min(base, options.back_off_max)).sample(draw) +
         options.back_off_min;
}

}  // namespace rehearsal::net_fake
