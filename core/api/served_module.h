#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/checkpoint_parts.h"
#include "core/api/module_traits.h"
#include "core/api/pipeline_seat.h"
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

  // Its parameters and buffers in a DistributedCheckpoint, as "name.first.weight": see
  // kept_tensors.h in core/checkpoint. Park.
  void keep_for_checkpoint(CallContext& call, const CheckpointOrder& order,
                           const std::string& name) const;
  std::vector<std::string> load_from_checkpoint(CallContext& call, const CheckpointOrder& order,
                                                const std::string& name) const;

  c10::Device device() const { return device_; }
  // Throws as the constructor does.
  void to(CallContext& call, c10::Device device);

 protected:
  // A tensor, or a vector of them, on that device; all else as it is.
  template <class V>
  static V moved_to(const c10::Device& device, V value) {
    if constexpr (std::is_same_v<V, at::Tensor>)
      return value.defined() ? value.to(device, /*non_blocking=*/!device.is_cpu()) : value;
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

  // Calls the module's forward. Tensors are moved to the module's device; what comes back stays
  // there if the caller's device map leads back from it, and is moved to the CPU if not.
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
      return moved_to<ForwardReturned<T>>(call.result_device(device()), run());
  }

  // Whether it can be a stage of a Pipeline.
  static constexpr bool kIsStage =
      sizeof...(D) > 0 &&
      (std::is_same_v<D, at::Tensor> && ...) && std::is_same_v<ForwardReturned<T>, at::Tensor>;

  // The same as a stage of a pipeline, whose inputs are fetched. Parks until its turn has come.
  // Throws RpcError, also for another number of inputs.
  at::Tensor forward_in_turn(CallContext& call, const RRef<PipelineSeat>& seat,
                             const PipelineAction& action,
                             const std::vector<RRef<at::Tensor>>& inputs) requires kIsStage {
    const std::vector<at::Tensor> fetched = fetch_inputs(inputs, sizeof...(D));
    PipelineTurn turn(call, seat, action);
    const std::vector<at::Tensor> here = turn.enter(fetched);
    const auto run = [&]<size_t... I>(std::index_sequence<I...>) {
      return forward(call, static_cast<D>(here[I])...);
    };
    return turn.leave(run(std::index_sequence_for<D...>()));
  }

  [[nodiscard]] T& operator*() const { return *module_; }

 private:
  std::shared_ptr<T> module_;
};

}  // namespace rehearsal
