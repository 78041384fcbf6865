#include "sim/device/backend.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/ones.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <deque>
#include <string>

#include "sim/device/device_guard.h"
#include "sim/device/hooks.h"

namespace rehearsal::sim::device {
namespace {

constexpr const char* kName = "sim";

// LibTorch's engine starts a thread for each device that there is at the first backward pass of the
// process. It must have done that before there are simulated ones: they come and go, and their
// passes run on the thread that calls them.
void start_engine() {
  const at::Tensor x =
      at::ones({}, at::TensorOptions(at::kCPU).dtype(at::kFloat)).set_requires_grad(true);
  x.mul(x).backward();
}

// Registered operators stay for as long as the process, like those that LibTorch comes with.
torch::Library* library_of(const char* name, c10::DispatchKey key) {
  static auto* all = new std::deque<torch::Library>;
  return &all->emplace_back(torch::Library::IMPL, name, key, __FILE__, __LINE__);
}

bool has_views(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.returns(), [](const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
}

bool install() {
  TORCH_CHECK(!c10::impl::hasDeviceGuardImpl(SimulatedDevices::kType),
              "LibTorch's device type PrivateUse1 is taken by '", c10::get_privateuse1_backend(),
              "': simulated devices need it");
  start_engine();
  c10::register_privateuse1_backend(kName);
  const c10::impl::DeviceGuardImplRegistrar guard(SimulatedDevices::kType, new DeviceGuard);
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  install_recurrent_cells(*library_of("aten", c10::DispatchKey::AutogradPrivateUse1));
  torch::Library* operators = library_of("aten", c10::DispatchKey::PrivateUse1);
  install_kernels(*operators);
  install_recurrent_cells(*operators);
  install_kernels_of_cpu(*operators);
  library_of("_", c10::DispatchKey::PrivateUse1)
      ->fallback(torch::CppFunction::makeFromBoxedFunction<&run_later>());
  // A copy keeps what it finds; these keys would copy the tensor first, for ever.
  for (const auto key : {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative})
    library_of("aten", key)->impl("_copy_from", torch::CppFunction::makeFallthrough());
  return true;
}

}  // namespace

void install_kernels_of_cpu(torch::Library& library) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op || !name.name.starts_with("aten::")) continue;
    if (!op->hasKernelForDispatchKey(c10::DispatchKey::CPU)) continue;
    if (op->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) continue;
    if (has_views(op->schema())) continue;
    const std::string full =
        name.name + (name.overload_name.empty() ? "" : "." + name.overload_name);
    library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_later>());
  }
}

void install_backend() {
  static const bool installed = install();
  (void)installed;
}

}  // namespace rehearsal::sim::device
