#include "net_fake/partitions.h"

#include <algorithm>
#include <utility>

namespace rehearsal::net_fake {

bool Partition::cuts(WorkerId from, WorkerId to) const {
  const uint32_t one = places[from.value];
  const uint32_t other = places[to.value];
  if (one == kNowhere || other == kNowhere) return false;
  if (shape == Shape::sides) return one != other;
  if (shape == Shape::one_way) return one == 0 && other == 1;
  const auto [low, high] = std::minmax(one, other);
  return high - low > 1 && high - low + 1 < ring_size;
}

PartitionId Partitions::add(Partition partition) {
  entries_.push_back({PartitionId{next_++}, std::move(partition)});
  return entries_.back().id;
}

void Partitions::remove(PartitionId id) {
  std::erase_if(entries_, [id](const Entry& entry) { return entry.id == id; });
}

bool Partitions::holds(PartitionId id) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [id](const Entry& entry) { return entry.id == id; });
}

WayState Partitions::state(WorkerId from, WorkerId to) const {
  WayState state;
  for (const auto& [id, partition] : entries_) {
    if (!partition.cuts(from, to)) continue;
    switch (partition.effect.kind) {
      case Effect::Kind::stop:
        state.stopped = true;
        break;
      case Effect::Kind::jam:
        state.jammed = true;
        break;
      case Effect::Kind::slow:
        state.extra += partition.effect.extra;
        break;
    }
  }
  return state;
}

}  // namespace rehearsal::net_fake
