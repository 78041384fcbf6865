#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/future_groups.h"
#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

std::vector<int64_t>* started = nullptr;

// Takes the execution's place for as long as c needs to answer.
int64_t occupy(CallContext& context, int64_t number);
int64_t quick(int64_t number) {
  started->push_back(number);
  return number;
}
int64_t never_parks(int64_t number) { return number + 1; }
int64_t ping(CallContext& context, int64_t depth) {
  if (depth == 0) return 0;
  const std::string other = context.worker_info().name == "b" ? "c" : "b";
  return 1 + context.rpc_sync(other, &ping, depth - 1);
}
// The same; what it waits for is called by a continuation.
int64_t ping_later(CallContext& context, int64_t depth) {
  if (depth == 0) return 0;
  const std::string other = context.worker_info().name == "b" ? "c" : "b";
  const Calls calls = context;
  return 1 + calls.rpc_async(other, &ping_later, 0)
                 .then([calls, other, depth](int64_t) {
                   return calls.rpc_async(other, &ping_later, depth - 1);
                 })
                 .wait();
}
int64_t size_after_c(CallContext& context, const std::string& text) {
  return context.rpc_sync("c", &ping, 0) + static_cast<int64_t>(text.size());
}
int64_t occupy(CallContext& context, int64_t number) {
  started->push_back(number);
  return context.rpc_sync("c", &ping, 0) + number;
}

class OverloadTest : public CallFixture {
 protected:
  void SetUp() override {
    started = &started_;
    registry.function("quick", &quick).function("ping", &ping).function("occupy", &occupy);
    registry.function("size_after_c", &size_after_c).function("ping_later", &ping_later);
    registry.function("never_parks", &never_parks).runs_inline();
  }
  void TearDown() override {
    CallFixture::TearDown();
    started = nullptr;
  }
  std::vector<int64_t> started_;
};

TEST_F(OverloadTest, CallsBeyondTheLimitWaitTheirTurn) {
  // One may run at a time: it waits for c, whose answer is held back; then all run in order.
  begin({.execution_limit = 1, .queue_limit = 10});
  world.set_idle(nullptr);
  std::vector<Future<int64_t>> answers;
  for (int64_t number = 0; number < 4; ++number)
    answers.push_back(a().calls.rpc_async("b", &occupy, number));
  for (int i = 0; i < 4; ++i) network.deliver(0);
  EXPECT_EQ(b().trace.marked("a call waits for its turn to execute"), 3u);
  EXPECT_EQ(b().served.size(), 4u + 1u);
  world.set_idle([this] { return network.deliver_first(); });
  EXPECT_EQ(when_all(answers).wait(), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(started_, (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(b().served.size(), 0u);
}

TEST_F(OverloadTest, WhatTheQueueCannotHoldIsRefused) {
  begin({.execution_limit = 1, .queue_limit = 2});
  world.set_idle(nullptr);
  std::vector<Future<int64_t>> answers;
  for (int64_t number = 0; number < 5; ++number)
    answers.push_back(a().calls.rpc_async("b", &quick, number));
  for (int i = 0; i < 5; ++i) network.deliver(0);
  world.set_idle([this] { return network.deliver_first(); });
  for (int64_t number = 0; number < 3; ++number) EXPECT_EQ(answers[number].wait(), number);
  for (int64_t number = 3; number < 5; ++number) {
    const Error error = answers[number].result().error();
    EXPECT_EQ(error.kind, ErrorKind::overloaded);
    EXPECT_EQ(error.worker, "b");
    EXPECT_EQ(error.function, "quick");
  }
  EXPECT_EQ(started_, (std::vector<int64_t>{0, 1, 2}));
}

TEST_F(OverloadTest, NestedCallsAreNeverCounted) {
  // Fifty deep between two workers that may each run one call.
  begin({.execution_limit = 1, .queue_limit = 0});
  EXPECT_EQ(a().calls.rpc_sync("b", &ping, 50), 50);
}

TEST_F(OverloadTest, CallsOfAContinuationAreNestedAsItsGiversAre) {
  // Goal: a function may wait for what its continuation calls. Method: as above.
  begin({.execution_limit = 1, .queue_limit = 0});
  EXPECT_EQ(a().calls.rpc_sync("b", &ping_later, 50), 50);
}

TEST_F(OverloadTest, AFunctionThatNeverParksWaitsForNoTurn) {
  // Goal: what executes may wait for it. Method: the only place is taken by a function that waits
  // for c, whose answer is held back, and nobody may stand behind it.
  begin({.execution_limit = 1, .queue_limit = 0});
  world.set_idle(nullptr);
  const Future<int64_t> busy = a().calls.rpc_async("b", &occupy, int64_t{1});
  network.deliver(0);
  const Future<int64_t> quick = a().calls.rpc_async<int64_t>("b", "never_parks", int64_t{1});
  world.set_idle([this] { return network.deliver_first(); });
  EXPECT_EQ(quick.wait(), 2);
  EXPECT_EQ(busy.wait(), 1);
  EXPECT_EQ(b().trace.marked("a call waits for its turn to execute"), 0u);
}

TEST_F(OverloadTest, AFloodOfCreationsIsRefusedWhereItWouldGrowWithoutEnd) {
  // Creations wait for no place: three wait for c, whose answers are held back, two come too late.
  begin({.execution_limit = 1, .queue_limit = 10, .served_limit = 3});
  world.set_idle(nullptr);
  std::vector<RRef<int64_t>> made;
  for (int64_t number = 0; number < 5; ++number)
    made.push_back(a().calls.remote("b", &occupy, number));
  for (int i = 0; i < 5; ++i) network.deliver(0);
  EXPECT_EQ(b().served.size(), 3u + 3u);
  world.set_idle([this] { return network.deliver_first(); });
  settle();
  for (int64_t number = 0; number < 3; ++number) EXPECT_EQ(made[number].to_here(), number);
  for (int64_t number = 3; number < 5; ++number) {
    const Error error = error_of([&] { return made[number].to_here(); });
    EXPECT_EQ(error.kind, ErrorKind::overloaded);
    EXPECT_EQ(error.worker, "b");
    EXPECT_NE(error.text.find("3 calls are not answered yet"), std::string::npos) << error.text;
  }
  EXPECT_EQ(started_, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(a().calls.rpc_sync("b", &quick, int64_t{7}), 7);
  made.clear();
  settle();
  EXPECT_EQ(b().served.size(), 0u);
}

TEST_F(OverloadTest, TheArgumentsOfCallsThatAreNotAnsweredAreWeighed) {
  // Goal: what one peer's calls hold by their arguments ends somewhere, and no call is too large by
  // itself. Method: a limit of 1,000 bytes; of a's calls with 600 two wait for c, one is refused,
  // as a creation is; those of c are not. Then all are answered, and a calls again.
  limits.served_bytes = 1000;
  begin();
  world.set_idle(nullptr);
  const std::string text(600, 'x');
  std::vector<Future<int64_t>> answers;
  for (int i = 0; i < 3; ++i) answers.push_back(a().calls.rpc_async("b", &size_after_c, text));
  RRef<int64_t> made = a().calls.remote("b", &size_after_c, text);
  answers.push_back(c().calls.rpc_async("b", &size_after_c, text));
  for (int i = 0; i < 5; ++i) network.deliver(0);
  EXPECT_EQ(b().served.size(), 2u * 3u);
  world.set_idle([this] { return network.deliver_first(); });
  settle();
  EXPECT_EQ(answers.at(0).wait(), 600);
  EXPECT_EQ(answers.at(1).wait(), 600);
  for (const Error& error :
       {answers.at(2).result().error(), error_of([&] { return made.to_here(); })}) {
    EXPECT_EQ(error.kind, ErrorKind::overloaded);
    EXPECT_EQ(error.worker, "b");
    EXPECT_NE(error.text.find("1000 bytes or more (PeerLimits::served_bytes)"), std::string::npos)
        << error.text;
  }
  EXPECT_EQ(answers.at(3).wait(), 600);
  EXPECT_GE(b().served.bytes_peak(), 1200u);
  EXPECT_EQ(a().calls.rpc_sync("b", &size_after_c, std::string(5000, 'x')), 5000);
  EXPECT_EQ(a().calls.rpc_sync("b", &size_after_c, text), 600);
  made = {};
  settle();
  EXPECT_EQ(b().served.size(), 0u);
}

TEST_F(OverloadTest, AQueuedCallWhoseCallerIsLostDoesNotRun) {
  begin({.execution_limit = 1, .queue_limit = 10});
  world.set_idle(nullptr);
  const Future<int64_t> first = c().calls.rpc_async("b", &quick, 1);
  const Future<int64_t> second = a().calls.rpc_async("b", &quick, 2);
  network.deliver(0);
  network.deliver(0);
  b().fence(0);
  world.settle();
  EXPECT_EQ(started_, (std::vector<int64_t>{1}));
  EXPECT_EQ(b().trace.marked("a call was given up before it started"), 1u);
  EXPECT_EQ(b().served.size(), 0u);
  world.set_idle([this] { return network.deliver_first(); });
  EXPECT_EQ(first.wait(), 1);
  EXPECT_EQ(second.result().error().kind, ErrorKind::fenced);
}

TEST_F(OverloadTest, AQueuedCallThatIsGivenUpDoesNotRun) {
  // The first occupies the only place; the second times out meanwhile.
  begin({.execution_limit = 1, .queue_limit = 10});
  world.set_idle(nullptr);
  const Future<int64_t> first = a().calls.rpc_async("b", &occupy, 1);
  const Future<int64_t> second =
      a().calls.with_timeout(std::chrono::milliseconds(10)).rpc_async("b", &quick, 2);
  network.deliver(0);
  network.deliver(0);
  world.pause(std::chrono::milliseconds(10));
  world.fire_due_timers();
  EXPECT_EQ(second.result().error().kind, ErrorKind::timeout);
  network.deliver(0);
  world.set_idle([this] { return network.deliver_first(); });
  EXPECT_EQ(first.wait(), 1);
  settle();
  EXPECT_EQ(started_, (std::vector<int64_t>{1}));
  EXPECT_EQ(b().trace.marked("a call was given up before it started"), 1u);
}

}  // namespace
}  // namespace rehearsal
