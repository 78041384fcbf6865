#pragma once

#include <memory>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "core/base/error.h"
#include "core/base/execution.h"
#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/stream_set.h"
#include "core/base/unique_function.h"

// The parts of a future that do not depend on the type of its value. They are compiled once: a
// program has a future of another type for every function that it calls.
namespace rehearsal {

class NodeStrand;

// The shared state of a future, without its value. Belongs to the strand.
class FutureCore : public std::enable_shared_from_this<FutureCore> {
 public:
  FutureCore(const FutureCore&) = delete;
  FutureCore& operator=(const FutureCore&) = delete;

  // Complete, with a value or an error.
  [[nodiscard]] bool ready() const { return ready_; }
  // The error that it is complete with; null: it has a value, or is not complete.
  [[nodiscard]] const Error* error() const { return error_ ? &*error_ : nullptr; }
  [[nodiscard]] const std::shared_ptr<NodeStrand>& strand() const { return strand_; }
  // The call whose answer it is, if it is one.
  [[nodiscard]] const CausalId& source() const { return source_; }
  // Tells what completes this future from what completes others; the same in every process.
  [[nodiscard]] uint64_t tag() const;

  // Is given the complete state. It must not own the state: the state would own itself.
  using Observer = UniqueFunction<void(FutureCore&)>;

  // Runs `observer` on the strand when the future is complete; now if it is.
  void observe(Observer observer);

  // Code that makes the value, as a continuation or the reading of an answer, gives its work on
  // devices to these streams: those of whoever asked for it. Null: to any.
  void work_in(Streams streams) { streams_ = std::move(streams); }
  [[nodiscard]] const Streams& streams() const { return streams_; }

  // A use of its value comes after these points of the streams that have made it; null: none.
  // Before it is complete.
  void made_by(std::shared_ptr<const StreamMarks> marks) {
    if (marks != nullptr) marks_.push_back(std::move(marks));
  }
  // The value is made of that of another one.
  void made_of(const FutureCore& other) {
    marks_.insert(marks_.end(), other.marks_.begin(), other.marks_.end());
  }
  // The calling code comes after them with all that it gives to devices from now on. It is
  // complete. Also off the strand.
  void join_streams() const { join_all(marks_); }
  [[nodiscard]] const AllMarks& marks() const { return marks_; }

  // Completes it with an error, by the rule of FutureState::complete.
  void fail(Error why);

  // Runs `body`, which completes it: with its exception, if it throws one. Copying and moving a
  // value runs the value's own code. On the strand.
  template <class F>
  void complete_by(F body) {
    try {
      body();
    } catch (...) {
      fail_with_exception();
    }
  }

  // Gives up whatever makes the value; returns why for those who wait for it. It must not own the
  // state, nor a state that owns this one.
  using Canceller = UniqueFunction<Error()>;
  void set_canceller(Canceller canceller) { canceller_ = std::move(canceller); }

  // Completes it with `cancelled`, and gives up what makes the value; nothing if it is complete.
  void cancel();
  [[nodiscard]] Error cancelled_error() const;

  // ---- off the strand ----

  // Whether it is complete, or never will be because the node has ended. Parks for a moment; throws
  // RpcError (would_park) where nothing may park.
  [[nodiscard]] bool ready_now() const;

  // Parks until it has a value; else returns why it has none.
  [[nodiscard]] Status await() const;

  // Cancels it on the strand. Never parks.
  void post_cancel();

  // ---- anywhere ----

  // Of a user's value that nobody takes any more: destroys it by an execution of its own. Null:
  // nothing.
  void end_value(std::shared_ptr<void> value, std::string_view (*label)()) const;

 protected:
  FutureCore(std::shared_ptr<NodeStrand> strand, const CausalId& source,
             const std::type_info& value_type)
      : strand_(std::move(strand)), source_(source), value_type_(value_type) {}
  ~FutureCore() = default;  // A shared pointer knows the whole type.

  // Makes it complete; false: the value comes too late, behind a cancellation.
  [[nodiscard]] bool become_ready();
  void run_observers();

 private:
  // Of the exception that is handled. One that comes when it is complete is rethrown.
  void fail_with_exception();

  const std::shared_ptr<NodeStrand> strand_;
  const CausalId source_;
  const std::type_info& value_type_;
  bool ready_ = false;
  MaybeError error_;
  Streams streams_;
  AllMarks marks_;
  std::vector<Observer> observers_;
  Canceller canceller_;
};

// Gives `followed` up with whoever follows it, while it is there. Returns why it has no value.
void cancel_with(FutureCore& follower, const std::shared_ptr<FutureCore>& followed);

// A value on its way to the future that it completes.
class GivenValue {
 public:
  virtual ~GivenValue() = default;
  // Completes `state`, which is not complete. On the strand.
  virtual void complete(FutureCore& state) = 0;
  // The future was complete before. On the strand.
  virtual void come_too_late() {}
  // It has not completed `state`, and never will. Anywhere.
  virtual void end(const FutureCore& state) { static_cast<void>(state); }
};

// A value to give, or why there is none.
using Given = Result<std::unique_ptr<GivenValue>>;

// The writing end of a future. When it dies without having completed it, the future fails with
// `cancelled`. Any thread; never parks.
class PromiseCore {
 public:
  explicit PromiseCore(std::shared_ptr<FutureCore> state) : state_(std::move(state)) {}
  ~PromiseCore();
  PromiseCore(const PromiseCore&) = delete;
  PromiseCore& operator=(const PromiseCore&) = delete;

  // Only the first one counts.
  void complete(Given given) const;
  void fail(Error why) const { complete(Given(std::move(why))); }

  [[nodiscard]] const std::shared_ptr<FutureCore>& state() const { return state_; }

 private:
  const std::shared_ptr<FutureCore> state_;
};

// The body given to Future::then.
class Continuation {
 public:
  virtual ~Continuation() = default;
  // Its calls are nested as deeply as those of the execution that gave it, which may wait for it,
  // and recorded in the same context.
  uint32_t depth = 0;
  RecordedIn context;
  [[nodiscard]] virtual bool takes_errors() const = 0;
  // Whether nothing of the user's dies with it (kDiesQuietly).
  [[nodiscard]] virtual bool dies_quietly() const = 0;
  // User code: off the strand, and may throw.
  [[nodiscard]] virtual std::unique_ptr<GivenValue> run(const FutureCore& complete) = 0;
};

// Runs `body` when `state` is complete, as an execution of its own, and completes `next` with what
// it gives. Any thread; never parks.
void continue_with(const std::shared_ptr<FutureCore>& state,
                   const std::shared_ptr<FutureCore>& next, std::unique_ptr<Continuation> body);

}  // namespace rehearsal
