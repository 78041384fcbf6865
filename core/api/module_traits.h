#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <type_traits>

#include "core/functions/signature.h"

namespace torch::nn {
class Module;
}  // namespace torch::nn

// The facts that a type gives about the module that it is or holds.
namespace rehearsal {

namespace detail {

template <class T>
struct ModuleIn {};  // no module
template <class T>
requires std::is_base_of_v<torch::nn::Module, T>
struct ModuleIn<T> {
  using type = T;
};
template <class T>
requires std::is_base_of_v<torch::nn::Module, typename T::ContainedType>
struct ModuleIn<T> {
  using type = typename T::ContainedType;
};
template <class T>
requires std::is_base_of_v<torch::nn::Module, T>
struct ModuleIn<std::shared_ptr<T>> {
  using type = T;
};

// The only method `forward`, or of a template, as Sequential has one, that from tensor to tensor.
template <class T>
constexpr auto forward_of() {
  if constexpr (requires { &T::forward; })
    return &T::forward;
  else
    return &T::template forward<at::Tensor, const at::Tensor&>;
}

}  // namespace detail

// A torch::nn::Module, a holder of one (torch::nn::Linear) or a shared pointer to one.
template <class T>
concept ModuleLike = requires {
  typename detail::ModuleIn<T>::type;
};

template <ModuleLike T>
using ModuleOf = typename detail::ModuleIn<T>::type;

// A function whose result is a module: how an owner makes what no constructor does.
template <class F>
concept ModuleFactory = CallableFunction<F> && ModuleLike<ResultOf<F>>;

// The method that `forward` of a remote module calls. To be specialised, with a cast, for a module
// that has several: template <> inline constexpr auto kForward<Net> =
// static_cast<…>(&Net::forward).
template <class T>
inline constexpr auto kForward = detail::forward_of<T>();

// The parameters sent to the module T's forward, and its result, perhaps a Future.
template <class T>
using ForwardParameters = ParametersOf<decltype(kForward<T>)>;
template <class T>
using ForwardReturned =
    std::decay_t<typename Signature<std::decay_t<decltype(kForward<T>)>>::raw_result>;

}  // namespace rehearsal
