#include "tests/sim/device/devices.h"

#include <c10/core/AutogradState.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/utils.h>

#include <optional>
#include <vector>

// Goal: simulated devices stand in for real ones in a program of LibTorch: modules, training,
// random numbers, guards, errors.
namespace rehearsal::sim {
namespace {

using torch::Tensor;

struct Net : torch::nn::Module {
  Net() {
    register_module("layers", layers);
    layers->push_back(torch::nn::Linear(4, 8));
    layers->push_back(torch::nn::ReLU());
    layers->push_back(torch::nn::Linear(8, 1));
  }
  torch::nn::Sequential layers;
};

std::vector<Tensor> trained_on(torch::Device device) {
  torch::manual_seed(1);
  Net net;
  const Tensor input = torch::randn({5, 4});
  net.to(device);
  torch::optim::Adam adam(net.parameters(), 0.1);
  for (int step = 0; step < 3; ++step) {
    adam.zero_grad();
    net.layers->forward(input.to(device)).pow(2).mean().backward();
    adam.step();
  }
  std::vector<Tensor> parameters;
  for (const Tensor& parameter : net.parameters()) parameters.push_back(parameter.detach().cpu());
  return parameters;
}

TEST(Devices, TrainWithTheBitsOfTheCpu) {
  const std::vector<Tensor> expected = trained_on(torch::kCPU);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedDevices devices({.count = 2, .seed = seed});
    const std::vector<Tensor> parameters = trained_on(sim_device(1));
    EXPECT_EQ(problems_of(devices), "");
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(torch::equal(parameters[i], expected[i]));
  }
}

// The engine makes the streams of a graph wait for each other; it is LibTorch's own.
TEST(Devices, ABackwardPassGoesOverTheStreamsOfItsForward) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedDevices devices({.seed = seed});
    const Tensor x = torch::ones({3}, sim_device()).requires_grad_();
    const c10::Stream side = SimulatedDevices::new_stream(0);
    wait_for(side, current_stream());
    Tensor y;
    {
      const c10::StreamGuard on_side(side);
      y = x * x;
    }
    wait_for(current_stream(), side);
    (y * 3).sum().backward();
    EXPECT_EQ(x.grad().sum().item<float>(), 18);
    EXPECT_EQ(problems_of(devices), "");
  }
}

TEST(Devices, RandomNumbersFollowFromTheCallNotFromTheOrder) {
  std::optional<Tensor> first;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedDevices devices({.seed = seed});
    torch::manual_seed(7);
    const Tensor a = torch::randn({4}, sim_device());
    Tensor b;
    {
      const c10::StreamGuard on_side(SimulatedDevices::new_stream(0));
      b = torch::dropout(torch::ones({8}, sim_device()), 0.5, true);
    }
    const Tensor c = torch::randperm(5, sim_device()).to(torch::kFloat);
    devices.synchronize();
    const Tensor all = torch::cat({a.cpu(), b.cpu(), c.cpu(), torch::rand({2})});
    if (!first) first = all;
    EXPECT_TRUE(torch::equal(all, *first));
  }
}

TEST(Devices, AreCurrentByGuards) {
  SimulatedDevices devices({.count = 2});
  EXPECT_EQ(torch::empty({1}, "sim").device(), sim_device(0));
  const c10::DeviceGuard on_second(sim_device(1));
  EXPECT_EQ(torch::empty({1}, "sim").device(), sim_device(1));
}

TEST(Devices, BelongToAnInnerObjectWhileItLives) {
  SimulatedDevices outer({.count = 1});
  {
    SimulatedDevices inner({.count = 3});
    EXPECT_EQ(torch::ones({1}, sim_device(2)).item<float>(), 1);
  }
  EXPECT_THROW((void)torch::ones({1}, sim_device(2)), c10::Error);
  EXPECT_EQ(torch::ones({1}, sim_device(0)).item<float>(), 1);
}

std::string error_of(const std::function<void()>& code) {
  try {
    code();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

TEST(Devices, SayWhatCannotBe) {
  EXPECT_EQ(error_of([] { SimulatedDevices none({.count = 0}); }),
            "there can be 1 to 64 simulated devices, not 0");
  { SimulatedDevices devices; }  // LibTorch knows the name from here on
  EXPECT_EQ(error_of([] { (void)torch::ones({1}, sim_device()); }),
            "there are no simulated devices in this thread: make a sim::SimulatedDevices first");
  SimulatedDevices devices({.count = 2});
  const Tensor on_first = torch::ones({2}, sim_device(0));
  EXPECT_EQ(error_of([] { (void)torch::ones({1}, sim_device(2)); }),
            "there is no device sim:2: there are 2, from sim:0");
  EXPECT_EQ(error_of([&] { (void)(on_first + torch::ones({2}, sim_device(1))); }),
            "aten::add: Expected all tensors to be on the same device, but found at least two "
            "devices, sim:0 and sim:1!");
  EXPECT_EQ(error_of([&] { (void)(on_first + torch::ones({2})); }),
            "aten::add: Expected all tensors to be on the same device, but found at least two "
            "devices, sim:0 and cpu!");
  EXPECT_NE(error_of([&] { (void)(on_first + torch::ones({3}, sim_device(0))); }), "");
}

TEST(Devices, AKernelThatFailsFailsItsDevice) {
  SimulatedDevices devices({.count = 2});
  const Tensor table = torch::ones({3, 2}, sim_device(0));
  const Tensor index = torch::tensor(std::vector<int64_t>{7}).to(sim_device(0));
  std::string text = error_of([&] {
    (void)torch::embedding(table, index);
    current_stream().synchronize();
  });
  EXPECT_NE(text.find(" on stream 0 of sim:0 has failed: "), std::string::npos) << text;
  EXPECT_EQ(error_of([&] { (void)(table + 1); }), text);
  EXPECT_EQ(problems_of(devices), text);
  EXPECT_EQ(torch::ones({1}, sim_device(1)).item<float>(), 1);
}

TEST(Devices, LeaveLibTorchAsItWas) {
  { SimulatedDevices devices; }
  EXPECT_TRUE(c10::AutogradState::get_tls_state().get_multithreading_enabled());
  const Tensor x = torch::ones({3}).requires_grad_();
  (x * x).sum().backward();
  EXPECT_EQ(x.grad().sum().item<float>(), 6);
}

TEST(Devices, CountTheirOperations) {
  SimulatedDevices devices;
  const Tensor x = torch::ones({3}, sim_device());
  EXPECT_EQ(devices.operations_given(), 2U);  // memory, and what fills it
  EXPECT_LE(devices.operations_done(), 2U);
  devices.synchronize();
  EXPECT_EQ(devices.operations_done(), 2U);
}

}  // namespace
}  // namespace rehearsal::sim
