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
      options_(std::move(options)) {}

Network::~Network() = default;

WorkerId Network::worker_named(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end())
    throw std::invalid_argument("no worker is named '" + std::string(name) + "'");
  return WorkerId{static_cast<uint32_t>(found - names_.begin())};
}

// How links behave.

LinkSettings Network::everywhere() {
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
  if (Link* link = existing_link(worker_named(one), worker_named(other)))
    link->reset("connection reset");
}

bool Network::connected(std::string_view one, std::string_view other) const {
  const Link* link = existing_link(worker_named(one), worker_named(other));
  return link != nullptr && link->standing();
}

// Frames.

Action Network::judge(const Direction& direction, const Frame& frame, Direction::Name name) {
  if (rules_.empty()) return Action::pass();
  return rules_.judge({.from = direction.from().worker,
                       .to = direction.to().worker,
                       .lane = lane_of(frame),
                       .kind = frame.header.kind,
                       .number = frame.header.sequence,
                       .attempt = name.attempt,
                       .bytes = frame.bytes(),
                       .message_type = inspector_ ? inspector_(frame) : 0});
}

Frame Network::carried(Frame frame, BufferPool& pool) const {
  if (options_.through_bytes) return snapshot_through_bytes(frame, pool);
  return snapshot(std::move(frame), pool);
}

// Partitions.

std::vector<WorkerId> Network::all_but(const std::vector<WorkerId>& workers) const {
  std::vector<WorkerId> rest;
  for (uint32_t i = 0; i < names_.size(); ++i)
    if (std::find(workers.begin(), workers.end(), WorkerId{i}) == workers.end())
      rest.push_back(WorkerId{i});
  return rest;
}

PartitionId Network::split(const std::vector<std::string>& one,
                           const std::vector<std::string>& other) {
  Partitions::Cut cut;
  for (const std::string& name : one) cut.from.push_back(worker_named(name));
  for (const std::string& name : other) cut.to.push_back(worker_named(name));
  return begin_partition(std::move(cut));
}

PartitionId Network::isolate(std::string_view worker) {
  const std::vector<WorkerId> alone{worker_named(worker)};
  return begin_partition({.from = alone, .to = all_but(alone)});
}

PartitionId Network::block_one_way(std::string_view from, std::string_view to) {
  return begin_partition({.from = {worker_named(from)}, .to = {worker_named(to)}, .one_way = true});
}

PartitionId Network::begin_partition(Partitions::Cut cut) {
  ++stats_.partitions;
  if (witness_ != nullptr) witness_->on_partition(cut);
  const PartitionId id = partitions_.add(std::move(cut));
  update_blocked();
  return id;
}

void Network::heal(PartitionId partition) {
  if (witness_ != nullptr && partitions_.holds(partition)) witness_->on_healed();
  partitions_.remove(partition);
  update_blocked();
}

void Network::heal() {
  if (witness_ != nullptr && !partitions_.empty()) witness_->on_healed();
  partitions_.clear();
  update_blocked();
}

void Network::update_blocked() {
  for (const auto& [ends, link] : links_) link->update_blocked();
}

// Chance may begin a partition at a message: of its sender, of its receiver, of a random half of
// the workers, or one way only. One that chance began heals by itself; at most one holds at a time.
void Network::maybe_partition(const Direction& direction, Direction::Name name) {
  if (!partitions_.empty() || schedule_.now() < next_partition_) return;
  const auto key = [&](DecisionKind kind, uint64_t number) {
    return direction.key(kind, number, name.attempt);
  };
  if (!happens(decisions_, key(DecisionKind::partition, name.number),
               weather_.partition_millionths))
    return;
  Partitions::Cut cut{.from = {direction.from().worker}, .to = {direction.to().worker}};
  switch (decisions_.choose(key(DecisionKind::partition_shape, name.number), 4)) {
    case 0:
      cut.one_way = true;
      break;
    case 1:
      cut.to = all_but(cut.from);
      break;
    case 2:
      cut.from = all_but(cut.to);
      break;
    default:
      for (uint32_t i = 0; i < names_.size(); ++i) {
        const WorkerId worker{i};
        if (worker == direction.from().worker || worker == direction.to().worker) continue;
        const Key coin{.kind = DecisionKind::partition_shape,
                       .subject = {worker, 0},
                       .number = stats_.partitions};
        (decisions_.choose(coin, 2) == 0 ? cut.from : cut.to).push_back(worker);
      }
  }
  // Short ones are as likely as long ones: each half of the longest down to the shortest.
  const Duration shortest = std::max(weather_.partition_min, weather_.partition_max / 256);
  uint64_t lengths = 1;
  while (weather_.partition_max / (int64_t{1} << lengths) >= shortest && lengths < 9) ++lengths;
  const uint64_t halvings =
      decisions_.choose(key(DecisionKind::partition_length, name.number), lengths);
  const Duration length = weather_.partition_max / (int64_t{1} << halvings);
  const PartitionId id = begin_partition(std::move(cut));
  next_partition_ = schedule_.now() + length + weather_.partition_gap;
  schedule_.at(schedule_.now() + length, *this, id.value);
}

}  // namespace rehearsal::net_fake
