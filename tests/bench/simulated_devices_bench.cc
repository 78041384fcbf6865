// The cost of an operator on a simulated device, beside the floor: the same one on the CPU.
#include <ATen/ops/ones.h>
#include <benchmark/benchmark.h>

#include "sim/simulated_devices.h"

namespace rehearsal::sim {
namespace {

at::Tensor sixteen_ones(c10::DeviceType on) {
  return at::ones({16}, at::TensorOptions(c10::Device(on)).dtype(at::kFloat));
}

template <c10::DeviceType on>
void operator_in_place(benchmark::State& state) {
  SimulatedDevices devices;
  at::Tensor x = sixteen_ones(on);
  for (auto _ : state) x.add_(1);
  devices.synchronize();
}
BENCHMARK(operator_in_place<c10::DeviceType::CPU>)->Name("device_floor_operator_in_place");
BENCHMARK(operator_in_place<SimulatedDevices::kType>)->Name("device_operator_in_place");

template <c10::DeviceType on>
void operator_with_result(benchmark::State& state) {
  SimulatedDevices devices;
  const at::Tensor x = sixteen_ones(on);
  for (auto _ : state) benchmark::DoNotOptimize(x.add(1));
  devices.synchronize();
}
BENCHMARK(operator_with_result<c10::DeviceType::CPU>)->Name("device_floor_operator_with_result");
BENCHMARK(operator_with_result<SimulatedDevices::kType>)->Name("device_operator_with_result");

void devices_made(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(SimulatedDevices({.count = 2}).problems().size());
}
BENCHMARK(devices_made)->Name("device_two_made");

}  // namespace
}  // namespace rehearsal::sim
