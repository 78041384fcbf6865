// Goal: a worker that nothing has happened to is given up by nobody, whatever is said of it.
// Method: events by hand; a cluster in which a worker is made to give up another, and one in which
// none is.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/sim/oracles/oracle_fixture.h"

namespace rehearsal::sim {
namespace {

using std::chrono::seconds;

constexpr uint64_t kLost = 1 + static_cast<uint64_t>(ErrorKind::peer_lost);

class LossesTest : public OracleTest {
 protected:
  LossesTest() { use(make_losses(/*dynamic=*/false)); }
  static uint64_t number_of(LifeId life) { return life.worker.value + 100; }
  void give_up(LifeId who, LifeId whom, Duration when = seconds(10)) {
    see(who,
        {.kind = EventKind::peer_fenced,
         .peer = whom.worker,
         .number = number_of(whom),
         .text = "nothing was heard of it"},
        when);
  }
  // Both mains have ended well, after so long.
  void end_at(Duration when, bool may_be_silent = false) {
    LifeView owner = view_of(kOwner);
    LifeView user = view_of(kUser);
    owner.ended = user.ended = Instant{when};
    oracle->at_end({.may_be_silent = may_be_silent, .lives = {owner, user}}, findings);
  }
};

TEST_F(LossesTest, FiresWhenOneThatIsWellIsGivenUp) {
  give_up(kOwner, kUser);
  end_at(seconds(20));
  expect_finding("worker 'user'",
                 "worker 0 has given it up at 10 s, and nothing had happened to it: nothing was");
}

TEST_F(LossesTest, IsSilentWhereItMayHaveBeenSilent) {
  give_up(kOwner, kUser);
  end_at(seconds(20), /*may_be_silent=*/true);
  expect_silent();
}

TEST_F(LossesTest, IsSilentWhereItHadEnded) {
  give_up(kOwner, kUser);
  end_at(seconds(10));
  expect_silent();
}

TEST_F(LossesTest, IsSilentWhereItHadCrashed) {
  give_up(kOwner, kUser);
  LifeView user = view_of(kUser, /*crashed=*/true);
  user.ended = Instant{seconds(3)};
  oracle->at_end({.lives = {view_of(kOwner), user}}, findings);
  expect_silent();
}

TEST_F(LossesTest, FiresWhereItCrashedAfterwards) {
  give_up(kOwner, kUser);
  LifeView user = view_of(kUser, /*crashed=*/true);
  user.ended = Instant{seconds(11)};
  oracle->at_end({.lives = {view_of(kOwner), user}}, findings);
  expect_finding("worker 'user'", "given it up");
}

TEST_F(LossesTest, FiresOnWhoBeganAndNotOnWhoAnswers) {
  give_up(kUser, kOwner);
  give_up(kOwner, kUser, seconds(11));
  end_at(seconds(20));
  expect_finding("worker 'owner'", "worker 1 has given it up at 10 s");
}

TEST_F(LossesTest, IsSilentAboutWhoAnswersOneThatHadAReason) {
  LifeView user = view_of(kUser);
  LifeView owner = view_of(kOwner);
  owner.ended = Instant{seconds(9)};
  user.ended = Instant{seconds(20)};
  give_up(kUser, kOwner);
  give_up(kOwner, kUser, seconds(11));
  oracle->at_end({.lives = {owner, user}}, findings);
  expect_silent();
}

TEST_F(LossesTest, FiresOnACallThatFailsByALossOfNobody) {
  see(kUser, {.kind = EventKind::call_completed, .id = id(1), .number = kLost});
  expect_finding("call", "nobody has been given up so far");
}

TEST_F(LossesTest, IsSilentAboutACallThatFailsByALoss) {
  give_up(kUser, kOwner);
  see(kUser, {.kind = EventKind::call_completed, .id = id(1), .number = kLost}, seconds(10));
  end_at(seconds(10));
  expect_silent();
}

TEST_F(LossesTest, IsSilentAboutWhoLeavesADynamicGroup) {
  use(make_losses(/*dynamic=*/true));
  see(kUser, {.kind = EventKind::call_completed, .id = id(1), .number = kLost});
  give_up(kOwner, kUser);
  end_at(seconds(12));
  expect_silent();
}

TEST_F(LossesTest, FiresInADynamicGroupOnOneThatStays) {
  use(make_losses(/*dynamic=*/true));
  give_up(kOwner, kUser);
  end_at(seconds(60));
  expect_finding("worker 'user'", "given it up");
}

}  // namespace
}  // namespace rehearsal::sim
