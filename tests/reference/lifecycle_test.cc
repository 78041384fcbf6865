// Goal: a group comes together, ends and comes together again, and says why if it cannot. Method:
// the reference's tests of init and shutdown.
#include <ATen/ATen.h>

#include <vector>

#include "tests/reference/row.h"

namespace rehearsal::reference::lifecycle_test {
namespace {

at::Tensor square(double value) { return at::full({2, 2}, value); }

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return a + b; }

int64_t light() { return 0; }

int64_t heavy(at::Tensor x) {
  for (int64_t i = 1; i < 100; ++i) x.mul_(i).div_(i + 1);
  return 0;
}

int64_t slow(CallContext& context) {
  context.sleep(std::chrono::milliseconds(300));
  return 1;
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add)
      .function("light", &light)
      .function("heavy", &heavy)
      .function("slow", &slow);
  return registry;
}

// Rows: rpc_test::RpcTest.{test_duplicate_name, test_duplicate_name_2, test_invalid_names}
TEST(ReferenceLifecycle, NamesAreValidAndTakenOnce) {
  Program program(functions());
  program.worker("worker0").worker("Letters-and_digits:9");
  const auto refusal = [&](const std::string& name) -> std::string {
    try {
      program.worker(name);
    } catch (const std::invalid_argument& refused) {
      return refused.what();
    }
    return "accepted";
  };
  EXPECT_TRUE(contains(refusal("worker0"), "two workers are named 'worker0'"));
  for (const std::string& name : {std::string("abc*"), std::string(" "), std::string(),
                                  std::string(500, 'a'), std::string(128, 'a')})
    EXPECT_TRUE(contains(refusal(name), "letters, digits, '-', '_' and ':'")) << refusal(name);
  EXPECT_EQ(refusal(std::string(127, 'a')), "accepted");
  EXPECT_EQ(program.members().size(), 3u);
}

// Rows: rpc_test::RpcTest.{test_init_rpc_twice, test_reinit}
TEST(ReferenceLifecycle, ASecondLifeOfTheGroupInheritsNothing) {
  const Program program = everywhere(functions(), [](Worker& worker) {
    EXPECT_EQ(worker.debug_info().at("rref.users"), "0");
    const auto sum = worker.remote(after(worker), &add, square(1), square(1));
    EXPECT_TRUE(at::equal(sum.to_here(), square(2)));
  });
  in_both_worlds(program);
  in_both_worlds(program, {.seeds = 5});
}

// Rows: rpc_test::RpcTest.test_pg_init_no_rpc_init
TEST(ReferenceLifecycle, AReferenceWithoutANodeIsRefused) {
  const RRef<at::Tensor> none;
  EXPECT_EQ(kind_of([&] { (void)none.to_here(); }), ErrorKind::bad_arguments);
  EXPECT_EQ(kind_of([&] { (void)none.owner(); }), ErrorKind::bad_arguments);
  EXPECT_EQ(to_string(none), "an empty RRef");
}

// Rows: rpc_test::RpcTest.test_world_size_one
TEST(ReferenceLifecycle, AGroupOfOneCallsItselfAndLeavesAlone) {
  Program program(functions());
  program.worker("me", [](Worker& worker) {
    EXPECT_TRUE(at::equal(worker.rpc_sync("me", &add, square(1), square(1)), square(2)));
    EXPECT_TRUE(at::equal(worker.rpc_async("me", &add, square(1), square(1)).wait(), square(2)));
    EXPECT_TRUE(at::equal(worker.remote("me", &add, square(1), square(1)).to_here(), square(2)));
    worker.barrier();
  });
  in_both_worlds(program);
}

// Rows: rpc_test::RpcTest.{test_wait_all_workers_dense,
// Rows: test_graceful_shutdown_with_uneven_workload}
TEST(ReferenceLifecycle, WhoHasNothingLeftToDoServesTheOthers) {
  in_both_worlds(one_caller(
      functions(),
      [](Worker& worker) {
        for (const std::string to : {"worker1", "worker2"}) {
          std::vector<Future<int64_t>> calls;
          for (int i = 0; i < 30; ++i)
            calls.push_back(worker.rpc_async(to, &heavy, at::ones({10, 10})));
          for (const auto& call : calls) EXPECT_EQ(call.wait(), 0);
        }
      },
      3));
}

// Rows: rpc_test::RpcTest.test_wait_all_workers_timeout
TEST(ReferenceLifecycle, AShutdownThatTakesTooLongFailsAndNamesWhoIsBusy) {
  // A call outlives the mains: nobody waits for it but the shutdown.
  const Program program = one_caller(functions(), [](Worker& worker) {
    (void)worker.with_timeout(Timeout::never()).rpc_async("worker1", &slow);
  });
  NodeOptions impatient;
  impatient.shutdown_timeout = std::chrono::milliseconds(10);
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    sim::ClusterOptions options;
    options.adjust_node = [&](NodeOptions& node) {
      node.shutdown_timeout = impatient.shutdown_timeout;
    };
    sim::Cluster cluster(Seed{seed}, program, options);
    (void)cluster.try_run();
    for (const char* name : {"worker0", "worker1"}) {
      ASSERT_NE(cluster.result(name), nullptr);
      ASSERT_FALSE(cluster.result(name)->ok()) << name << ", seed " << seed;
    }
  }
  real::LoopbackGroup group(program, {.node = impatient});
  for (const Status& ended : group.run()) EXPECT_FALSE(ended.ok());
}

// A barrier of workers that leave at once when they have passed it. The first of them may have left
// before the others are told.
void last_barrier(Worker& worker, const std::vector<std::string>& workers = {}) {
  try {
    worker.barrier(workers);
  } catch (const RpcError& error) {
    if (error.kind() != ErrorKind::peer_lost) throw;
  }
}

// Rows: rpc_test::RpcTest.{test_local_shutdown, test_local_shutdown_with_rpc}
TEST(ReferenceLifecycle, WhoLeavesAtOnceWaitsForNobody) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    last_barrier(worker);
    worker.leave_at_once();
  }));
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    EXPECT_EQ(worker.rpc_sync(after(worker), &light), 0);
    last_barrier(worker);
    worker.leave_at_once();
  }));
}

// Rows: rpc_test::RpcTest.{test_handle_send_exceptions, test_shutdown_followed_by_rpc}
TEST(ReferenceLifecycle, CallsToAWorkerThatHasLeftFail) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    worker.leave_at_once();
    worker.barrier();
    if (worker.id().value == 2) return;
    if (worker.id().value == 1) {
      ErrorKind kind = ErrorKind::timeout;
      while (true) {
        const Result<int64_t> answer = worker.rpc_async("worker2", &light).result();
        if (answer.ok()) continue;
        kind = answer.error().kind;
        EXPECT_EQ(answer.error().worker, "worker2");
        break;
      }
      EXPECT_EQ(kind, ErrorKind::peer_lost);
      EXPECT_EQ(kind_of([&] { worker.rpc_sync("worker2", &light); }), ErrorKind::peer_lost);
    }
    last_barrier(worker, {"worker0", "worker1", "worker3"});
  }));
}

// Rows: rpc_test::RpcTest.test_debug_info
TEST(ReferenceLifecycle, WhatTheTablesHoldIsTold) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const auto sum = worker.remote(after(worker), &add, square(1), square(1));
    const DebugInfo info = worker.debug_info();
    EXPECT_EQ(info.at("rref.users"), "1");
    std::map<std::string, int> parts;
    for (const auto& [key, value] : info) ++parts[key.substr(0, key.find('.'))];
    EXPECT_EQ(parts.size(), 3u);
    EXPECT_GT(parts["rpc"] * parts["rref"] * parts["autograd"], 0);
    EXPECT_TRUE(contains(info.at("rref.table"), "at " + after(worker))) << info.at("rref.table");
  }));
}

// Rows: rpc_test_2020::ProcessGroupAgentRpcTest.test_process_group_debug_info
TEST(ReferenceLifecycle, ACallThatIsHeldOpenIsCountedAndThenNot) {
  in_both_worlds(one_caller(functions(), [](Worker& worker) {
    EXPECT_EQ(worker.debug_info().at("rpc.pending_calls"), "0");
    const auto open = worker.rpc_async("worker1", &slow);
    EXPECT_EQ(worker.debug_info().at("rpc.pending_calls"), "1");
    open.wait();
    EXPECT_EQ(worker.debug_info().at("rpc.pending_calls"), "0");
  }));
}

}  // namespace
}  // namespace rehearsal::reference::lifecycle_test
