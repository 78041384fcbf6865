// Goal: workers join a group of no fixed size one after another, call each other at once, and leave
// when they like. Method: the reference's tests of dynamic groups.
#include <atomic>
#include <chrono>
#include <memory>

#include "tests/reference/row.h"

namespace rehearsal::reference::dynamic_groups_test {
namespace {

using std::chrono::milliseconds;

int64_t add(int64_t one, int64_t other) { return one + other; }

// The calls by newcomers, and whether newcomers were called, in one run.
struct Calls {
  std::atomic<int> of_newcomers = 0;
  std::atomic<bool> newcomers_were_called = false;
};

Program dynamic_group(const Program::Main& main) {
  FunctionRegistry registry;
  registry.function("add", &add);
  return everywhere(std::move(registry), main).dynamic();
}

// Rows: rpc_test::TensorPipeAgentRpcTest.test_dynamic_rpc_init_rpc
TEST(ReferenceDynamicGroups, AllJoinWithoutAWorldSizeAndLeave) {
  in_both_worlds([] {
    const auto arrived = std::make_shared<std::atomic<int>>(0);
    return dynamic_group([arrived](Worker& worker) {
      EXPECT_EQ(worker.workers().size(), 4u);
      EXPECT_GE(worker.members().size(), 1u);
      ++*arrived;
      // The founder is there for those who come later.
      while (worker.id().value == 0 && *arrived < 4) worker.sleep(milliseconds(1));
    });
  });
}

// Rows: rpc_test::TensorPipeAgentRpcTest.{
// Rows: test_dynamic_rpc_new_rank_can_communicated_with_existing_rank}
TEST(ReferenceDynamicGroups, ANewcomerCallsThoseWhoAreThere) {
  in_both_worlds([] {
    const auto calls = std::make_shared<Calls>();
    return dynamic_group([calls](Worker& worker) {
      if (worker.id().value == 0) {
        while (calls->of_newcomers < 3) worker.sleep(milliseconds(1));
        return;
      }
      EXPECT_EQ(worker.rpc_sync("worker0", &add, int64_t{1}, int64_t{1}), 2);
      ++calls->of_newcomers;
    });
  });
}

// Rows: rpc_test::TensorPipeAgentRpcTest.{
// Rows: test_dynamic_rpc_existing_rank_can_communicate_with_new_rank}
TEST(ReferenceDynamicGroups, WhoIsThereCallsANewcomerByItsName) {
  in_both_worlds([] {
    const auto calls = std::make_shared<Calls>();
    return dynamic_group([calls](Worker& worker) {
      if (worker.id().value != 0) {
        while (!calls->newcomers_were_called) worker.sleep(milliseconds(1));
        return;
      }
      for (const char* newcomer : {"worker1", "worker2", "worker3"}) {
        worker.wait_for_worker(newcomer);
        EXPECT_EQ(worker.rpc_sync(newcomer, &add, int64_t{1}, int64_t{1}), 2);
      }
      EXPECT_EQ(worker.members().size(), 4u);
      calls->newcomers_were_called = true;
    });
  });
}

}  // namespace
}  // namespace rehearsal::reference::dynamic_groups_test
