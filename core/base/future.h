#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/future_core.h"
#include "core/base/node_strand.h"
#include "core/base/quiet_death.h"
#include "core/base/result.h"
#include "core/base/user_code.h"

namespace rehearsal {

// The shared state of a Future: belongs to the strand.
template <class T>
class FutureState final : public FutureCore {
 public:
  // `source`: the call whose answer it is, if it is one.
  FutureState(std::shared_ptr<NodeStrand> strand, const CausalId& source)
      : FutureCore(std::move(strand), source, typeid(T)) {}
  ~FutureState() {
    if constexpr (!kDiesQuietly<T>) end_value(std::move(value_), &death_label<T>);
  }

  // Of one that is complete with a value.
  [[nodiscard]] const T& value() const {
    REHEARSAL_CHECK(static_cast<bool>(value_));
    return *value_;
  }
  // A copy of what it is complete with.
  [[nodiscard]] Result<T> result() const {
    if (error() != nullptr) return *error();
    return value();
  }

  // Once; but what comes after it was cancelled comes too late, and is dropped: whoever makes the
  // value need not know. Observers run in the order they came. Throws what moving the value throws;
  // then it is not complete.
  void complete(Result<T> result) {
    if (!result.ok()) return fail(std::move(result.error()));
    if (ready()) return come_too_late(std::move(result).value());
    hold(std::move(result).value());  // It is not complete if this throws.
    static_cast<void>(become_ready());
    run_observers();
  }

  // The state of a future of T, again.
  [[nodiscard]] static FutureState& of(FutureCore& core) { return static_cast<FutureState&>(core); }
  [[nodiscard]] static const FutureState& of(const FutureCore& core) {
    return static_cast<const FutureState&>(core);
  }

 private:
  void hold(T&& value) {
    if constexpr (kDiesQuietly<T>)
      value_.emplace(std::move(value));
    else
      value_ = std::make_shared<T>(std::move(value));
  }
  void come_too_late(T&& value) {
    static_cast<void>(become_ready());
    if constexpr (!kDiesQuietly<T>)
      end_value(std::make_shared<T>(std::move(value)), &death_label<T>);
  }

  std::conditional_t<kDiesQuietly<T>, std::optional<T>, std::shared_ptr<T>> value_;
};

template <class T>
class Promise;

template <class T>
class Future;

template <class T>
inline constexpr bool is_future = false;
template <class T>
inline constexpr bool is_future<Future<T>> = true;

// The caller's type for a function's result: void is Unit, Future<T> is T.
template <class T>
struct Awaited {
  using type = T;
};
template <>
struct Awaited<void> {
  using type = Unit;
};
template <class T>
struct Awaited<Future<T>> {
  using type = typename Awaited<T>::type;
};

// A value to come, or its error; completed exactly once. A handle: copies name the same value.
// When the last handle is dropped, a value whose destructor is a user's dies by an execution of its
// own that may park, named `~Type`.
// Every wait ends: with the value, with an error that names worker and cause, or, when the node
// ends, with why it ended.
template <class T>
class Future {
 public:
  using value_type = T;

  // Empty; only to be assigned to.
  Future() = default;
  explicit Future(std::shared_ptr<FutureCore> state) : state_(std::move(state)) {}

  [[nodiscard]] bool valid() const { return state_ != nullptr; }

  // Whether the value or the error is there, or never will be because the node has ended. Parks
  // only for a moment, if the strand is busy; throws RpcError (would_park) where nothing may park.
  [[nodiscard]] bool ready() const { return state_->ready_now(); }

  // The value, or the error. Parks.
  [[nodiscard]] Result<T> result() const {
    Status awaited = state_->await();
    if (!awaited.ok()) return std::move(awaited.error());
    return FutureState<T>::of(*state_).value();
  }

  // The value; throws RpcError, or what was thrown itself if its type is registered (throw_error).
  // Parks.
  T wait() const {
    state_->await().or_throw();
    return FutureState<T>::of(*state_).value();
  }

  // Runs `body` when this is complete, as an execution of its own that may not park. Destructors of
  // the values that it holds may: they run when it has run, or when it never will. A body that
  // takes a T is skipped on error (the error goes on to the result); one that takes a Result<T>
  // always runs. Its result or exception completes the returned future; a returned Future<U> is
  // followed.
  template <class F>
  auto then(F body) const;

  // Completes it with `cancelled` at once, unless it is complete, and gives up what makes its
  // value: the callee of a call is told, and what the call has called in turn is given up there; so
  // is the future that this one continues, and each that it is gathered from. Dropping a future
  // gives up nothing. Any thread; never parks.
  void cancel() const { state_->post_cancel(); }

  // Whether it is complete, and with which error; the value by FutureState<T>::of.
  [[nodiscard]] const std::shared_ptr<FutureCore>& core() const { return state_; }
  [[nodiscard]] std::shared_ptr<FutureState<T>> state() const {
    return std::static_pointer_cast<FutureState<T>>(state_);
  }

 private:
  std::shared_ptr<FutureCore> state_;  // a FutureState<T>
};

namespace detail {

// A value of a future of T.
template <class T>
class ValueOf final : public GivenValue {
 public:
  explicit ValueOf(T value) : value_(std::move(value)) {}
  void complete(FutureCore& state) override {
    FutureState<T>::of(state).complete(std::move(value_));
  }
  void end(const FutureCore& state) override {
    if constexpr (!kDiesQuietly<T>)
      state.end_value(std::make_shared<T>(std::move(value_)), &death_label<T>);
  }

 private:
  T value_;
};

template <class T>
Given given(Result<T> result) {
  if (!result.ok()) return std::move(result.error());
  return Given(std::make_unique<ValueOf<T>>(std::move(result).value()));
}

// The value that another future of the same type will have.
class FollowedFuture final : public GivenValue {
 public:
  using Copy = void (*)(FutureCore& from, FutureCore& to);
  // `followed`: null for an empty future. `copy` completes one with what the other has.
  FollowedFuture(std::shared_ptr<FutureCore> followed, Copy copy)
      : followed_(std::move(followed)), copy_(copy) {}
  void complete(FutureCore& state) override;
  void come_too_late() override;

 private:
  const std::shared_ptr<FutureCore> followed_;
  const Copy copy_;
};

// Calls `body` with a Result<T>, or with its value.
template <class T, class F>
decltype(auto) call_continuation(F& body, const FutureState<T>& complete) {
  if constexpr (std::invocable<F&, const Result<T>&>) {
    return body(complete.result());
  } else if constexpr (std::is_same_v<T, Unit> && std::invocable<F&>) {
    return body();
  } else {
    return body(complete.value());
  }
}

template <class T, class F>
using ContinuationResult =
    decltype(call_continuation<T>(std::declval<F&>(), std::declval<const FutureState<T>&>()));

template <class T, class F>
class ContinuationOf final : public Continuation {
 public:
  explicit ContinuationOf(F body) : body_(std::move(body)) {}

  [[nodiscard]] bool takes_errors() const override { return std::invocable<F&, const Result<T>&>; }
  [[nodiscard]] bool dies_quietly() const override { return kDiesQuietly<F>; }

  [[nodiscard]] std::unique_ptr<GivenValue> run(const FutureCore& complete) override {
    using Raw = ContinuationResult<T, F>;
    const FutureState<T>& state = FutureState<T>::of(complete);
    if constexpr (std::is_void_v<Raw>) {
      call_continuation<T>(body_, state);
      return std::make_unique<ValueOf<Unit>>(Unit{});
    } else if constexpr (is_future<std::decay_t<Raw>>) {
      using U = typename Awaited<std::decay_t<Raw>>::type;
      return std::make_unique<FollowedFuture>(
          call_continuation<T>(body_, state).core(), [](FutureCore& from, FutureCore& to) {
            FutureState<U>::of(to).complete(FutureState<U>::of(from).result());
          });
    } else {
      return std::make_unique<ValueOf<std::decay_t<Raw>>>(call_continuation<T>(body_, state));
    }
  }

 private:
  F body_;
};

}  // namespace detail

// The writing end of a Future. A handle: copies name the same one. When the last copy dies without
// having completed it, the future fails with `cancelled`. May be completed from any thread; only
// the first completion counts.
template <class T>
class Promise {
 public:
  explicit Promise(std::shared_ptr<NodeStrand> strand, const CausalId& source = {})
      : core_(std::make_shared<const PromiseCore>(
            std::make_shared<FutureState<T>>(std::move(strand), source))) {}

  [[nodiscard]] Future<T> future() const { return Future<T>(core_->state()); }
  void complete(Result<T> result) const { core_->complete(detail::given(std::move(result))); }

 private:
  std::shared_ptr<const PromiseCore> core_;
};

template <class T>
template <class F>
auto Future<T>::then(F body) const {
  using Raw = detail::ContinuationResult<T, F>;
  using U =
      typename Awaited<std::conditional_t<std::is_void_v<Raw>, Unit, std::decay_t<Raw>>>::type;
  auto next = std::make_shared<FutureState<U>>(state_->strand(), state_->source());
  continue_with(state_, next, std::make_unique<detail::ContinuationOf<T, F>>(std::move(body)));
  return Future<U>(std::move(next));
}

}  // namespace rehearsal
