#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The notes of the functions below.
struct Notes {
  std::vector<std::string> started;
  std::vector<bool> cancelled;
  std::vector<Error> errors;
  std::vector<Promise<int64_t>> promises;
  std::vector<Instant> ended;
  doubles::TestWorld* world = nullptr;
};
Notes* notes = nullptr;

int64_t note(const std::string& name) {
  notes->started.push_back(name);
  return 1;
}
Future<int64_t> never_answers(CallContext& context) {
  notes->promises.push_back(context.promise<int64_t>());
  return notes->promises.back().future();
}
// Waits for c for as long as it may, and notes how that ended.
int64_t waits(CallContext& context) {
  try {
    return context.rpc_sync("c", &never_answers);
  } catch (const RpcError& thrown) {
    notes->errors.push_back(thrown.error());
    notes->ended.push_back(notes->world->now());
    notes->cancelled.push_back(context.cancelled());
    throw;
  }
}

class TimeoutTest : public CallFixture {
 protected:
  void SetUp() override {
    notes = &notes_;
    notes_.world = &world;
    registry.function("note", &note)
        .function("never_answers", &never_answers)
        .function("waits", &waits);
    window_frames = 4;
    begin();
  }
  void TearDown() override {
    CallFixture::TearDown();
    notes_.promises.clear();
    settle();
    notes = nullptr;
  }
  Notes notes_;
};

TEST_F(TimeoutTest, ACallFailsAtItsTime) {
  const Instant start = world.now();
  const Error error = error_of(
      [&] { return a().calls.with_timeout(milliseconds(250)).rpc_sync("b", &never_answers); });
  EXPECT_EQ(world.now() - start, milliseconds(250));
  EXPECT_EQ(error, (Error{.kind = ErrorKind::timeout,
                          .text = "no answer within 250 ms",
                          .worker = "b",
                          .function = "never_answers",
                          .chain = {}}));
  EXPECT_EQ(a().deadlines.size(), 0u);
}

TEST_F(TimeoutTest, TheDefaultIsTheWorkersAndZeroIsNever) {
  const Future<int64_t> by_default = a().calls.rpc_async("b", &never_answers);
  const Future<int64_t> endless =
      a().calls.with_timeout(Timeout::never()).rpc_async("b", &never_answers);
  world.advance(seconds(59));
  EXPECT_FALSE(by_default.ready());
  world.advance(seconds(1));
  EXPECT_EQ(by_default.result().error().kind, ErrorKind::timeout);
  world.advance(seconds(10000));
  EXPECT_FALSE(endless.ready());
  notes_.promises.at(1).complete(3);
  EXPECT_EQ(endless.wait(), 3);
}

TEST_F(TimeoutTest, ATimeBeyondAllInstantsIsNeverOver) {
  // Goal: the sum of the time and what is left does not overflow, at the caller or the callee.
  // Method: the longest time that there is, some time after the beginning.
  world.advance(seconds(10));
  const Future<int64_t> answer =
      a().calls.with_timeout(Duration::max()).rpc_async("b", &never_answers);
  world.advance(seconds(10000));
  ASSERT_FALSE(answer.ready());
  notes_.promises.at(0).complete(3);
  EXPECT_EQ(answer.wait(), 3);
  EXPECT_EQ(a().deadlines.size(), 0u);
}

TEST_F(TimeoutTest, AnAnswerInTimeLeavesNoDeadline) {
  EXPECT_EQ(a().calls.rpc_sync("b", &note, std::string("x")), 1);
  EXPECT_EQ(a().deadlines.size(), 0u);
  world.advance(seconds(100));
  EXPECT_EQ(a().trace.count(EventKind::call_completed), 1u);
}

TEST_F(TimeoutTest, TheResponseOfACallThatWasGivenUpIsMarkedAndDropped) {
  EXPECT_EQ(error_of([&] {
              return a().calls.with_timeout(milliseconds(50)).rpc_sync("b", &never_answers);
            }).kind,
            ErrorKind::timeout);
  settle();
  notes_.promises.at(0).complete(1);
  settle();
  EXPECT_EQ(a().trace.marked("a response came after its call was given up"), 1u);
  EXPECT_EQ(a().trace.count(EventKind::call_completed), 1u);
}

TEST_F(TimeoutTest, TheCalleeIsToldThatItsCallerGaveUp) {
  // b waits for c without a limit of its own; when it hears an error it asks whether it is wanted.
  const Future<int64_t> answer = a().calls.with_timeout(milliseconds(100)).rpc_async("b", &waits);
  EXPECT_EQ(answer.result().error().kind, ErrorKind::timeout);
  settle();
  ASSERT_EQ(notes_.cancelled.size(), 1u);
  EXPECT_TRUE(notes_.cancelled[0]);
}

TEST_F(TimeoutTest, NestedCallsHaveNoMoreTimeThanWhatIsLeft) {
  // Nor does it take the caller to tell them: it cannot be heard any more.
  world.set_idle([this] {
    if (network.deliver_first()) return true;
    network.cut(0, 1);
    return false;
  });
  const Instant start = world.now();
  const Future<int64_t> answer = a().calls.with_timeout(milliseconds(100)).rpc_async("b", &waits);
  world.advance(milliseconds(101));
  ASSERT_EQ(notes_.errors.size(), 1u);
  EXPECT_EQ(notes_.ended[0] - start, milliseconds(100));
  EXPECT_EQ(notes_.errors[0].kind, ErrorKind::timeout);
  EXPECT_EQ(notes_.errors[0].worker, "c");
  EXPECT_EQ(answer.result().error().worker, "b");
}

TEST_F(TimeoutTest, NorHaveThoseOfACreationAtItsOwnWorker) {
  const Instant start = world.now();
  const RRef<int64_t> value = a().calls.with_timeout(milliseconds(100)).remote("a", &waits);
  world.advance(milliseconds(101));
  ASSERT_EQ(notes_.errors.size(), 1u);
  EXPECT_EQ(notes_.ended[0] - start, milliseconds(100));
  EXPECT_EQ(notes_.errors[0].kind, ErrorKind::timeout);
  EXPECT_EQ(notes_.errors[0].worker, "c");
  EXPECT_EQ(error_of([&] { return value.to_here(); }).kind, ErrorKind::timeout);
}

TEST_F(TimeoutTest, ACallThatWaitedForRoomIsWithdrawnAndNeverSent) {
  // Four frames fill the window; the fifth call times out before there is room.
  world.set_idle(nullptr);
  std::vector<Future<int64_t>> filling;
  for (int i = 0; i < 4; ++i)
    filling.push_back(a().calls.rpc_async("b", &note, std::string("fill")));
  const Future<int64_t> late =
      a().calls.with_timeout(milliseconds(10)).rpc_async("b", &note, std::string("late"));
  world.advance(milliseconds(10));
  EXPECT_EQ(late.result().error().kind, ErrorKind::timeout);
  world.set_idle([this] { return network.deliver_first(); });
  settle();
  EXPECT_EQ(notes_.started, (std::vector<std::string>(4, "fill")));
  EXPECT_EQ(b().trace.marked("a cancellation came after its call had ended"), 0u);
}

TEST_F(TimeoutTest, ACancellationThatComesLateIsMarked) {
  world.set_idle(nullptr);
  const Future<int64_t> answer =
      a().calls.with_timeout(milliseconds(10)).rpc_async("b", &note, std::string("done"));
  network.deliver(0);
  world.settle();
  world.advance(milliseconds(10));
  EXPECT_EQ(answer.result().error().kind, ErrorKind::timeout);
  world.set_idle([this] { return network.deliver_first(); });
  settle();
  EXPECT_EQ(b().trace.marked("a cancellation came after its call had ended"), 1u);
  EXPECT_EQ(a().trace.marked("a response came after its call was given up"), 1u);
  EXPECT_EQ(notes_.started.size(), 1u);
}

}  // namespace
}  // namespace rehearsal
