#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/device/host_view.h"

namespace rehearsal::sim::device {

// A kernel as LibTorch's code gives it to a stream: what it does, with which tensors. `run` sees
// these by `host_view`.
struct Kernel {
  std::string name;
  std::vector<at::Tensor> reads;   // those of the CPU, and undefined ones, count for nothing
  std::vector<at::Tensor> writes;  // also if it reads them, too
  std::function<void()> run;
};

// Gives it to the stream. When it runs, no thread-local mode of whoever gave it is on: no autograd,
// no autocast.
void give_kernel(Machine& machine, StreamQueue& stream, Kernel kernel);

// Runs it once its stream comes to it, and waits for that. An exception of it is thrown here, and
// does the device no harm.
void run_kernel(Machine& machine, StreamQueue& stream, Kernel kernel);

}  // namespace rehearsal::sim::device
