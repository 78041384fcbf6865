#include "net_fake/trouble.h"

#include <algorithm>
#include <utility>

#include "net_fake/network_stats.h"

namespace rehearsal::net_fake {
namespace {

using Shape = Partition::Shape;

constexpr uint64_t kShuffles = uint64_t{1} << 32;

}  // namespace

uint64_t Trouble::choose(const Key& message, DecisionKind kind, uint64_t n) {
  Key key = message;
  key.kind = kind;
  return parts_.decisions.choose(key, n);
}

uint64_t Trouble::choose_for(WorkerId worker, uint64_t n) {
  return parts_.decisions.choose(
      {.kind = DecisionKind::partition_member, .subject = {worker, 0}, .number = begun_}, n);
}

void Trouble::consider(const Weather& weather, const Key& message) {
  if (!parts_.partitions.empty() || parts_.schedule.now() < next_) return;
  const auto begins = [&](DecisionKind kind, uint64_t millionths) {
    Key key = message;
    key.kind = kind;
    return happens(parts_.decisions, key, millionths);
  };
  if (begins(DecisionKind::partition, weather.partition_millionths)) {
    partition(weather, message);
  } else if (begins(DecisionKind::clog, weather.clog_millionths)) {
    clog(weather, message);
  }
}

// Short ones are as likely as long ones: each half of the longest down to the shortest.
Duration Trouble::length(const Weather& weather, const Key& message, DecisionKind kind) {
  const Duration shortest = std::max(weather.partition_min, weather.partition_max / 256);
  uint64_t lengths = 1;
  while (weather.partition_max / (int64_t{1} << lengths) >= shortest && lengths < 9) ++lengths;
  // The least choice is the shortest one.
  const uint64_t halvings = lengths - 1 - choose(message, kind, lengths);
  const Duration length = weather.partition_max / (int64_t{1} << halvings);
  next_ = parts_.schedule.now() + length + weather.partition_gap;
  return length;
}

void Trouble::partition(const Weather& weather, const Key& message) {
  ++begun_;
  ++parts_.stats.partitions;
  Partition drawn = drawn_partition(message);
  plan(std::move(drawn), {}, length(weather, message, DecisionKind::partition_length));
}

void Trouble::clog(const Weather& weather, const Key& message) {
  ++begun_;
  ++parts_.stats.clogs;
  const WorkerId from = message.subject.worker;
  const WorkerId to = message.object.worker;
  const Duration time = length(weather, message, DecisionKind::clog_length);
  const uint64_t shape = choose(message, DecisionKind::clog_shape, 7);
  // Ways are slow for a while that is short against the whole.
  const Effect slow{Effect::Kind::slow, time / 8};
  const Effect jam{Effect::Kind::jam};
  if (shape == 6) {
    std::vector<WorkerId> some;
    for (const WorkerId worker : shuffled())
      if (some.empty() || choose_for(worker, 2) == 1) some.push_back(worker);
    return swizzle(some, time, jam);
  }
  Partition drawn = shape < 2   ? pair(from, to, Shape::one_way)
                    : shape < 4 ? pair(from, to, Shape::sides)
                                : alone(from);
  drawn.effect = shape % 2 == 0 ? slow : jam;
  plan(std::move(drawn), {}, time);
}

void Trouble::swizzle(const std::vector<WorkerId>& workers, Duration length, Effect effect) {
  const Duration half = length / 2;
  for (size_t i = 0; i < workers.size(); ++i) {
    const Key key{.kind = DecisionKind::clog_length, .subject = {workers[i], 0}, .number = begun_};
    const uint64_t freed = parts_.decisions.choose(key, 1024);
    Partition one = alone(workers[i]);
    one.effect = effect;
    plan(std::move(one), half * static_cast<int64_t>(i) / static_cast<int64_t>(workers.size()),
         half + half * static_cast<int64_t>(freed) / 1024);
  }
}

// Shapes.

Partition Trouble::drawn_partition(const Key& message) {
  const WorkerId from = message.subject.worker;
  const WorkerId to = message.object.worker;
  switch (choose(message, DecisionKind::partition_shape, 8)) {
    case 0:
      return pair(from, to, Shape::one_way);
    case 1:
      return pair(from, to, Shape::sides);
    case 2:
      return alone(from);
    case 3:
      return alone(to);
    case 4:
      return split_by_coin(from, to);
    case 5:
      return split_by_size(from, to);
    case 6:
      return ring();
    default:
      break;
  }
  // A bridge: somebody reaches both sides.
  Partition bridge = split_by_coin(from, to);
  for (const WorkerId worker : shuffled()) {
    if (worker == from || worker == to) continue;
    bridge.places[worker.value] = Partition::kNowhere;
    break;
  }
  return bridge;
}

Partition Trouble::pair(WorkerId from, WorkerId to, Shape shape) const {
  Partition partition{.shape = shape,
                      .places = std::vector<uint32_t>(workers_, Partition::kNowhere)};
  partition.places[from.value] = 0;
  partition.places[to.value] = 1;
  return partition;
}

Partition Trouble::alone(WorkerId worker) const {
  Partition partition{.places = std::vector<uint32_t>(workers_, 1)};
  partition.places[worker.value] = 0;
  return partition;
}

Partition Trouble::split_by_coin(WorkerId from, WorkerId to) {
  Partition partition = alone(from);
  for (uint32_t i = 0; i < workers_; ++i)
    if (WorkerId{i} != from && WorkerId{i} != to)
      partition.places[i] = static_cast<uint32_t>(choose_for(WorkerId{i}, 2));
  return partition;
}

Partition Trouble::split_by_size(WorkerId from, WorkerId to) {
  Partition partition = alone(from);
  const Key key{.kind = DecisionKind::partition_member, .number = begun_};
  uint64_t others = workers_ > 2 ? parts_.decisions.choose(key, workers_ - 1) : 0;
  for (const WorkerId worker : shuffled()) {
    if (worker == from || worker == to) continue;
    if (others == 0) break;
    partition.places[worker.value] = 0;
    --others;
  }
  return partition;
}

// Of three workers or fewer it cuts nothing.
Partition Trouble::ring() {
  Partition partition{
      .shape = Shape::ring, .places = std::vector<uint32_t>(workers_), .ring_size = workers_};
  uint32_t place = 0;
  for (const WorkerId worker : shuffled()) partition.places[worker.value] = place++;
  return partition;
}

std::vector<WorkerId> Trouble::shuffled() {
  std::vector<std::pair<uint64_t, WorkerId>> drawn;
  for (uint32_t i = 0; i < workers_; ++i)
    drawn.emplace_back(choose_for(WorkerId{i}, kShuffles), WorkerId{i});
  std::sort(drawn.begin(), drawn.end());
  std::vector<WorkerId> workers;
  for (const auto& [number, worker] : drawn) workers.push_back(worker);
  return workers;
}

// Plans.

void Trouble::plan(Partition partition, Duration begin, Duration end) {
  const uint64_t number = planned_++;
  plans_.push_back({number, std::move(partition), {}});
  const Instant now = parts_.schedule.now();
  parts_.schedule.at(now + end, *this, number * 2 + 1);
  if (begin.count() > 0) {
    parts_.schedule.at(now + begin, *this, number * 2);
  } else {
    happen(number * 2);
  }
}

Trouble::Plan* Trouble::find(uint64_t number) {
  const auto found = std::find_if(plans_.begin(), plans_.end(),
                                  [number](const Plan& plan) { return plan.number == number; });
  return found != plans_.end() ? &*found : nullptr;
}

const Trouble::Plan* Trouble::find(uint64_t number) const {
  return const_cast<Trouble*>(this)->find(number);
}

void Trouble::happen(uint64_t ticket) {
  Plan& plan = *find(ticket / 2);
  if (ticket % 2 == 0) {
    plan.begun = parts_.partitions.add(plan.partition);
  } else {
    parts_.partitions.remove(plan.begun);
    std::erase_if(plans_, [ticket](const Plan& one) { return one.number == ticket / 2; });
  }
  parts_.on_change();
}

}  // namespace rehearsal::net_fake
