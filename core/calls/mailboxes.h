#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/api/call_port.h"
#include "core/api/parcel.h"
#include "core/base/future.h"
#include "core/calls/deadlines.h"
#include "core/session/session_options.h"

namespace rehearsal {

class GroupCarriers;
class Sessions;

// The process groups that this node is a member of: the operations that it is in, and the parcels
// that have come before they were wanted. A parcel is a call that is answered when it is taken, so
// what lies here is part of an operation of its sender, which gives it up when it fails.
//
// The first failure ends a group, at this member: what waits in it, and what comes later, fails
// with that error. On the strand.
class Mailboxes {
 public:
  struct Member {
    WorkerId worker;
    Incarnation incarnation;
  };
  // The result of a wait: the parcel's tensors (none where only the end was waited for), or why
  // not.
  struct Outcome {
    MaybeError error;
    std::vector<at::Tensor> tensors;
  };
  // An operation that begins at this member.
  struct Beginning {
    std::string text;  // the same at all members: what it does, with which tensors
    bool between_two = false;
    uint64_t number = 0;              // among those of all members together
    std::optional<Instant> deadline;  // then the group fails
    // When it has not ended by then, `ask` has the other members compare what they do; once.
    std::optional<Instant> patience;
    Task ask;
  };
  // How far another member is.
  enum class Progress : uint8_t { before, there };

  Mailboxes(const SessionOptions& options, NodeStrand& strand, Sessions& sessions,
            Deadlines& deadlines)
      : options_(options), strand_(strand), sessions_(sessions), deadlines_(deadlines) {}

  // The carriers of large tensors, of all groups of this node; null: parcels do. Before any is
  // made.
  void set_carriers(GroupCarriers* carriers) { carriers_ = carriers; }
  [[nodiscard]] GroupCarriers* carriers() const { return carriers_; }

  // ---- groups ----

  // A name that this node gives to one group, should it be the first of its members.
  [[nodiscard]] GroupName next_name() { return {options_.incarnation.value, next_number_++}; }
  // The members by rank; the one of the lowest number gives the name. Failed at once if one of them
  // is lost or has begun another life. Error, and nothing is open: peer_lost if who gives the name
  // has begun another life; protocol, which names it, if the name is none of its life, or of a
  // group that is open here.
  [[nodiscard]] MaybeError open(const GroupName& name, std::vector<Member> members);
  // Nobody here uses it any more; no operation is under way.
  void close(const GroupName& name);
  // The first failure counts; returns it.
  Error fail(const GroupName& name, const Error& why);
  // Whether the other members have yet to hear from this one that the group has failed: once.
  [[nodiscard]] bool take_telling(const GroupName& name);

  // ---- operations of this member, each on a stack of its own ----

  // The number by which it is known here. `calls` carries its parcels.
  [[nodiscard]] uint64_t begin(const GroupName& name, Beginning beginning, CallPort& calls);
  void end(const GroupName& name, uint64_t operation);
  // The call that brings a parcel of the operation to a member has started; was answered.
  void sent(const GroupName& name, uint64_t operation, const CallId& call, uint32_t to);
  void answered(const GroupName& name, uint64_t operation, const CallId& call,
                const MaybeError& error);
  // Ends the wait when the parcel is here, or the group has failed.
  void receive(const GroupName& name, uint64_t operation, const ParcelSlot& slot,
               const WaitHandle& wait, Outcome& outcome);
  // Ends the wait when all parcels of the operation were taken, or the group has failed.
  void await_taken(const GroupName& name, uint64_t operation, const WaitHandle& wait,
                   Outcome& outcome);

  // Of what is carried (core/collectives/carried.h). Each ends the wait when it is so, or the group
  // has failed: so many operations of the group have passed the turn on; this one was carried.
  void await_turn(const GroupName& name, uint64_t operation, uint64_t turn, const WaitHandle& wait,
                  Outcome& outcome);
  void await_carried(const GroupName& name, uint64_t operation, const WaitHandle& wait,
                     Outcome& outcome);
  void pass_turn(const GroupName& name);
  void carried(const GroupName& name, uint64_t operation);
  // Ends the wait when the group has failed.
  void await_failure(const GroupName& name, uint64_t operation, const WaitHandle& wait,
                     Outcome& outcome);

  // ---- calls of other members ----

  // Completes `taken` when the parcel has been. `asker`: the execution of the call.
  void deliver(WorkerId from, Parcel parcel, Execution& asker,
               const std::shared_ptr<FutureState<Unit>>& taken);
  // Whether this member has come to the operation of that number, which is `text` at another one;
  // the error: the group has failed, as it does if it is something else here.
  [[nodiscard]] Result<Progress> compare(WorkerId from, const GroupName& name, uint64_t number,
                                         const std::string& text);
  // The answer to that of a member, for the error of a time that is up.
  void note_absent(const GroupName& name, uint64_t operation, WorkerId worker);
  // The group has failed at another member.
  void abandon(WorkerId from, const GroupName& name, const Error& why);

  void on_peer_fenced(WorkerId peer, const Error& why);
  void clear();

 private:
  struct Arrived {
    Parcel parcel;
    WorkerId from;
    uint64_t number = 0;  // of all that have come
    std::shared_ptr<FutureState<Unit>> taken;
  };
  using Parcels = std::map<ParcelSlot, Arrived>;
  enum class WaitsFor : uint8_t { parcel, taken, turn, carrier, failure };
  struct Running {
    Beginning beginning;
    CallPort* calls = nullptr;
    DeadlineId deadline;
    DeadlineId patience;
    std::vector<WorkerId> absent;            // had not come when they were asked
    std::map<CallId, uint32_t> untaken;      // by call: the rank that it goes to
    std::map<CallId, uint32_t> taken_early;  // answered before it was said to have started
    bool carried = false;
    // The wait of its stack, if it waits, and what for.
    std::optional<WaitHandle> wait;
    WaitsFor waits_for = WaitsFor::parcel;
    uint64_t turn = 0;
    std::optional<ParcelSlot> wanted;
    Outcome* outcome = nullptr;
  };
  struct Group {
    std::vector<Member> members;
    MaybeError failed;
    bool told = false;
    uint64_t begun = 0;  // so many operations of all members together
    uint64_t turn = 0;   // so many were carried, or are
    Parcels arrived;
    std::map<uint64_t, Running> running;
  };
  // A group that is over here.
  struct Ended {
    Error why;
    uint64_t begun = 0;  // so many operations were, and ended well
  };
  // How many groups that have ended are remembered, so that a late parcel is refused at once.
  static constexpr size_t kEndedMax = 1024;
  // Groups that have not been made here and failed at another worker, as it says: making one shows
  // whether it is a member. In the order of what it has said.
  using Told = std::deque<std::pair<GroupName, Error>>;
  // How many of them each worker may have told of: beyond that its own oldest is forgotten.
  static constexpr size_t kToldMax = 64;

  [[nodiscard]] static bool is_member(WorkerId worker, const std::vector<Member>& members);
  // The end of a group that was made here; null: none that is remembered.
  [[nodiscard]] const Ended* end_of(const GroupName& name) const;
  // Why a group of these members failed before it was made here, if one of them has said so.
  [[nodiscard]] MaybeError take_told(const GroupName& name, const std::vector<Member>& members);
  [[nodiscard]] Running* find(const GroupName& name, uint64_t operation);
  void accept(const GroupName& name, Group& group, Arrived arrived);
  void forget(const GroupName& name, const ParcelSlot& slot, uint64_t number);
  void note_ended(const GroupName& name, Ended ended);
  void note_told(WorkerId from, const GroupName& name, const Error& why);
  void set_timers(const GroupName& name, uint64_t operation, Running& running);
  void time_out(const GroupName& name, uint64_t operation);
  // Ends at once if the group has failed or `holds`.
  void begin_wait(const GroupName& name, Running& running, WaitsFor what, const WaitHandle& wait,
                  Outcome& outcome, bool holds);
  static void end_wait(Running& running, const MaybeError& error,
                       std::vector<at::Tensor> tensors = {});
  // The running operation that the parcel is part of by its number, but which is another one.
  [[nodiscard]] static const Running* other_than(const Group& group, const Parcel& parcel);
  [[nodiscard]] Error mismatch(WorkerId from, const std::string& theirs,
                               const std::string& ours) const;
  [[nodiscard]] Error error(ErrorKind kind, std::string text) const;
  [[nodiscard]] MaybeError why_lost(const Member& member) const;
  [[nodiscard]] MaybeError why_misnamed(const GroupName& name,
                                        const std::vector<Member>& members) const;

  const SessionOptions& options_;
  NodeStrand& strand_;
  Sessions& sessions_;
  Deadlines& deadlines_;
  GroupCarriers* carriers_ = nullptr;
  std::map<GroupName, Group> groups_;
  std::map<GroupName, Parcels> early_;  // of groups that are not open yet
  std::map<GroupName, Ended> ended_;    // the last kEndedMax
  std::deque<GroupName> ended_order_;
  std::map<WorkerId, Told> told_;  // by who has said so
  uint64_t next_number_ = 0;
  uint64_t next_operation_ = 0;
  uint64_t next_arrival_ = 0;
  std::shared_ptr<const bool> lives_ = std::make_shared<const bool>(true);
};

}  // namespace rehearsal
