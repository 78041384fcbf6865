#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/buffer_pool.h"
#include "net_fake/link.h"
#include "net_fake/link_model.h"
#include "net_fake/link_settings.h"
#include "net_fake/partitions.h"
#include "net_fake/rules.h"
#include "net_fake/witness.h"

namespace rehearsal::net_fake {

// What has happened on a network since its start.
struct NetworkStats {
  uint64_t messages = 0;      // frames with a message that were sent, each attempt
  uint64_t other_frames = 0;  // acknowledgements, heartbeats and their like
  uint64_t bytes = 0;         // of all frames
  uint64_t delivered = 0;     // frames that arrived
  uint64_t vanished = 0;      // sent on a link that was down or broken
  uint64_t connections = 0;   // made
  uint64_t refusals = 0;      // attempts that were refused
  uint64_t losses = 0;        // connections that broke
  uint64_t partitions = 0;    // that began
};

// All links between the workers of a cluster, the faults on them, and the rules made by hand.
// Single-threaded. Everything random comes from `decisions`, all time from `schedule`; both outlive
// the network, and so do the transports.
class Network final : private Occurrence {
 public:
  Network(Schedule& schedule, Decisions& decisions, std::vector<std::string> names,
          NetworkOptions options = {});
  ~Network() override;

  // How links behave. The last word about a direction wins. Unknown names throw
  // std::invalid_argument.
  [[nodiscard]] LinkSettings everywhere();
  [[nodiscard]] LinkSettings between(std::string_view one, std::string_view other);
  [[nodiscard]] LinkSettings from_to(std::string_view from, std::string_view to);

  // A rule sees every frame that is sent while its guard lives.
  [[nodiscard]] Rules::Guard rule(Rule rule) { return rules_.add(std::move(rule)); }

  // Partitions hold until they are healed.
  PartitionId split(const std::vector<std::string>& one, const std::vector<std::string>& other);
  PartitionId isolate(std::string_view worker);
  PartitionId block_one_way(std::string_view from, std::string_view to);
  void heal(PartitionId partition);
  void heal();  // all of them

  // The connection between two workers breaks now, if there is one.
  void reset(std::string_view one, std::string_view other);

  // Of all links that were not named: what a test says about a link wins over it.
  void set_default_link(const LinkModel& model) { options_.link = model; }

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
  [[nodiscard]] bool connected(std::string_view one, std::string_view other) const;

 private:
  friend class FakeTransport;
  friend class Link;

  [[nodiscard]] Link& link(WorkerId one, WorkerId other);
  [[nodiscard]] Link* existing_link(WorkerId one, WorkerId other) const;
  [[nodiscard]] const LinkModel& model(WorkerId from, WorkerId to) const;
  [[nodiscard]] LinkModel& own_model(WorkerId from, WorkerId to);
  [[nodiscard]] Action judge(const Direction& direction, const Frame& frame, Direction::Name name);
  [[nodiscard]] Frame carried(Frame frame, BufferPool& pool) const;
  [[nodiscard]] bool blocked(WorkerId from, WorkerId to) const {
    return partitions_.blocks(from, to);
  }
  void maybe_partition(const Direction& direction, Direction::Name name);
  PartitionId begin_partition(Partitions::Cut cut);
  void update_blocked();
  [[nodiscard]] std::vector<WorkerId> all_but(const std::vector<WorkerId>& workers) const;

  // A partition that chance began has come to its end.
  WorkerId worker(uint64_t) const override { return WorkerId{0}; }
  bool due(uint64_t ticket) const override { return partitions_.holds(PartitionId{ticket}); }
  void happen(uint64_t ticket) override { heal(PartitionId{ticket}); }

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
  Instant next_partition_{};  // chance begins none before
  std::map<std::pair<WorkerId, WorkerId>, std::unique_ptr<Link>> links_;  // the lower id first
  std::map<std::pair<WorkerId, WorkerId>, std::unique_ptr<LinkModel>> models_;
};

}  // namespace rehearsal::net_fake
