#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "sim/cluster.h"

namespace rehearsal::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The calls that the server has begun, in order.
std::vector<int64_t>* begun = nullptr;

constexpr int64_t kSmall = -1;

int64_t begin(int64_t number) {
  begun->push_back(number);
  return number;
}

// Occupies its place for so long.
int64_t occupy(CallContext& context, int64_t number, int64_t time) {
  begin(number);
  context.sleep(milliseconds(time));
  return number;
}

int64_t take(int64_t number, const at::Tensor&) { return begin(number); }

FunctionRegistry overload_functions() {
  FunctionRegistry registry;
  registry.function("begin", &begin).function("occupy", &occupy).function("take", &take);
  return registry;
}

class Overload : public ::testing::Test {
 protected:
  void SetUp() override { begun = &begun_; }
  void TearDown() override { begun = nullptr; }

  // One function at a time, and no call gives up.
  static ClusterOptions one_at_a_time() {
    ClusterOptions options;
    options.adjust_node = [](NodeOptions& node) {
      node.execution_limit = 1;
      node.rpc_timeout = {};
    };
    return options;
  }
  // How many calls had begun before this one.
  [[nodiscard]] int64_t place_of(int64_t number) const {
    return std::find(begun_.begin(), begun_.end(), number) - begun_.begin();
  }

 private:
  std::vector<int64_t> begun_;
};

TEST_F(Overload, AServerWhoseQueueIsFullRefusesWhatComes) {
  // Goal: what waits at a server is bounded, whatever is sent to it. Method: one call occupies it
  // while more come than its queue holds; that many wait, the others fail at once.
  constexpr int64_t kQueue = 1 << 16;
  constexpr int64_t kTooMany = 500;
  int64_t answered = 0;
  int64_t refused = 0;
  Program program(overload_functions());
  program.worker("server").worker("client", [&](Worker& worker) {
    const Future<int64_t> first = worker.rpc_async("server", &occupy, int64_t{0}, int64_t{60'000});
    worker.sleep(seconds(1));
    std::vector<Future<int64_t>> calls;
    for (int64_t number = 1; number <= kQueue + kTooMany; ++number)
      calls.push_back(worker.rpc_async("server", &begin, number));
    worker.sleep(seconds(30));
    EXPECT_EQ(begun->size(), 1u);
    for (const auto& call : calls)
      if (call.ready()) ++refused;
    EXPECT_EQ(refused, kTooMany);
    for (const auto& call : calls) {
      const Result<int64_t> result = call.result();
      if (result.ok()) {
        ++answered;
        continue;
      }
      EXPECT_EQ(result.error().kind, ErrorKind::overloaded);
      EXPECT_EQ(result.error().worker, "server");
    }
    EXPECT_EQ(first.wait(), 0);
  });
  Cluster cluster(Seed{1}, program, one_at_a_time());
  const RunReport& report = cluster.try_run();
  ASSERT_TRUE(report.ok) << describe_failure(report);
  EXPECT_EQ(answered, kQueue);
  EXPECT_EQ(begun->size(), static_cast<size_t>(1 + kQueue));
}

TEST_F(Overload, AFloodOfOnePeerTakesNoTurnFromAnother) {
  // Goal: who sends little is served soon, whoever floods the server. Method: a thousand calls of
  // one peer wait when another one's come; each takes its turn after one of the flood's.
  Program program(overload_functions());
  program.worker("server")
      .worker("flood",
              [](Worker& worker) {
                std::vector<Future<int64_t>> calls;
                for (int64_t number = 0; number < 1000; ++number)
                  calls.push_back(worker.rpc_async("server", &occupy, number, int64_t{10}));
                for (const auto& call : calls) call.wait();
              })
      .worker("other", [](Worker& worker) {
        worker.sleep(milliseconds(500));
        const size_t before = begun->size();
        for (int64_t i = 0; i < 3; ++i) {
          worker.rpc_sync("server", &occupy, kSmall - i, int64_t{10});
          EXPECT_LE(begun->size() - before, static_cast<size_t>(2 * (i + 1) + 1));
        }
      });
  Cluster cluster(Seed{1}, program, one_at_a_time());
  const RunReport& report = cluster.try_run();
  ASSERT_TRUE(report.ok) << describe_failure(report);
  EXPECT_EQ(begun->size(), 1003u);
  EXPECT_EQ(place_of(999), 1002);
}

TEST_F(Overload, WhoFloodsAFullQueueGivesWayToAnother) {
  // Goal: the refusals are for who has filled the queue. Method: one peer fills it; another one's
  // calls are served all the same, each in the place of one of the flood's last.
  constexpr int64_t kQueue = 1 << 16;
  int64_t refused = 0;
  Program program(overload_functions());
  program.worker("server")
      .worker("flood",
              [&refused](Worker& worker) {
                std::vector<Future<int64_t>> calls;
                calls.push_back(worker.rpc_async("server", &occupy, int64_t{0}, int64_t{60'000}));
                for (int64_t number = 1; number <= kQueue; ++number)
                  calls.push_back(worker.rpc_async("server", &begin, number));
                for (const auto& call : calls)
                  if (!call.result().ok()) ++refused;
              })
      .worker("other", [](Worker& worker) {
        worker.sleep(seconds(30));
        std::vector<Future<int64_t>> calls;
        for (int64_t i = 0; i < 3; ++i)
          calls.push_back(worker.rpc_async("server", &begin, kSmall - i));
        for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(calls[static_cast<size_t>(i)].wait(), kSmall - i);
      });
  Cluster cluster(Seed{1}, program, one_at_a_time());
  const RunReport& report = cluster.try_run();
  ASSERT_TRUE(report.ok) << describe_failure(report);
  EXPECT_EQ(refused, 3);
  for (int64_t i = 0; i < 3; ++i) EXPECT_LE(place_of(kSmall - i), 2 * (i + 1));
}

TEST_F(Overload, AFloodOfLargeCallsLeavesSmallOnesTheirLane) {
  // Goal: a small call does not wait for large ones, neither on the wire nor for room in the
  // window. Method: 64 MiB in calls of 1 MiB over 100 MB/s, a window of 4 MiB, and then a small
  // call, which has begun when next to none of them has.
  Program program(overload_functions());
  program.worker("server").worker("client", [](Worker& worker) {
    std::vector<Future<int64_t>> large;
    for (int64_t number = 0; number < 64; ++number)
      large.push_back(worker.rpc_async("server", &take, number, at::zeros({1 << 18})));
    worker.rpc_sync("server", &begin, kSmall);
    for (const auto& call : large) call.wait();
  });
  ClusterOptions options;
  options.adjust_node = [](NodeOptions& node) { node.window_bytes = 4 << 20; };
  Cluster cluster(Seed{1}, program, options);
  cluster.network().share_bandwidth(100'000'000);
  const RunReport& report = cluster.try_run();
  ASSERT_TRUE(report.ok) << describe_failure(report);
  EXPECT_LE(place_of(kSmall), 1);
  EXPECT_EQ(begun->size(), 65u);
}

}  // namespace
}  // namespace rehearsal::sim
