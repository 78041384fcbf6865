// Goal: an idle link says that its end lives as often as the other end needs it, whatever limits
// both have, and not much oftener. Method: two ends that have told each other how long they bear
// silence; nothing is sent but what says that they live.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/core/session/session_fixture.h"

namespace rehearsal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SessionHeartbeatTest : public SessionFixture {
 protected:
  static constexpr Duration kLongHeartbeat = seconds(5);

  // Both begin anew with these limits, and meet.
  void meet(Duration of_a, Duration of_b) {
    heartbeat = kLongHeartbeat;
    peer_timeouts = {of_a, of_b};
    a = begin(0, ++lives_);
    b = begin(1, ++lives_);
    connect();
    a->runtime->post([&] { a->sessions.set_peer_timeout(WorkerId{1}, of_b); });
    b->runtime->post([&] { b->sessions.set_peer_timeout(WorkerId{0}, of_a); });
  }

  // So often it has heard that the other one lives.
  static uint64_t heard(const SessionEnd& end) { return end.trace.count(EventKind::ack_frame); }

 private:
  uint64_t lives_ = 1000;
};

// An end that bears silence for `peer_timeout` hears of the other one no oftener in this time.
uint64_t most_beats(Duration idle, Duration peer_timeout, Duration heartbeat) {
  return static_cast<uint64_t>(idle / std::min(heartbeat, peer_timeout / 4)) + 1;
}

TEST_F(SessionHeartbeatTest, NobodyIsLostOnAnIdleLinkWhateverTheLimits) {
  const std::vector<Duration> limits = {milliseconds(100), seconds(1), seconds(4), seconds(60)};
  world.set_idle([&] { return network.deliver_first(); });
  for (const Duration of_a : limits)
    for (const Duration of_b : limits) {
      SCOPED_TRACE(std::to_string(of_a.count()) + " ns, " + std::to_string(of_b.count()) + " ns");
      meet(of_a, of_b);
      const Duration idle = 10 * std::max(of_a, of_b);
      world.advance(idle);
      EXPECT_TRUE(a->fenced.empty());
      EXPECT_TRUE(b->fenced.empty());
      EXPECT_GE(heard(*a), static_cast<uint64_t>(idle / (of_a / 2)));
      EXPECT_GE(heard(*b), static_cast<uint64_t>(idle / (of_b / 2)));
      EXPECT_LE(heard(*a), most_beats(idle, of_a, kLongHeartbeat));
      EXPECT_LE(heard(*b), most_beats(idle, of_b, kLongHeartbeat));
    }
}

TEST_F(SessionHeartbeatTest, APeerThatIsMetLaterIsNotKeptWaiting) {
  // Its limit is shorter than the time to what a does next.
  world.set_idle([&] { return network.deliver_first(); });
  heartbeat = kLongHeartbeat;
  peer_timeouts = {seconds(60), milliseconds(100)};
  a = begin(0, 101);
  world.advance(milliseconds(10));
  b = begin(1, 201);
  connect();
  a->runtime->post([&] { a->sessions.set_peer_timeout(WorkerId{1}, milliseconds(100)); });
  world.advance(milliseconds(60));
  EXPECT_GE(heard(*b), 1u);
  EXPECT_EQ(world.timers(), 2u);  // One of each: the first one of a's is gone.
}

TEST_F(SessionHeartbeatTest, APeerThatIsSilentIsFencedThoughTheBeatsAreOftenLate) {
  // Goal: to beat often is no excuse for it: a, whose own limit is long, is late by more than a
  // beat each time, and by less than it would notice otherwise. Method: nothing is delivered.
  meet(seconds(60), milliseconds(100));
  for (int i = 0; i < 500; ++i) {
    world.pause(milliseconds(100));
    world.fire_due_timers();
  }
  EXPECT_TRUE(a->fenced.empty());
  for (int i = 0; i < 105; ++i) {
    world.pause(milliseconds(100));
    world.fire_due_timers();
  }
  ASSERT_EQ(a->fenced.size(), 1u);
  EXPECT_NE(a->fenced[0].why.text.find("nothing was heard of it for 60"), std::string::npos)
      << a->fenced[0].why.text;
}

TEST_F(SessionHeartbeatTest, APeerThatHasNotToldHearsAsOftenAsTheOptionsSay) {
  world.set_idle([&] { return network.deliver_first(); });
  meet(seconds(60), seconds(60));
  a->runtime->post([&] { a->sessions.set_peer_timeout(WorkerId{1}, Duration::zero()); });
  world.advance(seconds(600));
  EXPECT_GE(heard(*b), 60u);
  EXPECT_LE(heard(*b), 121u);
}

}  // namespace
}  // namespace rehearsal
