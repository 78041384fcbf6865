#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"

namespace rehearsal::net_fake {

using PartitionId = Id<struct PartitionTag, uint64_t>;

// Who cannot reach whom. Several partitions may hold at once; a way is blocked if any blocks it.
class Partitions {
 public:
  // From every worker in `from` to every worker in `to`; and back unless one-way.
  struct Cut {
    std::vector<WorkerId> from;
    std::vector<WorkerId> to;
    bool one_way = false;
  };

  PartitionId add(Cut cut);
  void remove(PartitionId id);
  void clear() { cuts_.clear(); }

  [[nodiscard]] bool empty() const { return cuts_.empty(); }
  [[nodiscard]] bool holds(PartitionId id) const;
  [[nodiscard]] bool blocks(WorkerId from, WorkerId to) const;

 private:
  struct Entry {
    PartitionId id;
    Cut cut;
  };
  std::vector<Entry> cuts_;
  uint64_t next_ = 1;
};

}  // namespace rehearsal::net_fake
