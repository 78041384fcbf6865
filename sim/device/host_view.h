#pragma once

#include <ATen/core/Tensor.h>

#include "sim/device/machine.h"

namespace rehearsal::sim::device {

[[nodiscard]] inline bool is_simulated(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == SimulatedDevices::kType;
}

// A tensor of the CPU over the same bytes, for kernels; others as they are. It keeps nothing alive:
// memory that is freed stays where it is, and may by then hold something else, as on a device.
[[nodiscard]] at::Tensor host_view(const Machine& machine, const at::Tensor& tensor);

}  // namespace rehearsal::sim::device
