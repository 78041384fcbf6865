// Goal: over TCP what a device is to have comes into pinned memory, which it copies by itself.
// Method: two workers on loopback, tensors of devices and of the CPU, and how many segments of
// other memory each has taken.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "core/api/worker.h"
#include "sim/simulated_devices.h"
#include "tests/real_net/support/loopback_group.h"

namespace rehearsal::real::device_memory_test {
namespace {

at::Tensor twice(const at::Tensor& tensor) { return tensor * 2; }

// Calls the server with what `make` makes, and looks at the answer.
Program program_of(const std::function<at::Tensor(Worker&)>& make) {
  FunctionRegistry registry;
  registry.function("twice", &twice);
  Program program(std::move(registry));
  program
      .worker("caller",
              [make](Worker& worker) {
                const at::Tensor tensor = make(worker);
                const at::Tensor doubled = worker.rpc_sync("server", &twice, tensor);
                EXPECT_EQ(doubled.device(), tensor.device());
                EXPECT_EQ(doubled.sum().item<float>(), 2e5F);
              })
      .device_map("server", {{0, 1}})
      .worker("server");
  return program;
}

// By rank.
std::vector<uint64_t> segments_of_other_memory(const std::function<at::Tensor(Worker&)>& make) {
  sim::SimulatedDevices devices({.count = 2, .for_all_threads = true});
  GroupOptions options;
  options.node.devices = devices.here();
  options.lend_from = UINT64_MAX;
  const Program program = program_of(make);
  LoopbackGroup group(program, options);
  for (const Status& ended : group.run()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
  devices.check();
  return {group.node(0).pool().census().taken, group.node(1).pool().census().taken};
}

TEST(DeviceMemory, OfTensorsForDevicesIsPinned) {
  const auto taken = segments_of_other_memory(
      [](Worker& worker) { return at::ones({100'000}).to(worker.device(0)); });
  EXPECT_EQ(taken, (std::vector<uint64_t>{0, 0}));
}

TEST(DeviceMemory, OfOtherTensorsIsNot) {
  const auto taken = segments_of_other_memory([](Worker&) { return at::ones({100'000}); });
  EXPECT_EQ(taken, (std::vector<uint64_t>{1, 1}));
}

}  // namespace
}  // namespace rehearsal::real::device_memory_test
