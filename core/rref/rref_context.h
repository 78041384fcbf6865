#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "core/api/caller.h"
#include "core/api/reference_port.h"
#include "core/api/rref_handle.h"
#include "core/base/value_view.h"
#include "core/calls/hooks.h"
#include "core/calls/pending_calls.h"
#include "core/calls/served_calls.h"
#include "core/rref/rref_tables.h"
#include "core/session/session_options.h"

namespace rehearsal {

class Sessions;
struct CarriedTensors;
struct Violation;

// The remote references of one node: owners, users, pending children. Guarantees G1: the owner
// hears of every deleted UserRRef, and G2: a parent is not deleted until the owner has answered
// its child (PyTorch's remote reference protocol). Nothing in it parks. On the strand, unless said
// otherwise.
class RRefContext final : public ReferencePort, public ForkHook, public ReferenceHook {
 public:
  RRefContext(const SessionOptions& options, NodeStrand& strand, Sessions& sessions,
              Deadlines& deadlines, PendingCalls& pending, ServedCalls& served);
  // `records`: null where nothing is recorded.
  void set_caller(std::shared_ptr<const Caller> caller, RecordHook* records) {
    caller_ = std::move(caller);
    records_ = records;
  }

  // ReferencePort.
  [[nodiscard]] std::shared_ptr<RRefHandle> create(Draft&& draft) override;
  [[nodiscard]] std::shared_ptr<RRefHandle> own(HeldValue value) override;
  void release(const RRefId& id, const std::optional<ForkId>& fork) override;
  [[nodiscard]] bool confirmed_by_owner(const RRefHandle& handle) const override;
  void local_value(const RRefId& id, UniqueFunction<void(Result<HeldValue>)> done) override;
  [[nodiscard]] bool enter_monitor(const RRefId& id, Execution* execution,
                                   const WaitHandle& wait) override;
  void leave_monitor(const RRefId& id, Execution* execution) override;
  [[nodiscard]] const Mutants& mutants() const override { return options_.mutants; }

  // ---- hooks ----

  [[nodiscard]] Status prepare_forks(WorkerId to, const CausalId& call, uint64_t which,
                                     Payload& payload) override;
  [[nodiscard]] Result<RRefId> resolve(const RRefHandle& handle) override;
  void undo_forks(WorkerId to, const std::vector<Fork>& forks) override;
  void adopt_forks(WorkerId from, Payload& payload, UniqueFunction<void(Status)> ready) override;
  void serve(WorkerId from, Call call, MaybeError refused) override;

  // ---- messages ----

  void on_fork_request(WorkerId from, const ForkRequest& request);
  void on_fork_confirm(WorkerId from, const ForkConfirm& confirm);
  void on_child_accept(WorkerId from, const ChildAccept& accept);
  void on_user_delete(WorkerId from, const UserDelete& user_delete);
  void on_peer_fenced(WorkerId peer, Incarnation incarnation, const Error& why);

  // Whether a handle is left.
  [[nodiscard]] bool holds_references() const;
  // Releases every handle that is left, at a graceful shutdown; returns a line for each.
  std::vector<std::string> release_all();
  // Drops everything: the node ends.
  void clear();
  // After `clear`: the values that references still name, here or elsewhere. A stack that has asked
  // for one with `local_value` may be using it: whoever takes them holds them until it has ended.
  // Their destructors run when the node has ended.
  [[nodiscard]] std::vector<HeldValue> take_values_left() {
    return std::exchange(values_left_, {});
  }

  [[nodiscard]] uint64_t owner_count() const { return owners_.size(); }
  [[nodiscard]] uint64_t shared_owner_count() const;  // that other workers refer to
  [[nodiscard]] uint64_t fork_count() const;
  [[nodiscard]] uint64_t handle_count() const;
  [[nodiscard]] uint64_t user_count() const { return users_.size(); }
  [[nodiscard]] uint64_t pending_user_count() const;
  // Whether the answer of `owner` is awaited: to a creation, or to that or a fork.
  [[nodiscard]] bool creates_at(WorkerId owner) const;
  [[nodiscard]] bool awaits(WorkerId owner) const;
  [[nodiscard]] uint64_t pending_child_count() const { return pending_children_.size(); }
  // Values that somebody here waits for, and that nobody has created yet.
  [[nodiscard]] uint64_t awaited_count() const { return to_come_.size(); }
  // "'a' waits for a value that 'b' has not created", of one of them; empty: there is none.
  [[nodiscard]] std::string describe_awaited() const;
  // The most of each that one peer has reached (PeerPeaks).
  [[nodiscard]] uint64_t references_peak() const {
    return std::max({created_by_.peak(), held_by_.peak(), given_by_.peak()});
  }
  [[nodiscard]] uint64_t awaited_peak() const { return awaited_by_.peak(); }
  // All that counts for a peer.
  [[nodiscard]] uint64_t tallied() const {
    return created_by_.total() + held_by_.total() + given_by_.total() + awaited_by_.total();
  }
  [[nodiscard]] uint64_t counts_for(WorkerId peer) const {
    return created_by_.count(peer) + held_by_.count(peer) + given_by_.count(peer) +
           awaited_by_.count(peer);
  }
  [[nodiscard]] uint64_t gaps_peak() const { return gaps_peak_; }
  // Those of exactly this type that are owned here and are there.
  [[nodiscard]] ValueViews values(std::type_index type) const;
  [[nodiscard]] std::string debug_info() const;
  [[nodiscard]] std::string check_invariants() const;
  void set_on_progress(Task task) { on_progress_ = std::move(task); }

 private:
  // to_come: a worker that is here has not created it yet; gone: it was, and its value is no more,
  // or nobody can create it.
  enum class Existence : uint8_t { to_come, alive, gone, lost };
  [[nodiscard]] Existence existence_of(const RRefId& id) const;
  [[nodiscard]] Error why_not_alive(const RRefId& id) const;
  [[nodiscard]] bool is_here(Incarnation incarnation) const;

  // Owner's side.
  OwnerRRef& add_owner(const RRefId& id);
  // `asker` will use it; `field`: where its message says so.
  void when_created(const RRefId& id, WorkerId asker, std::string_view field,
                    UniqueFunction<void(Status)> ready);
  [[nodiscard]] MaybeError why_too_many_awaited(const RRefId& id, WorkerId asker,
                                                std::string_view field);
  [[nodiscard]] MaybeError why_too_many_given(WorkerId from, uint64_t forks);
  [[nodiscard]] MaybeError why_too_many_held(WorkerId holder, uint64_t more) const;
  void accuse_later(WorkerId peer, const Violation& violation);
  [[nodiscard]] std::optional<Violation> why_too_many_created(WorkerId from, const RRefId& id);
  void end_awaited(const RRefId& created);
  void drop_awaited(WorkerId peer, Incarnation incarnation, const Error& why);
  // Of values that nobody creates any more.
  void refuse_awaited();
  void forget_counts(WorkerId peer);
  void complete_value(const RRefId& id, Result<HeldValue> value);
  void run_due();
  void drop_if_unused(const RRefId& id);
  void end_use(const RRefId& id);
  void register_fork(const RRefId& id, const CausalId& fork, WorkerId holder);
  [[nodiscard]] std::string function_name(const Call& call) const;
  void register_creator(const RRefId& id, const ForkId& fork, WorkerId creator);
  void serve_creation(WorkerId from, Call call, MaybeError refused);
  void admit(WorkerId from, Call call, MaybeError refused);
  void begin_use(WorkerId from, const std::shared_ptr<ArrivedCall>& arrived, const RRefId& target);
  void proceed(ArrivedCall& arrived);
  void serve_target(const std::shared_ptr<ServedCall>& served);
  void use_target(const std::shared_ptr<ServedCall>& served, Result<HeldValue> object);
  void refuse(const std::shared_ptr<ServedCall>& served, const Error& why);
  void with_value(const RRefId& id, UniqueFunction<void(Result<HeldValue>)> done);

  // User's side.
  void add_user(const ForkId& fork, UserRRef user);
  void delete_if_unused(const CausalId& fork);
  void answer_parent(const CausalId& fork);
  void settle_child(const CausalId& fork);
  void settle_user(const CausalId& fork, UserState state, MaybeError error);
  void when_confirmed(const CausalId& fork, UniqueFunction<void(Status)> ready);
  void give_back(WorkerId from, const std::vector<Fork>& forks);
  [[nodiscard]] MaybeError why_impossible(const std::vector<Fork>& forks) const;
  [[nodiscard]] bool is_ours_and_not_created(const RRefId& id) const;
  void adopt_as_owner(WorkerId from, const Fork& fork, std::shared_ptr<RRefHandle> handle,
                      UniqueFunction<void(Status)> ready);
  void adopt_as_user(WorkerId from, const Fork& fork);
  [[nodiscard]] MaybeError complete_creation(Draft& draft);
  void send_creation(Draft&& draft, RRefHandle& handle);
  void create_here(Draft&& draft, RRefHandle& handle);
  [[nodiscard]] std::unique_ptr<CarriedTensors> carried_by_creation(const Call& call);
  void send_creation_call(Draft&& draft, const RRefId& id, const ForkId& fork);
  [[nodiscard]] MaybeError why_unusable(const RRefHandle& handle) const;
  [[nodiscard]] RRefId with_counter(RRefId id);

  void trace_owner(EventKind kind, const RRefId& id);
  void trace_fork(EventKind kind, const CausalId& fork, const RRefId& rref,
                  WorkerId peer = kNoPeer);
  void progressed();
  [[nodiscard]] std::string origin_text(const Origin& origin) const;
  [[nodiscard]] std::string name(WorkerId id) const { return options_.names[id.value]; }
  [[nodiscard]] std::shared_ptr<RRefHandle> make_handle(const RRefId& id,
                                                        std::optional<ForkId> fork);

  const SessionOptions& options_;
  NodeStrand& strand_;
  Sessions& sessions_;
  Deadlines& deadlines_;
  PendingCalls& pending_;
  ServedCalls& served_;
  std::shared_ptr<const Caller> caller_;
  RecordHook* records_ = nullptr;

  std::map<RRefId, OwnerRRef> owners_;
  std::map<Incarnation, CreatedIds> created_;
  // By creator and its number of the value. The asker may have been told another name of it.
  std::map<std::pair<Incarnation, uint64_t>, std::vector<AwaitsCreation>> to_come_;
  std::map<CausalId, UserRRef> users_;
  // Of those that the shutdown has released: a function that still runs may have their handles.
  std::set<CausalId> released_unconfirmed_;
  std::map<CausalId, PendingChild> pending_children_;
  std::vector<HeldValue> values_left_;
  std::deque<Task> due_;  // what waited for a value that is there now; empty between messages
  bool runs_due_ = false;
  std::map<WorkerId, std::pair<Incarnation, uint64_t>> next_counters_;  // by owner
  // By peer: values that it has created here, forks that it holds of values of this worker or has
  // not accepted yet, forks that it has given to this worker, and its uses of values that are to
  // come. See PeerLimits.
  PeerTally created_by_;
  PeerTally held_by_;
  PeerTally given_by_;
  PeerTally awaited_by_;
  uint64_t gaps_peak_ = 0;  // among the creations of one peer
  bool closed_ = false;
  Task on_progress_;
};

}  // namespace rehearsal
