#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/buffer_pool.h"
#include "net_fake/flows.h"
#include "net_fake/link.h"
#include "net_fake/link_model.h"
#include "net_fake/link_settings.h"
#include "net_fake/network_stats.h"
#include "net_fake/partitions.h"
#include "net_fake/rules.h"
#include "net_fake/trouble.h"
#include "net_fake/witness.h"

namespace rehearsal::net_fake {

// All links between the workers of a cluster, the faults on them, and the rules made by hand.
// Single-threaded. Everything random comes from `decisions`, all time from `schedule`; both outlive
// the network, and so do the transports.
class Network {
 public:
  Network(Schedule& schedule, Decisions& decisions, std::vector<std::string> names,
          NetworkOptions options = {});
  ~Network();

  // How links behave. The last word about a direction wins. Unknown names throw
  // std::invalid_argument.
  [[nodiscard]] LinkSettings everywhere();
  [[nodiscard]] LinkSettings between(std::string_view one, std::string_view other);
  [[nodiscard]] LinkSettings from_to(std::string_view from, std::string_view to);

  // A rule sees every frame that is sent while its guard lives.
  [[nodiscard]] Rules::Guard rule(Rule rule) {
    told_by_hand_ = true;
    return rules_.add(std::move(rule));
  }

  // Partitions hold until they are healed. A worker on neither side of a split reaches both: a
  // bridge.
  PartitionId split(const std::vector<std::string>& one, const std::vector<std::string>& other);
  PartitionId isolate(std::string_view worker);
  PartitionId block_one_way(std::string_view from, std::string_view to);
  // Each worker reaches the next one and the one before.
  PartitionId ring(const std::vector<std::string>& order);
  // The link of two workers: nothing passes, but no connection breaks; or all is late by `extra`.
  PartitionId jam(std::string_view one, std::string_view other);
  PartitionId slow(std::string_view one, std::string_view other, Duration extra);
  // Jams all links of these workers, one worker after another, and frees them within `length` in an
  // order that is drawn.
  void swizzle(const std::vector<std::string>& workers, Duration length);
  void heal(PartitionId partition);
  void heal();  // all of them

  // The connection between two workers breaks now, if there is one.
  void reset(std::string_view one, std::string_view other);

  // Of all links that were not named: what a test says about a link wins over it.
  void set_default_link(const LinkModel& model) { options_.link = model; }

  // The bytes that every worker's machine can send, and receive, in a second; large frames share
  // them. Before the first link is made.
  void share_bandwidth(uint64_t worker_bytes_per_second);

  void set_weather(const Weather& weather) { weather_ = weather; }
  [[nodiscard]] const Weather& weather() const { return weather_; }

  // Reads the message type of a frame for FrameView; without it the type is 0.
  void set_inspector(std::function<uint32_t(const Frame&)> inspector) {
    inspector_ = std::move(inspector);
  }

  // Null: nobody watches. It outlives the network.
  void set_witness(Witness* witness) { witness_ = witness; }

  [[nodiscard]] const NetworkStats& stats() const { return stats_; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] WorkerId worker_named(std::string_view name) const;
  // Whether anybody has said by name how links behave, who is cut off or what a rule does: then a
  // worker may be silent for longer than any fault of the weather lasts.
  [[nodiscard]] bool told_by_hand() const { return told_by_hand_; }
  [[nodiscard]] bool connected(std::string_view one, std::string_view other) const;

 private:
  friend class FakeTransport;
  friend class Link;

  [[nodiscard]] Link& link(WorkerId one, WorkerId other);
  [[nodiscard]] Link* existing_link(WorkerId one, WorkerId other) const;
  [[nodiscard]] const LinkModel& model(WorkerId from, WorkerId to) const;
  [[nodiscard]] LinkModel& own_model(WorkerId from, WorkerId to);
  [[nodiscard]] Action judge(const Direction& direction, const Frame& frame, Direction::Name name,
                             const Carried& carried);
  [[nodiscard]] Frame carried(Frame&& frame, BufferPool& pool) const;
  [[nodiscard]] WayState way(WorkerId from, WorkerId to) const {
    return partitions_.state(from, to);
  }
  void consider_trouble(const Direction& direction, Direction::Name name) {
    trouble_.consider(weather_, direction.key(DecisionKind::partition, name.number, name.attempt));
  }
  PartitionId begin_partition(Partition partition);
  [[nodiscard]] Partition pair(std::string_view from, std::string_view to) const;
  void update_ways();

  Schedule& schedule_;
  Decisions& decisions_;
  const std::vector<std::string> names_;
  NetworkOptions options_;
  Weather weather_;
  Rules rules_;
  Partitions partitions_;
  std::function<uint32_t(const Frame&)> inspector_;
  Witness* witness_ = nullptr;
  NetworkStats stats_;
  bool told_by_hand_ = false;
  Trouble trouble_;
  std::unique_ptr<Flows> flows_;  // null: every link has its bandwidth for itself
  std::map<std::pair<WorkerId, WorkerId>, std::unique_ptr<Link>> links_;  // the lower id first
  std::map<std::pair<WorkerId, WorkerId>, std::unique_ptr<LinkModel>> models_;
};

}  // namespace rehearsal::net_fake
