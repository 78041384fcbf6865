// Time that passes: Caller::sleep and Caller::after.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Answers after a pause, without a stack meanwhile.
Future<int64_t> answer_later(CallContext& context, int64_t pause) {
  return context.after(milliseconds(pause)).then([pause] { return pause; });
}
// Answers after a pause, on its stack.
int64_t answer_slowly(CallContext& context, int64_t pause) {
  context.sleep(milliseconds(pause));
  return pause;
}

class SleepTest : public CallFixture {
 protected:
  void SetUp() override {
    registry.function("answer_later", &answer_later).function("answer_slowly", &answer_slowly);
    begin();
  }
};

TEST_F(SleepTest, LastsExactlySoLong) {
  // Goal: virtual time passes, and no other. Method: one sleep, one of no length, one of less.
  const Instant start = world.now();
  a().caller->sleep(milliseconds(250));
  EXPECT_EQ(world.now() - start, milliseconds(250));
  a().caller->sleep(Duration(0));
  a().caller->sleep(milliseconds(-3));
  EXPECT_EQ(world.now() - start, milliseconds(250));
  EXPECT_EQ(a().deadlines.size(), 0u);
}

TEST_F(SleepTest, FuturesCompleteInTheOrderOfTheirInstants) {
  // Goal: `after` never parks. Method: three futures with continuations, the longest first.
  std::vector<std::string> order;
  for (const int pause : {30, 10, 20})
    static_cast<void>(a().caller->after(milliseconds(pause)).then([&order, pause] {
      order.push_back(std::to_string(pause));
    }));
  const Future<Unit> ready = a().caller->after(Duration(0));
  EXPECT_TRUE(order.empty());
  world.advance(milliseconds(19));
  EXPECT_TRUE(ready.ready());
  EXPECT_EQ(order, (std::vector<std::string>{"10"}));
  world.advance(milliseconds(11));
  EXPECT_EQ(order, (std::vector<std::string>{"10", "20", "30"}));
}

TEST_F(SleepTest, AServedFunctionMaySleepOrAnswerLater) {
  // Goal: both forms at a callee. Method: two calls of each, side by side.
  const Instant start = world.now();
  const Future<int64_t> slow = a().calls.rpc_async("b", &answer_slowly, 40);
  const Future<int64_t> later = a().calls.rpc_async("b", &answer_later, 50);
  EXPECT_EQ(later.wait(), 50);
  EXPECT_EQ(world.now() - start, milliseconds(50));
  EXPECT_EQ(slow.wait(), 40);
  EXPECT_EQ(b().deadlines.size(), 0u);
}

TEST_F(SleepTest, TheEndOfTheNodeEndsIt) {
  // Goal: every wait ends, with the cause. Method: the node ends while one sleeps and one waits.
  const Future<Unit> later = a().caller->after(seconds(9));
  static_cast<void>(b().caller->after(milliseconds(5)).then([this] { a().end(); }));
  const Error error = error_of([this] {
    a().caller->sleep(seconds(10));
    return 0;
  });
  EXPECT_EQ(error.kind, ErrorKind::node_stopped);
  EXPECT_EQ(error.worker, "a");
  EXPECT_EQ(later.result().error().kind, ErrorKind::node_stopped);
  EXPECT_EQ(error_of([this] { return a().caller->after(seconds(1)).wait(); }).kind,
            ErrorKind::node_stopped);
}

TEST_F(SleepTest, ALengthBeyondAllInstantsIsNoOverflow) {
  // Goal: no length is wrong. Method: the longest there is, and the end of the node.
  const Future<Unit> later = a().caller->after(Duration::max());
  world.advance(seconds(1));
  EXPECT_FALSE(later.ready());
  EXPECT_EQ(a().caller->when_passed(Duration::max()), Instant::max());
  a().end();
  EXPECT_EQ(later.result().error().kind, ErrorKind::node_stopped);
}

}  // namespace
}  // namespace rehearsal
