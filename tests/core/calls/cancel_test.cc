#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/future_groups.h"
#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The notes of the functions below.
struct CancelNotes {
  std::vector<std::string> log;
  std::vector<Promise<int64_t>> promises;
  std::vector<Future<int64_t>> futures;
  std::function<void()> after_cancel;
  std::shared_ptr<NodeStrand> strand;
  std::vector<std::shared_ptr<FutureState<int64_t>>> states;
};
CancelNotes* cancel_notes = nullptr;

void log(const CallContext& context, const std::string& what) {
  cancel_notes->log.push_back(context.worker_info().name + " " + what);
}
Future<int64_t> never(CallContext& context) {
  cancel_notes->promises.push_back(context.promise<int64_t>());
  return cancel_notes->promises.back().future();
}
// When one is given up, all of these fail in the same turn.
Future<int64_t> fail_together() {
  cancel_notes->states.push_back(
      std::make_shared<FutureState<int64_t>>(cancel_notes->strand, CausalId{}));
  cancel_notes->strand->running().when_given_up.push_back([] {
    for (const auto& state : std::exchange(cancel_notes->states, {}))
      state->complete(Error{.kind = ErrorKind::bad_arguments, .text = "one was given up"});
  });
  return Future<int64_t>(cancel_notes->states.back());
}
std::string outcome(const Result<int64_t>& result) {
  return result.ok() ? "value" : std::string(name_of(result.error().kind));
}
// a calls b, which calls c, which waits for what never comes.
int64_t waits(CallContext& context, const std::string& next) {
  const Result<int64_t> result = next == "c"
                                     ? context.rpc_async("c", &never).result()
                                     : context.rpc_async(next, &waits, std::string("c")).result();
  log(context, outcome(result));
  return 0;
}
// Two calls at once, then one more once these have failed.
int64_t waits_twice(CallContext& context) {
  const Future<int64_t> first = context.rpc_async("c", &never);
  const Future<int64_t> second = context.rpc_async("c", &never);
  log(context, outcome(first.result()));
  log(context, outcome(second.result()));
  log(context, outcome(context.rpc_async("c", &never).result()));
  return 0;
}
// Returns at once; its continuation's call belongs to nobody.
Future<int64_t> goes_on(CallContext& context) {
  const Future<int64_t> first = context.rpc_async("c", &never);
  cancel_notes->futures.push_back(
      first.then([calls = Calls(context)](const Result<int64_t>& result) {
        cancel_notes->log.push_back("continuation " + outcome(result));
        return calls.rpc_async("c", &never);
      }));
  return first;
}
int64_t creates(CallContext& context) {
  const RRef<int64_t> rref = context.remote("c", &never);
  (void)context.rpc_async("c", &never).result();
  cancel_notes->log.push_back("creation " + std::to_string(rref.to_here_async().result().ok()));
  return 0;
}

class CancelTest : public CallFixture {
 protected:
  void SetUp() override {
    cancel_notes = &notes_;
    registry.function("never", &never).function("waits", &waits);
    registry.function("waits_twice", &waits_twice).function("goes_on", &goes_on);
    registry.function("creates", &creates).function("fail_together", &fail_together);
    begin();
  }
  void TearDown() override {
    notes_.promises.clear();
    notes_.futures.clear();
    CallFixture::TearDown();
    for (const auto& node : nodes) EXPECT_EQ(node->served.size(), 0u);
    cancel_notes = nullptr;
  }

  // Does it once, when nothing else is left to do.
  void once_idle(std::function<void()> body) {
    world.set_idle([this, body = std::move(body), done = false]() mutable {
      if (network.deliver_first()) return true;
      if (std::exchange(done, true)) return false;
      body();
      return true;
    });
    world.settle();
  }

  CancelNotes notes_;
};

TEST_F(CancelTest, CompletesTheFutureAtOnce) {
  const Future<int64_t> future = a().calls.rpc_async("b", &never);
  world.settle();
  future.cancel();
  EXPECT_TRUE(future.ready());
  EXPECT_EQ(future.result().error(), (Error{.kind = ErrorKind::cancelled,
                                            .text = "its caller has cancelled it",
                                            .worker = "b",
                                            .function = "never",
                                            .chain = {}}));
  EXPECT_EQ(a().pending.size(), 0u);
  EXPECT_EQ(a().deadlines.size(), 0u);
  EXPECT_EQ(a().trace.count(EventKind::call_completed), 1u);
  future.cancel();
  settle();
  notes_.promises.at(0).complete(3);
  settle();
  EXPECT_EQ(future.result().error().kind, ErrorKind::cancelled);
}

TEST_F(CancelTest, ACallDoesNotStayForAValueThatNobodyWaitsFor) {
  // Its function has returned a future that is never completed, or completed later.
  const Future<int64_t> never_completed = a().calls.rpc_async("b", &never);
  const Future<int64_t> completed_later = a().calls.rpc_async("b", &never);
  world.settle();
  EXPECT_EQ(b().served.size(), 2u);
  never_completed.cancel();
  completed_later.cancel();
  settle();
  EXPECT_EQ(b().served.size(), 0u);
  EXPECT_EQ(a().trace.marked("a response came after its call was given up"), 2u);
  notes_.promises.at(1).complete(3);
  settle();
  EXPECT_EQ(a().trace.marked("a response came after its call was given up"), 2u);
}

TEST_F(CancelTest, AFutureThatIsCompleteKeepsItsValue) {
  const Promise<int64_t> promise(a().strand);
  promise.complete(5);
  promise.future().cancel();
  EXPECT_EQ(promise.future().wait(), 5);
  const Promise<int64_t> other(a().strand);
  other.future().cancel();
  other.complete(5);
  EXPECT_EQ(other.future().result().error().kind, ErrorKind::cancelled);
}

TEST_F(CancelTest, ReachesNestedCalls) {
  // a calls b, b calls c, c calls itself: all wait, and all are ended by a.
  const Future<int64_t> future = a().calls.rpc_async("b", &waits, std::string("a"));
  once_idle([&] { future.cancel(); });
  settle();
  EXPECT_EQ(notes_.log, (std::vector<std::string>{"a cancelled", "b cancelled"}));
  EXPECT_EQ(a().pending.size() + b().pending.size(), 0u);
}

TEST_F(CancelTest, EndsAllThatAnExecutionHasCalledAndRefusesWhatItCalls) {
  const Future<int64_t> future = a().calls.rpc_async("b", &waits_twice);
  once_idle([&] { future.cancel(); });
  settle();
  EXPECT_EQ(notes_.log, (std::vector<std::string>{"b cancelled", "b cancelled", "b cancelled"}));
  EXPECT_EQ(notes_.promises.size(), 2u);
  EXPECT_EQ(b().trace.marked("a call was made by an execution that nobody waits for any more"), 1u);
  EXPECT_EQ(b().trace.count(EventKind::call_completed), 3u);
}

TEST_F(CancelTest, ComesWithATimeOutAndWithTheLossOfTheCaller) {
  const Future<int64_t> late =
      a().calls.with_timeout(milliseconds(100)).rpc_async("b", &waits_twice);
  world.advance(milliseconds(120));
  EXPECT_EQ(late.result().error().kind, ErrorKind::timeout);
  EXPECT_EQ(notes_.log.size(), 3u);
  notes_.log.clear();
  const Future<int64_t> lost = a().calls.rpc_async("b", &waits_twice);
  once_idle([&] { b().fence(0); });
  settle();
  EXPECT_EQ(notes_.log, (std::vector<std::string>{"b cancelled", "b cancelled", "b cancelled"}));
}

TEST_F(CancelTest, OfALostCallersCallThatAnotherOnesEndAnswersLeavesNothing) {
  // Goal: a call that is answered while others are given up is not given up after that. Method: two
  // calls of one caller, each of which answers both when it is given up.
  notes_.strand = b().strand;
  std::vector<Future<int64_t>> lost;
  for (int i = 0; i < 2; ++i) lost.push_back(a().calls.rpc_async("b", &fail_together));
  once_idle([&] { b().fence(0); });
  settle();
  EXPECT_EQ(b().trace.count(EventKind::call_executed), 2u);
  EXPECT_EQ(b().served.size(), 0u);
  EXPECT_EQ(b().pending.cancelled_maker_count(), 0u);
}

TEST_F(CancelTest, OfACallWithAnInventedIdLeavesTheCallsOfAMain) {
  // Goal: who makes up the id of a call gives up what that call has made, not what another
  // execution of its callee has. Method: c calls a with the place of what started a's main, and
  // cancels; a call of a's main goes on, and it makes more.
  const CausalId main = a().main->started_by();
  const CallId id{{c().incarnation(), main.path, main.ordinal}};
  ASSERT_EQ(id.place(), main.place());
  const Future<int64_t> before = a().calls.rpc_async("b", &never);
  world.settle();
  Draft draft = function_draft(*c().caller, "a", &never);
  draft.call.id = id;
  const Future<int64_t> invented = c().caller->start_typed<int64_t>(std::move(draft));
  world.settle();
  ASSERT_EQ(a().served.size(), 1u);
  invented.cancel();
  settle();
  EXPECT_EQ(a().served.size(), 0u);
  EXPECT_FALSE(before.ready());
  const Future<int64_t> after = a().calls.rpc_async("b", &never);
  settle();
  ASSERT_EQ(notes_.promises.size(), 3u);
  for (int64_t number = 0; number < 3; ++number)
    notes_.promises[static_cast<size_t>(number)].complete(number);
  settle();
  EXPECT_EQ(before.wait(), 0);
  EXPECT_EQ(after.wait(), 2);
}

TEST_F(CancelTest, LeavesTheCallsOfContinuations) {
  const Future<int64_t> future = a().calls.rpc_async("b", &goes_on);
  once_idle([&] { future.cancel(); });
  settle();
  EXPECT_EQ(notes_.log, (std::vector<std::string>{"continuation cancelled"}));
  EXPECT_EQ(b().pending.size(), 1u);
  EXPECT_EQ(b().served.size(), 0u);
  notes_.promises.at(1).complete(8);
  settle();
  EXPECT_EQ(notes_.futures.at(0).wait(), 8);
}

TEST_F(CancelTest, NeverWithdrawsACreation) {
  const Future<int64_t> future = a().calls.rpc_async("b", &creates);
  once_idle([&] { future.cancel(); });
  settle();
  // The use of what was created is a call, and refused; the creation stands.
  EXPECT_EQ(notes_.log, (std::vector<std::string>{"creation 0"}));
  EXPECT_EQ(notes_.promises.size(), 2u);
  for (const auto& promise : notes_.promises) promise.complete(1);
  settle();
  EXPECT_EQ(c().rrefs.owner_count(), 0u);
}

TEST_F(CancelTest, ReachesThroughContinuationsToTheirSource) {
  const Future<int64_t> source = a().calls.rpc_async("b", &never);
  std::vector<std::string> ran;
  const Future<int64_t> next = source.then([&](int64_t value) {
    ran.push_back("value");
    return value;
  });
  const Future<Unit> last =
      next.then([&](const Result<int64_t>& result) { ran.push_back(outcome(result)); });
  world.settle();
  last.cancel();
  EXPECT_EQ(last.result().error().kind, ErrorKind::cancelled);
  EXPECT_EQ(next.result().error().kind, ErrorKind::cancelled);
  EXPECT_EQ(source.result().error().kind, ErrorKind::cancelled);
  EXPECT_EQ(ran, (std::vector<std::string>{"cancelled"}));
  EXPECT_EQ(a().pending.size(), 0u);
}

TEST_F(CancelTest, ReachesWhatAContinuationFollowsAndWhatIsGathered) {
  const Promise<int64_t> start(a().strand);
  const Future<int64_t> followed =
      start.future().then([&](int64_t) { return a().calls.rpc_async("b", &never); });
  start.complete(1);
  world.settle();
  EXPECT_EQ(a().pending.size(), 1u);
  followed.cancel();
  EXPECT_EQ(followed.result().error().kind, ErrorKind::cancelled);
  EXPECT_EQ(a().pending.size(), 0u);
  const Future<int64_t> one = a().calls.rpc_async("b", &never);
  const Future<int64_t> other = a().calls.rpc_async("c", &never);
  const Future<std::vector<int64_t>> both = when_all<int64_t>({one, other});
  both.cancel();
  EXPECT_EQ(both.result().error().kind, ErrorKind::cancelled);
  EXPECT_EQ(one.result().error().kind, ErrorKind::cancelled);
  EXPECT_EQ(other.result().error().kind, ErrorKind::cancelled);
}

TEST_F(CancelTest, IsKeptForACallThatItOvertakes) {
  // Goal: a call that was given up never starts, also if the cancellation is on the faster lane.
  // Method: deliver it first; a later call finds nothing left of it.
  world.set_idle(nullptr);
  const Future<int64_t> future = a().calls.rpc_async("b", &never);
  future.cancel();
  ASSERT_EQ(network.in_flight().size(), 2u);
  network.deliver(1);
  EXPECT_EQ(b().trace.marked("a cancellation came that may be before its call"), 1u);
  network.deliver(0);
  world.set_idle([this] { return network.deliver_first(); });
  settle();
  EXPECT_EQ(b().trace.count(EventKind::call_executed), 0u);
  EXPECT_EQ(b().trace.marked("a call was given up before it started"), 1u);
  const Future<int64_t> other = a().calls.rpc_async("b", &never);
  settle();
  EXPECT_EQ(notes_.promises.size(), 1u);
  EXPECT_FALSE(other.ready());
}

// b is given frames of a by number, some of which are missing.
class EarlyCancelTest : public CallFixture {
 protected:
  EarlyCancelTest() {
    limits.early_cancels = 3;
    begin();
    settle();
  }
  void cancel_arrives(uint64_t sequence) {
    const CallId call{{{100}, {1, 1}, sequence}};
    b().runtime->post([&] {
      b().sessions.on_frame(
          WorkerId{0}, {.header = {.source = {100}, .destination = {101}, .sequence = sequence},
                        .body = make_protobuf_codec()->encode(Message{Cancel{call}})});
    });
  }
  uint64_t kept() { return b().served.early_cancel_count(); }
};

TEST_F(EarlyCancelTest, ACancellationIsKeptUntilAllHasComeThatWasSentBeforeIt) {
  for (const uint64_t sequence : {2, 3, 5}) cancel_arrives(sequence);
  EXPECT_EQ(kept(), 3u);  // 1 and 4 may be their calls.
  cancel_arrives(1);
  EXPECT_EQ(kept(),
            2u);  // Those of 5 and, as it came before 4, of 1: nobody tells the lanes apart.
  cancel_arrives(4);
  EXPECT_EQ(kept(), 0u);
}

TEST_F(EarlyCancelTest, WhoCancelsMoreThanCanBeOnTheWayIsFenced) {
  for (const uint64_t sequence : {2, 3, 4}) cancel_arrives(sequence);
  EXPECT_FALSE(b().sessions.lost(WorkerId{0}));
  EXPECT_EQ(b().served.early_cancels_peak(), 3u);
  cancel_arrives(5);
  ASSERT_TRUE(b().sessions.lost(WorkerId{0}));
  EXPECT_NE(b().sessions.lost(WorkerId{0})->text.find("broke the protocol: Cancel.id"),
            std::string::npos);
  EXPECT_EQ(kept(), 0u);
}

}  // namespace
}  // namespace rehearsal
