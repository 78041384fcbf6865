// Goal: the devices of a process serve all its threads; each has a device and streams of its own
// that are current, and a missing wait between two of them is told. Method: threads that compute at
// once, and pairs of threads of which one begins when the other has ended.
#include <c10/core/StreamGuard.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/sim/device/devices.h"

namespace rehearsal::sim {
namespace {

using at::Tensor;

SimulatedDevicesOptions of_process(int count) { return {.count = count, .for_all_threads = true}; }

template <class Code>
void in_another_thread(Code code) {
  std::thread(code).join();
}

TEST(DevicesOfAProcess, ServeThreadsThatComputeAtOnce) {
  SimulatedDevices devices(of_process(2));
  std::vector<std::thread> threads;
  std::vector<double> sums(4);
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([number, &sum = sums[static_cast<size_t>(number)]] {
      const c10::DeviceGuard on_mine(sim_device(number % 2));
      const c10::StreamGuard in_mine(SimulatedDevices::new_stream(number % 2));
      Tensor total = torch::zeros({64}, "sim");
      for (int i = 0; i < 200; ++i) total = total + number;
      EXPECT_EQ(total.device(), sim_device(number % 2));
      sum = total.sum().item<double>();
    });
  for (std::thread& thread : threads) thread.join();
  for (int number = 0; number < 4; ++number)
    EXPECT_EQ(sums[static_cast<size_t>(number)], 64 * 200 * number);
  devices.check();
}

TEST(DevicesOfAProcess, AreCurrentForEachThreadApart) {
  SimulatedDevices devices(of_process(2));
  const c10::DeviceGuard on_second(sim_device(1));
  const c10::StreamGuard on_side(SimulatedDevices::new_stream(1));
  in_another_thread([] {
    EXPECT_EQ(torch::empty({1}, "sim").device(), sim_device(0));
    EXPECT_EQ(current_stream(1).id(), 0);
  });
  EXPECT_NE(current_stream(1).id(), 0);
}

TEST(DevicesOfAProcess, YieldToThoseThatAThreadHasOfItsOwn) {
  SimulatedDevices devices(of_process(1));
  SimulatedDevices own({.count = 3});
  EXPECT_EQ(torch::ones({1}, sim_device(2)).item<float>(), 1);
  in_another_thread([] { EXPECT_THROW((void)torch::ones({1}, sim_device(2)), c10::Error); });
}

// A thread that has used them finds those that there are now, and none when there are none.
TEST(DevicesOfAProcess, AreThoseOfTheLatestObject) {
  std::optional<SimulatedDevices> first(of_process(1));
  const auto count = [] {
    return c10::impl::VirtualGuardImpl(SimulatedDevices::kType).deviceCount();
  };
  EXPECT_EQ(count(), 1);
  {
    const c10::Stream kept = SimulatedDevices::new_stream(0);
    const c10::StreamGuard in_it(kept);
    SimulatedDevices second(of_process(2));
    EXPECT_EQ(count(), 2);
    EXPECT_EQ(torch::ones({1}, sim_device(1)).item<float>(), 1);
  }
  EXPECT_EQ(count(), 1);
  first.reset();
  EXPECT_EQ(count(), 0);
  in_another_thread([&] { EXPECT_EQ(count(), 0); });
}

TEST(DevicesOfAProcess, HaveBackwardPassesRunOnTheThreadThatCallsThem) {
  SimulatedDevices devices(of_process(1));
  in_another_thread([] {
    const Tensor x = torch::ones({3}, sim_device()).requires_grad_();
    (x * x).sum().backward();
    EXPECT_EQ(x.grad().cpu().sum().item<float>(), 6);
  });
  devices.check();
}

// One thread writes, in a stream of its own, and another one reads it afterwards.
std::string told_of_two_threads(bool waits) {
  SimulatedDevices devices(of_process(1));
  Tensor shared = torch::zeros({8}, sim_device());
  devices.synchronize();
  c10::Event written(SimulatedDevices::kType);
  in_another_thread([&] {
    const c10::StreamGuard in_mine(SimulatedDevices::new_stream(0));
    shared.add_(1);
    written.record(current_stream());
  });
  in_another_thread([&] {
    if (waits) written.block(current_stream());
    const Tensor read = shared * 2;
    if (waits) EXPECT_EQ(read.sum().item<float>(), 16);
  });
  return problems_of(devices);
}

TEST(DevicesOfAProcess, TellAMissingWaitBetweenTwoThreads) {
  EXPECT_NE(told_of_two_threads(false).find("missing wait: "), std::string::npos);
  EXPECT_EQ(told_of_two_threads(true), "");
}

}  // namespace
}  // namespace rehearsal::sim
