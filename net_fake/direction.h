#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>

#include "net_fake/decisions.h"
#include "net_fake/fifo_lane.h"
#include "net_fake/flows.h"
#include "net_fake/link_model.h"

namespace rehearsal::net_fake {

// One way of a link, from one life of a worker to one life of another: names its frames, and
// decides when each arrives.
class Direction final : private FlowEnd {
 public:
  Direction(Schedule& schedule, Decisions& decisions, LaneEnd& end, const NetworkOptions& options,
            LifeId from, LifeId to);

  // From now on large frames share the machines' bandwidth. Before the first frame.
  void share_bandwidth(Flows& flows);

  // The network's model of this direction; read for each frame.
  void set_model(const LinkModel& model) { model_ = &model; }
  [[nodiscard]] const LinkModel& model() const { return *model_; }

  // A new life of an end numbers its frames anew.
  void set_lives(LifeId from, LifeId to);

  // How a frame is named in decisions: the session's number of its message and which attempt this
  // is. Each call counts as an attempt.
  struct Name {
    uint64_t number = 0;
    uint64_t attempt = 0;
  };
  [[nodiscard]] Name name_next(const Frame& frame);
  [[nodiscard]] Key key(DecisionKind kind, uint64_t number, uint64_t occurrence = 0) const {
    return {
        .kind = kind, .subject = from_, .object = to_, .number = number, .occurrence = occurrence};
  }

  // Sends the frame on its way. `extra_retransmit_millionths` adds to the model's probability.
  void send(Frame&& frame, Name name, uint64_t extra_retransmit_millionths);
  void send_after(Frame&& frame, Duration delay);

  // A frame has arrived. True if the sender must be told that its queue has drained.
  [[nodiscard]] bool arrived(const Frame& frame);

  // The link was lost: what is still on its way arrives, but for a drawn suffix of each lane.
  void lose_suffix(uint64_t connection);
  void clear();

  // Nothing arrives before this: the receiver has not been told of the connection.
  void set_earliest(Instant earliest) { earliest_ = earliest; }

  [[nodiscard]] bool empty() const {
    return lanes_[0].empty() && lanes_[1].empty() && (flow_ == nullptr || flow_->empty());
  }
  [[nodiscard]] uint64_t queued_bytes() const;

  // Takes the state that the partitions give. Returns whether it changed.
  bool set_blocked(bool blocked, uint64_t connection);
  [[nodiscard]] bool blocked() const { return blocked_; }
  // From now on everything travels for so much longer.
  void set_extra_delay(Duration extra) { extra_delay_ = extra; }

  [[nodiscard]] LifeId from() const { return from_; }
  [[nodiscard]] LifeId to() const { return to_; }

 private:
  [[nodiscard]] Duration travel_time(Name name, uint64_t bytes, FifoLane& lane,
                                     uint64_t extra_retransmit_millionths);
  [[nodiscard]] Duration retransmission(Name name, uint64_t millionths);
  void count(uint64_t bytes);
  void put(FifoLane& lane, Frame&& frame, uint64_t bytes, Duration delay);
  void carried(Frame&& frame, uint64_t bytes, Duration delay) override;
  [[nodiscard]] bool shares(const FifoLane& lane) const {
    return flow_ != nullptr && &lane == &lanes_[static_cast<size_t>(Lane::large)];
  }
  [[nodiscard]] static uint64_t wire_bytes(const Frame& frame);

  Schedule& schedule_;
  Decisions& decisions_;
  const NetworkOptions& options_;
  const LinkModel* model_;
  LifeId from_;
  LifeId to_;
  std::array<FifoLane, 2> lanes_;
  std::unique_ptr<Flow> flow_;  // into the large lane; null: bandwidth is the link's alone
  uint64_t highest_sequence_ = 0;
  uint64_t unsequenced_ = 0;
  std::map<uint64_t, uint64_t> resent_;  // how often, by sequence number
  uint64_t carried_bytes_ = 0;
  bool above_high_water_ = false;
  bool blocked_ = false;
  Duration extra_delay_{};
  Instant earliest_{};
};

}  // namespace rehearsal::net_fake
