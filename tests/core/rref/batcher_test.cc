// Batches on nodes whose every delivery is in order.
#include "core/api/batcher.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Items = std::vector<int64_t>;
using IntBatcher = Batcher<int64_t, int64_t>;

// The state shared with the functions below.
struct Served {
  std::vector<Items> batches;
  std::vector<std::string> log;
  IntBatcher batcher;
  const Calls* calls = nullptr;
};
Served* served = nullptr;

Items doubled(Items items) {
  served->batches.push_back(items);
  for (int64_t& item : items) item *= 2;
  return items;
}

Future<int64_t> submit(int64_t item) { return served->batcher.add(item); }

int64_t ping(int64_t item) { return item + 100; }

// Calls back to the worker whose call may be waiting for this very batch.
Items asked_back(const Items& items) {
  Items results;
  for (const int64_t item : items) results.push_back(served->calls->rpc_sync("a", &ping, item));
  return results;
}

int64_t waits_for_submit(CallContext& context, int64_t item) {
  return context.rpc_sync("b", &submit, item);
}

class BatcherTest : public CallFixture {
 protected:
  void SetUp() override { served = &served_; }
  void TearDown() override {
    served_.batcher = {};
    CallFixture::TearDown();
    for (const auto& node : nodes) EXPECT_EQ(node->deadlines.size(), 0u);
    nodes.clear();
    served = nullptr;
  }

  void begin_with(BatchOptions options, IntBatcher::Body body = doubled) {
    registry.function("submit", &submit)
        .function("ping", &ping)
        .function("waits_for_submit", &waits_for_submit);
    begin(limits);
    served_.calls = &b().calls;
    served_.batcher = IntBatcher(b().calls, options, std::move(body));
  }
  std::vector<Future<int64_t>> add_all(const Items& items) {
    std::vector<Future<int64_t>> answers;
    for (const int64_t item : items) answers.push_back(served_.batcher.add(item));
    return answers;
  }
  static Items wait_all(const std::vector<Future<int64_t>>& answers) {
    Items values;
    for (const Future<int64_t>& answer : answers) values.push_back(answer.wait());
    return values;
  }

  ServedCallsOptions limits{.execution_limit = 100, .queue_limit = 100};
  Served served_;
};

TEST_F(BatcherTest, AFullBatchRunsAtOnceInTheOrderOfArrival) {
  // Goal: nobody waits for the delay of a batch that is full. Method: calls of two workers.
  begin_with({.size = 3, .delay = seconds(1)});
  const Instant start = world.now();
  std::vector<Future<int64_t>> answers;
  for (const int64_t item : {5, 6}) answers.push_back(a().calls.rpc_async("b", &submit, item));
  settle();
  EXPECT_TRUE(served_.batches.empty());
  answers.push_back(c().calls.rpc_async("b", &submit, 7));
  EXPECT_EQ(wait_all(answers), (Items{10, 12, 14}));
  EXPECT_EQ(served_.batches, (std::vector<Items>{{5, 6, 7}}));
  EXPECT_EQ(world.now() - start, milliseconds(20));  // That `settle` took.
}

TEST_F(BatcherTest, APartialBatchRunsWhenTheDelayOfItsFirstItemHasPassed) {
  // Goal: the delay is that of the first item, and of each batch anew. Method: exact instants.
  begin_with({.size = 3, .delay = milliseconds(100)});
  const auto first = add_all({1});
  world.advance(milliseconds(60));
  const auto second = add_all({2});
  world.advance(milliseconds(39));
  EXPECT_TRUE(served_.batches.empty());
  world.advance(milliseconds(1));
  EXPECT_EQ(served_.batches, (std::vector<Items>{{1, 2}}));
  EXPECT_EQ(wait_all(first), (Items{2}));
  EXPECT_EQ(wait_all(second), (Items{4}));

  const auto third = add_all({3});
  world.advance(milliseconds(99));
  EXPECT_EQ(served_.batches.size(), 1u);
  world.advance(milliseconds(1));
  EXPECT_EQ(served_.batches.back(), (Items{3}));
}

TEST_F(BatcherTest, NoBatchIsLargerThanItsSizeAndAFlushRunsTheRest) {
  // Goal: the bound is exact. Method: seven items at once, three in a batch, no delay.
  begin_with({.size = 3, .delay = {}});
  const auto answers = add_all({1, 2, 3, 4, 5, 6, 7});
  world.advance(seconds(100));
  EXPECT_EQ(served_.batches, (std::vector<Items>{{1, 2, 3}, {4, 5, 6}}));
  EXPECT_FALSE(answers.back().ready());
  served_.batcher.flush();
  EXPECT_EQ(wait_all(answers), (Items{2, 4, 6, 8, 10, 12, 14}));
  EXPECT_EQ(served_.batches.back(), (Items{7}));
  served_.batcher.flush();
  settle();
  EXPECT_EQ(served_.batches.size(), 3u);
}

TEST_F(BatcherTest, AFullBatchForgetsItsDelay) {
  // Goal: a delay is of one batch. Method: the next one is not closed by what the first one left.
  begin_with({.size = 2, .delay = milliseconds(100)});
  EXPECT_EQ(wait_all(add_all({1, 2})), (Items{2, 4}));
  EXPECT_EQ(b().deadlines.size(), 0u);
  world.advance(milliseconds(50));
  const auto third = add_all({3});
  world.advance(milliseconds(60));
  EXPECT_EQ(served_.batches.size(), 1u);
  EXPECT_EQ(wait_all(third), (Items{6}));
}

TEST_F(BatcherTest, AThrowingBodyGivesItsErrorToEachItemAndTheNextBatchRuns) {
  // Goal: an error is of its batch. Method: the first batch throws; its items came by calls.
  begin_with({.size = 2, .delay = {}}, [](const Items& items) {
    if (items.front() == 1) throw std::runtime_error("no room");
    return doubled(items);
  });
  const Future<int64_t> first = a().calls.rpc_async("b", &submit, 1);
  const Future<int64_t> second = c().calls.rpc_async("b", &submit, 2);
  for (const auto& failed : {first, second}) {
    const Error error = error_of([&] { return failed.wait(); });
    EXPECT_EQ(error.kind, ErrorKind::remote_exception);
    EXPECT_EQ(error.text, "std::runtime_error: no room");
    EXPECT_EQ(error.worker, "b");
  }
  EXPECT_EQ(wait_all(add_all({3, 4})), (Items{6, 8}));
}

TEST_F(BatcherTest, AWrongNumberOfResultsIsAnErrorOfEachItem) {
  // Goal: nobody gets another one's result. Method: one result for two items.
  begin_with({.size = 2, .delay = {}}, [](const Items&) { return Items{1}; });
  for (const Future<int64_t>& answer : add_all({1, 2})) {
    const Error error = error_of([&] { return answer.wait(); });
    EXPECT_EQ(error.kind, ErrorKind::remote_exception);
    EXPECT_EQ(error.text,
              "the body of a batch returned 1 results for 2 items: return one for each");
    EXPECT_EQ(error.worker, "b");
  }
}

TEST_F(BatcherTest, BatchesRunOneAfterAnotherWhateverTheyWaitFor) {
  // Goal: two bodies never overlap. Method: each sleeps; the second batch is full meanwhile.
  begin_with({.size = 2, .delay = {}}, [this](const Items& items) {
    served->log.push_back("begins " + std::to_string(items.front()));
    b().caller->sleep(milliseconds(10));
    served->log.push_back("ends " + std::to_string(items.front()));
    return items;
  });
  EXPECT_EQ(wait_all(add_all({1, 2, 3, 4})), (Items{1, 2, 3, 4}));
  EXPECT_EQ(served_.log, (std::vector<std::string>{"begins 1", "ends 1", "begins 3", "ends 3"}));
}

TEST_F(BatcherTest, WhatTheBodyCallsNeverWaitsForThoseWhoWaitForIt) {
  // Goal: calls of a body are nested in those of its items. Method: one execution at a time, which
  // waits for the batch; the body calls its worker.
  limits = {.execution_limit = 1, .queue_limit = 10};
  begin_with({.size = 1, .delay = {}}, asked_back);
  EXPECT_EQ(c().calls.rpc_sync("a", &waits_for_submit, 5), 105);
}

TEST_F(BatcherTest, AnItemLeavesItsBatchWhenItsCallGivesUp) {
  // Goal: who has given up is in no batch. Method: one call times out and is made again; its worker
  // is lost; others come.
  begin_with({.size = 3, .delay = {}});
  const Future<int64_t> first = c().calls.rpc_async("b", &submit, 1);
  const Calls hurried = a().calls.with_timeout(seconds(1));
  EXPECT_EQ(error_of([&] { return hurried.rpc_sync("b", &submit, 2); }).kind, ErrorKind::timeout);
  settle();
  EXPECT_EQ(b().served.size(), 1u);
  const Future<int64_t> again = a().calls.rpc_async("b", &submit, 20);
  settle();
  b().fence(0);
  settle();
  EXPECT_EQ(b().served.size(), 1u);
  EXPECT_TRUE(served_.batches.empty());
  const auto others = add_all({3, 4});
  EXPECT_EQ(first.wait(), 2);
  EXPECT_EQ(served_.batches, (std::vector<Items>{{1, 3, 4}}));
  EXPECT_EQ(wait_all(others), (Items{6, 8}));
  a().fence(1);
}

TEST_F(BatcherTest, ABatchThatAllHaveLeftForgetsItsDelay) {
  // Goal: the next item begins a delay of its own. Method: the only item leaves half-way.
  begin_with({.size = 3, .delay = milliseconds(100)});
  const Calls hurried = a().calls.with_timeout(milliseconds(50));
  EXPECT_EQ(error_of([&] { return hurried.rpc_sync("b", &submit, 1); }).kind, ErrorKind::timeout);
  settle();
  EXPECT_EQ(b().deadlines.size(), 0u);
  const auto next = add_all({2});
  world.advance(milliseconds(99));
  EXPECT_TRUE(served_.batches.empty());
  world.advance(milliseconds(1));
  EXPECT_EQ(wait_all(next), (Items{4}));
}

TEST_F(BatcherTest, ABatcherThatIsGoneCancelsWhatItCollected) {
  // Goal: no future is left open. Method: two batches run, the third is not closed.
  begin_with({.size = 2, .delay = seconds(50)});
  const auto answers = add_all({1, 2, 3, 4, 5});
  served_.batcher = {};
  EXPECT_EQ(answers[3].wait(), 8);
  const Error error = error_of([&] { return answers[4].wait(); });
  EXPECT_EQ(error.kind, ErrorKind::cancelled);
  EXPECT_EQ(error.text, "the batcher is gone, and the batch was not closed");
  EXPECT_EQ(b().deadlines.size(), 0u);
}

TEST_F(BatcherTest, TheEndOfTheNodeEndsItsFutures) {
  // Goal: every wait ends. Method: the node ends with a batch that runs and one that is open.
  begin_with({.size = 2, .delay = seconds(50)}, [this](const Items& items) {
    b().caller->sleep(seconds(20));
    return items;
  });
  const auto answers = add_all({1, 2, 3});
  static_cast<void>(a().caller->after(milliseconds(5)).then([this] { b().end(); }));
  for (const Future<int64_t>& answer : answers)
    EXPECT_EQ(answer.result().error().kind, ErrorKind::node_stopped);
  EXPECT_EQ(served_.batcher.add(4).result().error().kind, ErrorKind::node_stopped);
}

TEST_F(BatcherTest, OptionsThatCannotBeAreRefused) {
  // Goal: a wrong option is told where it is given. Method: both of them.
  begin_with({.size = 1});
  EXPECT_THROW(IntBatcher(b().calls, {.size = 0}, doubled), std::invalid_argument);
  EXPECT_THROW(IntBatcher(b().calls, {.size = 1, .delay = milliseconds(-1)}, doubled),
               std::invalid_argument);
}

}  // namespace
}  // namespace rehearsal
