#pragma once

#include "core/base/result.h"
#include "core/base/stream_set.h"

namespace rehearsal::real {

// The CUDA devices of this process, for WorkerOptions::node.devices. Loads LibTorch's part for CUDA
// (libtorch_cuda.so, beside the libtorch_cpu.so that runs), unless the program links it, which
// takes seconds; before the first backward pass of the process, at which LibTorch's engine counts
// its devices. A program that never calls it needs no library of CUDA. The error (bad_arguments) is
// one line: LibTorch has no such part, a library of it is missing, or there is no GPU.
[[nodiscard]] Result<DevicesHere> cuda_devices();

}  // namespace rehearsal::real
