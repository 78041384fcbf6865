#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "real_net/auth/credentials.h"
#include "real_net/worker/member_record.h"
#include "real_net/worker/patience.h"
#include "real_net/worker/placement.h"

namespace rehearsal::real {

struct RendezvousOptions {
  Placement placement;
  std::vector<std::string> names;  // of all workers, in rank order; empty: not known
  Duration timeout = std::chrono::seconds(300);
  bool dynamic = false;  // workers come and go: none is waited for

  // Where this worker will be reached, as far as that is known before it listens: for people.
  Address self;

  // The same at all workers, too (see group_card.h).
  std::string libtorch;
  std::string functions;
  std::map<std::string, std::string> settings;

  // The proof of this worker: what it leaves in the store is under the seal of its secret, and so
  // must be what it reads there. `credentials`: as its links have them.
  Auth auth;
  std::shared_ptr<Credentials> credentials;

  // Told what is waited for, when it has been for `first_word` and ever more rarely then, and what
  // else a worker that waits should know. From the thread that waits. May be null.
  Patience::Tell tell;
  Duration first_word = std::chrono::seconds(5);
};

// The workers that have published where they are, in rank order.
using Members = std::vector<std::optional<MemberRecord>>;

// Listens while a worker joins; called from a thread of the rendezvous.
struct RendezvousListener {
  // Whether this worker has joined: then nothing more is told.
  std::function<bool()> joined;
  // A worker is somewhere else now.
  std::function<void(WorkerId, const Address&)> moved;
  // The group has ended before this worker has joined it, well or with rank 0 and its store. The
  // worker may join while this is told.
  std::function<void(const Error&)> over;
  // It is time to say what the joining waits for; `word` begins the sentence. May be null.
  std::function<void(const std::string& word)> waits;
};

class Meeting;
class MeetingStore;

// The workers of a group meet in a store of c10d: each publishes its record and reads the others'.
// Rank 0 serves the store, unless the launcher does. In order: `enter`, `meet`, perhaps `follow`,
// and `leave` if the worker has ended well. The calling thread blocks.
//
// A store serves one group after the other, of each run; one that a worker serves, of one run only.
// The first to come puts the group's card there (group_card.h): who comes with another, or as a
// worker that is there and answers, is refused with an error (bad_arguments) that says what runs
// there, and the group is not harmed. But if a group that forms has nobody else for that place, all
// of it fails, with the same reason: it would wait in vain.
//
// A static group forms once all workers have come. A worker that comes as one of them that does
// not answer any more is that worker come back, in its next life: until the group has ended well,
// and also while it forms, when the others read where it is now. If its forming has failed, whoever
// has been in it and comes again begins the next one. A dynamic group is whoever is in it; who
// comes as one of its workers is that one's next life, unless nobody else is left.
class Rendezvous {
 public:
  explicit Rendezvous(RendezvousOptions options);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // Takes this worker's place in the group. How many lives the worker has had in it before. Fails,
  // within the time-out, with an error that names the worker that has the place, the option that
  // differs, or the address that cannot be served or reached.
  [[nodiscard]] Result<uint32_t> enter();

  // After `enter`, of worker 0 that has come again to a dynamic group: the workers that are there;
  // see NodeOptions::founds_after.
  [[nodiscard]] std::optional<std::vector<WorkerId>> founds_after() const;

  // The store of this run, for keys of the worker's own. After `enter`; may outlive this.
  [[nodiscard]] std::shared_ptr<MeetingStore> store() const;

  // Publishes where this worker is. The records of all workers of a static group, once they are
  // there; of those that are in a dynamic group. Fails, within the time-out, with an error that
  // names the missing workers, or the worker that runs another program; and soon after any other
  // worker of a group that forms has failed.
  [[nodiscard]] Result<Members> meet(const MemberRecord& self);

  // Instead of `meet`: tells the others of a group that forms why this worker will not come.
  void give_up(const Error& why);

  // Instead of `enter`: the same, of a worker that was found unfit before it came. Looks for the
  // others for `limit`, and no longer than the time-out.
  void refuse(const Error& why, Duration limit = std::chrono::seconds(3));

  // Tells of records that change, as those of workers do that come back at the same time, until
  // this worker has joined. After `meet`.
  void follow(RendezvousListener listener);
  void stop_following();

  // The worker has ended well. `with_all`: so has its whole static group, which is over then. A
  // dynamic group is when nobody is left in it.
  void leave(bool with_all);

 private:
  class Follower;
  const RendezvousOptions options_;
  std::unique_ptr<Meeting> meeting_;  // keeps the store that this worker serves
  std::unique_ptr<Follower> follower_;
};

}  // namespace rehearsal::real
