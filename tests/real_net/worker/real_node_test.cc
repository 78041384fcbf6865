#include "real_net/worker/real_node.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "core/api/worker.h"
#include "tests/real_net/support/loopback_group.h"
#include "tests/temporary_folder.h"

// Whole nodes over real threads and TCP, several in one process.
namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int64_t add(int64_t a, int64_t b) { return a + b; }

at::Tensor twice(const at::Tensor& tensor) { return tensor + tensor; }

int64_t fail_on_purpose(int64_t number) {
  throw std::runtime_error("no " + std::to_string(number));
}

// Calls the other worker, which calls this one, `depth` times.
int64_t nest(CallContext& context, int64_t depth) {
  if (depth == 0) return 0;
  const std::string other = context.worker_info().name == "ps" ? "trainer" : "ps";
  return 1 + context.rpc_sync(other, &nest, depth - 1);
}

// Computes for so long, and until it has been told that it may end.
std::atomic<bool> may_end{false};
int64_t compute_for(int64_t milliseconds_long) {
  const auto end = std::chrono::steady_clock::now() + milliseconds(milliseconds_long);
  while (std::chrono::steady_clock::now() < end || !may_end) {
  }
  return milliseconds_long;
}

// Counts its calls in this process.
std::atomic<int64_t>& executed() {
  static std::atomic<int64_t> count{0};
  return count;
}
int64_t count_call(int64_t number) {
  ++executed();
  return number;
}

struct Counted {
  int64_t count() { return ++counted; }
  int64_t counted = 0;
};

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add).function("twice", &twice).function("nest", &nest);
  registry.function("fail_on_purpose", &fail_on_purpose).function("compute_for", &compute_for);
  registry.function("count_call", &count_call);
  return registry;
}

void serve(Worker&) {}

void expect_all_well(const std::vector<Status>& ends) {
  for (const Status& end : ends) EXPECT_TRUE(end.ok()) << to_string(end.error());
}

TEST(RealNode, CallsOfEveryKindGiveTheirValues) {
  Program program(functions());
  program.worker("ps", serve).worker("trainer", [](Worker& worker) {
    EXPECT_EQ(worker.rpc_sync("ps", &add, int64_t{2}, int64_t{3}), 5);
    EXPECT_EQ(worker.rpc_sync("trainer", &add, int64_t{4}, int64_t{5}), 9);
    const at::Tensor large = at::full({1 << 20}, 1.5f);
    EXPECT_TRUE(worker.rpc_sync("ps", &twice, large).equal(large + large));
    const at::Tensor small = at::ones({256});
    const auto sum = worker.rpc_sync<at::Tensor>("ps", "aten::add.Tensor", small, small, 1);
    EXPECT_TRUE(sum.equal(small + small));
    std::vector<Future<int64_t>> futures;
    for (int64_t i = 0; i < 200; ++i) futures.push_back(worker.rpc_async("ps", &add, i, i));
    for (int64_t i = 0; i < 200; ++i) EXPECT_EQ(futures[i].wait(), 2 * i);
  });
  for (const uint32_t threads : {0u, 1u, 2u})
    expect_all_well(LoopbackGroup(program, {.worker_threads = threads}).run());
}

TEST(RealNode, ARemoteExceptionComesBackAndTheWorkerLives) {
  Program program(functions());
  program.worker("ps", serve).worker("trainer", [](Worker& worker) {
    try {
      worker.rpc_sync("ps", &fail_on_purpose, int64_t{3});
      ADD_FAILURE();
    } catch (const RpcError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::remote_exception);
      EXPECT_NE(error.error().text.find("no 3"), std::string::npos);
    }
    EXPECT_EQ(worker.rpc_sync("ps", &add, int64_t{1}, int64_t{1}), 2);
  });
  expect_all_well(LoopbackGroup(program, {}).run());
}

TEST(RealNode, NestedCallsAThousandDeepNeedNoMoreThreads) {
  Program program(functions());
  program.worker("ps", serve).worker("trainer", [](Worker& worker) {
    EXPECT_EQ(worker.rpc_sync("ps", &nest, int64_t{1000}), 1000);
  });
  for (const uint32_t threads : {0u, 1u})
    expect_all_well(LoopbackGroup(program, {.worker_threads = threads}).run());
}

TEST(RealNode, AWorkerThatComputesIsNotFencedAndAnswersOthers) {
  // Goal: neither a computation in main nor one in a served function stops protocol work. Method:
  // both last twice the peer timeout, and until a later call has been answered.
  may_end = false;
  Program program(functions());
  program.worker("ps", [](Worker&) { compute_for(4'000); }).worker("trainer", [](Worker& worker) {
    const auto served = worker.rpc_async("ps", &compute_for, int64_t{4'000});
    EXPECT_EQ(worker.rpc_sync("ps", &add, int64_t{1}, int64_t{2}), 3);
    may_end = true;
    EXPECT_EQ(served.wait(), 4'000);
  });
  GroupOptions options;
  options.node.peer_timeout = seconds(2);
  options.node.heartbeat = milliseconds(200);
  expect_all_well(LoopbackGroup(program, options).run());
}

TEST(RealNode, EveryCallRunsOnceThoughTheConnectionsAreReset) {
  // Goal: reconnects lose and repeat nothing. Method: a reset after every 20,000 bytes.
  constexpr int64_t kCalls = 600;
  executed() = 0;
  Program program(functions());
  program.worker("ps", serve).worker("trainer", [](Worker& worker) {
    for (int64_t i = 0; i < kCalls; ++i) EXPECT_EQ(worker.rpc_sync("ps", &count_call, i), i);
  });
  GroupOptions options{.through_proxies = true};
  // The last acknowledgement may be lost with its connection, and its sender have left.
  options.node.peer_timeout = seconds(10);
  options.node.heartbeat = seconds(1);
  LoopbackGroup group(program, options);
  for (const uint32_t rank : {0u, 1u}) group.proxy(rank).set_reset_after(20'000);
  expect_all_well(group.run());
  EXPECT_EQ(executed(), kCalls);
}

TEST(RealNode, AnExceptionOutOfAMainReachesItsPeers) {
  Program program(functions());
  program.worker("ps", [](Worker&) { throw std::runtime_error("the disk is full"); })
      .worker("trainer", [](Worker& worker) {
        for (int64_t i = 0; i < 100'000; ++i) worker.rpc_sync("ps", &add, i, i);
      });
  const std::vector<Status> ends = LoopbackGroup(program, {}).run();
  for (const Status& end : ends) {
    ASSERT_FALSE(end.ok());
    EXPECT_NE(to_string(end.error()).find("the disk is full"), std::string::npos)
        << to_string(end.error());
  }
}

TEST(RealNode, AGroupStartsAnewInTheSameProcess) {
  Program program(functions());
  program.worker("ps", serve).worker("trainer", [](Worker& worker) {
    EXPECT_EQ(worker.rpc_sync("ps", &add, int64_t{1}, int64_t{2}), 3);
  });
  for (int i = 0; i < 5; ++i) expect_all_well(LoopbackGroup(program, {}).run());
}

TEST(RealNode, WaitingInsideLibTorchsEngineIsAnError) {
  Program program(functions());
  program.worker("ps", serve).worker("trainer", [](Worker& worker) {
    const at::Tensor leaf = at::ones({2}).requires_grad_();
    const at::Tensor result = leaf * 2;
    result.register_hook(
        [&worker](const at::Tensor&) { worker.rpc_sync("ps", &add, int64_t{1}, int64_t{2}); });
    try {
      result.sum().backward();
      ADD_FAILURE();
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find("would_park"), std::string::npos) << error.what();
    }
  });
  expect_all_well(LoopbackGroup(program, {}).run());
}

TEST(RealNode, ANodeThatIsAbortedEndsItsRunWithTheReason) {
  may_end = true;
  Program program(functions());
  std::atomic<bool> started{false};
  program.worker("ps", serve).worker("trainer", [&](Worker& worker) {
    started = true;
    worker.rpc_sync("ps", &compute_for, int64_t{200});
  });
  LoopbackGroup group(program, {});
  std::thread aborting([&] {
    while (!started) std::this_thread::yield();
    group.node(1).abort({.kind = ErrorKind::node_stopped, .text = "enough of it"});
  });
  const std::vector<Status> ends = group.run();
  aborting.join();
  ASSERT_FALSE(ends[1].ok());
  EXPECT_NE(ends[1].error().text.find("enough of it"), std::string::npos);
}

TEST(RealNode, ANodeThatIsAbortedBeforeItRunsNeverBegins) {
  Program program(functions());
  program.worker("trainer", [](Worker&) { ADD_FAILURE() << "it began"; }).worker("ps", serve);
  LoopbackGroup group(program, {});
  for (const uint32_t rank : {0u, 1u})
    group.node(rank).abort({.kind = ErrorKind::node_stopped, .text = "not today"});
  for (const Status& end : group.run()) {
    ASSERT_FALSE(end.ok());
    EXPECT_NE(end.error().text.find("not today"), std::string::npos) << to_string(end.error());
  }
}

// Calls when it dies, and lets out what the call throws, or tells what it was.
struct CallsAtItsEnd {
  CallsAtItsEnd(const RRef<Counted>& counted, bool lets_out)
      : counted(counted), lets_out(lets_out) {}
  ~CallsAtItsEnd() {
    if (lets_out) counted.rpc_sync(&Counted::count);
    try {
      counted.rpc_sync(&Counted::count);
    } catch (const RpcError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::node_stopped) << error.what();
      ++executed();
    }
  }
  RRef<Counted> counted;
  bool lets_out;
};

TEST(RealNode, WhatANodeThatFailedHoldsMayCallAsItEnds) {
  // Goal: states that call, and let out what their call throws, end nothing else. Method: a main
  // that fails, and one whose state says what its call gave; with a record and without.
  const TemporaryFolder folder;
  for (const std::string& records : {std::string(), folder.path().string()}) {
    for (const bool lets_out : {false, true}) {
      FunctionRegistry registry = functions();
      registry.type<Counted>("Counted").method("count", &Counted::count);
      Program program(std::move(registry));
      program.worker("ps", serve)
          .worker("trainer", [](Worker&) { throw std::logic_error("it failed"); })
          .state<CallsAtItsEnd>([lets_out](Worker& worker) {
            return CallsAtItsEnd(worker.rref(Counted()), lets_out);
          });
      executed() = 0;
      {
        LoopbackGroup group(program, {.record_folder = records});
        const std::vector<Status> ends = group.run();
        ASSERT_FALSE(ends[1].ok());
        EXPECT_NE(ends[1].error().text.find("it failed"), std::string::npos);
        EXPECT_EQ(executed(), lets_out ? 0 : 1) << "it ended before its node";
      }
      EXPECT_EQ(executed(), lets_out ? 0 : 1);
    }
  }
}

}  // namespace
}  // namespace rehearsal::real
