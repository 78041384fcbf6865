#include "net_fake/network.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "net_fake/fake_transport.h"
#include "net_fake/snapshot.h"

namespace rehearsal::net_fake {

Network::Network(Schedule& schedule, Decisions& decisions, std::vector<std::string> names,
                 NetworkOptions options)
    : schedule_(schedule),
      decisions_(decisions),
      names_(std::move(names)),
      options_(std::move(options)),
      trouble_({.schedule = schedule,
                .decisions = decisions,
                .partitions = partitions_,
                .stats = stats_,
                .on_change = [this] { update_ways(); }},
               static_cast<uint32_t>(names_.size())) {
  share_bandwidth(options_.worker_bytes_per_second);
}

Network::~Network() = default;

WorkerId Network::worker_named(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end())
    throw std::invalid_argument("no worker is named '" + std::string(name) + "'");
  return WorkerId{static_cast<uint32_t>(found - names_.begin())};
}

// How links behave.

LinkSettings Network::everywhere() {
  told_by_hand_ = true;
  std::vector<LinkModel*> models{&options_.link};
  for (const auto& [direction, model] : models_) models.push_back(model.get());
  return LinkSettings(std::move(models));
}

LinkSettings Network::between(std::string_view one, std::string_view other) {
  const WorkerId first = worker_named(one);
  const WorkerId second = worker_named(other);
  return LinkSettings({&own_model(first, second), &own_model(second, first)});
}

LinkSettings Network::from_to(std::string_view from, std::string_view to) {
  return LinkSettings({&own_model(worker_named(from), worker_named(to))});
}

const LinkModel& Network::model(WorkerId from, WorkerId to) const {
  const auto found = models_.find({from, to});
  return found == models_.end() ? options_.link : *found->second;
}

LinkModel& Network::own_model(WorkerId from, WorkerId to) {
  told_by_hand_ = true;
  auto& model = models_[{from, to}];
  if (!model) {
    model = std::make_unique<LinkModel>(options_.link);
    if (Link* link = existing_link(from, to)) link->out_of(link->side_of(from)).set_model(*model);
  }
  return *model;
}

Link* Network::existing_link(WorkerId one, WorkerId other) const {
  const auto found = links_.find(std::minmax(one, other));
  return found == links_.end() ? nullptr : found->second.get();
}

Link& Network::link(WorkerId one, WorkerId other) {
  REHEARSAL_CHECK(std::max(one, other).value < names_.size(), one, other);
  auto& link = links_[std::minmax(one, other)];
  if (!link) link = std::make_unique<Link>(*this, std::min(one, other), std::max(one, other));
  return *link;
}

void Network::reset(std::string_view one, std::string_view other) {
  told_by_hand_ = true;
  if (Link* link = existing_link(worker_named(one), worker_named(other)))
    link->reset("connection reset");
}

bool Network::connected(std::string_view one, std::string_view other) const {
  const Link* link = existing_link(worker_named(one), worker_named(other));
  return link != nullptr && link->standing();
}

void Network::share_bandwidth(uint64_t worker_bytes_per_second) {
  REHEARSAL_CHECK(links_.empty(), "there are links already");
  flows_ = worker_bytes_per_second > 0 ? std::make_unique<Flows>(schedule_, worker_bytes_per_second)
                                       : nullptr;
}

// Frames.

Action Network::judge(const Direction& direction, const Frame& frame, Direction::Name name,
                      const Carried& carried) {
  if (rules_.empty()) return Action::pass();
  return rules_.judge({.from = direction.from().worker,
                       .to = direction.to().worker,
                       .lane = lane_of(frame),
                       .kind = frame.header.kind,
                       .number = frame.header.sequence,
                       .attempt = name.attempt,
                       .bytes = frame.bytes(),
                       .message_type = inspector_ ? inspector_(frame) : 0,
                       .frames_before = carried.frames,
                       .bytes_before = carried.bytes});
}

Frame Network::carried(Frame&& frame, BufferPool& pool) const {
  if (options_.through_bytes) return snapshot_through_bytes(frame, pool);
  return snapshot(std::move(frame), pool);
}

// Partitions.

PartitionId Network::split(const std::vector<std::string>& one,
                           const std::vector<std::string>& other) {
  Partition partition{.places = std::vector<uint32_t>(names_.size(), Partition::kNowhere)};
  for (const std::string& name : one) partition.places[worker_named(name).value] = 0;
  for (const std::string& name : other) partition.places[worker_named(name).value] = 1;
  return begin_partition(std::move(partition));
}

PartitionId Network::isolate(std::string_view worker) {
  Partition partition{.places = std::vector<uint32_t>(names_.size(), 1)};
  partition.places[worker_named(worker).value] = 0;
  return begin_partition(std::move(partition));
}

PartitionId Network::block_one_way(std::string_view from, std::string_view to) {
  Partition partition = pair(from, to);
  partition.shape = Partition::Shape::one_way;
  return begin_partition(std::move(partition));
}

PartitionId Network::ring(const std::vector<std::string>& order) {
  Partition partition{.shape = Partition::Shape::ring,
                      .places = std::vector<uint32_t>(names_.size(), Partition::kNowhere)};
  for (uint32_t i = 0; i < order.size(); ++i) partition.places[worker_named(order[i]).value] = i;
  partition.ring_size = static_cast<uint32_t>(order.size());
  return begin_partition(std::move(partition));
}

PartitionId Network::jam(std::string_view one, std::string_view other) {
  Partition partition = pair(one, other);
  partition.effect.kind = Effect::Kind::jam;
  return begin_partition(std::move(partition));
}

PartitionId Network::slow(std::string_view one, std::string_view other, Duration extra) {
  Partition partition = pair(one, other);
  partition.effect = {Effect::Kind::slow, extra};
  return begin_partition(std::move(partition));
}

void Network::swizzle(const std::vector<std::string>& workers, Duration length) {
  told_by_hand_ = true;
  std::vector<WorkerId> ids;
  for (const std::string& name : workers) ids.push_back(worker_named(name));
  trouble_.swizzle(ids, length, {Effect::Kind::jam});
}

Partition Network::pair(std::string_view from, std::string_view to) const {
  Partition partition{.places = std::vector<uint32_t>(names_.size(), Partition::kNowhere)};
  partition.places[worker_named(from).value] = 0;
  partition.places[worker_named(to).value] = 1;
  return partition;
}

PartitionId Network::begin_partition(Partition partition) {
  told_by_hand_ = true;
  ++stats_.partitions;
  if (witness_ != nullptr) witness_->on_partition(partition);
  const PartitionId id = partitions_.add(std::move(partition));
  update_ways();
  return id;
}

void Network::heal(PartitionId partition) {
  if (witness_ != nullptr && partitions_.holds(partition)) witness_->on_healed();
  partitions_.remove(partition);
  update_ways();
}

void Network::heal() {
  if (witness_ != nullptr && !partitions_.empty()) witness_->on_healed();
  trouble_.call_off();
  partitions_.clear();
  update_ways();
}

void Network::update_ways() {
  for (const auto& [ends, link] : links_) link->update_ways();
}

}  // namespace rehearsal::net_fake
