#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/api/caller.h"
#include "core/api/parcel.h"
#include "core/api/process_group.h"

namespace rehearsal {

class GroupCarrier;
class GroupCarriers;
class Mailboxes;

// The part of a process group that its handles share at one member. Its last owner closes the group
// here.
struct ProcessGroup::Membership {
  explicit Membership(std::shared_ptr<const Caller> the_caller);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  const std::shared_ptr<const Caller> caller;
  Mailboxes* mailboxes = nullptr;  // to be used on the strand, while it is open
  GroupName name;
  bool is_open = false;
  std::vector<WorkerId> workers;   // by rank
  std::vector<std::string> names;  // the same
  uint32_t rank = 0;
  Timeout timeout;

  // So many operations of all members together were begun, and messages to and from each rank with
  // each tag. Touched by the stack that uses the group.
  uint64_t begun = 0;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> sent;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> received;

  // Of what is carried (carried.h): by whom, and so many operations. Null: nothing is; none yet.
  GroupCarriers* carriers = nullptr;
  std::unique_ptr<GroupCarrier> carrier;
  uint64_t carried = 0;

  // The execution that uses the group: if it is given up, the group fails. On the strand.
  std::optional<Hash128> user;
};

}  // namespace rehearsal
