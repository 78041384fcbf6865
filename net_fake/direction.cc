#include "net_fake/direction.h"

#include <algorithm>
#include <utility>

namespace rehearsal::net_fake {
namespace {

// Frames without a message have no sequence number: they are counted apart.
constexpr uint64_t kUnsequenced = uint64_t{1} << 36;

Chain chain_of(Chain::Kind lane, LifeId from, LifeId to) {
  return {lane, from.worker.value, to.worker.value};
}

}  // namespace

Direction::Direction(Schedule& schedule, Decisions& decisions, LaneEnd& end,
                     const NetworkOptions& options, LifeId from, LifeId to)
    : schedule_(schedule),
      decisions_(decisions),
      options_(options),
      model_(&options.link),
      from_(from),
      to_(to),
      lanes_{FifoLane(schedule, end, chain_of(Chain::Kind::small_lane, from, to)),
             FifoLane(schedule, end, chain_of(Chain::Kind::large_lane, from, to))} {}

void Direction::share_bandwidth(Flows& flows) {
  FlowEnd& end = *this;
  flow_ = std::make_unique<Flow>(flows, end, from_.worker, to_.worker);
}

void Direction::set_lives(LifeId from, LifeId to) {
  from_ = from;
  to_ = to;
  highest_sequence_ = 0;
  unsequenced_ = 0;
  resent_.clear();
}

Direction::Name Direction::name_next(const Frame& frame) {
  if (frame.header.kind != FrameKind::message) return {kUnsequenced | ++unsequenced_, 0};
  const uint64_t sequence = frame.header.sequence;
  if (sequence > highest_sequence_) {
    highest_sequence_ = sequence;
    return {sequence, 0};
  }
  return {sequence, ++resent_[sequence]};
}

uint64_t Direction::wire_bytes(const Frame& frame) {
  return kWireHeaderBytes + frame.bytes() +
         (frame.body ? frame.body->segments.size() * kWireSegmentBytes : 0);
}

void Direction::send(Frame&& frame, Name name, uint64_t extra_retransmit_millionths) {
  const uint64_t bytes = wire_bytes(frame);
  FifoLane& lane = lanes_[static_cast<size_t>(lane_of(frame))];
  const Duration delay = travel_time(name, bytes, lane, extra_retransmit_millionths);
  count(bytes);
  if (shares(lane)) return flow_->push(std::move(frame), bytes, delay, model_->bytes_per_second);
  put(lane, std::move(frame), bytes, delay);
}

void Direction::send_after(Frame&& frame, Duration delay) {
  const uint64_t bytes = wire_bytes(frame);
  FifoLane& lane = lanes_[static_cast<size_t>(lane_of(frame))];
  count(bytes);
  if (shares(lane) && !flow_->empty())
    return flow_->push(std::move(frame), bytes, delay, model_->bytes_per_second);
  put(lane, std::move(frame), bytes, delay);
}

void Direction::count(uint64_t bytes) {
  carried_bytes_ += bytes;
  if (queued_bytes() > options_.high_water_bytes) above_high_water_ = true;
}

void Direction::put(FifoLane& lane, Frame&& frame, uint64_t bytes, Duration delay) {
  lane.push(std::move(frame), bytes, std::max(schedule_.now() + delay, earliest_));
}

void Direction::carried(Frame&& frame, uint64_t bytes, Duration delay) {
  put(lanes_[static_cast<size_t>(Lane::large)], std::move(frame), bytes, delay);
}

Duration Direction::travel_time(Name name, uint64_t bytes, FifoLane& lane,
                                uint64_t extra_retransmit_millionths) {
  const LinkModel& model = *model_;
  Duration delay = model.delay.min();
  if (!model.delay.is_constant())
    delay = model.delay.sample(
        decisions_.choose(key(DecisionKind::latency, name.number, name.attempt), Delay::kDraws));
  delay += extra_delay_;
  const uint64_t lossy = model.retransmit_millionths + extra_retransmit_millionths;
  if (lossy > 0) delay += retransmission(name, std::min(lossy, kMillion - 1));
  if (model.bytes_per_second > 0 && !shares(lane)) {
    const auto nanoseconds = static_cast<int64_t>(static_cast<unsigned __int128>(bytes) *
                                                  1'000'000'000 / model.bytes_per_second);
    lane.wire_free = std::max(lane.wire_free, schedule_.now()) + Duration(nanoseconds);
    delay += lane.wire_free - schedule_.now();
  }
  return delay;
}

// TCP sends a lost segment again after its timeout, which doubles with every further loss; what is
// behind it waits.
Duration Direction::retransmission(Name name, uint64_t millionths) {
  Duration delay{};
  for (uint32_t loss = 0; loss < options_.losses_max; ++loss) {
    const uint64_t try_number = name.attempt * options_.losses_max + loss;
    if (!happens(decisions_, key(DecisionKind::retransmission, name.number, try_number),
                 millionths))
      break;
    delay += options_.retransmission_timeout * (1 << loss);
  }
  return delay;
}

bool Direction::arrived(const Frame& frame) {
  carried_bytes_ -= wire_bytes(frame);
  if (!above_high_water_ || queued_bytes() >= options_.low_water_bytes) return false;
  above_high_water_ = false;
  return true;
}

uint64_t Direction::queued_bytes() const {
  return carried_bytes_ - std::min(carried_bytes_, options_.socket_buffer_bytes);
}

void Direction::lose_suffix(uint64_t connection) {
  for (uint64_t i = 0; i < lanes_.size(); ++i) {
    const uint64_t waiting = shares(lanes_[i]) ? flow_->size() : 0;
    const uint64_t size = lanes_[i].size() + waiting;
    if (size == 0) continue;
    const Key name = key(DecisionKind::lost_suffix, connection * lanes_.size() + i);
    const uint64_t lost = decisions_.choose(name, size + 1);
    const uint64_t unsent = std::min(lost, waiting);
    if (unsent > 0) carried_bytes_ -= flow_->drop_last(unsent);
    carried_bytes_ -= lanes_[i].drop_last(lost - unsent);
  }
}

void Direction::clear() {
  for (FifoLane& lane : lanes_) lane.clear();
  if (flow_) (void)flow_->drop_last(flow_->size());
  carried_bytes_ = 0;
  above_high_water_ = false;
}

bool Direction::set_blocked(bool blocked, uint64_t connection) {
  if (blocked == blocked_) return false;
  blocked_ = blocked;
  // The sender's next attempt to send again comes some time after the network has healed.
  Duration late{};
  if (!blocked && !empty())
    late =
        Delay::uniform({}, options_.retransmission_timeout * 2)
            .sample(decisions_.choose(key(DecisionKind::heal_latency, connection), Delay::kDraws));
  if (flow_) flow_->set_stalled(blocked);
  for (FifoLane& lane : lanes_) {
    if (blocked) {
      lane.stall();
    } else {
      lane.move_again(schedule_.now() + late);
    }
  }
  return true;
}

}  // namespace rehearsal::net_fake
