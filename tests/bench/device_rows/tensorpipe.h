#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

#include "core/base/stream_set.h"

namespace rehearsal::bench {

struct TensorPipeOptions {
  std::string transport = "uv";  // TCP; "auto": what the two agents choose
  // The devices of a process, asked in it: what is on the first goes to the last of the other
  // process.
  std::function<DevicesHere()> devices;
};

// Pushes a tensor to the server. It ends when the server's device has it.
using Push = std::function<void(const at::Tensor&)>;

// Runs `caller` in this process, beside a server in another one, each with PyTorch's TensorPipe
// agent. False: they cannot run so; the standard error says why.
bool with_tensorpipe(const TensorPipeOptions& options,
                     const std::function<void(const Push&)>& caller);

}  // namespace rehearsal::bench
