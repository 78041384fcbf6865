#include "sim/oracles/oracles.h"

#include <gtest/gtest.h>

#include "core/values/payload.h"
#include "tests/sim/oracles/oracle_fixture.h"

namespace rehearsal::sim {
namespace {

// At most once.

class AtMostOnceTest : public OracleTest {
 protected:
  AtMostOnceTest() { use(make_at_most_once()); }
};

TEST_F(AtMostOnceTest, IsSilentWhenEachCallRunsOnce) {
  for (uint64_t i = 1; i <= 3; ++i) {
    see(kUser, EventKind::api_call, i);
    see(kOwner, EventKind::call_executed, i);
    see(kUser, EventKind::call_completed, i);
  }
  see(kUser, {.kind = EventKind::api_call, .id = id(4), .text = "to_here"});
  see(kUser, EventKind::call_completed, 4);
  see(kUser, EventKind::call_completed, 5, 1);  // An error says nothing.
  expect_silent();
}

TEST_F(AtMostOnceTest, FiresWhenAFunctionRunsTwice) {
  see(kOwner, EventKind::call_executed, 1);
  see(kOwner, EventKind::call_executed, 1);
  expect_finding("call", "run twice");
}

TEST_F(AtMostOnceTest, FiresWhenAFrameIsHandledTwice) {
  const auto frame = [&](uint64_t sequence) {
    see(kUser, Event{.kind = EventKind::frame, .peer = kOwner.worker, .number = sequence});
  };
  see(kUser, Event{.kind = EventKind::peer_up, .peer = kOwner.worker, .number = 100});
  for (const uint64_t sequence : {1, 3, 2}) frame(sequence);
  see(kUser, Event{.kind = EventKind::peer_up, .peer = kOwner.worker, .number = 100});
  frame(4);
  // Another life of the sender counts anew.
  see(kUser, Event{.kind = EventKind::peer_up, .peer = kOwner.worker, .number = 200});
  frame(1);
  expect_silent();
  frame(1);
  expect_finding("frame 1 of worker 0", "twice");
}

TEST_F(AtMostOnceTest, FiresWhenACallerHasAValueOfNothing) {
  see(kUser, EventKind::call_completed, 1);
  expect_finding("call", "never ran");
}

// Completion.

class CompletionTest : public OracleTest {
 protected:
  CompletionTest() { use(make_completion()); }
  void make_call(uint64_t ordinal, Duration time_left = {}, bool creates = false) {
    see(kUser, {.kind = EventKind::api_call,
                .id = id(ordinal),
                .number = static_cast<uint64_t>(time_left.count()),
                .digest = creates ? 1u : 0u,
                .text = "add"});
  }
};

TEST_F(CompletionTest, IsSilentWhenEveryCallCompletesInTime) {
  make_call(1, std::chrono::seconds(5));
  make_call(2);
  make_call(3, {}, /*creates=*/true);
  see(kUser, {.kind = EventKind::call_completed, .id = id(1)}, std::chrono::seconds(5));
  see(kUser, {.kind = EventKind::call_completed, .id = id(2)}, std::chrono::hours(5));
  end();
  expect_silent();
}

TEST_F(CompletionTest, FiresOnASecondCompletion) {
  make_call(1);
  see(kUser, EventKind::call_completed, 1);
  see(kUser, EventKind::call_completed, 1);
  expect_finding("of add", "twice");
}

TEST_F(CompletionTest, FiresOnACompletionOfNothing) {
  see(kUser, EventKind::call_completed, 1);
  expect_finding("call", "without having been made");
}

TEST_F(CompletionTest, FiresWhenACallOutlivesItsTimeOut) {
  make_call(1, std::chrono::seconds(5));
  see(kUser, {.kind = EventKind::call_completed, .id = id(1)}, std::chrono::seconds(8));
  expect_finding("of add", "3000 ms after its time-out");
}

TEST_F(CompletionTest, LatenessIsByTheClockThatShowsLess) {
  const auto see_at = [&](Event event, Duration when, Duration shown) {
    event.worker = kUser.worker;
    event.id = id(1);
    oracle->on_event(
        {.event = event, .life = kUser, .when = Instant{when}, .shown = Instant{shown}}, findings);
  };
  using std::chrono::seconds;
  const uint64_t limit = static_cast<uint64_t>(Duration(seconds(5)).count());
  see_at({.kind = EventKind::api_call, .number = limit, .text = "add"}, seconds(0), seconds(100));
  see_at({.kind = EventKind::call_completed}, seconds(5), seconds(140));  // It has jumped.
  expect_silent();
  oracle = make_completion();
  see_at({.kind = EventKind::api_call, .number = limit, .text = "add"}, seconds(0), seconds(100));
  see_at({.kind = EventKind::call_completed}, seconds(9), seconds(107));  // It runs slow.
  expect_finding("of add", "2000 ms after its time-out");
}

TEST_F(CompletionTest, FiresSoonerWithLessSlack) {
  use(make_completion(std::chrono::milliseconds(50)));
  make_call(1, std::chrono::seconds(5));
  see(kUser, {.kind = EventKind::call_completed, .id = id(1)}, std::chrono::milliseconds(5060));
  expect_finding("of add", "60 ms after its time-out");
}

constexpr uint64_t kTimedOut = 1 + static_cast<uint64_t>(ErrorKind::timeout);

TEST_F(CompletionTest, FiresOnATimeOutBeforeItsTime) {
  make_call(1, std::chrono::seconds(5));
  see(kUser, {.kind = EventKind::call_completed, .id = id(1), .number = kTimedOut},
      std::chrono::milliseconds(4999));
  expect_finding("of add", "before its time");
}

TEST_F(CompletionTest, FiresOnATimeOutOfACallWithoutLimit) {
  make_call(1);
  see(kUser, {.kind = EventKind::call_completed, .id = id(1), .number = kTimedOut},
      std::chrono::hours(1));
  expect_finding("of add", "before its time");
}

TEST_F(CompletionTest, IsSilentAboutATimeOutThatHasACause) {
  make_call(1, std::chrono::seconds(5));
  make_call(2, std::chrono::seconds(5));
  make_call(3, std::chrono::seconds(2), /*creates=*/true);
  make_call(4, std::chrono::seconds(5));
  make_call(5, std::chrono::seconds(5));
  // At once: what it uses has failed so before.
  see(kUser, {.kind = EventKind::call_completed, .id = id(1), .number = kTimedOut});
  // Its callee answers so.
  see(kOwner, {.kind = EventKind::call_served, .id = id(2), .number = kTimedOut});
  see(kUser, {.kind = EventKind::call_completed, .id = id(2), .number = kTimedOut},
      std::chrono::seconds(1));
  // It uses a reference whose creation was given up.
  see(kUser, {.kind = EventKind::call_completed, .id = id(4), .number = kTimedOut},
      std::chrono::seconds(2));
  see(kUser, {.kind = EventKind::call_completed, .id = id(5), .number = kTimedOut},
      std::chrono::seconds(5));
  expect_silent();
}

TEST_F(CompletionTest, APassThatAllAgreeOnMayEndLate) {
  see(kUser, {.kind = EventKind::api_call, .id = id(1), .number = 1, .text = "backward"});
  see(kUser, {.kind = EventKind::call_completed, .id = id(1)}, std::chrono::seconds(40));
  expect_silent();
  see(kUser, {.kind = EventKind::api_call, .id = id(2), .number = 1, .text = "backward"});
  see(kUser, {.kind = EventKind::call_completed, .id = id(2), .number = kTimedOut},
      std::chrono::seconds(40));
  expect_finding("of backward", "39999 ms after");
}

TEST_F(CompletionTest, FiresWhenACallNeverCompletes) {
  make_call(1);
  end();
  expect_finding("of add", "never completed");
}

TEST_F(CompletionTest, IsSilentAboutTheCallsOfACrashedWorker) {
  make_call(1);
  oracle->at_end({.lives = {view_of(kUser, /*crashed=*/true)}}, findings);
  expect_silent();
}

// RRef conservation.

class ConservationTest : public OracleTest {
 protected:
  ConservationTest() { use(make_rref_conservation()); }
  static constexpr uint64_t kRRef = 50;

  void fork(LifeId life, EventKind kind, uint64_t ordinal) {
    see(life, kind, ordinal, CausalIdHash{}(id(kRRef)));
  }
  void create() {
    see(kOwner, EventKind::owner_created, kRRef);
    fork(kOwner, EventKind::fork_registered, 1);
    fork(kUser, EventKind::user_created, 1);
  }
  void release() {
    fork(kUser, EventKind::user_deleted, 1);
    fork(kOwner, EventKind::fork_deleted, 1);
    see(kOwner, EventKind::owner_dropped, kRRef);
  }
  static uint64_t number_of(LifeId life) { return life.worker.value + 100; }
  void fence(LifeId who, LifeId whom, Duration when = {}) {
    see(who, {.kind = EventKind::peer_fenced, .number = number_of(whom)}, when);
  }
};

TEST_F(ConservationTest, IsSilentOverTheLifeOfAReference) {
  create();
  fork(kUser, EventKind::user_created, 2);
  fork(kOwner, EventKind::fork_registered, 2);
  fork(kUser, EventKind::user_deleted, 2);
  fork(kOwner, EventKind::fork_deleted, 2);
  release();
  end();
  expect_silent();
}

TEST_F(ConservationTest, FiresWhenAValueIsDroppedWhileAReferenceLives) {
  create();
  see(kOwner, EventKind::owner_dropped, kRRef);
  expect_finding("rref", "dropped while fork");
}

TEST_F(ConservationTest, FiresWhenTheOwnerDeletesAForkThatIsHeld) {
  create();
  fork(kOwner, EventKind::fork_deleted, 1);
  expect_finding("fork", "its holder still has it");
}

TEST_F(ConservationTest, FiresWhenADeletedForkComesBack) {
  create();
  fork(kUser, EventKind::user_deleted, 1);
  fork(kOwner, EventKind::fork_deleted, 1);
  fork(kOwner, EventKind::fork_registered, 1);
  expect_finding("fork", "is back");
}

TEST_F(ConservationTest, FiresWhenADeleteOvertakesTheRegistration) {
  see(kOwner, EventKind::owner_created, kRRef);
  fork(kUser, EventKind::user_created, 1);
  fork(kUser, EventKind::user_deleted, 1);
  fork(kOwner, EventKind::fork_registered, 1);
  expect_finding("fork", "after its holder had deleted it");
}

TEST_F(ConservationTest, FiresOnASecondDeletion) {
  create();
  release();
  fork(kOwner, EventKind::fork_deleted, 1);
  expect_finding("fork", "deleted twice");
}

TEST_F(ConservationTest, FiresWhenAValueIsNeverDropped) {
  create();
  fork(kUser, EventKind::user_deleted, 1);
  end();
  expect_finding("rref", "never dropped; forks left: ");
}

TEST_F(ConservationTest, FiresWhenAHolderKeepsItsReference) {
  create();
  fence(kOwner, kUser);
  fork(kOwner, EventKind::fork_deleted, 1);
  see(kOwner, EventKind::owner_dropped, kRRef);
  end();
  expect_finding("fork", "still has it");
}

TEST_F(ConservationTest, IsSilentWhenTheOwnerHasLostTheHolder) {
  create();
  fence(kOwner, kUser);
  fork(kOwner, EventKind::fork_deleted, 1);
  see(kOwner, EventKind::owner_dropped, kRRef);
  fork(kUser, EventKind::user_deleted, 1);
  end();
  expect_silent();
}

TEST_F(ConservationTest, IsSilentWhenTheHolderHasCrashed) {
  create();
  oracle->on_crash(view_of(kUser, /*crashed=*/true));
  fork(kOwner, EventKind::fork_deleted, 1);
  see(kOwner, EventKind::owner_dropped, kRRef);
  expect_silent();
}

// Method: a fork in a call's arguments is named by the call.
TEST_F(ConservationTest, FiresWhenAFunctionStartsBeforeItsReferenceIsConfirmed) {
  create();
  const CausalId call = id(70);
  const CausalId argument{{11}, mix(call.place(), kArgumentForks), 0};
  const uint64_t rref = CausalIdHash{}(id(kRRef));
  see(kUser, {.kind = EventKind::user_created, .id = argument, .number = rref});
  see(kOwner, {.kind = EventKind::call_executed, .id = call});  // Of another worker: not it.
  expect_silent();
  see(kUser, {.kind = EventKind::call_executed, .id = call});
  expect_finding("fork", "before its owner has confirmed it");
}

TEST_F(ConservationTest, IsSilentWhenTheReferenceIsConfirmedFirst) {
  create();
  const CausalId call = id(70);
  const CausalId result{{11}, mix(call.place(), kResultForks), 0};
  const uint64_t rref = CausalIdHash{}(id(kRRef));
  see(kUser, {.kind = EventKind::user_created, .id = result, .number = rref});
  see(kOwner, {.kind = EventKind::fork_registered, .id = result, .number = rref});
  see(kUser, {.kind = EventKind::call_completed, .id = call});
  expect_silent();
}

TEST_F(ConservationTest, FiresOnAForkThatIsRefusedThoughNobodyWasLost) {
  create();
  release();
  fork(kUser, EventKind::user_created, 2);
  fork(kOwner, EventKind::fork_refused, 2);
  expect_finding("fork", "nobody has lost anybody");
}

TEST_F(ConservationTest, IsSilentAboutAForkThatIsRefusedOnceSomebodyWasLost) {
  create();
  release();
  fence(kOwner, kUser);
  fork(kUser, EventKind::user_created, 2);
  fork(kOwner, EventKind::fork_refused, 2);
  fork(kUser, EventKind::user_deleted, 2);
  end();
  expect_silent();
}

// Context pairing.

class PairingTest : public OracleTest {
 protected:
  PairingTest() { use(make_context_pairing()); }
};

TEST_F(PairingTest, IsSilentWhenEverythingThatOpensCloses) {
  for (const LifeId life : {kOwner, kUser}) {
    see(life, EventKind::context_opened, 1);
    see(life, EventKind::pass_started, 1, 1);
    see(life, EventKind::pass_ended, 1, 1);
    see(life, EventKind::pass_started, 1, 2);
    see(life, EventKind::pass_ended, 1, 2);
    see(life, EventKind::context_released, 1);
  }
  end();
  expect_silent();
}

TEST_F(PairingTest, FiresOnAContextThatIsNeverReleased) {
  see(kUser, EventKind::context_opened, 1);
  end();
  expect_finding("context", "never released");
}

TEST_F(PairingTest, FiresOnAPassThatNeverEnds) {
  see(kUser, EventKind::pass_started, 1, 4);
  end();
  expect_finding("pass 4", "never ended");
}

TEST_F(PairingTest, FiresOnASecondOpeningAndOnAReleaseOfNothing) {
  see(kUser, EventKind::context_released, 2);
  expect_finding("context", "without being open");
  findings = {};
  see(kUser, EventKind::context_opened, 1);
  see(kUser, EventKind::context_opened, 1);
  expect_finding("context", "twice");
}

// Optimizer.

class OptimizerTest : public OracleTest {
 protected:
  OptimizerTest() { use(make_optimizer()); }
  void execute(uint64_t ordinal) {
    see(kOwner, {.kind = EventKind::call_executed,
                 .id = id(ordinal),
                 .text = "rehearsal.LocalOptimizer.step"});
  }
  void step(uint64_t ordinal, std::string_view error = "") {
    see(kOwner, {.kind = EventKind::optimizer_stepped,
                 .id = id(99),
                 .number = CausalIdHash{}(id(ordinal)),
                 .text = error});
  }
};

TEST_F(OptimizerTest, IsSilentWhenEachStepIsAppliedOnceBeforeItsAnswer) {
  // Goal: two steps side by side, one that fails and says so, one whose caller gave up.
  for (const uint64_t ordinal : {1, 2, 3, 4}) execute(ordinal);
  for (const uint64_t ordinal : {2, 1}) step(ordinal);
  for (const uint64_t ordinal : {1, 2}) see(kUser, EventKind::call_completed, ordinal);
  step(3, "a parameter has another shape");
  see(kUser, EventKind::call_completed, 3, 1);
  see(kUser, EventKind::call_completed, 4, 2);
  step(4);
  see(kUser, EventKind::call_completed, 5);  // Another function's call.
  expect_silent();
}

TEST_F(OptimizerTest, FiresWhenAStepIsAppliedTwice) {
  execute(1);
  step(1);
  expect_silent();
  step(1);
  expect_finding("step", "worker 0 has applied it twice");
}

TEST_F(OptimizerTest, FiresWhenTheAnswerComesBeforeTheStepOrAfterOneThatFailed) {
  execute(1);
  see(kUser, EventKind::call_completed, 1);
  expect_finding("step", "told that it is done before it was applied");
  findings = {};
  execute(2);
  step(2, "no memory");
  see(kUser, EventKind::call_completed, 2);
  expect_finding("step", "told that it is done before it was applied");
}

TEST_F(OptimizerTest, FiresWhenParametersAreUpdatedByNoCall) {
  step(1);
  expect_finding("worker 0", "no call of a step runs");
}

// Progress.

class ProgressTest : public OracleTest {
 protected:
  ProgressTest() { use(make_progress(std::chrono::seconds(100))); }
  void check(Duration now, bool idle = false) {
    oracle->check({.now = Instant{now},
                   .calm = true,
                   .calm_since = Instant{std::chrono::seconds(50)},
                   .idle = idle},
                  findings);
  }
};

TEST_F(ProgressTest, IsSilentWhileSomethingMovesForward) {
  check(std::chrono::seconds(149));
  see(kUser, {.kind = EventKind::call_completed}, std::chrono::seconds(149));
  check(std::chrono::seconds(248));
  expect_silent();
}

TEST_F(ProgressTest, FiresWhenOnlyFramesAreSeenForTooLong) {
  see(kUser, {.kind = EventKind::call_completed}, std::chrono::seconds(60));
  see(kUser, {.kind = EventKind::ack_frame}, std::chrono::seconds(159));
  check(std::chrono::seconds(161));
  expect_finding("", "nothing has moved forward for 101 virtual seconds");
}

TEST_F(ProgressTest, FiresWhenNothingWillEverHappen) {
  check(std::chrono::seconds(51), /*idle=*/true);
  expect_finding("", "nothing will ever happen");
}

// Leaks. (A node's tables are looked at in cluster_test.cc.)

TEST_F(OracleTest, WhoLeavesInGoodOrderCutsNothingOff) {
  use(make_no_leak());
  const auto stop = [&](LifeId life, const char* why) {
    see(life, {.kind = EventKind::node_stopped, .text = why});
  };
  see(kUser, EventKind::execution_started, 1);
  see(kUser, EventKind::execution_ended, 1);
  stop(kUser, "the worker has shut down");
  see(kOwner, EventKind::execution_started, 2);
  stop(kOwner, "worker 'user' was lost");
  expect_silent();
  stop(kOwner, "the worker has shut down");
  expect_finding("worker 0", "1 functions, continuations or walks still run there");
}

TEST_F(OracleTest, AMadWorkerMayTellOthersToGoInTheMiddleOfSomething) {
  use(make_no_leak(/*lied_to=*/true));
  see(kUser, EventKind::execution_started, 1);
  see(kUser, {.kind = EventKind::node_stopped, .text = "the worker has shut down"});
  expect_silent();
}

TEST_F(OracleTest, LeftStacksAreALeak) {
  use(make_no_leak());
  end();
  expect_silent();
  LifeView life = view_of(kUser);
  life.live_stacks = 2;
  oracle->at_end({.lives = {life}}, findings);
  expect_finding("worker 'user'", "2 stacks are left");
}

}  // namespace
}  // namespace rehearsal::sim
