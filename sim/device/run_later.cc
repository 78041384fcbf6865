#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/DeviceGuard.h>

#include <optional>
#include <utility>

#include "sim/device/backend.h"
#include "sim/device/give_kernel.h"
#include "sim/device/random_numbers.h"
#include "sim/device/selection.h"

namespace rehearsal::sim::device {
namespace {

using torch::jit::Stack;

// An operator that was called, with its arguments, which lie on top of a stack.
struct Called {
  const c10::OperatorHandle& op;
  std::vector<c10::IValue> arguments;

  [[nodiscard]] const c10::FunctionSchema& schema() const { return op.schema(); }
  [[nodiscard]] const std::string& name() const { return schema().name(); }
};

// Applies `change` to each tensor in a value, also in its lists.
template <class Change>
c10::IValue with_tensors(const c10::IValue& value, const Change& change) {
  if (value.isTensor()) return change(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(change(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
      list.push_back(tensor ? std::optional(change(*tensor)) : std::nullopt);
    return list;
  }
  return value;
}

std::vector<at::Tensor> tensors_in(const c10::IValue& value) {
  std::vector<at::Tensor> tensors;
  (void)with_tensors(value, [&](const at::Tensor& tensor) {
    if (tensor.defined()) tensors.push_back(tensor);
    return tensor;
  });
  return tensors;
}

// Operators that take indices on the CPU, too, and copy them.
bool takes_indices_of_cpu(const Called& called) {
  return called.schema().name().find("index") != std::string::npos;
}

// Whether a tensor may be an argument of what runs on a device. Numbers of the CPU, which have no
// dimensions, go with any.
bool goes_with(const Called& called, const at::Tensor& tensor, c10::Device device) {
  if (is_simulated(tensor)) return tensor.device() == device;
  return tensor.device().is_cpu() && (tensor.dim() == 0 || takes_indices_of_cpu(called));
}

// The device that the tensors of the call are on, or that is asked for. Throws c10::Error, as
// LibTorch does for CUDA, unless it is one for all.
c10::DeviceIndex device_of(const Called& called) {
  std::optional<c10::Device> found;
  std::vector<at::Tensor> all;
  for (const c10::IValue& argument : called.arguments) {
    if (argument.isDevice() && argument.toDevice().type() == SimulatedDevices::kType && !found)
      found = argument.toDevice();
    for (at::Tensor& tensor : tensors_in(argument)) {
      if (is_simulated(tensor) && !found) found = tensor.device();
      all.push_back(std::move(tensor));
    }
  }
  TORCH_CHECK(found.has_value(), called.name(), ": no argument says on which simulated device");
  for (const at::Tensor& tensor : all)
    TORCH_CHECK(goes_with(called, tensor, *found), called.name(),
                ": Expected all tensors to be on the same device, but found at least two devices, ",
                found->str(), " and ", tensor.device().str(), "!");
  return found->has_index() ? found->index() : selection().device;
}

// Whether the host cannot go on before it is done: its results are no tensors, or tensors whose
// shapes depend on values.
bool host_needs_results(const Called& called) {
  if (called.op.hasTag(at::Tag::dynamic_output_shape) ||
      called.op.hasTag(at::Tag::data_dependent_output))
    return true;
  for (const c10::Argument& result : called.schema().returns()) {
    const c10::TypePtr& type = result.type();
    if (type->kind() != c10::TypeKind::TensorType &&
        !type->isSubtypeOf(*c10::ListType::ofTensors()))
      return true;
  }
  return false;
}

// The arguments with empty tensors of the same shapes on the meta device; where the operator has no
// kernel for that, zeros on the CPU.
Stack shapes_of_arguments(const Called& called, c10::DeviceType where) {
  Stack stack;
  for (const c10::IValue& argument : called.arguments) {
    if (argument.isDevice()) {
      stack.emplace_back(c10::Device(where));
    } else if (argument.isGenerator()) {
      stack.emplace_back();
    } else {
      stack.push_back(with_tensors(argument, [&](const at::Tensor& tensor) {
        if (!is_simulated(tensor)) return tensor;
        at::Tensor shape = at::empty_strided(
            tensor.sizes(), tensor.strides(),
            at::TensorOptions(where).dtype(tensor.scalar_type()).requires_grad(false));
        if (where == c10::kCPU) shape.zero_();
        return shape;
      }));
    }
  }
  return stack;
}

struct Shapes {
  Stack arguments;  // as they are after the call
  Stack results;
};

Shapes shapes_on(const Called& called, c10::DeviceType where) {
  Shapes shapes{.arguments = shapes_of_arguments(called, where), .results = {}};
  shapes.results = shapes.arguments;
  called.op.callBoxed(&shapes.results);
  return shapes;
}

// The shapes that the results have. Nothing if that cannot be known beforehand. Throws c10::Error
// for arguments that do not fit each other.
std::optional<Shapes> shapes_of_results(const Called& called) {
  if (host_needs_results(called)) return std::nullopt;
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  if (called.op.hasKernelForDispatchKey(c10::DispatchKey::Meta)) {
    try {
      return shapes_on(called, c10::kMeta);
    } catch (const c10::NotImplementedError&) {
      return std::nullopt;  // such as indices that are a mask
    }
  }
  try {
    std::optional<KeepRandomNumbers> keep;
    if (called.op.hasTag(at::Tag::nondeterministic_seeded)) keep.emplace();
    return shapes_on(called, c10::kCPU);
  } catch (const c10::Error&) {
    return std::nullopt;  // of zeros it has none, or the arguments are wrong: the values will tell
  }
}

// Whether results that alias an argument are that argument, written in place; which one.
std::optional<size_t> written_argument(const Called& called, const c10::Argument& result) {
  const c10::AliasInfo* alias = result.alias_info();
  if (alias == nullptr || !alias->isWrite()) return std::nullopt;
  const auto& arguments = called.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* other = arguments[i].alias_info();
    if (other != nullptr && other->isWrite() && other->beforeSets() == alias->beforeSets())
      return i;
  }
  return std::nullopt;
}

// Arguments that are written in place may have another shape then (`out`).
void resize_written(const Called& called, const Stack& shapes) {
  const auto& arguments = called.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* alias = arguments[i].alias_info();
    if (alias == nullptr || !alias->isWrite() || !called.arguments[i].isTensor()) continue;
    const at::Tensor& tensor = called.arguments[i].toTensor();
    const at::Tensor& shape = shapes[i].toTensor();
    if (!is_simulated(tensor) || tensor.sizes() == shape.sizes()) continue;
    tensor.resize_(shape.sizes());
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(shape.sizes(), shape.strides());
  }
}

// The arguments for the CPU's kernel. Numbers of the CPU are as they are now.
Stack arguments_on_host(const Machine& machine, const Called& called) {
  Stack stack;
  for (const c10::IValue& argument : called.arguments) {
    if (argument.isDevice()) {
      stack.emplace_back(c10::Device(c10::kCPU));
    } else if (argument.isGenerator()) {
      stack.emplace_back(seeded_generator(draw_seed(argument.toGenerator())));
    } else {
      stack.push_back(with_tensors(argument, [&](const at::Tensor& tensor) {
        if (!tensor.defined() || is_simulated(tensor)) return host_view(machine, tensor);
        at::Tensor copy = tensor.clone();
        if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
          copy.unsafeGetTensorImpl()->set_wrapped_number(true);
        return copy;
      }));
    }
  }
  return stack;
}

// The kernel without what it does: its name, and the arguments that it reads and writes.
Kernel kernel_of(const Called& called) {
  Kernel kernel{.name = called.name()};
  const auto& arguments = called.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* alias = arguments[i].alias_info();
    auto& list = alias != nullptr && alias->isWrite() ? kernel.writes : kernel.reads;
    for (at::Tensor& tensor : tensors_in(called.arguments[i])) list.push_back(std::move(tensor));
  }
  return kernel;
}

at::Tensor fresh_tensor(const at::Tensor& shape, c10::DeviceIndex device) {
  if (!shape.defined()) return {};
  return at::empty_strided(
      shape.sizes(), shape.strides(),
      at::TensorOptions(c10::Device(SimulatedDevices::kType, device)).dtype(shape.scalar_type()));
}

// Calls the CPU's kernel: the arguments on the stack become the results.
void call_on_host(const c10::OperatorHandle& op, std::optional<uint64_t> seed, Stack& stack) {
  std::optional<SeededRandomNumbers> seeded;
  if (seed) seeded.emplace(*seed);
  const Stack arguments = stack;  // several results that are arguments refer to them
  op.callBoxed(&stack);
}

std::optional<uint64_t> seed_for(const Called& called) {
  if (!called.op.hasTag(at::Tag::nondeterministic_seeded)) return std::nullopt;
  return draw_seed(at::detail::getDefaultCPUGenerator());
}

// Results of known shapes: tensors that the kernel fills later.
Stack give_and_return(Machine& machine, c10::DeviceIndex device, const Called& called,
                      const Shapes& shapes) {
  resize_written(called, shapes.arguments);
  Kernel kernel = kernel_of(called);
  Stack results;
  std::vector<std::optional<size_t>> in_place;
  std::vector<c10::IValue> targets;
  for (size_t r = 0; r < shapes.results.size(); ++r) {
    if (const auto written = written_argument(called, called.schema().returns()[r])) {
      results.push_back(called.arguments[*written]);
      targets.emplace_back();
      continue;
    }
    results.push_back(with_tensors(shapes.results[r], [&](const at::Tensor& shape) {
      at::Tensor fresh = fresh_tensor(shape, device);
      if (fresh.defined()) kernel.writes.push_back(fresh);
      return fresh;
    }));
    targets.push_back(with_tensors(
        results.back(), [&](const at::Tensor& fresh) { return host_view(machine, fresh); }));
  }
  kernel.run = [op = called.op, seed = seed_for(called), stack = arguments_on_host(machine, called),
                targets = std::move(targets)]() mutable {
    call_on_host(op, seed, stack);
    for (size_t r = 0; r < targets.size(); ++r) {
      std::vector<at::Tensor> to = tensors_in(targets[r]), from = tensors_in(stack[r]);
      for (size_t i = 0; i < to.size(); ++i) to[i].copy_(from.at(i));
    }
  };
  give_kernel(machine, current_stream(device), std::move(kernel));
  return results;
}

// Results that the host needs at once.
Stack run_and_return(Machine& machine, c10::DeviceIndex device, const Called& called) {
  auto stack = std::make_shared<Stack>(arguments_on_host(machine, called));
  Kernel kernel = kernel_of(called);
  kernel.run = [op = called.op, seed = seed_for(called), stack] { call_on_host(op, seed, *stack); };
  run_kernel(machine, current_stream(device), std::move(kernel));
  Stack results;
  for (size_t r = 0; r < stack->size(); ++r) {
    if (const auto written = written_argument(called, called.schema().returns()[r])) {
      results.push_back(called.arguments[*written]);
      continue;
    }
    results.push_back(with_tensors((*stack)[r], [&](const at::Tensor& value) {
      at::Tensor fresh = fresh_tensor(value, device);
      if (fresh.defined()) fresh.copy_(value, /*non_blocking=*/true);
      return fresh;
    }));
  }
  return results;
}

}  // namespace

void run_later(const c10::OperatorHandle& op, Stack* stack) {
  Machine& machine = current_machine();
  const Called called{op, torch::jit::last(*stack, op.schema().arguments().size()).vec()};
  const c10::DeviceIndex device = device_of(called);
  const c10::DeviceGuard on_device(c10::Device(SimulatedDevices::kType, device));
  const std::optional<Shapes> shapes = shapes_of_results(called);
  Stack results = shapes ? give_and_return(machine, device, called, *shapes)
                         : run_and_return(machine, device, called);
  torch::jit::drop(*stack, called.arguments.size());
  for (c10::IValue& result : results) stack->push_back(std::move(result));
}

}  // namespace rehearsal::sim::device
