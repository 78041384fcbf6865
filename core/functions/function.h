#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <variant>

#include "core/base/future.h"
#include "core/base/quiet_death.h"
#include "core/base/runtime.h"
#include "core/functions/caller_rule.h"
#include "core/functions/signature.h"
#include "core/functions/stream_writer.h"
#include "core/values/value.h"

namespace rehearsal {

// The type of a value, where code knows it no longer.
struct ValueType {
  std::type_index type;
  void (*write)(const void* value, ValueWriter& writer);  // null: it cannot be sent
  std::string_view (*death_label)();                      // null: it dies quietly
};

template <class T>
const ValueType& value_type_of() {
  static constexpr auto write = [] {
    if constexpr (Sendable<T>)
      return +[](const void* value, ValueWriter& writer) {
        Value<T>::write(writer, *static_cast<const T*>(value));
      };
    else
      return static_cast<void (*)(const void*, ValueWriter&)>(nullptr);
  }();
  static const ValueType type{typeid(T), write, kDiesQuietly<T> ? nullptr : &death_label<T>};
  return type;
}

// A value of any type.
struct HeldValue {
  std::shared_ptr<void> value;
  const ValueType* type = nullptr;
  // It lives in these streams: what its code gives to devices goes there. Null: to any.
  Streams streams = nullptr;
  // A future's value: its use comes after these points of the streams that have made it.
  AllMarks made_by = {};

  template <class T>
  static HeldValue of(T value) {
    return {std::make_shared<T>(std::move(value)), &value_type_of<T>()};
  }

  // Lets it go. The last one to do so destroys it, as its type asks for. On the strand, as all who
  // may be the last.
  void drop(NodeStrand& strand) {
    if (value.use_count() > 1) return value.reset();
    if (value != nullptr && type->death_label != nullptr)
      strand.end_life(std::move(value), type->death_label());
    else
      strand.release_later(std::move(value));
  }
};

// A value to come: a function's Future.
struct PendingValue {
  std::shared_ptr<FutureCore> state;
  HeldValue (*value_of)(const FutureCore& complete);  // of one that has a value

  // Calls `done` on the strand, once. The value is copied by its own code, which may throw.
  template <class F>
  void observe(F done) const {
    state->observe([value_of = value_of, done = std::move(done)](FutureCore& complete) mutable {
      if (complete.error() != nullptr) return done(Result<HeldValue>(*complete.error()));
      Result<HeldValue> value = run_user_code(
          complete.strand()->name(), "a copy of its result", [&] { return value_of(complete); },
          complete.strand()->exception_hook());
      if (value.ok()) value.value().made_by = complete.marks();
      done(std::move(value));
    });
  }
};

using Returned = std::variant<HeldValue, PendingValue>;

// One run of a registered function.
struct Invocation {
  CallContext& context;
  void* object;  // of methods; of the type that the method is registered for
  Payload& arguments;
  OutgoingStream* stream = nullptr;  // of functions whose answer is one
};

// A registered function, method or constructor.
struct Function {
  std::string name;
  std::string parameters;  // wire signature, such as "Tensor,int64,"
  std::string result;      // the same of its result; empty if that cannot be sent
  std::type_index object_type{typeid(void)};  // of methods
  bool is_constructor = false;
  bool is_parallel = false;   // a method that guards itself
  bool is_stream = false;     // its answer is one
  bool takes_schema = false;  // its arguments are SchemaArguments, its result is an IValue
  bool only_waits = false;    // for others, once it has returned its Future
  StackPlacement placement = StackPlacement::pool;
  CallerRule callers;
  std::function<Returned(const Invocation&)> invoke;
};

namespace detail {

// One parameter of a function that is registered, as it is written.
template <class P>
struct CheckedParameter {
  using Plain = std::remove_reference_t<P>;
  static constexpr bool is_context = std::is_same_v<std::remove_const_t<Plain>, CallContext>;
  static constexpr bool is_value =
      !std::is_pointer_v<Plain> && (!std::is_lvalue_reference_v<P> || std::is_const_v<Plain>);
  static_assert(!is_context, "a CallContext is the first parameter, written as CallContext&");
  static_assert(is_context || is_value,
                "parameters are values or const references: what a pointer or a reference that may "
                "be written to refers to stays at the caller; give an RRef to it, or return it");
  static constexpr bool is_written_well = is_value && !is_context;
};
template <class P, bool>
struct CheckedParameterValue : CheckedValue<std::decay_t<P>> {};
template <class P>
struct CheckedParameterValue<P, false> {
  static constexpr bool holds = false;
};

// Whether a function with these parameters can be called from elsewhere; if not, the compiler says
// why.
template <class... P>
constexpr bool check_parameters(Parameters<P...>) {
  return (CheckedParameterValue<P, CheckedParameter<P>::is_written_well>::holds && ...);
}

template <class... P>
std::string sign_parameters(Parameters<P...>) {
  WireSignature signature;
  ((Value<P>::sign(signature), signature += ','), ...);
  return signature.text();
}

template <class T>
std::string sign_result() {
  if constexpr (is_stream<T>) {
    return "stream<" + sign_result<typename Streamed<T>::type>() + ">";
  } else {
    WireSignature signature;
    if constexpr (Sendable<T>) Value<T>::sign(signature);
    return signature.text();
  }
}

template <class R>
Returned pack(R returned) {
  if constexpr (is_future<R>) {
    using T = typename R::value_type;
    if (!returned.valid()) throw std::logic_error("the function returned an empty future");
    return PendingValue{returned.core(), [](const FutureCore& complete) {
                          return HeldValue::of<T>(FutureState<T>::of(complete).value());
                        }};
  } else {
    return HeldValue::of<R>(std::move(returned));
  }
}

template <class... P>
std::tuple<P...> read_arguments(ValueReader& reader) try {
  return std::tuple<P...>{(reader.begin_argument(), Value<P>::read(reader))...};
} catch (const BadValue& bad) {
  throw reader.in_argument(bad);
}

// A method's object: the value itself, or what it points to.
template <class T, class Owner>
concept PointsTo = requires(T& value) {
  { *value } -> std::convertible_to<const Owner&>;
};
template <class Owner, class T>
auto& receiver_of(T& value) {
  if constexpr (std::is_base_of_v<Owner, T>)
    return value;
  else
    return *value;
}

// Reads the arguments, calls, packs the result.
template <class T, class F, class... P>
Returned invoke(F function, const Invocation& invocation, Parameters<P...>) {
  ValueReader reader(invocation.arguments);
  std::tuple<P...> arguments = read_arguments<P...>(reader);
  reader.finish();
  using S = Signature<F>;
  auto call = [&](auto&&... argument) -> decltype(auto) {
    if constexpr (S::is_method)
      return (receiver_of<typename S::owner>(*static_cast<T*>(invocation.object)).*
              function)(std::forward<decltype(argument)>(argument)...);
    else
      return function(std::forward<decltype(argument)>(argument)...);
  };
  auto call_with_given = [&](auto&... argument) -> decltype(auto) {
    if constexpr (!std::is_void_v<typename S::item>) {
      StreamWriter<typename S::item> writer(*invocation.stream);
      if constexpr (S::takes_context)
        return call(invocation.context, writer, std::move(argument)...);
      else
        return call(writer, std::move(argument)...);
    } else if constexpr (S::takes_context) {
      return call(invocation.context, std::move(argument)...);
    } else {
      return call(std::move(argument)...);
    }
  };
  if constexpr (std::is_void_v<typename S::raw_result>) {
    std::apply(call_with_given, arguments);
    return HeldValue::of<Unit>({});
  } else {
    return pack<std::decay_t<typename S::raw_result>>(std::apply(call_with_given, arguments));
  }
}

template <class T, bool takes_context, class... P>
Returned construct(const Invocation& invocation, Parameters<P...>) {
  ValueReader reader(invocation.arguments);
  std::tuple<P...> arguments = read_arguments<P...>(reader);
  reader.finish();
  auto value = std::apply(
      [&](auto&... argument) {
        if constexpr (takes_context)
          return std::make_shared<T>(invocation.context, std::move(argument)...);
        else
          return std::make_shared<T>(std::move(argument)...);
      },
      arguments);
  return HeldValue{std::move(value), &value_type_of<T>()};
}

}  // namespace detail
}  // namespace rehearsal
