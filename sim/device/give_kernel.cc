#include "sim/device/give_kernel.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <exception>
#include <utility>

namespace rehearsal::sim::device {
namespace {

std::vector<Region> regions_of(const std::vector<at::Tensor>& tensors) {
  std::vector<Region> regions;
  for (const at::Tensor& tensor : tensors)
    if (is_simulated(tensor)) regions.push_back(region_of(tensor));
  return regions;
}

}  // namespace

void give_kernel(Machine& machine, StreamQueue& stream, Kernel kernel) {
  machine.give(stream, {.name = std::move(kernel.name),
                        .reads = regions_of(kernel.reads),
                        .writes = regions_of(kernel.writes),
                        .run = [run = std::move(kernel.run)] {
                          const at::AutoDispatchBelowADInplaceOrView no_autograd;
                          const c10::impl::ExcludeDispatchKeyGuard no_autocast(
                              c10::autocast_dispatch_keyset);
                          run();
                        }});
}

void run_kernel(Machine& machine, StreamQueue& stream, Kernel kernel) {
  auto thrown = std::make_shared<std::exception_ptr>();
  kernel.run = [run = std::move(kernel.run), thrown] {
    try {
      run();
    } catch (...) {
      *thrown = std::current_exception();
    }
  };
  give_kernel(machine, stream, std::move(kernel));
  machine.synchronize(stream);
  if (*thrown) std::rethrow_exception(*thrown);
}

}  // namespace rehearsal::sim::device
