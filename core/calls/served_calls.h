#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <typeindex>

#include "core/base/monitor.h"
#include "core/base/spare_nodes.h"
#include "core/calls/calls_in_order.h"
#include "core/calls/deadlines.h"
#include "core/calls/fair_queue.h"
#include "core/calls/hooks.h"
#include "core/calls/outgoing_stream.h"
#include "core/calls/pending_calls.h"
#include "core/functions/function_registry.h"
#include "core/session/session_options.h"
#include "core/values/device_table.h"

namespace rehearsal {

class Sessions;
struct SendOptions;

// One call that arrived. Lives until it is answered and its execution has ended.
struct ServedCall {
  ServedCall(WorkerId from, Call&& arrived) : caller(from), call(std::move(arrived)) {}

  const WorkerId caller;
  Call call;
  std::string_view label;  // the function's name
  std::optional<Execution> execution;
  std::optional<Instant> deadline;  // when the caller gives up
  // These belong to the strand.
  bool cancelled = false;                       // the caller has given up
  MaybeError refused;                           // what it is answered instead of being run
  UniqueFunction<void(Status)> when_confirmed;  // while its references are not
  std::shared_ptr<OutgoingStream> stream;       // its answer, if that is one, from when it runs
  Task on_given_up;                             // while its function has returned a Future
  bool only_waits = false;                      // so, and nothing of it runs here
  uint64_t bytes = 0;                           // of its arguments, if a peer has made it
  // Fixed when it runs: for the answer; null: its caller has no map for this worker.
  std::shared_ptr<const DeviceMap> devices;
};

// Makes the CallContext of a served call and runs `body` with it.
using WithContext =
    std::function<void(const std::shared_ptr<ServedCall>&, UniqueFunction<void(CallContext&)>)>;

// The target of a served call: the object of a method and the monitor that guards it.
struct ServedTarget {
  HeldValue object;
  std::shared_ptr<Monitor> monitor;
};

struct ServedCallsOptions {
  // Functions executing at once; nested calls, creations and what runs inline aside.
  uint32_t execution_limit = 0;
  // Calls waiting for that, workers taking turns. When there are more, the last of the worker that
  // has most waiting is refused.
  uint32_t queue_limit = 0;
  // Calls of all kinds that are not answered. One more is refused: what is nested or creates a
  // value waits for no place, and a fetch waits for its value, so that a flood of them would grow
  // without end.
  uint32_t served_limit = 1 << 17;
  // Nested calls of one worker that execute at once. They wait for no place, so one more is
  // refused.
  uint32_t nested_limit = 1 << 14;
};

// The calls that this node serves: decodes, runs and answers them, each at most once. On the
// strand.
class ServedCalls {
 public:
  // `nested`: the calls that those served here make.
  ServedCalls(ServedCallsOptions options, const SessionOptions& session_options, NodeStrand& strand,
              Sessions& sessions, PendingCalls& nested, const FunctionRegistry& registry)
      : options_(options),
        session_options_(session_options),
        strand_(strand),
        sessions_(sessions),
        nested_(nested),
        registry_(registry) {}

  // The device maps, which outlive this; without, answers hold no tensors of devices.
  void set_devices(const DeviceTable& devices) { devices_ = &devices; }

  void set_hooks(ForkHook* forks, RecordHook* records, ReferenceHook* references,
                 WithContext with_context) {
    forks_ = forks;
    records_ = records;
    references_ = references;
    with_context_ = std::move(with_context);
  }

  void on_call(WorkerId from, Call&& call);
  void on_cancel(WorkerId from, const Cancel& cancel);
  void on_credit(WorkerId from, const Credit& credit);
  void on_peer_fenced(WorkerId peer);
  // It has acknowledged something: what waited for that goes on.
  void on_read(WorkerId peer);

  // For the ReferenceHook. Takes the call in and adopts its forks; `ready` runs when these are
  // confirmed, or with why the call may not start.
  std::shared_ptr<ServedCall> admit(WorkerId from, Call call, UniqueFunction<void(Status)> ready);

  // Runs the call's function, on `target` if it is a method. If `created` is given it gets the
  // value, else the value is the answer. `done` runs at the end.
  void run(const std::shared_ptr<ServedCall>& served, ServedTarget target, Finisher created,
           Task done);

  // Answers with a value: encodes it off the strand, in its monitor. `done` runs at the end.
  void answer(const std::shared_ptr<ServedCall>& served, ServedTarget value, Task done);
  void answer_error(const std::shared_ptr<ServedCall>& served, Error error);

  // The call is over without an answer (it created a reference); `failed`: with an error.
  void forget(const std::shared_ptr<ServedCall>& served, std::optional<ErrorKind> failed);

  // Drops every call, unanswered: the node ends.
  void clear();

  // Calls that are not answered, and executions that have not ended.
  [[nodiscard]] uint64_t size() const { return served_.size() + running_; }
  // Calls that only wait, for what another worker does; and all others, once each.
  [[nodiscard]] uint64_t waiting() const;
  [[nodiscard]] uint64_t executions() const {
    return std::max<uint64_t>(served_.size() - waiting(), running_);
  }
  // Cancellations whose calls may still come.
  [[nodiscard]] uint64_t early_cancel_count() const;
  // The most of them of one peer; and the most memory that the arguments of one call have taken.
  [[nodiscard]] uint64_t early_cancels_peak() const { return early_cancels_peak_; }
  [[nodiscard]] uint64_t decoded_peak() const { return decoded_peak_; }
  // The most bytes that the arguments of one peer's calls have taken at once.
  [[nodiscard]] uint64_t bytes_peak() const { return bytes_of_.peak(); }
  // Of cancellations of one peer whose calls may still come.
  [[nodiscard]] bool expects_cancelled_calls_of(WorkerId peer) const {
    return early_cancels_.contains(peer);
  }
  // Of nested calls and of bytes, whatever counts for a peer.
  [[nodiscard]] uint64_t tallied() const { return nested_of_.total() + bytes_of_.total(); }
  // Calls that were given up while the values of their functions are still to come.
  [[nodiscard]] uint64_t given_up_count() const { return given_up_.size(); }

  // After `clear`: the objects whose methods' values will not come. The code that should have given
  // these, such as a batch, may still run: whoever takes the objects holds them until it has ended.
  [[nodiscard]] std::vector<HeldValue> take_objects_left() {
    return std::exchange(objects_left_, {});
  }

 private:
  // The outcome of a run: an answer, or a value that somebody else needs, or that is to come.
  using Outcome = std::variant<Response, Returned>;
  struct Run {
    std::shared_ptr<ServedCall> served;
    ServedTarget target;
    Finisher created;
    Task done;
    bool counts = false;                     // against the limit
    bool is_nested = false;                  // and against that of nested calls
    bool given_up = false;                   // while its value was awaited
    std::optional<Result<Outcome>> outcome;  // once it has run
  };

  [[nodiscard]] std::shared_ptr<ServedCall> take_in(WorkerId from, Call&& call);
  // `ready` runs in a turn of its own.
  void await_forks(const std::shared_ptr<ServedCall>& served, UniqueFunction<void(Status)> ready);
  void settle_forks(const std::shared_ptr<ServedCall>& served, Status confirmed);
  void start(const std::shared_ptr<ServedCall>& served, const Status& ready);
  void give_up(const std::shared_ptr<ServedCall>& served);
  void end_waiting(const std::shared_ptr<ServedCall>& served);
  void forget_old_cancels(WorkerId from);
  [[nodiscard]] bool was_cancelled_early(WorkerId from, const CallId& call);
  [[nodiscard]] MaybeError why_refused(WorkerId from, const Call& call);
  // Of a rule about callers: `from` is the worker at the other end of the link.
  [[nodiscard]] MaybeError why_kept_out(WorkerId from, const CallerRule& callers,
                                        std::string_view called) const;
  [[nodiscard]] MaybeError why_not_fetched(WorkerId from, std::type_index type) const;
  [[nodiscard]] MaybeError why_overloaded(WorkerId from) const;
  [[nodiscard]] Error overloaded(uint32_t calls, const char* which) const;
  void drop_unused(Payload& arguments);
  [[nodiscard]] Error repeated() const;
  [[nodiscard]] StackPlacement placement_of(const Call& call) const;
  // Against the limit of those that execute at once.
  [[nodiscard]] bool counts(const Call& call) const;
  void begin(std::shared_ptr<Run> run);
  void launch(std::shared_ptr<Run> run);
  void fix_devices(ServedCall& served) const;
  void enter(std::shared_ptr<Run> run, StackPlacement placement);
  void perform(Run& run);
  template <class F>
  [[nodiscard]] auto guarded(const ServedCall& served, F body) -> Result<std::invoke_result_t<F>>;
  [[nodiscard]] Returned invoke(Run& run);
  [[nodiscard]] Response encode(const ServedCall& served, const HeldValue& value);
  void ended(const std::shared_ptr<Run>& run, Result<Outcome>&& outcome);
  void conclude(const std::shared_ptr<Run>& run, Result<Outcome>&& outcome);
  void await_value(const std::shared_ptr<Run>& run, PendingValue pending);
  void stop_awaiting(const std::shared_ptr<Run>& run);
  // Whether the life that has called is there: a later one of its worker is owed nothing.
  [[nodiscard]] bool is_awaited(const ServedCall& served) const;
  void send_answer(const std::shared_ptr<ServedCall>& served, Response&& answer);
  void open_stream(ServedCall& served, bool counts);
  void end_stream(const std::shared_ptr<ServedCall>& served, MaybeError error);
  [[nodiscard]] SendOptions put_exception(WorkerId to, const EncodedException& exception, End& end);
  void send_exception(const std::shared_ptr<ServedCall>& served, Error error);
  void start_queued();

  const ServedCallsOptions options_;
  const SessionOptions& session_options_;
  NodeStrand& strand_;
  Sessions& sessions_;
  PendingCalls& nested_;
  const FunctionRegistry& registry_;
  ForkHook* forks_ = nullptr;
  RecordHook* records_ = nullptr;
  ReferenceHook* references_ = nullptr;
  WithContext with_context_;
  const DeviceTable* devices_ = nullptr;
  using Table = std::map<CausalId, std::shared_ptr<ServedCall>>;
  Table served_;
  SpareNodes<Table> spare_;
  CallsInOrder in_order_;
  FairQueue<std::shared_ptr<Run>> queue_;
  std::map<WorkerId, std::deque<Task>> until_read_;  // by caller: calls, and answers not made yet
  // Of calls that may still be on their way, on the other lane: until all has come of what had been
  // sent by then.
  struct EarlyCancels {
    std::set<CausalId> calls;
    std::deque<std::pair<uint64_t, CausalId>> until;  // in their order; of some the call has come
  };
  std::map<WorkerId, EarlyCancels> early_cancels_;
  uint64_t early_cancels_peak_ = 0;
  uint64_t decoded_peak_ = 0;
  uint64_t running_ = 0;        // executions
  uint64_t running_outer_ = 0;  // of them, not nested
  PeerTally nested_of_;         // of them, nested, by caller
  PeerTally bytes_of_;          // of the arguments of what is served, by caller
  // Calls that were given up before the value of their function was there. Their objects live until
  // it comes, or the node is gone.
  std::map<CausalId, std::weak_ptr<Run>> given_up_;
  std::vector<HeldValue> objects_left_;
};

}  // namespace rehearsal
