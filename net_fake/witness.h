#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/frame.h"
#include "net_fake/decisions.h"
#include "net_fake/partitions.h"

namespace rehearsal::net_fake {

// Sees what becomes of frames and connections, for whoever explains a run. It hears of each thing
// just before it happens, and must not touch the network.
class Witness {
 public:
  virtual ~Witness() = default;

  // A frame begins to travel; `attempt` is 0 when its sender sends it for the first time.
  virtual void on_sent(LifeId from, LifeId to, const Frame& frame, uint64_t attempt) = 0;
  // It has travelled: what its receiver does next, it does with this frame.
  virtual void on_arrived(LifeId from, LifeId to, const Frame& frame) = 0;
  // The connection of these two breaks.
  virtual void on_broken(LifeId one, LifeId other, std::string_view why) = 0;
  virtual void on_partition(const Partition& partition) = 0;
  // A partition, or all of them, have come to their end.
  virtual void on_healed() = 0;
};

}  // namespace rehearsal::net_fake
