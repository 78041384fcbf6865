#pragma once

#include <memory>

#include "real_net/worker/ipc_memory.h"

namespace rehearsal::real {

// That of NVIDIA's driver (libcuda.so.1, which is loaded, not linked): cuIpcGetMemHandle and its
// like. Null: there is no such driver. Memory of cudaMalloc can be shared, not that of expandable
// segments or of cudaMallocAsync (PYTORCH_CUDA_ALLOC_CONF).
[[nodiscard]] std::shared_ptr<IpcMemory> cuda_ipc();

}  // namespace rehearsal::real
