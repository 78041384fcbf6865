// Goal: with a mad worker the oracles judge the others by what these do of their own. Method:
// events by hand, of calls that the mad one has repeated.
#include <gtest/gtest.h>

#include <string>

#include "tests/sim/oracles/oracle_fixture.h"

namespace rehearsal::sim {
namespace {

constexpr WorkerId kLiar{2};
constexpr CausalId kOfLiar{{102}, {7, 8}, 3};

class WithoutWorkerTest : public OracleTest {
 protected:
  WithoutWorkerTest() { use(without_worker(kLiar, make_completion())); }

  void execute(LifeId life, const CausalId& call, WorkerId caller) {
    see(life, Event{.kind = EventKind::call_executed, .peer = caller, .id = call});
  }
  void call(LifeId life, const CausalId& made) {
    see(life, Event{.kind = EventKind::api_call, .id = made});
    see(life, Event{.kind = EventKind::call_completed, .id = made});
  }
  static CausalId made_in(const CausalId& call, LifeId life) {
    return {{life.worker.value + 100}, call.execution_path(), 0};
  }
};

TEST_F(WithoutWorkerTest, ACallThatTheLiarRepeatsMakesItsCallsAgain) {
  // And so do the functions that these run elsewhere, and the continuations of either.
  const CausalId nested = made_in(kOfLiar, kUser);
  const CausalId deeper = made_in(nested, kOwner);
  const CausalId continued = made_in(nested, kUser);
  for (int i = 0; i < 2; ++i) {
    execute(kUser, kOfLiar, kLiar);
    call(kUser, nested);
    execute(kOwner, nested, kUser.worker);
    call(kOwner, deeper);
    see(kUser, Event{.kind = EventKind::execution_started, .id = nested});
    call(kUser, continued);
  }
  expect_silent();
}

TEST_F(WithoutWorkerTest, ACallOfTheLiarThatRunsOnceIsJudged) {
  // Also where two workers run it, once each.
  const CausalId nested = made_in(kOfLiar, kUser);
  execute(kUser, kOfLiar, kLiar);
  execute(kOwner, kOfLiar, kLiar);
  call(kUser, nested);
  expect_silent();
  call(kUser, nested);
  expect_finding("call", "it was made twice");
}

TEST_F(WithoutWorkerTest, ACallThatAnotherRepeatsIsJudged) {
  const CausalId of_owner{{100}, {7, 8}, 4};
  const CausalId nested = made_in(of_owner, kUser);
  for (int i = 0; i < 2; ++i) {
    execute(kUser, of_owner, kOwner.worker);
    call(kUser, nested);
  }
  expect_finding("call", "it was made twice");
}

}  // namespace
}  // namespace rehearsal::sim
