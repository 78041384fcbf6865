#pragma once

#include <tuple>
#include <type_traits>

#include "core/base/future.h"

// What a function pointer's type says: what is sent to it and what comes back.
namespace rehearsal {

class CallContext;  // core/rref/call_context.h

template <class... P>
struct Parameters {};

namespace detail {

// A leading CallContext& is given by the callee, never sent.
template <class... P>
struct Sent {
  using parameters = Parameters<std::decay_t<P>...>;
  static constexpr bool takes_context = false;
};
template <class... P>
struct Sent<CallContext&, P...> {
  using parameters = Parameters<std::decay_t<P>...>;
  static constexpr bool takes_context = true;
};

template <class R, class Owner, class... P>
struct SignatureParts {
  using raw_result = R;
  using result = typename Awaited<std::decay_t<R>>::type;
  using owner = Owner;
  using parameters = typename Sent<P...>::parameters;
  static constexpr bool takes_context = Sent<P...>::takes_context;
  static constexpr bool is_method = !std::is_void_v<Owner>;
};

}  // namespace detail

template <class F>
struct Signature;  // Undefined: not a pointer to a function or to a method.

template <class R, class... P>
struct Signature<R (*)(P...)> : detail::SignatureParts<R, void, P...> {};
template <class R, class... P>
struct Signature<R (*)(P...) noexcept> : detail::SignatureParts<R, void, P...> {};
template <class R, class T, class... P>
struct Signature<R (T::*)(P...)> : detail::SignatureParts<R, T, P...> {};
template <class R, class T, class... P>
struct Signature<R (T::*)(P...) const> : detail::SignatureParts<R, T, P...> {};
template <class R, class T, class... P>
struct Signature<R (T::*)(P...) noexcept> : detail::SignatureParts<R, T, P...> {};
template <class R, class T, class... P>
struct Signature<R (T::*)(P...) const noexcept> : detail::SignatureParts<R, T, P...> {};

// A function or method that can be registered: one with an address that both sides know by name.
// Lambdas and std::function have none: write a function instead.
template <class F>
concept Callable = requires {
  typename Signature<std::decay_t<F>>::result;
};

template <class F>
concept CallableMethod = Callable<F> && Signature<std::decay_t<F>>::is_method;

template <class F>
concept CallableFunction = Callable<F> && !Signature<std::decay_t<F>>::is_method;

// The type of the caller's value.
template <class F>
using ResultOf = typename Signature<std::decay_t<F>>::result;

template <class F>
using ParametersOf = typename Signature<std::decay_t<F>>::parameters;

}  // namespace rehearsal
