#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/conformance/transport_suite.h"

// The requirements on every Transport when links and lives end and begin, beyond transport_suite.h;
// its World is the same.
namespace rehearsal::conformance {

template <class World>
class TransportLifeSuite : public TransportSuite<World> {
 protected:
  // Whether frames came only while a link stood, and a link was not lost twice.
  testing::AssertionResult reports_in_order(int end) {
    bool up = false;
    for (const auto& report : this->world.sink(end).reports()) {
      if (report.what == What::lost && !up && !report.closed)
        return testing::AssertionFailure() << "lost what was not up";
      if (report.what == What::frame && !up)
        return testing::AssertionFailure() << "frame " << report.frame.header.sequence;
      if (report.what == What::up) up = true;
      if (report.what == What::lost) up = false;
    }
    return testing::AssertionSuccess();
  }

  // That process ends and comes back; what its sink has noted is of the new life.
  void begin_again(int end) {
    this->world.crash(end);
    this->world.restart(end);
    this->world.sink(end).clear();
  }

  void stop(int end) {
    this->world.run(end, [this, end] { this->world.transport(end).stop(); });
  }
};

TYPED_TEST_SUITE_P(TransportLifeSuite);

// Links.

TYPED_TEST_P(TransportLifeSuite, TheHelloOfEachLinkSaysWhereItsSinkStandsThen) {
  this->connect();
  for (const uint64_t link : {2, 3}) {
    for (const uint64_t end : {0, 1})
      this->world.sink(static_cast<int>(end))
          .set_position({.source = {end + 7}, .acknowledged = link, .received = {10 * link, end}});
    this->world.reset_link();
    for (const uint64_t end : {0, 1}) {
      ASSERT_TRUE(this->reported(static_cast<int>(end), What::up, link));
      const Position heard = this->world.sink(static_cast<int>(end)).last(What::up).hello.position;
      const Position said{
          .source = {8 - end}, .acknowledged = link, .received = {10 * link, 1 - end}};
      EXPECT_EQ(heard, said);
    }
  }
}

TYPED_TEST_P(TransportLifeSuite, WhatIsSentFromWithinTheFirstReportArrivesFirst) {
  this->world.sink(0).set_reaction([this](const RecordingSink::Report& report) {
    if (report.what == What::up) this->world.transport(0).send(report.peer, small_frame(1));
  });
  this->connect();
  this->send(0, small_frame(2));
  ASSERT_TRUE(this->arrived(1, 2));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), numbers_from_one(2));
}

TYPED_TEST_P(TransportLifeSuite, WhatIsSentFromWithinALossIsDropped) {
  this->world.sink(0).set_reaction([this](const RecordingSink::Report& report) {
    if (report.what == What::lost) this->world.transport(0).send(report.peer, small_frame(7));
  });
  this->connect();
  this->world.reset_link();
  ASSERT_TRUE(this->reported(0, What::up, 2));
  ASSERT_TRUE(this->both_up());
  this->send(0, small_frame(8));
  ASSERT_TRUE(this->arrived(1, 1));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), std::vector<uint64_t>{8});
}

TYPED_TEST_P(TransportLifeSuite, OpeningFromWithinALossHasNoEffect) {
  for (const int end : {0, 1})
    this->world.sink(end).set_reaction([this, end](const RecordingSink::Report& report) {
      if (report.what == What::lost) this->world.transport(end).open(report.peer);
    });
  this->connect();
  this->world.reset_link();
  ASSERT_TRUE(this->reported(0, What::up, 2));
  ASSERT_TRUE(this->reported(1, What::up, 2));
  ASSERT_TRUE(this->both_up());
  this->send(0, small_frame(1));
  ASSERT_TRUE(this->arrived(1, 1));
  EXPECT_TRUE(this->reports_in_order(0));
  EXPECT_TRUE(this->reports_in_order(1));
}

TYPED_TEST_P(TransportLifeSuite, AResetOfAStalledLinkIsOneLossAtEachEnd) {
  this->connect();
  this->world.set_blocked(true);
  for (uint64_t i = 1; i <= 12; ++i) this->send(0, large_frame(i, 4 << 20));
  this->world.reset_link();
  this->world.set_blocked(false);
  for (const int end : {0, 1}) ASSERT_TRUE(this->reported(end, What::up, 2)) << end;
  ASSERT_TRUE(this->both_up());
  for (const int end : {0, 1}) {
    EXPECT_LE(this->world.sink(end).count(What::lost), 1u) << end;
    EXPECT_EQ(this->world.sink(end).count(What::up), 2u) << end;
  }
  EXPECT_TRUE(is_prefix(this->world.sink(1).sequences(Lane::large), numbers_from_one(12)));
}

TYPED_TEST_P(TransportLifeSuite, ALostLinkIsMadeAgainHoweverOftenThatIsRefused) {
  this->connect();
  this->world.set_refusing(true);
  this->world.reset_link();
  ASSERT_TRUE(this->reported(0, What::lost));
  ASSERT_TRUE(this->reported(1, What::lost));
  this->world.advance(std::chrono::milliseconds(300));
  EXPECT_FALSE(this->world.sink(0).up());
  EXPECT_FALSE(this->world.sink(1).up());
  this->world.set_refusing(false);
  ASSERT_TRUE(this->both_up());
  EXPECT_TRUE(this->reports_in_order(0));
  EXPECT_TRUE(this->reports_in_order(1));
}

TYPED_TEST_P(TransportLifeSuite, OfABrokenLinkAPrefixArrivesInBothDirections) {
  this->connect();
  for (uint64_t i = 1; i <= 50; ++i)
    for (const int end : {0, 1}) this->send(end, small_frame(i));
  this->world.reset_link();
  for (const int end : {0, 1}) ASSERT_TRUE(this->reported(end, What::up, 2)) << end;
  ASSERT_TRUE(this->both_up());
  for (const int end : {0, 1}) {
    EXPECT_TRUE(is_prefix(this->world.sink(end).sequences(Lane::small), numbers_from_one(50)));
    EXPECT_TRUE(this->reports_in_order(end)) << end;
  }
}

// Closing.

TYPED_TEST_P(TransportLifeSuite, ClosingTwiceTellsThePeerOnce) {
  this->connect();
  this->close(0, "the first");
  this->close(0, "the second");
  ASSERT_TRUE(this->reported(1, What::lost));
  this->world.advance(std::chrono::milliseconds(100));
  EXPECT_EQ(this->world.sink(1).count(What::lost), 1u);
  EXPECT_EQ(this->world.sink(1).last(What::lost).why.text, "the first");
  EXPECT_EQ(this->world.sink(0).count(What::lost), 0u);
}

TYPED_TEST_P(TransportLifeSuite, BothEndsMayCloseAndOpenAgain) {
  this->connect();
  this->close(0, "here");
  this->close(1, "there");
  this->send(0, small_frame(1));
  this->send(1, small_frame(1));
  this->world.advance(std::chrono::milliseconds(200));
  for (const int end : {0, 1}) {
    EXPECT_EQ(this->world.sink(end).count(What::up), 1u) << end;
    EXPECT_EQ(this->world.sink(end).count(What::frame), 0u) << end;
    EXPECT_EQ(this->queued(end), 0u) << end;
  }
  for (const int end : {0, 1}) this->open(end);
  EXPECT_TRUE(this->reported(0, What::up, 2));
  EXPECT_TRUE(this->reported(1, What::up, 2));
}

TYPED_TEST_P(TransportLifeSuite, ClosingFromWithinTheReportOfALinkEndsIt) {
  this->world.sink(1).set_reaction([this](const RecordingSink::Report& report) {
    if (report.what == What::up)
      this->world.transport(1).close(report.peer, {.kind = ErrorKind::protocol, .text = "not you"});
  });
  this->open(0);
  this->open(1);
  ASSERT_TRUE(this->reported(0, What::lost));
  EXPECT_TRUE(this->world.sink(0).last(What::lost).closed);
  EXPECT_EQ(this->world.sink(0).last(What::lost).why.text, "not you");
  this->send(0, small_frame(1));
  this->world.advance(std::chrono::milliseconds(100));
  EXPECT_EQ(this->world.sink(1).count(What::frame), 0u);
  EXPECT_EQ(this->world.sink(1).count(What::up), 1u);
}

// Lives.

TYPED_TEST_P(TransportLifeSuite, OfACrashedPeerAPrefixArrives) {
  this->connect();
  for (uint64_t i = 1; i <= 50; ++i) this->send(0, small_frame(i));
  this->world.crash(0);
  ASSERT_TRUE(this->reported(1, What::lost));
  EXPECT_FALSE(this->world.sink(1).last(What::lost).closed);
  EXPECT_TRUE(is_prefix(this->world.sink(1).sequences(Lane::small), numbers_from_one(50)));
  EXPECT_TRUE(this->reports_in_order(1));
}

TYPED_TEST_P(TransportLifeSuite, EveryLifeOfAPeerIsReportedWithItsIncarnation) {
  this->connect();
  for (size_t life = 2; life <= 4; ++life) {
    this->send(1, small_frame(life));
    this->begin_again(1);
    this->open(1);
    ASSERT_TRUE(this->reported(0, What::up, life)) << life;
    ASSERT_TRUE(this->both_up()) << life;
    EXPECT_EQ(this->world.sink(0).last(What::up).hello.incarnation,
              this->world.hello(1).incarnation);
  }
  EXPECT_TRUE(this->reports_in_order(0));
  this->world.sink(0).clear();
  this->send(1, small_frame(100));
  ASSERT_TRUE(this->arrived(0, 1));
  EXPECT_EQ(this->world.sink(0).sequences(Lane::small), std::vector<uint64_t>{100});
}

TYPED_TEST_P(TransportLifeSuite, ALifeThatWasNeverMetIsNotTheOneThatWasClosed) {
  this->connect();
  this->world.crash(1);
  this->world.restart(1);
  this->close(0, "nothing was heard of the life before");
  this->open(1);
  ASSERT_TRUE(this->reported(0, What::up, 2));
  EXPECT_EQ(this->world.sink(0).last(What::up).hello.incarnation, this->world.hello(1).incarnation);
}

TYPED_TEST_P(TransportLifeSuite, BothEndsMayCrashAndComeBack) {
  this->connect();
  for (const int end : {0, 1}) this->world.crash(end);
  for (const int end : {0, 1}) this->world.restart(end);
  for (const int end : {0, 1}) this->world.sink(end).clear();
  this->connect();
  for (const int end : {0, 1})
    EXPECT_EQ(this->world.sink(end).last(What::up).hello.incarnation,
              this->world.hello(1 - end).incarnation);
  this->send(0, small_frame(1));
  this->send(1, small_frame(1));
  EXPECT_TRUE(this->arrived(0, 1));
  EXPECT_TRUE(this->arrived(1, 1));
}

// Goal: a life that was closed for good stays so, whatever its successors do.
TYPED_TEST_P(TransportLifeSuite, ANewLifeIsClosedLikeTheOldOne) {
  this->connect();
  this->close(0, "the first life");
  ASSERT_TRUE(this->reported(1, What::lost));
  this->begin_again(1);
  this->open(1);
  ASSERT_TRUE(this->reported(0, What::up, 2));
  ASSERT_TRUE(this->both_up());
  this->close(0, "the second life");
  ASSERT_TRUE(this->reported(1, What::lost));
  EXPECT_TRUE(this->world.sink(1).last(What::lost).closed);
  EXPECT_EQ(this->world.sink(1).last(What::lost).why.text, "the second life");
}

// Ends.

TYPED_TEST_P(TransportLifeSuite, StoppingBeforeThereWasALinkIsHarmless) {
  this->stop(0);
  this->open(1);
  this->world.advance(std::chrono::milliseconds(200));
  EXPECT_TRUE(this->world.sink(0).reports().empty());
  EXPECT_FALSE(this->world.sink(1).up());
}

TYPED_TEST_P(TransportLifeSuite, BothEndsMayStopAtOnce) {
  this->connect();
  for (uint64_t i = 1; i <= 30; ++i) this->send(0, small_frame(i));
  for (const int end : {0, 1}) this->stop(end);
  const size_t reports = this->world.sink(1).reports().size();
  this->world.advance(std::chrono::milliseconds(200));
  EXPECT_EQ(this->world.sink(1).reports().size(), reports);
  EXPECT_EQ(this->world.sink(0).count(What::lost), 0u);
  EXPECT_TRUE(is_prefix(this->world.sink(1).sequences(Lane::small), numbers_from_one(30)));
}

TYPED_TEST_P(TransportLifeSuite, AStoppedEndComesBackAsANewLife) {
  this->connect();
  this->stop(1);
  ASSERT_TRUE(this->reported(0, What::lost));
  this->begin_again(1);
  this->open(1);
  ASSERT_TRUE(this->reported(0, What::up, 2));
  ASSERT_TRUE(this->both_up());
  this->send(0, small_frame(1));
  EXPECT_TRUE(this->arrived(1, 1));
}

REGISTER_TYPED_TEST_SUITE_P(
    TransportLifeSuite, TheHelloOfEachLinkSaysWhereItsSinkStandsThen,
    WhatIsSentFromWithinTheFirstReportArrivesFirst, WhatIsSentFromWithinALossIsDropped,
    OpeningFromWithinALossHasNoEffect, AResetOfAStalledLinkIsOneLossAtEachEnd,
    ALostLinkIsMadeAgainHoweverOftenThatIsRefused, OfABrokenLinkAPrefixArrivesInBothDirections,
    ClosingTwiceTellsThePeerOnce, BothEndsMayCloseAndOpenAgain,
    ClosingFromWithinTheReportOfALinkEndsIt, OfACrashedPeerAPrefixArrives,
    EveryLifeOfAPeerIsReportedWithItsIncarnation, ALifeThatWasNeverMetIsNotTheOneThatWasClosed,
    BothEndsMayCrashAndComeBack, ANewLifeIsClosedLikeTheOldOne,
    StoppingBeforeThereWasALinkIsHarmless, BothEndsMayStopAtOnce, AStoppedEndComesBackAsANewLife);

}  // namespace rehearsal::conformance
