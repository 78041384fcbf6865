#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/base/interval_set.h"
#include "core/base/monitor.h"
#include "core/calls/deadlines.h"
#include "core/calls/hooks.h"
#include "core/calls/served_calls.h"
#include "core/functions/function.h"

// The rows of the reference protocol's tables (core/README.md has the protocol).
namespace rehearsal {

// How a reference came about, for people.
struct Origin {
  std::string function;               // that `remote` called; empty: none
  std::string made_in;                // the label of the execution that made it here; empty: none
  std::optional<WorkerId> came_from;  // who passed it on, or asked for it
};

// A value that references own, at its owner.
struct OwnerRRef {
  std::optional<Result<HeldValue>> value;  // none: to come
  // Registered and not deleted, each with its holder: nobody can take a fork away from another.
  std::set<std::pair<CausalId, WorkerId>> forks;
  uint64_t handles = 0;  // owner handles
  uint64_t uses = 0;     // its creation, fetches and proxy calls that run
  std::shared_ptr<Monitor> monitor = std::make_shared<Monitor>();
  std::vector<Task> waiting;  // for the value
  Origin origin;
  std::optional<WorkerId> counts_for;  // the peer that has created it, as long as it is here
};

enum class UserState : uint8_t {
  pending,  // the owner has not answered its registration
  confirmed,
  refused,  // it never was registered, or its owner is lost
};

// A UserRRef at its holder.
struct UserRRef {
  RRefId id;
  UserState state = UserState::pending;
  bool was_confirmed = false;          // stays so when the owner is lost
  bool created_here = false;           // by `remote`: usable before it is confirmed
  bool released = false;               // no handle is left
  uint64_t children = 0;               // forks that it is pinned by (G2)
  std::optional<WorkerId> parent;      // who is told ChildAccept, and when it is pending
  MaybeError error;                    // what every use gives
  DeadlineId deadline;                 // of a creation that is not answered
  std::shared_ptr<RRefHandle> target;  // of a method that creates this: lives until the answer
  std::vector<Task> waiting;           // for the answer
  Origin origin;
  std::optional<WorkerId> counts_for;  // the peer that has given it, as long as it is here
};

// A fork that was sent and whose child has not accepted.
struct PendingChild {
  WorkerId holder;
  CausalId parent;  // the UserRRef that it pins
};

// A call that has arrived and needs its references: the target that it runs on must exist, and its
// arguments must be confirmed. From when it exists the target counts a use, so that no delete
// overtakes the call.
struct ArrivedCall {
  std::shared_ptr<ServedCall> served;
  MaybeError refused;
  std::optional<RRefId> use;  // the target, once it counts this one
  bool confirmed = false;     // the arguments are, or cannot be
  bool target_known = false;  // it exists, or never will
  bool concluded = false;     // refused, or on its way
};

// A use of a value that nobody has created yet.
struct AwaitsCreation {
  RRefId id;
  WorkerId asker;
  UniqueFunction<void(Status)> ready;
};

// This owner's knowledge of one creator's ids.
struct CreatedIds {
  IntervalSet seen{0};
  MaybeError lost;  // the creator is fenced: nothing is to come any more
};

}  // namespace rehearsal
