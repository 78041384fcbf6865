#include "net_fake/partitions.h"

#include <algorithm>
#include <utility>

namespace rehearsal::net_fake {
namespace {

bool contains(const std::vector<WorkerId>& workers, WorkerId worker) {
  return std::find(workers.begin(), workers.end(), worker) != workers.end();
}

}  // namespace

PartitionId Partitions::add(Cut cut) {
  cuts_.push_back({PartitionId{next_++}, std::move(cut)});
  return cuts_.back().id;
}

void Partitions::remove(PartitionId id) {
  std::erase_if(cuts_, [id](const Entry& entry) { return entry.id == id; });
}

bool Partitions::holds(PartitionId id) const {
  return std::any_of(cuts_.begin(), cuts_.end(),
                     [id](const Entry& entry) { return entry.id == id; });
}

bool Partitions::blocks(WorkerId from, WorkerId to) const {
  return std::any_of(cuts_.begin(), cuts_.end(), [from, to](const Entry& entry) {
    const Cut& cut = entry.cut;
    return (contains(cut.from, from) && contains(cut.to, to)) ||
           (!cut.one_way && contains(cut.to, from) && contains(cut.from, to));
  });
}

}  // namespace rehearsal::net_fake
