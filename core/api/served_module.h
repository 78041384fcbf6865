#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/module_traits.h"
#include "core/api/remote_device.h"

namespace rehearsal {

// The requests that any module gets at its owner, whatever its type. Its methods are called by
// RemoteModule.
class ServedModuleBase {
 public:
  // Moves the module to the device. Throws RpcError (bad_arguments) if there is none such here, and
  // if there is no module.
  ServedModuleBase(CallContext& call, c10::Device device,
                   std::shared_ptr<torch::nn::Module> module);

  // A reference to each parameter, in the order of the module's `parameters`; to the same parameter
  // always the same.
  std::vector<RRef<at::Tensor>> remote_parameters(CallContext& call, bool recurse);
  // Their names, in the same order.
  std::vector<std::string> names(bool recurse) const;

  void train(bool on);
  bool is_training() const;

  c10::Device device() const { return device_; }
  // Throws as the constructor does.
  void to(CallContext& call, c10::Device device);

 protected:
  // A tensor, or a vector of them, on that device; all else as it is.
  template <class V>
  static V moved_to(const c10::Device& device, V value) {
    if constexpr (std::is_same_v<V, at::Tensor>)
      return value.defined() ? value.to(device) : value;
    else if constexpr (std::is_same_v<V, std::vector<at::Tensor>>)
      for (at::Tensor& tensor : value) tensor = moved_to(device, std::move(tensor));
    return value;
  }

 private:
  struct Parameter {
    at::Tensor tensor;
    RRef<at::Tensor> rref;
  };

  std::shared_ptr<torch::nn::Module> module_;
  c10::Device device_;
  std::vector<Parameter> parameters_;  // those that were asked for
};

// A module of type T at its owner: what a RemoteModule refers to. `*served` is the module itself.
template <class T, class Sent = ForwardParameters<T>>
class ServedModule;

template <class T, class... D>
class ServedModule<T, Parameters<D...>> : public ServedModuleBase {
 public:
  // The product of a factory.
  struct Made {
    std::shared_ptr<T> module;
  };

  ServedModule(CallContext& call, c10::Device device, Made made)
      : ServedModuleBase(call, device, made.module), module_(std::move(made.module)) {}
  template <class... A>
  ServedModule(CallContext& call, c10::Device device, A&&... arguments)
      : ServedModule(call, device, Made{std::make_shared<T>(std::forward<A>(arguments)...)}) {}

  // Calls the module's forward. Tensors are moved to the module's device, and what comes back to
  // the CPU: only from there they can be sent.
  ForwardReturned<T> forward(CallContext& call, D... arguments) {
    const auto run = [&]() -> decltype(auto) {
      if constexpr (Signature<std::decay_t<decltype(kForward<T>)>>::takes_context)
        return ((*module_).*kForward<T>)(call, moved_to(device(), std::move(arguments))...);
      else
        return ((*module_).*kForward<T>)(moved_to(device(), std::move(arguments))...);
    };
    if constexpr (std::is_void_v<ForwardReturned<T>>)
      run();
    else
      return moved_to<ForwardReturned<T>>(c10::kCPU, run());
  }

  [[nodiscard]] T& operator*() const { return *module_; }

 private:
  std::shared_ptr<T> module_;
};

}  // namespace rehearsal
