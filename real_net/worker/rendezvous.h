#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "real_net/worker/member_record.h"
#include "real_net/worker/placement.h"

namespace rehearsal::real {

struct RendezvousOptions {
  Placement placement;
  std::vector<std::string> names;  // of all workers, in rank order
  Duration timeout = std::chrono::seconds(300);
  bool dynamic = false;  // workers come and go: none is waited for
};

// The workers that have published where they are, in rank order.
using Members = std::vector<std::optional<MemberRecord>>;

// Listens while a worker joins; called from a thread of the rendezvous.
struct RendezvousListener {
  // Whether this worker has joined: then nothing more is told.
  std::function<bool()> joined;
  // A worker is somewhere else now.
  std::function<void(WorkerId, const Address&)> moved;
  // The group has ended before this worker has joined it.
  std::function<void(const Error&)> over;
};

// The workers of a group meet in a store of c10d: each publishes its record and reads the others'.
// Rank 0 serves the store, unless the launcher does. In order: `enter`, `meet`, perhaps `follow`,
// and `leave` if the worker has ended well. The calling thread blocks.
//
// A store serves one group after the other. A static group forms once all workers have come, each
// once; from then on until it has ended well, whoever comes as one of its workers is that worker
// come back, in its next life. A dynamic group is whoever is in it; who comes as one of its workers
// is that one's next life, unless nobody else is left.
class Rendezvous {
 public:
  explicit Rendezvous(RendezvousOptions options);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // Takes this worker's place in the group. How many lives the worker has had in it before. Fails,
  // within the time-out, with an error that names the rank that was taken twice, or the address
  // that cannot be served or reached.
  [[nodiscard]] Result<uint32_t> enter();

  // Publishes where this worker is. The records of all workers of a static group, once they are
  // there; of those that are in a dynamic group. Fails, within the time-out, with an error that
  // names the missing workers, or the worker that runs another program; and soon after any other
  // worker of a group that forms has failed.
  [[nodiscard]] Result<Members> meet(const MemberRecord& self);

  // Instead of `meet`: tells the others of a group that forms why this worker will not come.
  void give_up(const Error& why);

  // Tells of records that change, as those of workers do that come back at the same time, until
  // this worker has joined. After `meet`.
  void follow(RendezvousListener listener);
  void stop_following();

  // The worker has ended well. `with_all`: so has its whole static group, which is over then. A
  // dynamic group is when nobody is left in it.
  void leave(bool with_all);

 private:
  class Meeting;
  class Follower;
  const RendezvousOptions options_;
  std::unique_ptr<Meeting> meeting_;  // keeps the store that this worker serves
  std::unique_ptr<Follower> follower_;
};

}  // namespace rehearsal::real
