#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/base/time.h"

namespace rehearsal::net_fake {

using PartitionId = Id<struct PartitionTag, uint64_t>;

// The effect of a partition on the ways that it cuts.
struct Effect {
  enum class Kind : uint8_t {
    stop,  // nothing passes; what lasts for longer than the user time-out breaks connections
    jam,   // nothing passes, but the machines answer each other: no connection breaks
    slow,  // everything passes, later by `extra`
  };
  Kind kind = Kind::stop;
  Duration extra{};
};

// The ways that a partition cuts, by the place of each worker.
struct Partition {
  enum class Shape : uint8_t {
    sides,    // workers of different places do not reach each other
    one_way,  // those of place 0 do not reach those of place 1
    ring,     // each reaches the next place and the one before
  };
  static constexpr uint32_t kNowhere = UINT32_MAX;  // reaches all: a bridge between the sides

  Shape shape = Shape::sides;
  std::vector<uint32_t> places;  // by worker
  uint32_t ring_size = 0;        // how many places a ring has
  Effect effect;

  [[nodiscard]] bool cuts(WorkerId from, WorkerId to) const;
};

// The effect of the partitions in force on one way.
struct WayState {
  bool stopped = false;
  bool jammed = false;
  Duration extra{};
};

// Several partitions may hold at once; a way suffers what any of them does to it.
class Partitions {
 public:
  PartitionId add(Partition partition);
  void remove(PartitionId id);
  void clear() { entries_.clear(); }

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] bool holds(PartitionId id) const;
  [[nodiscard]] WayState state(WorkerId from, WorkerId to) const;

 private:
  struct Entry {
    PartitionId id;
    Partition partition;
  };
  std::vector<Entry> entries_;
  uint64_t next_ = 1;
};

}  // namespace rehearsal::net_fake
