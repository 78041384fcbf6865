#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "core/api/caller.h"
#include "core/api/rref_handle.h"
#include "core/functions/schema_arguments.h"

// Calls being made, from typed arguments. All throw RpcError: a function that is not registered,
// an argument that cannot be sent, a worker that does not exist.
namespace rehearsal {

template <AnyFunction F, class... A>
Draft function_draft(const Caller& caller, const Target& target, F function,
                     const A&... arguments) {
  Draft draft = caller.draft(target);
  draft.call.function = caller.registry().position<void>(function).or_throw();
  draft.function = caller.registry().functions()[draft.call.function].name;
  encode_arguments(ParametersOf<F>{}, draft, caller.strand()->name(), arguments...);
  return draft;
}

template <class T, AnyMethod F, class... A>
Draft method_draft(const std::shared_ptr<RRefHandle>& handle, F method, const A&... arguments) {
  const Caller& caller = *handle->caller();
  Draft draft = caller.draft(handle->id().owner);
  draft.target = handle;
  draft.call.function = caller.registry().position<T>(method).or_throw();
  draft.function = caller.registry().functions()[draft.call.function].name;
  encode_arguments(ParametersOf<F>{}, draft, caller.strand()->name(), arguments...);
  return draft;
}

[[nodiscard]] Draft fetch_draft(const std::shared_ptr<RRefHandle>& handle, Timeout timeout);

template <class A>
using Decayed = std::conditional_t<std::is_convertible_v<A, std::string> &&
                                       !std::is_same_v<std::decay_t<A>, c10::IValue>,
                                   std::string, std::decay_t<A>>;

// A constructor of T that takes such arguments.
template <class T, class... A>
Draft constructor_draft(const Caller& caller, const Target& target, const A&... arguments) {
  using Types = Parameters<Decayed<A>...>;
  Draft draft = caller.draft(target);
  if constexpr ((detail::CheckedValue<Decayed<A>>::holds && ...)) {
    draft.call.function =
        caller.registry().constructor(typeid(T), detail::sign_parameters(Types{})).or_throw();
    draft.function = caller.registry().functions()[draft.call.function].name;
    encode_arguments(Types{}, draft, caller.strand()->name(), arguments...);
  }
  return draft;
}

// Of the draft's function, which is `name`. The arguments and the result are checked against the
// registered signature.
template <class R, class... A>
void add_typed(const Caller& caller, Draft& draft, const std::string& name, const A&... arguments) {
  using Types = Parameters<Decayed<A>...>;
  const Function& function = caller.registry().functions()[draft.call.function];
  const std::string parameters = detail::sign_parameters(Types{});
  const std::string result = detail::sign_result<R>();
  if (FunctionRegistry::loosen(parameters) != FunctionRegistry::loosen(function.parameters) ||
      FunctionRegistry::loosen(result) != FunctionRegistry::loosen(function.result))
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "it is registered as (" + function.parameters + ") -> " +
                            function.result + ", not (" + parameters + ") -> " + result,
                    .function = name});
  encode_arguments(Types{}, draft, caller.strand()->name(), arguments...);
}

// Whether such arguments can be given to what has a LibTorch schema, and to a C++ function.
template <class... A>
inline constexpr bool fit_schemas = ((is_keyword<A> ||
                                      std::is_constructible_v<c10::IValue, A>)&&...);
template <class... A>
inline constexpr bool fit_functions = ((!is_keyword<A> && Sendable<Decayed<A>>)&&...);

// Whether a result that has a LibTorch schema can be asked for as R.
template <class R>
inline constexpr bool fits_schema_result = std::is_constructible_v<c10::IValue, R>;

// Of an ATen operator, or of a registered script function.
template <class R, class... A>
void add_schema_arguments(const Caller& caller, Draft& draft, const A&... arguments) {
  draft.gives_ivalue = true;
  if (!fits_schema_result<R>)
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "its result is asked for as a type that LibTorch does not know",
                    .function = draft.function});
  if constexpr (fit_schemas<A...>)
    encode_arguments(Parameters<SchemaArguments>{}, draft, caller.strand()->name(),
                     schema_arguments(arguments...));
  else
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "an argument is of a type that LibTorch does not know",
                    .function = draft.function});
}

// Throws RpcError for a name that is too long to be an operator's: the worker's answer would be the
// same.
void check_operator_name(const Caller& caller, WorkerId to, const std::string& name);

// A registered function by its name, or, where none has it, an ATen operator by its schema name (it
// has "::").
template <class R, class... A>
Draft named_draft(const Caller& caller, const Target& target, const std::string& name,
                  const A&... arguments) {
  Draft draft = caller.draft(target);
  draft.function = name;
  const bool is_operator = name.find("::") != std::string::npos && !name.starts_with("script::");
  if (is_operator && !caller.registry().contains(name)) {
    check_operator_name(caller, draft.to, name);
    draft.call.kind = CallKind::operator_;
    draft.call.name = name;
    add_schema_arguments<R>(caller, draft, arguments...);
    return draft;
  }
  draft.call.function = caller.registry().position(name).or_throw();
  if (caller.registry().functions()[draft.call.function].takes_schema) {
    add_schema_arguments<R>(caller, draft, arguments...);
    return draft;
  }
  if constexpr (fit_functions<A...>)
    add_typed<R>(caller, draft, name, arguments...);
  else
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "a registered C++ function takes values, by position only",
                    .function = name});
  return draft;
}

}  // namespace rehearsal
