#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/api/call_port.h"
#include "core/api/deadline_id.h"
#include "core/api/shield.h"
#include "core/base/future.h"
#include "core/functions/function_registry.h"

namespace rehearsal {

class AutogradContexts;
class Checkpoints;
class Deadlines;
class DeviceTable;
class Gatherings;
class PublishedNames;
class RecordHook;
class WorkerPort;
class WorkerStates;

// The identity of a worker. Equal if the worker is; may be sent.
struct WorkerInfo {
  std::string name;
  WorkerId id;
  bool operator==(const WorkerInfo& other) const { return id == other.id; }
  auto operator<=>(const WorkerInfo& other) const { return id <=> other.id; }
  friend void describe(WorkerInfo& info, auto&& fields) { fields(info.name, info.id.value); }
};

// The worker that a call goes to: by name, rank, id or WorkerInfo.
class Target {
 public:
  Target(const char* name) : name_(name) {}
  Target(std::string name) : name_(std::move(name)) {}
  // A rank that nobody has is refused by the call, as a name is.
  template <std::signed_integral Rank>
  Target(Rank rank)
      : id_(std::in_range<uint32_t>(rank) ? WorkerId{static_cast<uint32_t>(rank)}
                                          : WorkerId{UINT32_MAX}) {}
  Target(WorkerId id) : id_(id) {}
  Target(const WorkerInfo& worker) : id_(worker.id) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::optional<WorkerId>& id() const { return id_; }

 private:
  std::string name_;
  std::optional<WorkerId> id_;
};

namespace detail {

template <class T>
void read_into(ValueReader& reader, void* place) {
  static_cast<std::optional<T>*>(place)->emplace(Value<T>::read(reader));
}
template <class T>
void read_given(ValueReader& reader, void* place) {
  *static_cast<std::unique_ptr<GivenValue>*>(place) =
      std::make_unique<ValueOf<T>>(Value<T>::read(reader));
}

// Whether an A can be written as a P.
template <class P, class A>
concept writes = requires(ValueWriter& writer, const A& argument) {
  Value<P>::write(writer, argument);
};

}  // namespace detail

// The object by which typed code reaches its node. Outlives the node.
class Caller {
 public:
  Caller(std::shared_ptr<NodeStrand> strand, std::shared_ptr<const FunctionRegistry> registry,
         std::vector<std::string> names, Duration rpc_timeout)
      : strand_(std::move(strand)),
        registry_(std::move(registry)),
        names_(std::move(names)),
        rpc_timeout_(rpc_timeout) {}

  // The parts that the caller of one node works with; all of them die with the node.
  struct Parts {
    CallPort* calls = nullptr;
    RecordHook* records = nullptr;  // null: nothing is recorded
    AutogradContexts* contexts = nullptr;
    Deadlines* deadlines = nullptr;
    Gatherings* gatherings = nullptr;
    PublishedNames* published = nullptr;
    WorkerPort* node = nullptr;
    const WorkerStates* states = nullptr;
    Checkpoints* checkpoints = nullptr;    // null: this worker has no place for any
    const DeviceTable* devices = nullptr;  // null: there are no device maps
  };
  void set_parts(const Parts& parts) { parts_ = parts; }

  // A draft of a call by the running execution, in the autograd context that this is recorded in.
  // Throws RpcError for a worker that does not exist, std::logic_error on a thread that is not
  // registered.
  [[nodiscard]] Draft draft(const Target& target) const;

  // Records the arguments' tensors in the context, if the draft has one. Before the call starts.
  void record(Draft& draft) const;

  // Starts it and parks until `answer` is there; the error is why this execution cannot wait.
  [[nodiscard]] Status wait_for(Draft& draft, std::optional<Result<Answer>>& answer) const;

  // Starts it. `done` runs on the strand; never if the node has ended by then.
  void start(Draft&& draft, WhenAnswered done) const;

  // Reads a value into a place of its type.
  using ReadInto = void (*)(ValueReader& reader, void* place);

  // The value of an answer; makes its tensors outputs of a receive function.
  template <class T>
  [[nodiscard]] Result<T> decode(Answer&& answer) const {
    std::optional<T> value;
    Status status = read_answer(answer, &detail::read_into<T>, &value);
    if (!status.ok()) return std::move(status.error());
    return *std::move(value);
  }

  // `start`, decoded.
  template <class T>
  [[nodiscard]] Future<T> start_typed(Draft&& draft) const {
    auto state = std::make_shared<FutureState<T>>(strand_, draft.call.id);
    if constexpr (detail::CheckedValue<T>::holds)
      start_future(std::move(draft), state, &detail::read_given<T>);
    return Future<T>(std::move(state));
  }
  template <class T>
  [[nodiscard]] Result<T> wait_typed(Draft&& draft) const {
    std::optional<Result<Answer>> answer;
    if (Status status = wait_for(draft, answer); !status.ok()) return std::move(status.error());
    if (!answer->ok()) return std::move(answer->error());
    if constexpr (detail::CheckedValue<T>::holds) return decode<T>(std::move(*answer).value());
  }

  // The name of a call: `rpc_sync#add(trainer -> ps)`.
  [[nodiscard]] std::string text_of(CallForm form, const Draft& draft) const {
    return call_text(form, draft.function, strand_->name(), names_[draft.to.value]);
  }

  // Runs `body` on the strand, where the node's tables may be read; the calling stack parks for
  // this moment and is said to wait for `what`. Throws RpcError if it cannot wait.
  void visit_strand(std::string_view what, const std::function<void()>& body) const;

  // The instant at which so much time has passed.
  [[nodiscard]] Instant when_passed(Duration time) const;

  // A future that is complete once so much time has passed. Any thread, any stack; never parks.
  [[nodiscard]] Future<Unit> after(Duration time) const;

  // Runs `task` on the strand at that instant, unless it is taken back. On the strand, while it is
  // open.
  [[nodiscard]] DeadlineId call_at(Instant when, Task task) const;
  void take_back(const DeadlineId& id) const;

  // While the shield lives the running execution calls in a time of its own: see
  // WorkerAccess::shielded.
  [[nodiscard]] Shield shield(Duration time) const;

  // Parks the calling stack until so much time has passed. Throws RpcError when the node ends.
  void sleep(Duration time) const;

  // Parks until the worker is there; returns when the time would have been up, if ever. Throws
  // RpcError: timeout, with why the worker was lost, if it was.
  std::optional<Instant> await_worker(WorkerId worker, Timeout timeout) const;

  [[nodiscard]] WorkerId find(const Target& target) const;
  [[nodiscard]] const std::shared_ptr<NodeStrand>& strand() const { return strand_; }
  [[nodiscard]] const FunctionRegistry& registry() const { return *registry_; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  // How long the draft's call may take. On the strand.
  [[nodiscard]] Duration time_left(const Draft& draft) const;

  // How long calls may take that name no other time; zero: for ever. Fixed for each when it is
  // sent. On the strand.
  [[nodiscard]] Duration rpc_timeout() const { return rpc_timeout_; }
  void set_rpc_timeout(Duration timeout) const { rpc_timeout_ = timeout; }

  // Off the strand as well.
  [[nodiscard]] WorkerPort& node() const { return *parts_.node; }
  [[nodiscard]] const WorkerStates& states() const { return *parts_.states; }
  [[nodiscard]] Checkpoints* checkpoints() const { return parts_.checkpoints; }

  // To be used on the strand, while it is open.
  [[nodiscard]] CallPort& calls() const { return *parts_.calls; }
  [[nodiscard]] AutogradContexts& contexts() const { return *parts_.contexts; }
  [[nodiscard]] Gatherings& gatherings() const { return *parts_.gatherings; }
  [[nodiscard]] PublishedNames& published() const { return *parts_.published; }

 private:
  void start_on_strand(Draft&& draft, CallForm form, WhenAnswered done) const;
  [[nodiscard]] Status read_answer(Answer& answer, ReadInto read, void* place) const;
  // Completes `state`, the future of the draft's call, with what `read` makes of the answer: a
  // std::unique_ptr<GivenValue>.
  void start_future(Draft&& draft, std::shared_ptr<FutureCore> state, ReadInto read) const;
  void record_answer(Answer& answer) const;

  const std::shared_ptr<NodeStrand> strand_;
  const std::shared_ptr<const FunctionRegistry> registry_;
  const std::vector<std::string> names_;
  mutable Duration rpc_timeout_;  // belongs to the strand
  Parts parts_;
};

// Encodes arguments as the parameters' types into the draft's payload, which is empty. Throws
// RpcError (bad_arguments) for values that cannot be sent; it names the draft's function, and
// `worker`, which calls.
template <class... P, class... A>
void encode_arguments(Parameters<P...>, Draft& draft, const std::string& worker,
                      const A&... arguments) {
  constexpr bool fits = sizeof...(P) == sizeof...(A);
  static_assert(fits, "wrong number of arguments");
  if constexpr (fits) {
    static_assert((detail::writes<P, A> && ...),
                  "an argument is of another type than the function's parameter, and does not "
                  "convert to it");
    try {
      ValueWriter writer(draft.call.arguments);
      if constexpr ((detail::writes<P, A> && ...)) (Value<P>::write(writer, arguments), ...);
      writer.finish(draft.devices, {}, draft.lend);
    } catch (const BadValue& bad) {
      throw RpcError({.kind = ErrorKind::bad_arguments,
                      .text = bad.what(),
                      .worker = worker,
                      .function = draft.function});
    }
  }
}

}  // namespace rehearsal

template <>
struct std::hash<rehearsal::WorkerInfo> {
  size_t operator()(const rehearsal::WorkerInfo& info) const {
    return std::hash<rehearsal::WorkerId>()(info.id);
  }
};
