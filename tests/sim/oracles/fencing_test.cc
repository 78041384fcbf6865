#include "tests/sim/oracles/oracle_fixture.h"

namespace rehearsal::sim {
namespace {

class FencingTest : public OracleTest {
 protected:
  FencingTest() { use(make_fencing()); }
  static uint64_t number_of(LifeId life) { return life.worker.value + 100; }
  void fence(LifeId who, LifeId whom, Duration when = {}) {
    see(who, {.kind = EventKind::peer_fenced, .number = number_of(whom)}, when);
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

TEST_F(FencingTest, IsSilentWhereALaterLifeThatWasNeverMetHasSaidIt) {
  // The user stands still while the owner starts again, and is given up by that life.
  fence(kOwner, kUser);
  see(kUser, {.kind = EventKind::peer_lost, .peer = kOwner.worker, .text = "fenced by 'owner': …"});
  check(std::chrono::seconds(9));
  expect_silent();
}

TEST_F(FencingTest, FiresWhereOneThatWasMetHasSaidItOrAnEarlierLife) {
  see(kUser, {.kind = EventKind::peer_lost, .peer = kOwner.worker, .text = "fenced by 'owner': …"});
  fence(kOwner, kUser, std::chrono::seconds(1));
  check(std::chrono::seconds(9));
  expect_finding("worker 'user'", "worker 'owner' has given it up");
  findings = {};
  see(kUser, {.kind = EventKind::peer_up, .peer = kOwner.worker, .number = number_of(kOwner)});
  see(kUser, {.kind = EventKind::peer_lost, .peer = kOwner.worker, .text = "fenced by 'owner': …"},
      std::chrono::seconds(2));
  check(std::chrono::seconds(9));
  expect_finding("worker 'user'", "worker 'owner' has given it up");
}

}  // namespace
}  // namespace rehearsal::sim
