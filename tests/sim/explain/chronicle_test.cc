#include "sim/explain/chronicle.h"

#include <gtest/gtest.h>

#include "tests/sim/explain/entries.h"

namespace rehearsal::sim {
namespace {

TEST(Chronicle, WhatIsTakenHasItsSendingAsACause) {
  // Goal: an arrow. Method: one frame between two workers that did something before.
  HandMade made({"ps", "trainer"});
  made.event(EventKind::api_call, 1, "00000001#0", "add");
  made.event(EventKind::timer, 0);
  made.send(1, 0, 7, "00000001#0").at(100).take(0, 1, 7, "00000001#0");
  const Chronicle chronicle = chronicle_of(made.history);
  ASSERT_EQ(chronicle.moments.size(), 4u);
  ASSERT_EQ(chronicle.messages.size(), 1u);
  EXPECT_EQ(chronicle.messages[0].sent, 2u);
  EXPECT_EQ(chronicle.messages[0].arrived, 3u);
  EXPECT_FALSE(chronicle.messages[0].lost_at);
  EXPECT_EQ(chronicle.moments[3].causes, (std::vector<size_t>{1, 2}));
  EXPECT_EQ(chronicle.moments[2].causes, (std::vector<size_t>{0}));
  EXPECT_EQ(chronicle.moments[3].entry.detail, "add(3)");
  EXPECT_EQ(chronicle.moments[3].entry.bytes, 8u);
  EXPECT_EQ(text_of(chronicle, chronicle.moments[3]),
            "takes Call 7 add(3) from trainer [00000001#0]");
  EXPECT_EQ(text_of(chronicle, chronicle.moments[2]), "sends Call 7 add(3) to ps [00000001#0]");
}

TEST(Chronicle, AFrameThatABreakTookIsLostAndItsResendingIsAnotherMessage) {
  HandMade made({"ps", "trainer"});
  made.send(1, 0, 7, "00000001#0");
  made.at(10).add({.kind = EntryKind::decision, .text = "cut:1.0>0.0#7.0=5"});
  made.add({.kind = EntryKind::broken, .worker = 0, .peer = 1, .text = "reset"});
  made.at(20).event(EventKind::mark, 1, "", "frames are resent");
  made.travel(1, 0, 7, 1).at(30).take(0, 1, 7, "00000001#0");
  const Chronicle chronicle = chronicle_of(made.history);
  ASSERT_EQ(chronicle.messages.size(), 2u);
  EXPECT_EQ(chronicle.messages[0].lost_at, 2u);
  EXPECT_FALSE(chronicle.messages[0].arrived);
  EXPECT_EQ(name_of(chronicle.moments[4]), "frame_resent");
  EXPECT_EQ(chronicle.moments[4].entry.id, "00000001#0");
  EXPECT_EQ(chronicle.moments[4].causes, (std::vector<size_t>{3, 0}));
  EXPECT_EQ(chronicle.messages[1].sent, 4u);
  EXPECT_EQ(chronicle.messages[1].arrived, 5u);
  EXPECT_EQ(chronicle.moments[2].causes, (std::vector<size_t>{1, 0}));  // the decision, the frame
  EXPECT_EQ(place_of(chronicle, chronicle.moments[2]), "the cluster");
  EXPECT_EQ(text_of(chronicle, chronicle.moments[2]),
            "ps and trainer lose their connection: reset");
}

TEST(Chronicle, AFrameThatArrivesTwiceIsDroppedAndStillHasItsSending) {
  HandMade made({"ps", "trainer"});
  made.send(1, 0, 7).take(0, 1, 7);
  made.add({.kind = EntryKind::broken, .worker = 0, .peer = 1, .text = "reset"});
  made.travel(1, 0, 7, 1).take(0, 1, 7, "", kCall, EventKind::frame_dropped);
  const Chronicle chronicle = chronicle_of(made.history);
  ASSERT_EQ(chronicle.messages.size(), 2u);
  EXPECT_FALSE(chronicle.messages[0].lost_at);
  EXPECT_EQ(chronicle.messages[1].arrived, 4u);
  EXPECT_EQ(text_of(chronicle, chronicle.moments[4]),
            "drops Call 7 add(3) from trainer: it arrived before");
}

TEST(Chronicle, AMessageToOneselfIsAMessage) {
  HandMade made({"ps"});
  for (const char* id : {"00000001#0", "00000001#1"})
    made.add({.event = EventKind::frame_sent, .worker = 0, .peer = 0, .id = id, .message_type = 1});
  made.add({.event = EventKind::frame, .worker = 0, .peer = 0, .id = "00000001#0"});
  const Chronicle chronicle = chronicle_of(made.history);
  ASSERT_EQ(chronicle.messages.size(), 2u);
  EXPECT_EQ(chronicle.messages[0].arrived, 2u);
  EXPECT_FALSE(chronicle.messages[1].arrived);
  EXPECT_EQ(text_of(chronicle, chronicle.moments[0]), "sends Call to itself [00000001#0]");
}

TEST(Chronicle, WhySomethingEndsIsASentenceOfItsOwn) {
  HandMade made({"ps"});
  made.add({.event = EventKind::pass_ended, .worker = 0, .text = "worker 'ps' was lost"});
  made.add({.event = EventKind::pass_ended, .worker = 0});
  made.add({.event = EventKind::execution_ended, .worker = 0, .text = "add"});
  const Chronicle chronicle = chronicle_of(made.history);
  EXPECT_EQ(text_of(chronicle, chronicle.moments[0]), "ends a backward pass: worker 'ps' was lost");
  EXPECT_EQ(text_of(chronicle, chronicle.moments[1]), "ends a backward pass");
  EXPECT_EQ(text_of(chronicle, chronicle.moments[2]), "ends add");
}

TEST(Chronicle, ASecondLifeComesOfItsCrash) {
  HandMade made({"ps", "trainer"});
  made.event(EventKind::timer, 0).add({.kind = EntryKind::crash, .worker = 0});
  made.add({.kind = EntryKind::restart, .worker = 0, .life = 1});
  made.add({.event = EventKind::timer, .worker = 0, .life = 1});
  const Chronicle chronicle = chronicle_of(made.history);
  EXPECT_EQ(chronicle.moments[2].causes, (std::vector<size_t>{1}));
  EXPECT_EQ(chronicle.moments[3].causes, (std::vector<size_t>{2}));
  EXPECT_EQ(place_of(chronicle, chronicle.moments[3]), "ps.1");
}

TEST(Chronicle, TablesAndTheFindingBelongToTheMomentBefore) {
  HandMade made({"ps", "trainer"});
  made.event(EventKind::timer, 0).event(EventKind::timer, 1);
  made.add({.kind = EntryKind::tables, .worker = 0, .text = "owners 1"});
  made.add({.kind = EntryKind::failed, .text = "no leak"});
  const Chronicle chronicle = chronicle_of(made.history);
  ASSERT_EQ(chronicle.moments.size(), 2u);
  EXPECT_EQ(chronicle.moments[0].tables, "owners 1");
  EXPECT_EQ(chronicle.failed_at, 1u);
}

TEST(Chronicle, AMessageKnowsWhereItsCallWasMadeAndTheCallWhatItSays) {
  HandMade made({"ps", "trainer"});
  made.add({.event = EventKind::api_call,
            .worker = 1,
            .peer = 0,
            .id = "00000001#0",
            .text = "add",
            .stack = "push /project/training.cc:27\ntrainer /project/training.cc:62"});
  made.send(1, 0, 7, "00000001#0").send(1, 0, 8, "00000001#0", kResponse);
  const Chronicle chronicle = chronicle_of(made.history);
  EXPECT_EQ(text_of(chronicle, chronicle.moments[0]),
            "calls add(3) on ps, training.cc:27 [00000001#0]");
  EXPECT_EQ(text_of(chronicle, chronicle.moments[1]),
            "sends Call 7 add(3) to ps, training.cc:27 [00000001#0]");
  EXPECT_EQ(text_of(chronicle, chronicle.moments[2]), "sends Response 8 to ps [00000001#0]");
}

// A trainer that catches an exception, goes on, throws another one, and shuts down with the ps.
HandMade failing_main() {
  HandMade made({"ps", "trainer"});
  made.event(EventKind::execution_started, 1, "00000001#0", "trainer");
  made.add({.kind = EntryKind::thrown, .worker = 1, .id = "00000001#0", .text = "caught"});
  made.event(EventKind::execution_parked, 1, "00000001#0", "trainer");
  made.add({.kind = EntryKind::thrown, .worker = 1, .id = "00000001#0", .text = "not caught"});
  made.event(EventKind::execution_ended, 1, "00000001#0", "trainer");
  made.send(1, 0, 1, "", kResponse).take(0, 1, 1, "", kResponse).send(0, 1, 1, "", kResponse);
  return made;
}

TEST(Chronicle, AMainFailedWhereItThrewLastAndNotWhereItCaught) {
  HandMade made = failing_main();
  made.add({.kind = EntryKind::failed, .worker = 1, .text = "main"});
  const Chronicle chronicle = chronicle_of(made.history);
  EXPECT_EQ(chronicle.failed_at, 3u);
  EXPECT_EQ(text_of(chronicle, chronicle.moments[3]), "throws not caught [00000001#0]");
  HandMade other({"ps", "trainer"});
  other.event(EventKind::execution_started, 1, "00000001#0", "trainer");
  other.event(EventKind::execution_ended, 1, "00000001#0", "trainer").send(1, 0, 1);
  other.add({.kind = EntryKind::failed, .worker = 1, .text = "main"});
  EXPECT_EQ(chronicle_of(other.history).failed_at, 1u);  // it ended without a throw
}

TEST(Chronicle, TheShutdownIsWhatFollowsTheProgramAndTheFailure) {
  HandMade made = failing_main();
  Chronicle chronicle = chronicle_of(made.history);
  EXPECT_EQ(chronicle.shutdown_from, 5u);
  EXPECT_EQ(shutdown_messages(chronicle), 2u);
  made.add({.kind = EntryKind::failed, .text = "no leak"});  // where it is over
  chronicle = chronicle_of(made.history);
  EXPECT_FALSE(chronicle.shutdown_from);
  EXPECT_EQ(shutdown_messages(chronicle), 0u);
}

TEST(Chronicle, WhatIsFoundInHowThingsAreIsAtNoMomentAndMayBeTheShutdown) {
  HandMade made = failing_main();
  made.add({.kind = EntryKind::calm});
  made.add({.kind = EntryKind::failed, .number = 1, .text = "progress"});
  const Chronicle chronicle = chronicle_of(made.history);
  EXPECT_FALSE(chronicle.failed_at);
  EXPECT_FALSE(chronicle.shutdown_from);
}

TEST(Chronicle, TheCausalPastGoesBackOverMessagesOnly) {
  HandMade made({"a", "b", "c"});
  made.event(EventKind::timer, 0).event(EventKind::timer, 2).send(0, 1, 1).take(1, 0, 1);
  made.event(EventKind::timer, 0);
  const Chronicle chronicle = chronicle_of(made.history);
  EXPECT_EQ(causal_past(chronicle, 3), (std::vector<bool>{true, false, true, true}));
}

}  // namespace
}  // namespace rehearsal::sim
