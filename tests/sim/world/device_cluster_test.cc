// Goal: workers of a simulated cluster have devices that compute later, under every fault: tensors
// of devices arrive whole, failures are told, nothing is left. Method: calls with tensors of
// devices under hostile faults and crashes; devices that fail; oracles that see what was left out.
#include <c10/core/StreamGuard.h>
#include <torch/types.h>

#include <functional>
#include <string>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "sim/simulated_devices.h"
#include "tests/core/recording_trace.h"
#include "tests/effort.h"

namespace rehearsal::sim {
namespace {

at::Tensor doubled(const at::Tensor& tensor) { return tensor * 2; }

at::Tensor picked(const at::Tensor& tensor, int64_t index) {
  return tensor.index_select(0, at::full({1}, index).to(tensor.device()));
}

FunctionRegistry device_functions() {
  FunctionRegistry registry;
  registry.function("doubled", &doubled).function("picked", &picked);
  return registry;
}

Program with_maps(Program::Main main) {
  Program program(device_functions());
  program.worker("a", std::move(main))
      .device_map("a", {{0, 0}})
      .device_map("b", {{0, 1}, {1, 0}})
      .worker("b");
  return program;
}

void hold(const Program& program, const HuntOptions& options) {
  EXPECT_TRUE(hunt(options, [&](Seed seed, const ClusterOptions& of_seed) {
    Cluster cluster(seed, program, of_seed);
    cluster.run();
  }));
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const RpcError& thrown) {
    return thrown.error().text;
  }
  return "nothing was thrown";
}

TEST(DeviceCluster, TensorsOfDevicesArriveWholeUnderFaults) {
  const Program program = with_maps([](Worker& worker) {
    for (int64_t i = 0; i < 4; ++i) {
      const at::Tensor numbers = at::arange(0, 40'000).to(worker.device(static_cast<int>(i % 2)));
      const at::Tensor result = worker.rpc_sync("b", &doubled, numbers);
      EXPECT_EQ(result.device(), numbers.device());
      EXPECT_TRUE(at::equal(result.cpu(), at::arange(0, 80'000, 2)));
    }
  });
  HuntOptions options;
  options.seeds = tries(60);
  options.cluster.devices = 2;
  options.cluster.faults = FaultLevel::hostile;
  hold(program, options);
}

TEST(DeviceCluster, ACrashEndsWhatItsDevicesHadYetToDo) {
  const Program program = with_maps([](Worker& worker) {
    for (int64_t i = 0; i < 6; ++i) {
      const Future<at::Tensor> result =
          worker.rpc_async("b", &doubled, at::ones({1000}).to(worker.device(0)));
      if (const Result<at::Tensor> ended = result.result(); ended.ok())
        EXPECT_TRUE(at::equal(ended.value().cpu(), at::full({1000}, 2.)));
    }
  });
  HuntOptions options;
  options.seeds = tries(60);
  options.cluster.devices = 2;
  options.cluster.crashes = 1;
  options.cluster.restart = Restart::amnesia;
  hold(program, options);
}

TEST(DeviceCluster, ADeviceThatFailsIsToldInPlaceOfItsTensors) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const Program program = with_maps([](Worker& worker) {
      const at::Tensor three = at::ones({3}).to(worker.device(0));
      const std::string why =
          message_of([&] { (void)worker.rpc_sync("b", &picked, three, int64_t{7}); });
      EXPECT_NE(why.find("has failed: "), std::string::npos) << why;
      EXPECT_NE(why.find("aten::index_select"), std::string::npos) << why;
    });
    Cluster cluster(Seed{seed}, program, {.faults = FaultLevel::none, .devices = 2});
    cluster.run();
  }
}

// The operation that makes an argument fails, and so does its call.
TEST(DeviceCluster, AnArgumentThatADeviceDoesNotComputeFailsItsCall) {
  for (const char* to : {"a", "b"})
    for (const uint64_t seed : {1, 2, 3, 4, 5}) {
      const Program program = with_maps([to](Worker& worker) {
        const at::Tensor three = at::ones({3}).to(worker.device(0));
        const std::string why =
            message_of([&] { (void)worker.rpc_async(to, &doubled, picked(three, 7)).wait(); });
        EXPECT_NE(why.find("has failed: "), std::string::npos) << why;
      });
      Cluster cluster(Seed{seed}, program, {.faults = FaultLevel::none, .devices = 2});
      static_cast<void>(cluster.try_run());
    }
}

TEST(DeviceCluster, OneThatForgetsAWaitFailsByItsOracle) {
  const Program program = with_maps([](Worker& worker) {
    const at::Tensor made = at::ones({100}).to(worker.device(0), /*non_blocking=*/true);
    const c10::StreamGuard side(SimulatedDevices::new_stream(0));
    (void)worker.rpc_sync("b", &doubled, made);
  });
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none, .devices = 2});
  const RunReport& report = cluster.try_run();
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->oracle, "device waits");
  EXPECT_EQ(report.failure->object, "'a'");
  EXPECT_NE(report.failure->message.find("missing wait: "), std::string::npos);
}

TEST(DeviceCluster, AMessageWaitsForItsCopiesAndTheShutdownForIt) {
  const Program program = with_maps([](Worker& worker) {
    for (int i = 0; i < 10; ++i)
      (void)worker.rpc_async("b", &doubled, at::ones({100}).to(worker.device(0)));
  });
  size_t waited = 0;
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    doubles::RecordingTrace trace;
    Cluster cluster(Seed{seed}, program,
                    {.faults = FaultLevel::none, .devices = 2, .traces = {&trace}});
    cluster.run();
    waited += trace.marked("a message waits until devices have copied its tensors");
  }
  EXPECT_GT(waited, 0u);
}

// Goal: in two of three lives a message leaves while its tensor is copied, and arrives whole.
TEST(DeviceCluster, AMessageLeavesWhileItsTensorsAreCopied) {
  const Program program = with_maps([](Worker& worker) {
    for (int i = 0; i < 10; ++i) {
      const at::Tensor numbers = at::arange(0, 1000).to(worker.device(0));
      const at::Tensor result = worker.rpc_sync("b", &doubled, numbers.view({10, 100}).t());
      EXPECT_TRUE(at::equal(result.cpu(), at::arange(0, 2000, 2).view({10, 100}).t()));
    }
  });
  size_t in_parts = 0;
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    doubles::RecordingTrace trace;
    Cluster cluster(Seed{seed}, program,
                    {.faults = FaultLevel::mild, .devices = 2, .traces = {&trace}});
    cluster.run();
    in_parts += trace.marked("a message leaves while devices copy the rest of its tensors");
  }
  EXPECT_GT(in_parts, 0u);
}

// Goal: a call of which a part has left fails, its worker never sees it, and what is behind it on
// its lane arrives. Method: the argument is copied in one stream while another one fails.
TEST(DeviceCluster, ADeviceThatFailsInTheMiddleOfAMessageFailsItsCall) {
  size_t in_the_middle = 0;
  for (uint64_t seed = 1; seed <= tries(60); ++seed) {
    const Program program = with_maps([](Worker& worker) {
      const at::Tensor numbers = at::ones({100'000}).to(worker.device(0));
      const at::Tensor beyond = at::full({1}, 7'000'000).to(worker.device(0));
      const Future<at::Tensor> call = worker.rpc_async("b", &doubled, numbers);
      {
        const c10::StreamGuard side(SimulatedDevices::new_stream(0));
        for (int i = 0; i < 10; ++i) (void)at::ones({1}, beyond.options());
        (void)numbers.index_select(0, beyond);
      }
      const Future<at::Tensor> behind = worker.rpc_async("b", &doubled, at::ones({100'000}));
      if (const Result<at::Tensor> ended = call.result(); !ended.ok())
        EXPECT_NE(ended.error().text.find("has failed: "), std::string::npos)
            << to_string(ended.error());
      const Result<at::Tensor> of_behind = behind.result();
      ASSERT_TRUE(of_behind.ok()) << to_string(of_behind.error());
      EXPECT_TRUE(at::equal(of_behind.value(), at::full({100'000}, 2.)));
    });
    doubles::RecordingTrace trace;
    Cluster cluster(Seed{seed}, program,
                    {.faults = FaultLevel::mild, .devices = 2, .traces = {&trace}});
    static_cast<void>(cluster.try_run());
    in_the_middle += trace.marked("a device fails in the middle of a message");
  }
  EXPECT_GT(in_the_middle, 0u);
}

TEST(DeviceCluster, ALenderThatEndsHoldsUpNoShutdown) {
  // Goal: a worker in its shutdown sees that nothing is left of a loan whose lender has ended.
  // Method: the lender fails at one of many moments, and in some of them the borrower's device has
  // still to copy.
  for (uint64_t seed = 1; seed <= tries(60); ++seed) {
    const Program program = with_maps([seed](Worker& worker) {
      (void)worker.rpc_async("b", &doubled, at::ones({100}).to(worker.device(0)));
      worker.sleep(std::chrono::microseconds(10 * (seed % 30)));
      throw std::runtime_error("it ends");
    });
    Cluster cluster(Seed{seed}, program, {.faults = FaultLevel::none, .devices = 2});
    EXPECT_TRUE(cluster.run_until([&] { return cluster.result("b") != nullptr; })) << seed;
  }
}

TEST(DeviceCluster, TheSameSeedGivesTheSameRun) {
  const Program program = with_maps([](Worker& worker) {
    for (int i = 0; i < 3; ++i)
      (void)worker.rpc_sync("b", &doubled, at::ones({100}).to(worker.device(i % 2)));
  });
  const auto fingerprint = [&](uint64_t seed) {
    Cluster cluster(Seed{seed}, program, {.devices = 2});
    return cluster.run().fingerprint;
  };
  for (const uint64_t seed : {1, 2, 3}) EXPECT_EQ(fingerprint(seed), fingerprint(seed));
}

TEST(DeviceCluster, AWorkerKnowsItsDevices) {
  const Program program = with_maps([](Worker& worker) {
    EXPECT_EQ(worker.device_count(), 3);
    EXPECT_EQ(worker.device(2).str(), "sim:2");
    EXPECT_EQ(message_of([&] { (void)worker.device(3); }),
              "there is no device 3: worker 'a' has 3 beside the CPU");
  });
  Cluster cluster(Seed{1}, program, {.devices = 3});
  cluster.run();
}

}  // namespace
}  // namespace rehearsal::sim
