#pragma once

#include <tuple>
#include <type_traits>

#include "core/base/future.h"

// The facts in a function pointer's type: the parameters sent to it and its result.
namespace rehearsal {

class CallContext;  // core/api/call_context.h

template <class T>
class StreamWriter;  // core/functions/stream_writer.h
template <class T>
class Stream;  // core/api/stream.h

template <class T>
inline constexpr bool is_stream = false;
template <class T>
inline constexpr bool is_stream<Stream<T>> = true;
template <class T>
struct Streamed;
template <class T>
struct Streamed<Stream<T>> {
  using type = T;
};

template <class... P>
struct Parameters {};

namespace detail {

// A leading CallContext& and a StreamWriter<T>& behind it are given by the callee, never sent.
template <class... P>
struct Sent {
  using parameters = Parameters<std::decay_t<P>...>;
  using written = Parameters<P...>;  // the same as the function has them
  using item = void;                 // not a stream
  static constexpr bool takes_context = false;
};
template <class T, class... P>
struct Sent<StreamWriter<T>&, P...> : Sent<P...> {
  using item = T;
};
template <class... P>
struct Sent<CallContext&, P...> : Sent<P...> {
  static constexpr bool takes_context = true;
};

template <class R, class Item>
struct ResultFor {
  static_assert(std::is_void_v<R>, "a function that takes a StreamWriter returns nothing else");
  using type = Stream<Item>;
};
template <class R>
struct ResultFor<R, void> {
  using type = typename Awaited<std::decay_t<R>>::type;
};

template <class R, class Owner, class... P>
struct SignatureParts {
  using raw_result = R;
  using item = typename Sent<P...>::item;
  using result = typename ResultFor<R, item>::type;
  using owner = Owner;
  using parameters = typename Sent<P...>::parameters;
  using written = typename Sent<P...>::written;
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
concept AnyMethod = Callable<F> && Signature<std::decay_t<F>>::is_method;

template <class F>
concept AnyFunction = Callable<F> && !Signature<std::decay_t<F>>::is_method;

// The answer is one value.
template <class F>
concept CallableMethod = AnyMethod<F> && !is_stream<typename Signature<std::decay_t<F>>::result>;

template <class F>
concept CallableFunction =
    AnyFunction<F> && !is_stream<typename Signature<std::decay_t<F>>::result>;

// The answer is a stream of values: it takes a StreamWriter<T>&.
template <class F>
concept StreamMethod = AnyMethod<F> && is_stream<typename Signature<std::decay_t<F>>::result>;

template <class F>
concept StreamFunction = AnyFunction<F> && is_stream<typename Signature<std::decay_t<F>>::result>;

// The type of the caller's value.
template <class F>
using ResultOf = typename Signature<std::decay_t<F>>::result;

template <class F>
using ParametersOf = typename Signature<std::decay_t<F>>::parameters;

// The type of a stream's values.
template <class F>
using ItemOf = typename Signature<std::decay_t<F>>::item;

}  // namespace rehearsal
