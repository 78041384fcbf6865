#include <gtest/gtest.h>

#include "core/wire/message.h"
#include "sim/oracles/oracles.h"

namespace rehearsal::sim {
namespace {

using net_fake::LifeId;

constexpr LifeId kCaller{WorkerId{0}, 0};
constexpr LifeId kCallee{WorkerId{1}, 0};

// Feeds the oracle by hand; windows have two frames.
class BackPressure : public testing::Test {
 protected:
  void see(LifeId life, Event event) {
    event.worker = life.worker;
    oracle_->on_event({event, life, Incarnation{life.worker.value + 100}}, findings_);
  }
  void send(LifeId from, const Message& message, uint64_t sequence) {
    see(from, {.kind = EventKind::frame_sent,
               .peer = from.worker == kCaller.worker ? kCallee.worker : kCaller.worker,
               .message_type = message.type(),
               .number = sequence});
  }
  void call(LifeId from, uint64_t sequence) { send(from, Message{Call{}}, sequence); }
  void handle(uint64_t sequence) {
    see(kCallee, {.kind = EventKind::frame, .peer = kCaller.worker, .number = sequence});
  }
  void expect_silent() const { EXPECT_FALSE(findings_.first()) << findings_.first()->message; }

  const std::unique_ptr<Oracle> oracle_ = make_back_pressure(2);
  Findings findings_;
};

TEST_F(BackPressure, FiresWhenMoreCallsAreOnTheirWayThanTheWindowHasFrames) {
  call(kCaller, 1);
  call(kCaller, 2);
  handle(1);
  call(kCaller, 3);
  expect_silent();
  call(kCaller, 4);
  ASSERT_TRUE(findings_.first());
  EXPECT_EQ(findings_.first()->oracle, "back-pressure");
  EXPECT_EQ(findings_.first()->object, "worker 0");
  EXPECT_EQ(findings_.first()->message,
            "worker 1 has not handled 3 of its calls, more than the 2 frames of its window");
}

TEST_F(BackPressure, IsSilentAboutAnswersTheOtherDirectionAndWhatIsResent) {
  for (uint64_t i = 1; i <= 9; ++i) send(kCaller, Message{Response{}}, i);
  for (const uint64_t sequence : {10, 11, 10, 11}) call(kCaller, sequence);
  call(kCallee, 1);
  call(kCallee, 2);
  expect_silent();
}

TEST_F(BackPressure, IsSilentWhereASessionHasBegunAnew) {
  // Goal: neither a fenced peer nor an earlier life counts. Method: full windows, three times.
  call(kCaller, 1);
  call(kCaller, 2);
  see(kCaller, {.kind = EventKind::peer_fenced, .peer = kCallee.worker, .number = 101});
  call(kCaller, 1);
  call(kCaller, 2);
  const LifeId next{kCaller.worker, 1};
  call(next, 1);
  call(next, 2);
  expect_silent();
}

}  // namespace
}  // namespace rehearsal::sim
