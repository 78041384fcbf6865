#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/mailbox.h"
#include "core/base/result.h"
#include "core/base/user_code.h"

namespace rehearsal {

// The shared state of a Future: belongs to the strand.
template <class T>
class FutureState : public std::enable_shared_from_this<FutureState<T>> {
 public:
  // `source`: the call whose answer it is, if it is one.
  FutureState(std::shared_ptr<Mailbox> mailbox, const CausalId& source)
      : mailbox_(std::move(mailbox)), source_(source) {}

  [[nodiscard]] bool ready() const { return result_.has_value(); }
  [[nodiscard]] const Result<T>& result() const { return *result_; }
  [[nodiscard]] const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }
  [[nodiscard]] const CausalId& source() const { return source_; }

  // Is given the complete state. It must not own the state: it would own itself.
  using Observer = UniqueFunction<void(FutureState&)>;

  // Gives up whatever makes the value; returns why for those who wait for it. It must not own the
  // state, nor a state that owns this one.
  using Canceller = UniqueFunction<Error()>;
  void set_canceller(Canceller canceller) { canceller_ = std::move(canceller); }

  // Completes it with `cancelled`, and gives up what makes the value; nothing if it is complete.
  void cancel() {
    if (ready()) return;
    Canceller canceller = std::exchange(canceller_, nullptr);
    Error why = canceller ? canceller() : cancelled_error();
    if (!ready()) complete(std::move(why));
  }
  [[nodiscard]] Error cancelled_error() const {
    return {.kind = ErrorKind::cancelled,
            .text = "whoever waited for the value has cancelled it",
            .worker = mailbox_->name()};
  }

  // Once; but what comes after it was cancelled comes too late, and is dropped: whoever makes the
  // value need not know. Observers run in the order they came.
  void complete(Result<T> result) {
    if (ready() && !result_->ok() && result_->error().kind == ErrorKind::cancelled) return;
    REHEARSAL_CHECK(!ready());
    canceller_ = nullptr;
    result_.emplace(std::move(result));
    std::vector<Observer> observers = std::move(observers_);
    for (Observer& observer : observers) observer(*this);
  }

  // Runs `observer` on the strand when complete; now if it is.
  void observe(Observer observer) {
    if (ready()) return observer(*this);
    observers_.push_back(std::move(observer));
  }

 private:
  const std::shared_ptr<Mailbox> mailbox_;
  const CausalId source_;
  std::optional<Result<T>> result_;
  std::vector<Observer> observers_;
  Canceller canceller_;
};

// Gives `followed` up with whoever follows it, while it is there. Returns why it has no value.
template <class T, class U>
void cancel_with(FutureState<U>& follower, const std::shared_ptr<FutureState<T>>& followed) {
  follower.set_canceller([&follower, weak = std::weak_ptr(followed)] {
    const std::shared_ptr<FutureState<T>> followed = weak.lock();
    if (followed) followed->cancel();
    if (followed && !followed->result().ok()) return followed->result().error();
    return follower.cancelled_error();
  });
}

template <class T>
class Promise;

template <class T>
class Future;

template <class T>
inline constexpr bool is_future = false;
template <class T>
inline constexpr bool is_future<Future<T>> = true;

// What a function's result is to its caller: void is Unit, Future<T> is T.
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
// Every wait ends: with the value, with an error that names worker and cause, or, when the node
// ends, with why it ended.
template <class T>
class Future {
 public:
  using value_type = T;

  // Empty; only to be assigned to.
  Future() = default;
  explicit Future(std::shared_ptr<FutureState<T>> state) : state_(std::move(state)) {}

  [[nodiscard]] bool valid() const { return state_ != nullptr; }

  // Whether the value or the error is there, or never will be because the node has ended. Parks
  // only for a moment, if the strand is busy; throws RpcError (would_park) where nothing may park.
  [[nodiscard]] bool ready() const {
    bool ready = false;
    const Status status = state_->mailbox()->wait("a future's state", {}, [&](WaitHandle handle) {
      ready = state_->ready();
      handle.end();
    });
    if (!status.ok() && status.error().kind == ErrorKind::would_park)
      throw RpcError(status.error());
    return ready || !status.ok();
  }

  // The value, or the error. Parks.
  [[nodiscard]] Result<T> result() const {
    const Status status =
        state_->mailbox()->wait("a future", state_->source(), [this](WaitHandle handle) {
          state_->observe([handle](FutureState<T>&) { handle.end(); });
        });
    if (status.ok()) return state_->result();
    return completed_anyway().value_or(status.error());
  }

  // The value; throws RpcError, or what was thrown itself if its type is registered (throw_error).
  // Parks.
  T wait() const { return result().or_throw(); }

  // Runs `body` when this is complete, as an execution of its own that may not park. A body that
  // takes a T is skipped on error (the error goes on to the result); one that takes a Result<T>
  // always runs. What it returns or throws completes the returned future; a returned Future<U>
  // is followed.
  template <class F>
  auto then(F body) const;

  // Completes it with `cancelled` at once, unless it is complete, and gives up what makes its
  // value: the callee of a call is told, and what the call has called in turn is given up there; so
  // is the future that this one continues, and each that it is gathered from. Dropping a future
  // gives up nothing. Any thread; never parks.
  void cancel() const {
    state_->mailbox()->post([state = state_] { state->cancel(); });
  }

  [[nodiscard]] const std::shared_ptr<FutureState<T>>& state() const { return state_; }

 private:
  // A node that has ended still knows what was complete before.
  [[nodiscard]] std::optional<Result<T>> completed_anyway() const {
    if (state_->mailbox()->killed()) throw NodeKilled{};
    std::optional<Result<T>> found;
    if (!state_->mailbox()->closed() || !state_->ready()) return found;
    found.emplace(state_->result());
    return found;
  }

  std::shared_ptr<FutureState<T>> state_;
};

// The writing end of a Future. A handle: copies name the same one. When the last copy dies without
// having completed it, the future fails with `cancelled`. May be completed from any thread; only
// the first completion counts.
template <class T>
class Promise {
 public:
  explicit Promise(std::shared_ptr<Mailbox> mailbox, const CausalId& source = {})
      : owner_(
            std::make_shared<Owner>(std::make_shared<FutureState<T>>(std::move(mailbox), source))) {
  }

  [[nodiscard]] Future<T> future() const { return Future<T>(owner_->state); }
  void complete(Result<T> result) const { Owner::complete(owner_->state, std::move(result)); }

 private:
  struct Owner {
    explicit Owner(std::shared_ptr<FutureState<T>> made) : state(std::move(made)) {}
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    ~Owner() {
      complete(state, Error{.kind = ErrorKind::cancelled,
                            .text = "the promise was dropped without a value",
                            .worker = state->mailbox()->name()});
    }
    static void complete(const std::shared_ptr<FutureState<T>>& state, Result<T> result) {
      state->mailbox()->post([state, result = std::move(result)]() mutable {
        if (!state->ready()) state->complete(std::move(result));
      });
    }
    const std::shared_ptr<FutureState<T>> state;
  };
  std::shared_ptr<Owner> owner_;
};

namespace detail {

// Calls `body` with a Result<T>, or with its value.
template <class T, class F>
decltype(auto) call_continuation(F& body, const Result<T>& result) {
  if constexpr (std::invocable<F&, const Result<T>&>) {
    return body(result);
  } else if constexpr (std::is_same_v<T, Unit> && std::invocable<F&>) {
    return body();
  } else {
    return body(result.value());
  }
}

template <class T, class F>
using ContinuationResult =
    decltype(call_continuation<T>(std::declval<F&>(), std::declval<const Result<T>&>()));

// Runs on the strand: completes `state` with what the continuation gave, following futures.
template <class R, class U>
void settle(const std::shared_ptr<FutureState<U>>& state, Result<R> given) {
  if (state->ready()) {  // It was cancelled.
    if constexpr (is_future<R>)
      if (given.ok() && given.value().valid()) given.value().state()->cancel();
    return;
  }
  if (!given.ok()) return state->complete(std::move(given.error()));
  if constexpr (is_future<R>) {
    if (!given.value().valid())
      return state->complete(Error{.kind = ErrorKind::remote_exception,
                                   .text = "the continuation returned an empty future",
                                   .worker = state->mailbox()->name(),
                                   .function = "continuation"});
    cancel_with(*state, given.value().state());
    given.value().state()->observe([state](FutureState<U>& inner) {
      if (!state->ready()) state->complete(inner.result());
    });
  } else {
    state->complete(std::move(given.value()));
  }
}

}  // namespace detail

template <class T>
template <class F>
auto Future<T>::then(F body) const {
  using Raw = detail::ContinuationResult<T, F>;
  using R = std::conditional_t<std::is_void_v<Raw>, Unit, std::decay_t<Raw>>;
  using U = typename Awaited<R>::type;
  const std::shared_ptr<Mailbox> mailbox = state_->mailbox();
  const CausalId id = mailbox->running().next_id();
  auto next = std::make_shared<FutureState<U>>(mailbox, state_->source());
  cancel_with(*next, state_);

  auto run = [next, mailbox, body = std::move(body)](const Result<T>& result) mutable {
    constexpr bool takes_result = std::invocable<F&, const Result<T>&>;
    Result<R> given = [&]() -> Result<R> {
      if (!takes_result && !result.ok()) return result.error();
      return run_user_code(
          mailbox->name(), "continuation",
          [&]() -> Raw { return detail::call_continuation<T>(body, result); },
          mailbox->exception_hook());
    }();
    mailbox->post([next, given = std::move(given)]() mutable {
      detail::settle<R, U>(next, std::move(given));
    });
  };
  mailbox->post([state = state_, mailbox, id, run = std::move(run)]() mutable {
    state->observe([mailbox, id, run = std::move(run)](FutureState<T>& complete) mutable {
      mailbox->run_continuation(id, [state = complete.shared_from_this(),
                                     run = std::move(run)]() mutable { run(state->result()); });
    });
  });
  return Future<U>(next);
}

// A future of all values, in the order given; the first error completes it at once. An empty
// vector gives an empty one. All futures belong to the node of `mailbox`.
template <class T>
Future<std::vector<T>> when_all(const std::shared_ptr<Mailbox>& mailbox,
                                std::vector<Future<T>> futures) {
  struct Gathered {
    std::vector<std::optional<T>> values;
    size_t missing = 0;
  };
  auto next = std::make_shared<FutureState<std::vector<T>>>(mailbox, CausalId{});
  mailbox->post([next, futures = std::move(futures)] {
    if (futures.empty()) return next->complete(std::vector<T>());
    auto gathered = std::make_shared<Gathered>();
    std::vector<std::weak_ptr<FutureState<T>>> parts;
    for (const Future<T>& future : futures) parts.push_back(future.state());
    next->set_canceller([next = next.get(), parts = std::move(parts)] {
      for (const auto& weak : parts)
        if (const auto part = weak.lock()) part->cancel();
      return next->cancelled_error();
    });
    gathered->values.resize(futures.size());
    gathered->missing = futures.size();
    for (size_t i = 0; i < futures.size(); ++i) {
      futures[i].state()->observe([next, gathered, i](FutureState<T>& state) {
        if (next->ready()) return;
        if (!state.result().ok()) return next->complete(state.result().error());
        gathered->values[i].emplace(state.result().value());
        if (--gathered->missing > 0) return;
        std::vector<T> values;
        for (std::optional<T>& value : gathered->values) values.push_back(std::move(*value));
        next->complete(std::move(values));
      });
    }
  });
  return Future<std::vector<T>>(next);
}

// The same, of at least one future.
template <class T>
Future<std::vector<T>> when_all(std::vector<Future<T>> futures) {
  REHEARSAL_CHECK(!futures.empty());
  const std::shared_ptr<Mailbox> mailbox = futures.front().state()->mailbox();
  return when_all(mailbox, std::move(futures));
}

// What each future came to, values and errors, in the order given: complete when the last is, never
// with an error of its own. An empty vector gives an empty one. All belong to the node of
// `mailbox`.
template <class T>
Future<std::vector<Result<T>>> collect_all(const std::shared_ptr<Mailbox>& mailbox,
                                           std::vector<Future<T>> futures) {
  struct Gathered {
    std::vector<std::optional<Result<T>>> results;
    size_t missing = 0;
  };
  auto next = std::make_shared<FutureState<std::vector<Result<T>>>>(mailbox, CausalId{});
  mailbox->post([next, futures = std::move(futures)] {
    if (futures.empty()) return next->complete(std::vector<Result<T>>());
    auto gathered = std::make_shared<Gathered>();
    gathered->results.resize(futures.size());
    gathered->missing = futures.size();
    for (size_t i = 0; i < futures.size(); ++i) {
      futures[i].state()->observe([next, gathered, i](FutureState<T>& state) {
        gathered->results[i].emplace(state.result());
        if (--gathered->missing > 0) return;
        std::vector<Result<T>> results;
        for (auto& result : gathered->results) results.push_back(std::move(*result));
        next->complete(std::move(results));
      });
    }
  });
  return Future<std::vector<Result<T>>>(next);
}

// The position of the first future that is complete, by value or by error; its `result` is there
// then. If several are, the one that came first on the strand. At least one future.
template <class T>
Future<size_t> when_any(const std::vector<Future<T>>& futures) {
  REHEARSAL_CHECK(!futures.empty());
  const std::shared_ptr<Mailbox> mailbox = futures.front().state()->mailbox();
  auto next = std::make_shared<FutureState<size_t>>(mailbox, CausalId{});
  mailbox->post([next, futures] {
    for (size_t i = 0; i < futures.size(); ++i)
      futures[i].state()->observe([next, i](FutureState<T>&) {
        if (!next->ready()) next->complete(i);
      });
  });
  return Future<size_t>(next);
}

}  // namespace rehearsal
