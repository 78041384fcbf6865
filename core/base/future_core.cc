#include "core/base/future_core.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/future.h"
#include "core/base/hash.h"
#include "core/base/node_strand.h"
#include "core/base/short_text.h"
#include "core/base/user_code.h"

namespace rehearsal {

uint64_t FutureCore::tag() const {
  return mix(CausalIdHash()(source_), static_cast<uint64_t>(value_type_.hash_code()));
}

void FutureCore::observe(Observer observer) {
  if (ready_) return observer(*this);
  observers_.push_back(std::move(observer));
}

void FutureCore::fail(Error why) {
  if (!become_ready()) return;
  error_ = MaybeError(std::move(why));
  run_observers();
}

void FutureCore::fail_with_exception() {
  if (ready_) throw;
  fail(current_exception_as_error(strand_->name(), "a value's copy", strand_->exception_hook()));
}

void FutureCore::cancel() {
  if (ready_) return;
  Canceller canceller = std::exchange(canceller_, nullptr);
  Error why = canceller ? canceller() : cancelled_error();
  if (!ready_) fail(std::move(why));
}

Error FutureCore::cancelled_error() const {
  return {.kind = ErrorKind::cancelled,
          .text = "whoever waited for the value has cancelled it",
          .worker = strand_->name()};
}

bool FutureCore::ready_now() const {
  bool ready = false;
  const Status status = strand_->wait("a future's state", {}, [&](WaitHandle handle) {
    ready = ready_;
    handle.end();
  });
  if (!status.ok() && status.error().kind == ErrorKind::would_park) throw RpcError(status.error());
  return ready || !status.ok();
}

Status FutureCore::await() const {
  const Status status = strand_->wait("a future", source_, [this](WaitHandle handle) {
    // Observing changes nothing of what the future is.
    const_cast<FutureCore*>(this)->observe([handle](FutureCore&) { handle.end(); });
  });
  if (!status.ok()) {
    if (strand_->killed()) throw NodeKilled{};
    // A node that has ended still knows what was complete before.
    if (!strand_->closed() || !ready_) return status.error();
  }
  if (error_) return *error_;
  join_streams();
  return Unit{};
}

void FutureCore::post_cancel() {
  strand_->post([state = shared_from_this()] { state->cancel(); });
}

void FutureCore::end_value(std::shared_ptr<void> value, std::string_view (*label)()) const {
  if (value == nullptr) return;
  // Also where the stack that drops it may park: who drops it last is a matter of chance.
  strand_->post_always(Tagged(tag(), [strand = strand_, value = std::move(value), label]() mutable {
    strand->end_life(std::move(value), label());
  }));
}

bool FutureCore::become_ready() {
  if (ready_ && error_ && error_->kind == ErrorKind::cancelled) return false;
  REHEARSAL_CHECK(!ready_);
  canceller_ = nullptr;
  ready_ = true;
  return true;
}

void FutureCore::run_observers() {
  std::vector<Observer> observers = std::move(observers_);
  for (Observer& observer : observers) observer(*this);
}

void cancel_with(FutureCore& follower, const std::shared_ptr<FutureCore>& followed) {
  follower.set_canceller([&follower, weak = std::weak_ptr(followed)] {
    const std::shared_ptr<FutureCore> followed = weak.lock();
    if (followed) followed->cancel();
    if (followed && followed->error() != nullptr) return *followed->error();
    return follower.cancelled_error();
  });
}

namespace {

// Completes a future on the strand. Where the node has ended it dies unrun.
struct Settling {
  std::shared_ptr<FutureCore> state;
  Given given;
  std::shared_ptr<const StreamMarks> marks;
  bool taken = false;

  // On the stack that has made what is given.
  Settling(std::shared_ptr<FutureCore> of, Given value)
      : state(std::move(of)), given(std::move(value)) {
    if (given.ok()) marks = state->strand()->mark_streams();
  }
  Settling(Settling&&) noexcept = default;
  Settling& operator=(Settling&&) = delete;
  ~Settling() {
    if (!taken && given.ok() && given.value() != nullptr) given.value()->end(*state);
  }

  void operator()() {
    if (state->ready()) {
      if (given.ok()) given.value()->come_too_late();
      return;
    }
    taken = true;
    state->made_by(std::move(marks));
    if (given.ok())
      state->complete_by([&] { given.value()->complete(*state); });
    else
      state->fail(std::move(given.error()));
  }
};

}  // namespace

PromiseCore::~PromiseCore() {
  fail({.kind = ErrorKind::cancelled,
        .text = "the promise was dropped without a value",
        .worker = state_->strand()->name()});
}

void PromiseCore::complete(Given given) const {
  if (!given.ok()) shorten(given.error());  // The program may have made it.
  state_->strand()->post(Tagged(state_->tag(), Settling(state_, std::move(given))));
}

namespace {

// Runs a continuation off the strand. The body dies where it has run, or, unrun, by an execution of
// its own: user code is not destroyed on the strand.
struct ContinuationRun {
  std::shared_ptr<FutureCore> next;
  uint64_t tag;
  std::unique_ptr<Continuation> body;

  ContinuationRun(std::shared_ptr<FutureCore> next, uint64_t tag,
                  std::unique_ptr<Continuation> body)
      : next(std::move(next)), tag(tag), body(std::move(body)) {}
  ContinuationRun(ContinuationRun&&) noexcept = default;
  ContinuationRun& operator=(ContinuationRun&&) = delete;
  ~ContinuationRun() {
    if (body == nullptr || body->dies_quietly()) return;
    next->end_value(std::move(body), [] { return std::string_view("~continuation"); });
  }

  void operator()(const FutureCore& complete) const {
    NodeStrand& strand = *next->strand();
    Given given = [&]() -> Given {
      if (complete.error() != nullptr && !body->takes_errors()) return *complete.error();
      complete.join_streams();
      return run_user_code(
          strand.name(), kContinuation, [&] { return body->run(complete); },
          strand.exception_hook());
    }();
    strand.post(Tagged(tag, Settling(next, std::move(given))));
  }
};

}  // namespace

void continue_with(const std::shared_ptr<FutureCore>& state,
                   const std::shared_ptr<FutureCore>& next, std::unique_ptr<Continuation> body) {
  NodeStrand& strand = *state->strand();
  Execution& running = strand.running();
  const CausalId id = running.next_id();
  const uint64_t tag = CausalIdHash()(id);
  cancel_with(*next, state);
  body->depth = running.depth;
  body->context = running.context;
  next->work_in(StreamSet::current(strand.devices()));
  strand.post(Tagged(tag, [state, id, stream = running.stream_of(id),
                           run = ContinuationRun{next, tag, std::move(body)}]() mutable {
    state->observe([id, stream, run = std::move(run)](FutureCore& complete) mutable {
      const bool quiet = run.body->dies_quietly();
      InlineRun in{.id = id,
                   .depth = run.body->depth,
                   .context = run.body->context,
                   .stream = stream,
                   .streams = run.next->streams()};
      Task body = [state = complete.shared_from_this(), run = std::move(run)]() mutable {
        run(*state);
      };
      NodeStrand& strand = *complete.strand();
      if (quiet)
        strand.run_continuation(std::move(in), std::move(body));
      else
        strand.run_holding_continuation(std::move(in), std::move(body));
    });
  }));
}

namespace detail {

void FollowedFuture::complete(FutureCore& state) {
  if (followed_ == nullptr)
    return state.fail({.kind = ErrorKind::remote_exception,
                       .text = "the continuation returned an empty future",
                       .worker = state.strand()->name(),
                       .function = "continuation"});
  cancel_with(state, followed_);
  followed_->observe([next = state.shared_from_this(), copy = copy_](FutureCore& followed) {
    if (next->ready()) return;
    next->made_of(followed);
    next->complete_by([&] { copy(followed, *next); });
  });
}

void FollowedFuture::come_too_late() {
  if (followed_ != nullptr) followed_->cancel();
}

}  // namespace detail
}  // namespace rehearsal
