#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/runtime.h"
#include "real_net/tcp/host_addresses.h"

namespace rehearsal::real {

// Looks host names up off the strand: the system's resolver may take long, and a peer may name any
// host. Each name has a thread for as long as that takes; there are sixteen of them at most, and
// one for a peer: another name of its own waits until that is over. On the strand.
class NameLookup {
 public:
  using Done = std::function<void(const Result<Addresses>&)>;
  // The system's resolver, or another one for tests. From any thread.
  using Resolve = std::function<Result<Addresses>(const Address&)>;

  explicit NameLookup(Runtime& runtime, Resolve resolve = numeric_addresses_of);
  // A name that has not been found is not told any more.
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  // Calls `done` with the numeric addresses, one at least: at once if it is one, else on the strand
  // when they are known. The error (peer_lost; overloaded if too many names are looked up) says why
  // there is none. `peer`: whose address it is; of what is asked for it, only the last is sure to
  // be told.
  void find(WorkerId peer, const Address& address, Done done);

 private:
  // Shared with the threads, which may outlive the lookup: it does not go while one of them, with
  // the mutex, posts to its runtime. A task that they post may run at once.
  struct Home {
    std::mutex mutex;
    std::atomic<NameLookup*> lookup{nullptr};  // null: it has gone
  };
  struct Question {
    Address address;
    Done done;
  };
  [[nodiscard]] bool takes_turns(WorkerId peer, const Address& address, Done& done);
  void found(const std::string& host, const Result<Addresses>& result);

  Runtime& runtime_;
  const Resolve resolve_;
  const std::shared_ptr<Home> home_;
  std::map<std::string, std::map<WorkerId, Question>> waiting_;  // by host
  std::map<WorkerId, Question> later_;  // for other hosts, of those that wait for one
};

}  // namespace rehearsal::real
