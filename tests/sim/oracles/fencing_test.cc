#include "tests/sim/oracles/oracle_fixture.h"

namespace rehearsal::sim {
namespace {

class FencingTest : public OracleTest {
 protected:
  FencingTest() { use(make_fencing()); }
  static uint64_t number_of(LifeId life) { return life.worker.value + 100; }
  void fence(LifeId who, LifeId whom) { lose(who, whom, number_of(whom)); }
  void meet(LifeId who, LifeId whom, uint64_t life) {
    see(who, {.kind = EventKind::peer_up, .peer = whom.worker, .number = life});
  }
  void lose(LifeId who, LifeId whom, uint64_t life) {
    see(who, {.kind = EventKind::peer_fenced, .peer = whom.worker, .number = life});
  }
  // Both still run; the storm has been over for so long.
  void check(Duration calm_for) {
    LifeView owner = view_of(kOwner);
    LifeView user = view_of(kUser);
    owner.result = user.result = nullptr;
    oracle->check({.now = Instant{calm_for}, .calm = true, .lives = {owner, user}}, findings);
  }
};

TEST_F(FencingTest, FiresWhenOnlyOneSideKnows) {
  fence(kOwner, kUser);
  check(std::chrono::seconds(2));
  expect_silent();
  check(std::chrono::seconds(4));
  expect_finding("worker 'user'", "worker 'owner' has given it up");
}

TEST_F(FencingTest, IsSilentWhenBothKnowOrOneHasEnded) {
  fence(kOwner, kUser);
  oracle->check({.now = Instant{std::chrono::seconds(9)},
                 .calm = true,
                 .lives = {view_of(kOwner), view_of(kUser)}},
                findings);
  fence(kUser, kOwner);
  check(std::chrono::seconds(9));
  expect_silent();
}

TEST_F(FencingTest, IsSilentWhereOneHasLostAnEarlierLifeAndMetNoLaterOne) {
  // The user stands still, or is cut off, while the owner starts again and gives it up.
  meet(kUser, kOwner, /*life=*/7);
  lose(kUser, kOwner, /*life=*/7);
  fence(kOwner, kUser);
  check(std::chrono::seconds(9));
  expect_silent();
}

TEST_F(FencingTest, FiresWhereItHasMetTheLaterLife) {
  meet(kUser, kOwner, /*life=*/7);
  meet(kUser, kOwner, number_of(kOwner));
  lose(kUser, kOwner, /*life=*/7);
  fence(kOwner, kUser);
  check(std::chrono::seconds(9));
  expect_finding("worker 'user'", "worker 'owner' has given it up");
}

}  // namespace
}  // namespace rehearsal::sim
