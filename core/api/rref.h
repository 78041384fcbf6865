#pragma once

#include <compare>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "core/api/caller.h"
#include "core/api/drafts.h"
#include "core/api/rref_handle.h"
#include "core/api/stream.h"
#include "core/base/future.h"

namespace rehearsal {

template <class T>
class InOrder;

namespace detail {
[[nodiscard]] Future<Unit> created(const std::shared_ptr<RRefHandle>& handle, Timeout timeout);
[[nodiscard]] std::string text_of(const std::shared_ptr<RRefHandle>& handle);
}  // namespace detail

// A reference to a value of type T that lives at its owner. Empty if default-constructed. Copies
// at one worker share one registration at the owner; sending one makes another. The value lives
// until the last reference, anywhere, is gone, also when a holder crashes. T needs no encoding
// unless it is fetched.
//
// Its destructor runs at the owner as an execution of its own: it may call, wait, and let go of
// other references, and the owner's shutdown waits for it. It should catch what its calls throw. An
// exception that it lets out is told (a line `event=destructor_failed` with type and cause, in the
// simulator a failure of the run); what it had yet to do is not done, and its memory stays.
//
// A reference that could not be made (its `remote` failed or timed out) gives that error on every
// use. References may outlive their node: then every use gives node_stopped. One that is still held
// when its worker shuts down is released and told: see NodeOptions::strict_leaks.
template <class T>
class RRef {
 public:
  using value_type = T;

  RRef() = default;
  explicit RRef(std::shared_ptr<RRefHandle> handle) : handle_(std::move(handle)) {}

  [[nodiscard]] bool valid() const { return handle_ != nullptr; }
  [[nodiscard]] bool is_owner() const { return handle().is_owner(); }
  [[nodiscard]] WorkerInfo owner() const { return {owner_name(), handle().id().owner}; }
  [[nodiscard]] const std::string& owner_name() const {
    return handle().caller()->names()[handle().id().owner.value];
  }

  // Whether the owner has answered that this reference is registered; that it was lost since does
  // not change it. Parks for a moment. Throws RpcError when the node has ended.
  [[nodiscard]] bool confirmed_by_owner() const;

  // Complete when the value is there, or with why it never will be: what `remote` began has ended
  // then. All copies at one worker share one question to the owner: only if it failed is it asked
  // again. Never parks.
  [[nodiscard]] Future<Unit> created(Timeout timeout = {}) const {
    return detail::created(shared_handle(), timeout);
  }

  // The same reference; what is called through it has another timeout than the worker's default.
  // That of a `remote` bounds its creation only, here as in Calls, at oneself as elsewhere: the
  // function then runs for as long as it likes.
  [[nodiscard]] RRef with_timeout(Timeout timeout) const {
    RRef limited = *this;
    limited.timeout_ = timeout;
    return limited;
  }

  // The value itself, at its owner; throws RpcError elsewhere (use to_here). Parks until it is
  // there. The reference keeps it alive, at the worker's end until all that runs there has unwound.
  // Enter its monitor (with_local) where methods may run. On devices the calling code comes after
  // what the value's methods have done, and they after it once it lets the reference go.
  [[nodiscard]] T& local_value() const;

  // Calls `body(T&)` in the value's monitor, at its owner: no method of it runs meanwhile, unless
  // the body parks. Parks. On devices the body works in the value's streams, which own the memory
  // of what it makes: who computes with that outside records it with its own (`record_stream`).
  template <class F>
  auto with_local(F body) const;

  // A copy of the value. Parks. Throws RpcError.
  [[nodiscard]] T to_here() const { return to_here(timeout_); }
  [[nodiscard]] T to_here(Timeout timeout) const {
    return caller().template wait_typed<T>(fetch_draft(handle_, timeout)).or_throw();
  }
  [[nodiscard]] Future<T> to_here_async() const { return to_here_async(timeout_); }
  [[nodiscard]] Future<T> to_here_async(Timeout timeout) const {
    return caller().template start_typed<T>(fetch_draft(handle_, timeout));
  }

  // Calls a method of the value, at its owner, in its monitor. One message; the asynchronous
  // forms never park.
  template <CallableMethod F, class... A>
  ResultOf<F> rpc_sync(F method, const A&... arguments) const {
    return caller().template wait_typed<ResultOf<F>>(draft(method, arguments...)).or_throw();
  }
  template <CallableMethod F, class... A>
  Future<ResultOf<F>> rpc_async(F method, const A&... arguments) const {
    return caller().template start_typed<ResultOf<F>>(draft(method, arguments...));
  }
  // A method whose answer is a stream; options are those of Calls::rpc_stream. It gives up the
  // value's monitor whenever it waits for the reader.
  template <StreamMethod F, class... A>
  [[nodiscard]] Stream<ItemOf<F>> rpc_stream(F method, const A&... arguments) const {
    return Stream<ItemOf<F>>(std::make_unique<StreamReader>(
        handle().caller(), draft(method, arguments...), kStreamCredit));
  }
  template <CallableMethod F, class... A>
  RRef<ResultOf<F>> remote(F method, const A&... arguments) const {
    return RRef<ResultOf<F>>(handle().references().create(draft(method, arguments...)));
  }

  // A handle whose calls run in the order in which they are made; without it a small one overtakes
  // a large one, and one that is quick one that waits. Throws RpcError if the reference is empty.
  [[nodiscard]] InOrder<T> in_order() const;

  // A backward pass of an AutogradContext from the referenced tensor, which has one element; see
  // AutogradContext::backward_at, which takes the same options. Parks.
  template <class Context, class... Options>
  requires(!std::same_as<Context, bool>) void backward(const Context& context,
                                                       const Options&... options) const {
    context.backward_at(*this, options...);
  }

  // LibTorch's own backward pass of a graph that is at the owner alone, which adds to `.grad`. At
  // the owner; throws RpcError elsewhere (give an AutogradContext). Parks until the value is there.
  void backward(bool retain_graph = false) const requires std::same_as<T, at::Tensor> {
    local_value().backward({}, retain_graph);
  }

  // Two references are equal if they name the same value, wherever they are; the order is any fixed
  // one, the empty reference first. For keys of tables there is std::hash.
  bool operator==(const RRef& other) const { return name() == other.name(); }
  auto operator<=>(const RRef& other) const { return name() <=> other.name(); }

  // The name of the value; the same at all workers. Nothing if the reference is empty.
  [[nodiscard]] std::optional<CausalId> name() const {
    if (!valid()) return std::nullopt;
    return handle_->id().causal;
  }

  // For people: the value's name and owner, and the fork that this worker holds.
  friend std::string to_string(const RRef& rref) { return detail::text_of(rref.handle_); }
  friend std::ostream& operator<<(std::ostream& out, const RRef& rref) {
    return out << to_string(rref);
  }

  [[nodiscard]] const std::shared_ptr<RRefHandle>& shared_handle() const { return handle_; }

 private:
  [[nodiscard]] RRefHandle& handle() const {
    if (handle_ == nullptr)
      throw RpcError({.kind = ErrorKind::bad_arguments, .text = "the reference is empty"});
    return *handle_;
  }
  [[nodiscard]] const Caller& caller() const { return *handle().caller(); }
  template <class F, class... A>
  [[nodiscard]] Draft draft(F method, const A&... arguments) const {
    static_cast<void>(handle());  // Throws if there is none.
    Draft draft = method_draft<T>(handle_, method, arguments...);
    draft.timeout = timeout_;
    return draft;
  }

  std::shared_ptr<RRefHandle> handle_;
  Timeout timeout_;
};

template <class T>
struct Value<RRef<T>> {
  static void write(ValueWriter& writer, const RRef<T>& rref) {
    if (!rref.valid()) throw BadValue("an empty reference cannot be sent");
    writer.handle(rref.shared_handle());
  }
  static RRef<T> read(ValueReader& reader) { return RRef<T>(reader.handle()); }
  static void sign(WireSignature& signature) {
    signature += "rref<";
    if constexpr (Sendable<T>) Value<T>::sign(signature);
    signature += '>';
  }
};

template <class T>
bool RRef<T>::confirmed_by_owner() const {
  bool confirmed = false;
  const Status status =
      caller().strand()->wait("a reference's state", handle().id().causal, [&](WaitHandle wait) {
        confirmed = handle().references().confirmed_by_owner(handle());
        wait.end();
      });
  if (!status.ok()) throw RpcError(status.error());
  return confirmed;
}

namespace detail {

// The value behind an owner's handle, when it is there, and the streams that it lives in. Parks.
// Throws RpcError.
[[nodiscard]] HeldValue await_local_value(const RRefHandle& handle, const std::type_index& type,
                                          Streams* streams = nullptr);

// The calling stack is in the streams of a value while this lives.
class InValueStreams {
 public:
  InValueStreams(const RRefHandle& handle, const Streams& streams);

 private:
  BetweenStreams between_;
};

// Parks until the calling stack is in the monitor. False: it was already.
[[nodiscard]] bool enter_monitor(const RRefHandle& handle);
void leave_monitor(const RRefHandle& handle);

}  // namespace detail

template <class T>
T& RRef<T>::local_value() const {
  return *static_cast<T*>(detail::await_local_value(handle(), typeid(T)).value.get());
}

template <class T>
template <class F>
auto RRef<T>::with_local(F body) const {
  Streams streams;
  T& value = *static_cast<T*>(detail::await_local_value(handle(), typeid(T), &streams).value.get());
  struct Inside {
    explicit Inside(const RRefHandle& of) : handle(of), entered(detail::enter_monitor(of)) {}
    ~Inside() {
      if (entered) detail::leave_monitor(handle);
    }
    const RRefHandle& handle;
    const bool entered;
  } inside(handle());
  const detail::InValueStreams in(handle(), streams);
  return body(value);
}

}  // namespace rehearsal

template <class T>
struct std::hash<rehearsal::RRef<T>> {
  size_t operator()(const rehearsal::RRef<T>& rref) const {
    return rref.valid() ? rehearsal::CausalIdHash{}(*rref.name()) : 0;
  }
};

#include "core/api/in_order.h"  // InOrder<T> needs all of the above.
