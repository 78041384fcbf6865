// Goal: a tensor on a device of one worker is on the device of another that its map says, and what
// comes back is where it came from; a map that cannot be is refused by all, and a device that has
// no entry by the call. Method: the reference's tests of device maps, on simulated devices.
#include <torch/nn/modules/linear.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "core/api/remote_module.h"
#include "tests/reference/row.h"

namespace rehearsal::reference::device_maps_test {
namespace {

// On which device a tensor is: its number, or -1 for the CPU.
int64_t place_of(const at::Tensor& tensor) {
  return tensor.device().is_cpu() ? -1 : tensor.device().index();
}

at::Tensor put(const WorkerAccess& worker, const at::Tensor& tensor, int64_t place) {
  return place < 0 ? tensor.cpu() : tensor.to(worker.device(static_cast<int>(place)));
}

DeviceNumber number_of(int64_t place) {
  return place < 0 ? DeviceNumber::cpu() : DeviceNumber(static_cast<int>(place));
}

// The sum, if both are there.
at::Tensor add_at(const at::Tensor& one, const at::Tensor& other, int64_t place) {
  if (place_of(one) != place || place_of(other) != place)
    throw std::logic_error("the arguments are on " + one.device().str());
  return one + other;
}

// The tensors as they came, each moved to such a device.
std::vector<at::Tensor> moved_to(CallContext& call, const std::vector<at::Tensor>& tensors,
                                 const std::vector<int64_t>& places) {
  std::vector<at::Tensor> moved;
  for (size_t i = 0; i < tensors.size(); ++i) moved.push_back(put(call, tensors[i], places[i]));
  return moved;
}

// Where the arguments are, and their sum and difference, each moved to such a device.
std::pair<std::vector<int64_t>, std::vector<at::Tensor>> sum_and_difference(CallContext& call,
                                                                            const at::Tensor& x,
                                                                            const at::Tensor& y,
                                                                            int64_t of_sum,
                                                                            int64_t of_difference) {
  const at::Tensor other = put(call, y, place_of(x));
  return {{place_of(x), place_of(y)},
          {put(call, x + other, of_sum), put(call, x - other, of_difference)}};
}

int64_t fetched_place(const RRef<at::Tensor>& reference) { return place_of(reference.to_here()); }

at::Tensor ones_on(CallContext& call, int64_t place) { return put(call, at::ones({2}), place); }

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add_at", &add_at)
      .function("moved_to", &moved_to)
      .function("sum_and_difference", &sum_and_difference)
      .function("ones_on", &ones_on)
      .function("fetched_place", &fetched_place);
  return registry;
}

void expect_value(const at::Tensor& tensor, double value, int64_t place) {
  EXPECT_EQ(place_of(tensor), place);
  EXPECT_TRUE(at::equal(tensor.cpu(), at::full({2}, value))) << tensor.cpu();
}

// Rows: rpc_test::TensorPipeAgentCudaRpcTest.{test_device_map_cpu,
// Rows: test_device_map_cpu_to_gpu_default, test_device_map_cpu_to_gpu_non_default,
// Rows: test_device_map_gpu_to_cpu_default, test_device_map_gpu_to_cpu_non_default,
// Rows: test_device_map_gpu_default, test_device_map_gpu_non_default,
// Rows: test_device_map_gpu_default_to_non_default, test_device_map_gpu_non_default_to_default,
// Rows: test_device_maps_gpu}
TEST(DeviceMaps, OneEntryTakesArgumentsThereAndTheResultBack) {
  for (const int64_t here : {-1, 0, 1})
    for (const int64_t there : {-1, 0, 1}) {
      SCOPED_TRACE(std::to_string(here) + " to " + std::to_string(there));
      Program program(functions());
      program
          .worker("worker0",
                  [here, there](Worker& worker) {
                    const at::Tensor one = put(worker, at::ones({2}), here);
                    expect_value(worker.rpc_sync("worker1", &add_at, one, one, there), 2, here);
                  })
          .device_map("worker1", {{number_of(here), number_of(there)}})
          .worker("worker1");
      in_both_worlds(program, {.seeds = tries(4), .devices = 2});
    }
}

// Rows: rpc_test::TensorPipeAgentCudaRpcTest.{test_device_map_gpu_mixed_1,
// Rows: test_device_map_gpu_mixed_2, test_device_map_gpu_mixed_3, test_device_map_gpu_mixed_4,
// Rows: test_device_map_gpu_mixed_5, test_device_map_gpu_mixed_6, test_device_map_gpu_mixed_7,
// Rows: test_device_map_gpu_mixed_8, test_device_map_gpu_mixed_self_1,
// Rows: test_device_map_gpu_mixed_self_2, test_device_map_gpu_mixed_self_3,
// Rows: test_device_map_gpu_mixed_self_4, test_device_map_gpu_mixed_self_5,
// Rows: test_device_map_gpu_mixed_self_6, test_device_map_gpu_mixed_self_7,
// Rows: test_device_map_gpu_mixed_self_8}
TEST(DeviceMaps, TwoEntriesHoldForEachArgumentAndEachResultToAPeerAndToOneself) {
  for (const bool swaps : {false, true})
    for (const std::string to : {"worker1", "worker0"}) {
      SCOPED_TRACE(to + (swaps ? ", exchanged" : ", the same"));
      const auto there = [swaps](int64_t place) { return swaps ? 1 - place : place; };
      Program program(functions());
      program
          .worker("worker0",
                  [to, there](Worker& worker) {
                    for (const int64_t x : {0, 1})
                      for (const int64_t y : {0, 1})
                        for (const int64_t z : {0, 1}) {
                          const auto [places, results] = worker.rpc_sync(
                              to, &sum_and_difference, put(worker, at::full({2}, 5.), x),
                              put(worker, at::full({2}, 3.), y), z, 1 - z);
                          EXPECT_EQ(places, (std::vector<int64_t>{there(x), there(y)}));
                          expect_value(results[0], 8, there(z));
                          expect_value(results[1], 2, there(1 - z));
                        }
                  })
          .device_map(to, {{0, swaps ? 1 : 0}, {1, swaps ? 0 : 1}})
          .worker("worker1");
      in_both_worlds(program, {.seeds = tries(4), .devices = 2});
    }
}

// Rows: rpc_test::TensorPipeAgentCudaRpcTest.{test_device_maps_multi_gpu,
// Rows: test_device_maps_multi_gpu_self, test_device_maps_in_options,
// Rows: test_device_maps_return_to_gpu, test_device_maps_return_to_gpu_self}
TEST(DeviceMaps, FourResultsComeBackEachByTheInverse) {
  for (const std::string to : {"worker1", "worker0"}) {
    SCOPED_TRACE(to);
    Program program(functions());
    program
        .worker("worker0",
                [to](Worker& worker) {
                  const std::vector<at::Tensor> ones(4, at::ones({2}));
                  const std::vector<at::Tensor> back =
                      worker.rpc_sync(to, &moved_to, ones, std::vector<int64_t>{0, 1, 2, 3});
                  for (int64_t i = 0; i < 4; ++i) expect_value(back[i], 1, (i + 3) % 4);
                })
        .device_map(to, {{0, 1}, {1, 2}})
        .device_map(to, {{2, 3}, {3, 0}})
        .worker("worker1");
    in_both_worlds(program, {.seeds = tries(4), .devices = 4});
  }
}

// Rows: rpc_test::TensorPipeAgentCudaRpcTest.{test_device_maps_remote}
TEST(DeviceMaps, AValueIsFetchedByTheMapOfWhoFetchesIt) {
  Program program(functions());
  program
      .worker("worker0",
              [](Worker& worker) {
                const RRef<at::Tensor> there = worker.remote("worker1", &ones_on, int64_t{1});
                expect_value(there.to_here(), 1, 0);
                const RRef<at::Tensor> third = worker.remote("worker1", &ones_on, int64_t{0});
                EXPECT_EQ(worker.rpc_sync("worker2", &fetched_place, third), 0);
              })
      .device_map("worker1", {{0, 1}})
      .worker("worker1")
      .worker("worker2")
      .device_map("worker1", {{0, 0}});
  in_both_worlds(program, {.seeds = tries(10), .devices = 2});
}

// Rows: rpc_test::TensorPipeAgentCudaRpcTest.{test_device_maps_missing_config,
// Rows: test_device_maps_missing_config_not_timeout, test_device_maps_missing_config_loop,
// Rows: test_device_maps_missing_config_remote}
// Rows: rpc_test_2020::ProcessGroupAgentRpcTest.{test_cuda}
TEST(DeviceMaps, AnArgumentWithoutAnEntryIsRefusedAtOnce) {
  const Program program = one_caller(functions(), [](Worker& worker) {
    const at::Tensor one = put(worker, at::ones({2}), 0);
    const at::Tensor of_cpu = at::ones({2});
    for (int i = 0; i < 20; ++i) {
      const Error error =
          error_of([&] { worker.rpc_sync("worker1", &add_at, one, of_cpu, int64_t{0}); });
      EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
      EXPECT_EQ(error.text,
                "a tensor is on " + device_name(0) +
                    ", and the device map for its receiver has no entry for it: add one "
                    "(Program::device_map), or move it to the CPU");
    }
    EXPECT_EQ(kind_of([&] { (void)worker.remote("worker1", &add_at, one, one, int64_t{0}); }),
              ErrorKind::bad_arguments);
    expect_value(worker.rpc_sync("worker1", &add_at, of_cpu, of_cpu, int64_t{-1}), 2, -1);
  });
  in_both_worlds(program, {.seeds = tries(4), .devices = 1});
}

// Rows: rpc_test::TensorPipeAgentCudaRpcTest.{test_device_maps_missing_config_response,
// Rows: test_device_maps_missing_config_response_loop,
// Rows: test_device_maps_missing_config_remote_response}
TEST(DeviceMaps, AResultWithoutAnEntryIsAnErrorInPlaceOfTheAnswer) {
  const Program program = one_caller(functions(), [](Worker& worker) {
    for (int i = 0; i < 20; ++i) {
      const Error error = error_of([&] { worker.rpc_sync("worker1", &ones_on, int64_t{0}); });
      EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
      EXPECT_TRUE(
          contains(error.text, "a tensor is on " + device_name(0) +
                                   ", and the device map of its caller for 'worker1' has no entry"))
          << error.text;
    }
    const RRef<at::Tensor> there = worker.remote("worker1", &ones_on, int64_t{0});
    EXPECT_EQ(kind_of([&] { (void)there.to_here(); }), ErrorKind::bad_arguments);
    const at::Tensor of_cpu = at::ones({2});
    expect_value(worker.rpc_sync("worker1", &add_at, of_cpu, of_cpu, int64_t{-1}), 2, -1);
  });
  in_both_worlds(program, {.seeds = tries(4), .devices = 1});
}

// Both ends say the same of a map that cannot be.
void expect_refused(const Program& program, const std::string& why) {
  if (on_cuda()) return;
  sim::Cluster cluster(Seed{1}, program, {.faults = sim::FaultLevel::none, .devices = 2});
  const sim::RunReport& report = cluster.try_run();
  EXPECT_FALSE(report.ok);
  size_t told = 0;
  for (const sim::WorkerReport& worker : report.workers) {
    ASSERT_TRUE(worker.error) << worker.name;
    if (contains(worker.error->text, why)) ++told;
  }
  EXPECT_GT(told, 0u) << to_string(*report.workers[0].error);
}

// Rows: rpc_test::TensorPipeAgentCudaRpcTest.{test_device_maps_wrong_worker_name,
// Rows: test_device_maps_invalid_max_local_device, test_device_maps_invalid_max_remote_device,
// Rows: test_device_maps_many_to_one, test_device_maps_one_to_many,
// Rows: test_device_maps_invalid_min_device, test_devices_option_mismatch,
// Rows: test_devices_option_mismatch_reverse}
TEST(DeviceMaps, WhatCannotBeIsRefusedWithBothNames) {
  const auto with = [](const std::string& peer, const DeviceMap& map,
                       std::vector<DeviceNumber> here = {}, std::vector<DeviceNumber> there = {}) {
    Program program(functions());
    program.worker("worker0", [](Worker&) {}).device_map(peer, map).devices(std::move(here));
    program.worker("worker1", [](Worker&) {}).devices(std::move(there));
    return program;
  };
  const std::string of_map =
      "the device map of worker 'worker0' for worker 'worker1' cannot be used: ";
  expect_refused(with("worker9", {{0, 0}}),
                 "the device map of worker 'worker0' for worker 'worker9' cannot be used: there is "
                 "no worker of this name");
  expect_refused(with("worker1", {{2, 0}}), of_map + "worker 'worker0' has no device 2: it has 2");
  expect_refused(with("worker1", {{0, 2}}), of_map + "worker 'worker1' has no device 2: it has 2");
  expect_refused(with("worker1", {{0, 1}, {1, 1}}), of_map + "it is not one to one");
  expect_refused(with("worker1", {{0, 0}}, {1}),
                 of_map + "device 0 is not among the devices that worker 'worker0' has declared");
  expect_refused(with("worker1", {{0, 0}}, {}, {1}),
                 of_map + "device 0 is not among the devices that worker 'worker1' has declared");
  EXPECT_THROW(DeviceMap({{0, 0}, {0, 1}}), std::invalid_argument);
  EXPECT_THROW(DeviceMap({{-1, 0}}), std::invalid_argument);
}

// Rows: rpc_test::TensorPipeAgentRpcTest.{
// Rows: test_dynamic_rpc_existing_rank_can_communicate_with_new_rank_cuda}
TEST(DeviceMaps, MayNameWorkersOfADynamicGroupThatAreYetToCome) {
  const auto make = [] {
    const auto answered = std::make_shared<std::atomic<bool>>(false);
    Program program(functions());
    program
        .worker("worker0",
                [answered](Worker& worker) {
                  worker.wait_for_worker("worker1");
                  const at::Tensor one = put(worker, at::ones({2}), 0);
                  expect_value(worker.rpc_sync("worker1", &add_at, one, one, int64_t{1}), 2, 0);
                  *answered = true;
                })
        .device_map("worker1", {{0, 1}})
        .worker("worker1",
                [answered](Worker& worker) {
                  for (int i = 0; i < 1000 && !*answered; ++i)
                    worker.sleep(std::chrono::milliseconds(100));
                })
        .dynamic();
    return program;
  };
  in_both_worlds(make, {.seeds = tries(4), .devices = 2});
}

int64_t parameter_place(const RRef<at::Tensor>& parameter) {
  return place_of(parameter.local_value());
}

using Linear = RemoteModule<torch::nn::LinearImpl>;

FunctionRegistry modules() {
  FunctionRegistry registry;
  register_module<torch::nn::LinearImpl>(registry, "Linear").constructor<int64_t, int64_t>();
  registry.function("parameter_place", &parameter_place);
  return registry;
}

// Rows: remote_module_test::CudaRemoteModuleTest.{test_valid_device}
TEST(DeviceModules, LiveOnTheDeviceThatTheirPlaceNames) {
  const Program program = one_caller(modules(), [](Worker& worker) {
    for (const auto& [place, device] :
         std::vector<std::pair<std::string, int64_t>>{{"worker1", -1},
                                                      {"worker1/cpu", -1},
                                                      {"worker1/cuda:0", 0},
                                                      {"worker1/" + device_name(1), 1},
                                                      {"rank:1/cuda:1", 1}}) {
      const Linear module(worker, place, int64_t{3}, int64_t{2});
      EXPECT_EQ(module.device().is_cpu() ? -1 : module.device().index(), device) << place;
      for (const RRef<at::Tensor>& parameter : module.remote_parameters())
        EXPECT_EQ(worker.rpc_sync("worker1", &parameter_place, parameter), device) << place;
    }
  });
  in_both_worlds(program, {.seeds = tries(4), .devices = 2});
}

// Rows: remote_module_test::CudaRemoteModuleTest.{test_invalid_devices}
TEST(DeviceModules, AreRefusedOnADeviceThatThereIsNoneOf) {
  const Program program = one_caller(modules(), [](Worker& worker) {
    for (const std::string& place : {std::string("worker1/cuda:2"), "worker1/" + device_name(7),
                                     std::string("worker1/xla:0")}) {
      const Linear module(worker, place, int64_t{3}, int64_t{2});
      const Error error = error_of([&] { (void)module.device(); });
      EXPECT_EQ(error.kind, ErrorKind::bad_arguments) << place;
      EXPECT_TRUE(contains(error.text, "worker 'worker1' has no device")) << error.text;
    }
    for (const char* place : {"worker1/", "worker1/cuda:x", "worker1/cuda:0/cuda:1", "/cuda:0"})
      EXPECT_EQ(kind_of([&] { (void)Linear(worker, place, int64_t{3}, int64_t{2}); }),
                ErrorKind::bad_arguments)
          << place;
  });
  in_both_worlds(program, {.seeds = tries(4), .devices = 2});
}

// Rows: remote_module_test::CudaRemoteModuleTest.{test_input_moved_to_cuda_device,
// Rows: test_input_moved_to_cuda_device_script}
TEST(DeviceModules, TakeTensorsOfTheCpuAndGiveThemBackThereWithoutAMap) {
  for (const bool mapped : {false, true}) {
    Program program(modules());
    program.worker("worker0", [mapped](Worker& worker) {
      const Linear module(worker, "worker1/cuda:1", int64_t{3}, int64_t{2});
      const at::Tensor result = module.forward(at::ones({4, 3}));
      EXPECT_EQ(place_of(result), mapped ? 0 : -1);
      EXPECT_EQ(result.sizes(), (std::vector<int64_t>{4, 2}));
      EXPECT_FALSE(result.cpu().isnan().any().item<bool>());
    });
    if (mapped) program.device_map("worker1", {{0, 1}});
    program.worker("worker1");
    in_both_worlds(program, {.seeds = tries(4), .devices = 2});
  }
}

}  // namespace
}  // namespace rehearsal::reference::device_maps_test
