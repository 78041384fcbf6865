#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "real_net/placement.h"

namespace rehearsal::real {

// What a worker tells the others before they connect.
struct MemberRecord {
  std::string name;
  Address address;
  Incarnation incarnation;
  uint32_t world_size = 0;
};

struct RendezvousOptions {
  Placement placement;
  std::vector<std::string> names;  // of all workers, in rank order
  MemberRecord self;
  Duration timeout = std::chrono::seconds(300);
};

// All workers of a group meet in a store of c10d: each publishes its record and reads the others'.
// Rank 0 serves the store, unless the launcher does. Blocks the calling thread.
class Rendezvous {
 public:
  explicit Rendezvous(RendezvousOptions options);
  ~Rendezvous();

  // The records of all workers, in rank order. Fails, within the time-out, with an error that
  // names the missing workers, the rank that was taken twice, the worker that runs another program,
  // or the address that cannot be served or reached; and soon after any other worker has failed so.
  [[nodiscard]] Result<std::vector<MemberRecord>> join();

 private:
  class Meeting;
  const RendezvousOptions options_;
  std::unique_ptr<Meeting> meeting_;  // keeps the store that this worker serves
};

}  // namespace rehearsal::real
