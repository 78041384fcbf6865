// Goal: workers meet at barriers and give each other values, as often as they like, and none waits
// for one that cannot come. Method: the reference's tests of all-gather and barrier; deaths
// besides.
#include <ATen/ATen.h>

#include <atomic>
#include <map>
#include <memory>

#include "tests/reference/row.h"

namespace rehearsal::reference::gatherings_test {
namespace {

struct Counter {
  int64_t increase() { return ++count; }
  int64_t count = 0;
};

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.type<Counter>("Counter").constructor<>().method("increase", &Counter::increase);
  return registry;
}

// Rows: rpc_test::RpcTest.test_all_gather
TEST(ReferenceGatherings, EveryWorkerHasTheValuesOfAll) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const std::map<std::string, int64_t> ids =
        worker.all_gather(static_cast<int64_t>(worker.id().value));
    EXPECT_EQ(ids, (std::map<std::string, int64_t>{
                       {"worker0", 0}, {"worker1", 1}, {"worker2", 2}, {"worker3", 3}}));
    // Some of them, in groups side by side, with values that have tensors.
    const std::string other = worker.workers()[worker.id().value ^ 1].name;
    const auto tensors =
        worker.all_gather(at::full({2}, worker.id().value), {other, worker.name()});
    EXPECT_EQ(tensors.size(), 2u);
    EXPECT_TRUE(at::equal(tensors.at(other), at::full({2}, worker.id().value ^ 1)));
    EXPECT_EQ(kind_of([&] { worker.barrier({other}); }), ErrorKind::bad_arguments);
  }));
}

// Rows: rpc_test::RpcTest.test_all_gather_timeout
TEST(ReferenceGatherings, ALateWorkerIsNamedByTheFirstAndTheNextGatheringIsWhole) {
  in_both_worlds([] {
    const auto gave_up = std::make_shared<std::atomic<int>>(0);
    return everywhere(functions(), [gave_up](Worker& worker) {
      const auto shortly = std::chrono::milliseconds(50);
      while (worker.id().value == 2 && *gave_up < 3) worker.sleep(std::chrono::milliseconds(1));
      const Error error = error_of([&] { worker.barrier({}, shortly); });
      EXPECT_EQ(error.kind, ErrorKind::timeout);
      if (worker.id().value == 0) {
        EXPECT_TRUE(contains(error.text, "'worker2'")) << error.text;
      }
      ++*gave_up;
      EXPECT_EQ(worker.all_gather(1).size(), 4u);
    });
  });
}

// Rows: rpc_test::RpcTest.{test_rpc_barrier_all, test_rpc_barrier_multithreaded}
TEST(ReferenceGatherings, NobodyPassesABarrierBeforeAllHaveComeToIt) {
  in_both_worlds([] {
    const auto arrived = std::make_shared<std::atomic<int>>(0);
    return everywhere(functions(), [arrived](Worker& worker) {
      for (int round = 1; round <= 3; ++round) {
        ++*arrived;
        worker.barrier();
        EXPECT_EQ(*arrived, 4 * round);
        worker.barrier();
      }
    });
  });
}

// Rows: rpc_test::RpcTest.test_deadlock
// Rows: rpc_test::RpcTest.{test_init_pg_then_rpc, test_init_rpc_then_pg}
TEST(ReferenceGatherings, CallsAndBarriersDoNotHinderEachOther) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const auto counter = worker.remote<Counter>(after(worker));
    const auto count = counter.rpc_async(&Counter::increase);
    worker.barrier();
    EXPECT_EQ(count.wait(), 1);
    worker.barrier();
  }));
}

TEST(ReferenceGatherings, AValueOfAnotherTypeIsToldWithTheNameOfWhoGaveIt) {
  // Goal: nobody takes a barrier for a number. Method: one worker comes with a number, one without.
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    if (worker.name() == "worker1") return worker.barrier();
    const Error error = error_of([&] { static_cast<void>(worker.all_gather(int64_t{1})); });
    EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
    EXPECT_EQ(error.worker, "worker1");
    EXPECT_TRUE(contains(error.text, "worker 'worker1' came to this gathering with something else"))
        << error.text;
  }));
}

// A reference is encoded in calls only: nowhere else does its owner hear of the copy.
// Rows: rpc_test::RpcTest.test_rref_py_pickle_not_supported
TEST(ReferenceGatherings, AReferenceIsRefused) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const RRef<int64_t> mine = worker.rref<int64_t>(1);
    const Error error = error_of([&] { (void)worker.all_gather(mine); });
    EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
    EXPECT_TRUE(contains(error.text, "a remote reference cannot be gathered")) << error.text;
    worker.barrier();
  }));
}

}  // namespace
}  // namespace rehearsal::reference::gatherings_test
