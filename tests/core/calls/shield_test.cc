// Goal: what a function calls in a shielded scope, or from destructors while an exception leaves
// it, outlasts its call; nothing else does. Method: a calls b, which calls c; a gives up at every
// moment.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The notes of the functions below.
struct ShieldNotes {
  std::vector<std::string> log;
  std::vector<Promise<int64_t>> promises;
};
ShieldNotes* shield_notes = nullptr;

Future<int64_t> never(CallContext& context) {
  shield_notes->promises.push_back(context.promise<int64_t>());
  return shield_notes->promises.back().future();
}
int64_t seven() { return 7; }

void log(const std::string& what, const Result<int64_t>& result) {
  const std::string outcome =
      result.ok() ? std::to_string(result.value()) : std::string(name_of(result.error().kind));
  shield_notes->log.push_back(what + " " + outcome);
}
// Parks until whoever waits for it has given up, or its time is over.
void outlast(CallContext& context) { (void)context.rpc_async("c", &never).result(); }

int64_t waits_in_shields(CallContext& context) {
  const Instant begin = context.now();
  const auto log_after = [&](const std::string& what, const Result<int64_t>& result) {
    log(what, result);
    const auto passed = std::chrono::duration_cast<seconds>(context.now() - begin);
    shield_notes->log.back() += " after " + std::to_string(passed.count()) + " s";
  };
  const Shield outer = context.shielded(seconds(20));
  const Future<int64_t> in_outer = context.rpc_async("c", &never);
  {
    const Shield inner = context.shielded(seconds(1));
    log_after("inner", context.rpc_async("c", &never).result());
  }
  log_after("outer", in_outer.result());
  return 0;
}
int64_t cleans_up(CallContext& context) {
  const Future<int64_t> before = context.rpc_async("c", &never);
  outlast(context);
  log("before", before.result());
  {
    const Shield shield = context.shielded(seconds(5));
    log("call", context.rpc_async("c", &seven).result());
    log("own", context.rpc_async("b", &seven).result());
    log("hurried", context.with_timeout(milliseconds(100)).rpc_async("c", &never).result());
    log("created", context.remote("c", &seven).to_here_async().result());
  }
  log("after", context.rpc_async("c", &seven).result());
  return 0;
}

struct CallsAtItsEnd {
  explicit CallsAtItsEnd(CallContext& of) : context(of) {}
  ~CallsAtItsEnd() { log("destructor", context.rpc_async("c", &seven).result()); }
  CallContext& context;
};
int64_t unwinds(CallContext& context) {
  const CallsAtItsEnd at_its_end(context);
  return context.rpc_sync("c", &never);
}
int64_t returns(CallContext& context) {
  const CallsAtItsEnd at_its_end(context);
  outlast(context);
  return 0;
}
int64_t has_no_time(CallContext& context) {
  const Shield shield = context.shielded({});
  return 0;
}

class ShieldTest : public CallFixture {
 protected:
  void SetUp() override {
    shield_notes = &notes_;
    registry.function("never", &never).function("seven", &seven);
    registry.function("waits_in_shields", &waits_in_shields).function("cleans_up", &cleans_up);
    registry.function("unwinds", &unwinds).function("returns", &returns);
    registry.function("has_no_time", &has_no_time);
    begin();
  }
  void TearDown() override {
    for (const Promise<int64_t>& promise : notes_.promises) promise.complete(0);
    CallFixture::TearDown();
    notes_.promises.clear();
    settle();
    for (const auto& node : nodes) EXPECT_EQ(node->served.size(), 0u);
    EXPECT_EQ(b().pending.cancelled_maker_count(), 0u);
    shield_notes = nullptr;
  }

  // a gives up a call of `function` at b once nothing else is left to do.
  template <class F>
  void give_up(F function) {
    const Future<int64_t> future = a().calls.rpc_async("b", function);
    settle();
    future.cancel();
    settle();
  }
  using Log = std::vector<std::string>;

  ShieldNotes notes_;
};

TEST_F(ShieldTest, WhatIsCalledInOneGoesOnForAsLongAsTheShieldGives) {
  // Goal: neither the end of the call nor its time ends them. Method: two, one in the other; the
  // caller cancels, or its time is over.
  for (const bool cancels : {true, false}) {
    notes_.log.clear();
    const Timeout time = cancels ? Timeout::never() : Timeout(milliseconds(100));
    const Future<int64_t> future = a().calls.with_timeout(time).rpc_async("b", &waits_in_shields);
    if (cancels) future.cancel();
    world.advance(seconds(30));
    EXPECT_FALSE(future.result().ok());
    EXPECT_EQ(notes_.log, Log({"inner timeout after 1 s", "outer timeout after 20 s"}));
  }
}

TEST_F(ShieldTest, WhatIsCalledInOneAfterTheEndRunsAndNothingElse) {
  give_up(&cleans_up);
  world.advance(milliseconds(200));
  EXPECT_EQ(notes_.log, Log({"before cancelled", "call 7", "own 7", "hurried timeout", "created 7",
                             "after cancelled"}));
}

TEST_F(ShieldTest, TheSameWhenTheTimeIsOverAndWhenTheCallerIsLost) {
  const Future<int64_t> late = a().calls.with_timeout(milliseconds(100)).rpc_async("b", &cleans_up);
  world.advance(milliseconds(300));
  EXPECT_EQ(late.result().error().kind, ErrorKind::timeout);
  EXPECT_EQ(notes_.log.size(), 6u);
  EXPECT_EQ(notes_.log.at(1), "call 7");
  notes_.log.clear();
  const Future<int64_t> lost = a().calls.rpc_async("b", &cleans_up);
  settle();
  b().fence(0);
  world.advance(milliseconds(300));
  EXPECT_EQ(notes_.log.size(), 6u);
  EXPECT_EQ(notes_.log.at(1), "call 7");
}

TEST_F(ShieldTest, DestructorsThatAnExceptionRunsAreShieldedUnasked) {
  // Those of a function that returns are not: nobody can tell them from the function.
  give_up(&unwinds);
  EXPECT_EQ(notes_.log, Log({"destructor 7"}));
  give_up(&returns);
  EXPECT_EQ(notes_.log, Log({"destructor 7", "destructor cancelled"}));
}

TEST_F(ShieldTest, NeedsATime) {
  const Error error = error_of([&] { return a().calls.rpc_sync("b", &has_no_time); });
  EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
  EXPECT_EQ(error.text, "a shield needs a time above zero");
}

}  // namespace
}  // namespace rehearsal
