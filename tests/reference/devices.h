#pragma once

#include <torch/types.h>

#include "tests/reference/row.h"

// Tensors on simulated devices, for the rows of streams and gradients.
namespace rehearsal::reference {

inline constexpr int64_t kSide = 64;

inline at::Tensor on(const WorkerAccess& worker, int device, double value) {
  return at::full({kSide}, value).to(worker.device(device), /*non_blocking=*/true);
}

inline void expect_all(const at::Tensor& tensor, double value) {
  EXPECT_TRUE(at::equal(tensor.cpu(), at::full({kSide}, value))) << tensor.cpu()[0];
}

// Some work on the current streams.
inline at::Tensor worked(at::Tensor tensor) {
  for (int i = 0; i < 4; ++i) tensor = tensor * 2;
  return tensor / 16;
}

inline at::Tensor twice(const at::Tensor& tensor) { return worked(tensor) * 2; }

// Three workers; every one has maps for all, of so many devices.
inline Program three_workers(FunctionRegistry registry, const Program::Main& main,
                             int devices = 1) {
  Program program(std::move(registry));
  DeviceMap map;
  for (int device = 0; device < devices; ++device) map.add(device, device);
  for (const std::string name : {"worker0", "worker1", "worker2"}) {
    program.worker(name, name == "worker0" ? main : Program::Main());
    for (const std::string peer : {"worker0", "worker1", "worker2"}) program.device_map(peer, map);
  }
  return program;
}

}  // namespace rehearsal::reference
