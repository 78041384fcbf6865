#pragma once

#include <torch/library.h>

namespace rehearsal::sim::device {

// Makes LibTorch know the simulated devices as `sim`: their guard, hooks and operators. Once for a
// process; later calls do nothing. Throws c10::Error if something else has taken PrivateUse1.
void install_backend();

// The operators that have a kernel of their own.
void install_kernels(torch::Library& library);

// Those of recurrent layers; also where gradients are recorded.
void install_recurrent_cells(torch::Library& library);

// All that the CPU has a kernel for, and that are not installed yet or are views, also where
// LibTorch would make them of others: so their results have the CPU's bits.
void install_kernels_of_cpu(torch::Library& library);

// How all others run: their shapes now, their kernel, which is the CPU's, later.
void run_later(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace rehearsal::sim::device
