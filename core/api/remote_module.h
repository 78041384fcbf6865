#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/api/calls.h"
#include "core/api/module_traits.h"
#include "core/api/remote_device.h"
#include "core/api/served_module.h"
#include "core/functions/function_registry.h"

namespace rehearsal {

namespace detail {

template <class T>
std::shared_ptr<T> as_shared(std::shared_ptr<T> module) {
  return module;
}
template <class Holder>
requires requires { typename Holder::ContainedType; }
auto as_shared(const Holder& holder) { return holder.is_empty() ? nullptr : holder.ptr(); }
template <class T>
requires std::is_base_of_v<torch::nn::Module, T>
auto as_shared(T module) { return std::make_shared<T>(std::move(module)); }

// The function that is called for a factory: it makes the module and what serves it.
template <auto factory, class Sent = ParametersOf<decltype(factory)>>
struct FactoryCall;
template <auto factory, class... D>
struct FactoryCall<factory, Parameters<D...>> {
  using Served = ServedModule<ModuleOf<ResultOf<decltype(factory)>>>;
  static Served make(CallContext& call, c10::Device device, D... arguments) {
    if constexpr (Signature<decltype(factory)>::takes_context)
      return {call, device, {as_shared(factory(call, std::move(arguments)...))}};
    else
      return {call, device, {as_shared(factory(std::move(arguments)...))}};
  }
};

}  // namespace detail

// Registers a type of module: T or a holder of it. `P` are the parameters of one constructor;
// others, factories and methods may follow:
//
//   register_module<Net, int64_t>(registry, "Net").method("reset", &Net::reset);
//   register_module<torch::nn::Linear, int64_t, int64_t>(registry, "Linear");
//   register_module<torch::nn::Sequential>(registry, "Sequential").factory<&make_net>("make_net");
template <ModuleLike T>
class ModuleType {
 public:
  using Served = ServedModule<ModuleOf<T>>;

  ModuleType(FunctionRegistry& registry, std::string name)
      : registry_(registry), name_(std::move(name)), type_(registry.type<Served>(name_)) {
    type_.method("forward", &Served::forward)
        .method("remote_parameters", &Served::remote_parameters)
        .method("names", &Served::names)
        .method("train", &Served::train)
        .method("is_training", &Served::is_training)
        .method("device", &Served::device)
        .method("keep_for_checkpoint", &Served::keep_for_checkpoint)
        .method("load_from_checkpoint", &Served::load_from_checkpoint)
        .method("to", &Served::to);
    if constexpr (Served::kIsStage) type_.method("forward_in_turn", &Served::forward_in_turn);
  }

  template <class... P>
  ModuleType& constructor() {
    type_.template constructor<CallContext&, c10::Device, P...>();
    return *this;
  }

  // A function that makes the module at its owner, for RemoteModule::made_by. It may take a
  // CallContext& first.
  template <auto function>
  requires ModuleFactory<decltype(function)> ModuleType& factory(const std::string& name) {
    static_assert(std::is_same_v<ModuleOf<ResultOf<decltype(function)>>, ModuleOf<T>>,
                  "the factory makes a module of another type");
    registry_.function(name_ + "(" + name + ")", &detail::FactoryCall<function>::make);
    return *this;
  }

  // A method of the module, for RemoteModule::rpc_sync, rpc_async and remote.
  template <class F>
  ModuleType& method(const std::string& name, F method) {
    type_.method(name, method);
    return *this;
  }

 private:
  FunctionRegistry& registry_;
  const std::string name_;
  FunctionRegistry::Type<Served> type_;
};

template <ModuleLike T, class... P>
ModuleType<T> register_module(FunctionRegistry& registry, const std::string& name) {
  ModuleType<T> type(registry, name);
  if constexpr (sizeof...(P) > 0) type.template constructor<P...>();
  return type;
}

// A module that lives at another worker (torch.distributed.nn.RemoteModule). T is the module's
// type, registered with register_module, or a holder of it.
//
//   RemoteModule<Net> net(worker, "ps/cpu", 64);
//   DistributedOptimizer optimizer(worker, net.remote_parameters(), torch::optim::SGDOptions(0.1));
//   AutogradContext context = worker.autograd_context();
//   auto recording = context.record();
//   torch::Tensor out = net.forward(in);      // recorded in the context
//
// A handle: copies name the same module, which lives until the last one, anywhere, is gone. It can
// be sent to other workers, which call the owner directly. Its methods run in the module's monitor,
// one at a time, and give the caller whatever they throw. A module that could not be made gives
// that error on every use. In a local torch::nn::Sequential: see RemoteLayer.
//
// Things that a module here would have and this one has not:
// - zero_grad: gradients are of an autograd context, and a new one has none;
// - parameters, buffers, children, state_dict: they are there; use remote_parameters, or register
//   a method of the module that does the work where they are;
// - apply, clone, register_…: the same;
// - save, load: see DistributedCheckpoint.
template <ModuleLike T>
class RemoteModule {
 public:
  using Module = ModuleOf<T>;
  using Served = ServedModule<Module>;

  // Empty; only to be assigned to.
  RemoteModule() = default;

  // Makes a Module from `arguments`, which must be those of a constructor that was registered, at
  // the worker, and moves it to the device. Never parks. Throws RpcError for a worker that there is
  // none of, and for arguments of no constructor; what goes wrong at the owner, a device that it
  // does not have included, is told by each use.
  template <class... A>
  RemoteModule(const Calls& calls, const RemoteDevice& on, const A&... arguments)
      : rref_(calls.remote<Served>(on.worker(), on.device(), arguments...)) {}

  // The same, by a factory that was registered: RemoteModule<torch::nn::Sequential>::made_by<
  // &make_net>(worker, "ps", 64).
  template <auto factory, class... A>
  requires ModuleFactory<decltype(factory)>
  [[nodiscard]] static RemoteModule made_by(const Calls& calls, const RemoteDevice& on,
                                            const A&... arguments) {
    return RemoteModule(
        calls.remote(on.worker(), &detail::FactoryCall<factory>::make, on.device(), arguments...));
  }

  // The module behind a reference: that of module_rref.
  explicit RemoteModule(RRef<Served> rref) : rref_(std::move(rref)) {}

  // The same module, whose forward and methods are called through `calls`: recorded in another
  // autograd context than the execution's, or with another timeout. Lasts as long as these.
  [[nodiscard]] RemoteModule with(const Calls& calls) const {
    RemoteModule bound = *this;
    bound.calls_ = calls;
    return bound;
  }

  // ---- the three forms of a call: the value, a Future of it, a reference to it ----

  // Parks. Throws RpcError.
  template <class... A>
  auto forward(const A&... arguments) const {
    return calls().rpc_sync(rref_, &Served::forward, arguments...);
  }
  template <class... A>
  auto forward_async(const A&... arguments) const {
    return calls().rpc_async(rref_, &Served::forward, arguments...);
  }
  template <class... A>
  auto forward_remote(const A&... arguments) const {
    return calls().remote(rref_, &Served::forward, arguments...);
  }

  // The same of a method of Module that was registered.
  template <CallableMethod F, class... A>
  auto rpc_sync(F method, const A&... arguments) const {
    return calls().rpc_sync(rref_, method, arguments...);
  }
  template <CallableMethod F, class... A>
  auto rpc_async(F method, const A&... arguments) const {
    return calls().rpc_async(rref_, method, arguments...);
  }
  template <CallableMethod F, class... A>
  auto remote(F method, const A&... arguments) const {
    return calls().remote(rref_, method, arguments...);
  }

  // ---- the module. All park, and throw RpcError ----

  // References to its parameters, for a DistributedOptimizer, in the order of Module::parameters;
  // the same each time. `recurse`: those of its children too.
  [[nodiscard]] std::vector<RRef<at::Tensor>> remote_parameters(bool recurse = true) const {
    return rref_.rpc_sync(&Served::remote_parameters, recurse);
  }
  // Their names, such as "first.weight", in the same order.
  [[nodiscard]] std::vector<std::string> names(bool recurse = true) const {
    return rref_.rpc_sync(&Served::names, recurse);
  }

  void train(bool on = true) const { rref_.rpc_sync(&Served::train, on); }
  void eval() const { train(false); }
  [[nodiscard]] bool is_training() const { return rref_.rpc_sync(&Served::is_training); }

  // Moves it to another device of its owner. Before an optimizer is made for its parameters.
  void to(const c10::Device& device) const { rref_.rpc_sync(&Served::to, device); }
  [[nodiscard]] c10::Device device() const { return rref_.rpc_sync(&Served::device); }

  // ---- the reference ----

  [[nodiscard]] bool valid() const { return rref_.valid(); }
  [[nodiscard]] WorkerInfo owner() const { return rref_.owner(); }

  // The module's place at its owner: there `*rref.local_value()` is the module itself.
  [[nodiscard]] const RRef<Served>& module_rref() const { return rref_; }

  // Two are equal if they name the same module.
  bool operator==(const RemoteModule& other) const { return rref_ == other.rref_; }

  friend void describe(RemoteModule& module, auto&& fields) { fields(module.rref_); }

 private:
  [[nodiscard]] Calls calls() const {
    if (calls_) return *calls_;
    if (!rref_.valid())
      throw RpcError({.kind = ErrorKind::bad_arguments, .text = "the remote module is empty"});
    RRefHandle& handle = *rref_.shared_handle();
    return Calls(handle.caller(), &handle.references());
  }

  RRef<Served> rref_;
  std::optional<Calls> calls_;  // none: the execution's context, the worker's own timeout
};

}  // namespace rehearsal
