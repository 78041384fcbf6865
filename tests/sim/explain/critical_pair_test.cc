#include "sim/explain/critical_pair.h"

#include <gtest/gtest.h>

#include "tests/sim/explain/entries.h"

namespace rehearsal::sim {
namespace {

// Two clients send; the server takes in the order that is asked for.
Chronicle two_sends(bool first_client_first, bool with_noise = false) {
  HandMade made({"server", "one", "two"});
  if (with_noise) made.event(EventKind::ack_frame, 0).event(EventKind::timer, 1);
  made.at(10).send(1, 0, 1, "0000000a#1").send(2, 0, 1, "0000000b#1");
  if (first_client_first) {
    made.at(20).take(0, 1, 1, "0000000a#1").at(30).take(0, 2, 1, "0000000b#1");
  } else {
    made.at(20).take(0, 2, 1, "0000000b#1").at(30).take(0, 1, 1, "0000000a#1");
  }
  return chronicle_of(made.history);
}

TEST(Critical, TwoEventsOfOneWorkerInAnotherOrder) {
  const auto pair = critical_pair(two_sends(false), two_sends(true), "latency:1.0>0.0#1.0=5");
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->first, 2u);
  EXPECT_EQ(pair->second, 3u);
  EXPECT_EQ(lines_of(two_sends(false), *pair),
            (std::vector<std::string>{"critical at server: A before B fails, B before A holds",
                                      "  A: it takes Call 1 add(3) from two [0000000b#1]",
                                      "  B: it takes Call 1 add(3) from one [0000000a#1]",
                                      "  decided by: latency:1.0>0.0#1.0=5"}));
}

TEST(Critical, TimesAndHousekeepingDoNotMatter) {
  EXPECT_FALSE(critical_pair(two_sends(true), two_sends(true, /*with_noise=*/true), ""));
}

TEST(Critical, AnEventThatOnlyTheFailingRunHas) {
  HandMade failing({"a", "b"});
  failing.send(1, 0, 1, "0000000a#1");
  failing.add({.event = EventKind::peer_lost, .worker = 0, .peer = 1, .text = "reset"});
  HandMade holding({"a", "b"});
  holding.send(1, 0, 1, "0000000a#1").take(0, 1, 1, "0000000a#1");
  const auto pair = critical_pair(chronicle_of(failing.history), chronicle_of(holding.history), "");
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->first, 1u);
  EXPECT_FALSE(pair->second);
  EXPECT_EQ(lines_of(chronicle_of(failing.history), *pair),
            (std::vector<std::string>{"critical at a: with A next it fails, with B next it holds",
                                      "  A: it loses b: reset",
                                      "  B: it takes Call 1 add(3) from b [0000000a#1]"}));
}

TEST(Critical, AnEventThatTheFailingRunNeverSees) {
  HandMade failing({"a", "b", "c"});
  failing.send(1, 0, 1, "0000000a#1").send(2, 0, 1, "0000000b#1").take(0, 2, 1, "0000000b#1");
  const auto pair = critical_pair(chronicle_of(failing.history), two_sends(true), "");
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->first, 2u);
  EXPECT_FALSE(pair->second);
  EXPECT_EQ(pair->verdict, "critical at a: A without B before it fails, B before A holds");
}

TEST(Critical, APairIsFoundAgainInALikeRun) {
  // Goal: moments are told by name. Method: the same run with events of others in between.
  const Chronicle near = two_sends(false);
  const auto pair = critical_pair(near, two_sends(true), "");
  ASSERT_TRUE(pair);
  const auto same = same_pair_in(two_sends(false, /*with_noise=*/true), *pair, near);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->first, 4u);
  EXPECT_EQ(same->second, 5u);
  EXPECT_EQ(same->verdict, pair->verdict);
  EXPECT_FALSE(same_pair_in(two_sends(true), *pair, near));
}

// The client's link breaks and comes back, and two calls arrive: which of the two is first differs.
Chronicle with_links(bool swapped, bool link_lost_first) {
  HandMade made({"server", "one", "two"});
  const auto lost = [&made](uint32_t peer) {
    made.add({.event = EventKind::peer_lost, .worker = 0, .peer = peer, .text = "reset"});
  };
  made.send(1, 0, 1, "0000000a#1").send(2, 0, 1, "0000000b#1");
  lost(link_lost_first ? 1 : 2);
  lost(link_lost_first ? 2 : 1);
  made.take(0, swapped ? 2 : 1, 1, swapped ? "0000000b#1" : "0000000a#1");
  made.take(0, swapped ? 1 : 2, 1, swapped ? "0000000a#1" : "0000000b#1");
  return chronicle_of(made.history);
}

TEST(Critical, CallsSayMoreThanLinksThatComeAndGo) {
  // Goal: of two differences the one about the program. Method: links and calls swapped, then links
  // alone.
  const Chronicle failing = with_links(true, true);
  const auto calls = critical_pair(failing, with_links(false, false), "");
  ASSERT_TRUE(calls);
  EXPECT_EQ(text_of(failing, failing.moments[calls->first]),
            "takes Call 1 add(3) from two [0000000b#1]");
  EXPECT_EQ(text_of(failing, failing.moments[calls->second.value()]),
            "takes Call 1 add(3) from one [0000000a#1]");
  const auto links = critical_pair(failing, with_links(true, false), "");
  ASSERT_TRUE(links);
  EXPECT_EQ(text_of(failing, failing.moments[links->first]), "loses one: reset");
  EXPECT_TRUE(is_better(failing, *calls, *links));
  EXPECT_FALSE(is_better(failing, *links, *calls));
}

// A client calls, and then ends what the call is about; the call arrives behind that, and behind a
// call of another client, or in front of both.
Chronicle overtaken(bool last) {
  HandMade made({"server", "client", "other"});
  made.send(1, 0, 1, "0000000a#1").send(2, 0, 1, "0000000c#1");
  made.send(1, 0, 2, "0000000b#1", kPassFinish);
  if (!last) made.take(0, 1, 1, "0000000a#1");
  made.take(0, 2, 1, "0000000c#1").take(0, 1, 2, "0000000b#1", kPassFinish);
  if (last) made.take(0, 1, 1, "0000000a#1");
  return chronicle_of(made.history);
}

TEST(Critical, OfAllThatComesBeforeItTheOneThatHasOvertakenItIsNamed) {
  const Chronicle failing = overtaken(/*last=*/true);
  const auto pair = critical_pair(failing, overtaken(/*last=*/false), "");
  ASSERT_TRUE(pair);
  EXPECT_EQ(text_of(failing, failing.moments[pair->first]),
            "takes PassFinish 2 from client [0000000b#1]");
  EXPECT_EQ(text_of(failing, failing.moments[pair->second.value()]),
            "takes Call 1 add(3) from client [0000000a#1]");
}

TEST(Critical, OfAllThatComesBeforeItTheOneThatIsAboutTheSameIsNamed) {
  // Goal: an id in common says more than the first place. Method: three clients, of which the first
  // and the last speak of one call.
  const auto run = [](bool last) {
    HandMade made({"server", "one", "two", "three"});
    made.send(1, 0, 1, "0000000a#1").send(2, 0, 1, "0000000c#1");
    made.send(3, 0, 1, "0000000a#1", kResponse);
    if (!last) made.take(0, 1, 1, "0000000a#1");
    made.take(0, 2, 1, "0000000c#1").take(0, 3, 1, "0000000a#1", kResponse);
    if (last) made.take(0, 1, 1, "0000000a#1");
    return chronicle_of(made.history);
  };
  const Chronicle failing = run(/*last=*/true);
  const auto pair = critical_pair(failing, run(/*last=*/false), "");
  ASSERT_TRUE(pair);
  EXPECT_EQ(text_of(failing, failing.moments[pair->first]),
            "takes Response 1 from three [0000000a#1]");
}

TEST(Critical, ARunThatDoesLessSaysLess) {
  // Goal: a run that holds because it does not get so far shows no order that decides. Method: the
  // failing run makes a call that one of two runs that hold does not make.
  const auto run = [](bool swapped, bool calls) {
    HandMade made({"server", "one", "two"});
    made.send(1, 0, 1, "0000000a#1").send(2, 0, 1, "0000000a#1", kResponse);
    for (const bool first : {true, false}) {
      if (first == swapped) made.take(0, 2, 1, "0000000a#1", kResponse);
      if (first != swapped) made.take(0, 1, 1, "0000000a#1");
    }
    if (calls) made.event(EventKind::api_call, 1, "0000000d#1", "add");
    return chronicle_of(made.history);
  };
  const Chronicle failing = run(true, true);
  const auto whole = critical_pair(failing, run(false, true), "");
  const auto less = critical_pair(failing, run(false, false), "");
  ASSERT_TRUE(whole && less);
  EXPECT_TRUE(whole->decides);
  EXPECT_FALSE(less->decides);
  EXPECT_TRUE(is_better(failing, *whole, *less));
  EXPECT_FALSE(is_better(failing, *less, *whole));
}

TEST(Critical, TwoThatHaveNothingToDoWithEachOtherDecideNothing) {
  const auto pair = critical_pair(two_sends(false), two_sends(true), "");
  ASSERT_TRUE(pair);
  EXPECT_FALSE(pair->decides);
}

TEST(Critical, TwoCallsThatOneCallerHasMadeOneBehindTheOtherDecide) {
  // Goal: the order in which they arrive is the caller's to expect. Method: those of one caller and
  // those of two; between one caller's first and third nothing is expected.
  const auto decides = [](const char* first, const char* second) {
    const auto run = [&](bool swapped) {
      HandMade made({"server", "one", "two"});
      made.send(1, 0, 1, first).send(2, 0, 1, second);
      for (const bool is_first : {true, false}) {
        if (is_first == swapped) made.take(0, 2, 1, second);
        if (is_first != swapped) made.take(0, 1, 1, first);
      }
      return chronicle_of(made.history);
    };
    return critical_pair(run(true), run(false), "").value().decides;
  };
  EXPECT_TRUE(decides("0000000a#9", "0000000a#10"));
  EXPECT_FALSE(decides("0000000a#9", "0000000b#10"));
  EXPECT_FALSE(decides("0000000a#9", "0000000a#11"));
}

TEST(Critical, OneThatHasOvertakenAnotherOfItsSenderDecides) {
  const auto run = [](bool overtaken) {
    HandMade made({"server", "client"});
    made.send(1, 0, 1, "0000000a#1").send(1, 0, 2, "0000000b#1");
    if (overtaken) made.take(0, 1, 2, "0000000b#1");
    made.take(0, 1, 1, "0000000a#1");
    if (!overtaken) made.take(0, 1, 2, "0000000b#1");
    return chronicle_of(made.history);
  };
  const auto pair = critical_pair(run(true), run(false), "");
  ASSERT_TRUE(pair);
  EXPECT_TRUE(pair->decides);
}

TEST(Critical, OfMessagesThatDecideMoreIsSaidThanOfCallsThatDoNot) {
  // Goal: where the program's calls part without anything in common, messages before them that are
  // about the same are named. Method: both are swapped.
  const auto run = [](bool swapped) {
    HandMade made({"server", "one", "two", "three"});
    made.send(1, 0, 1, "0000000a#1").send(2, 0, 1, "0000000b#1");
    made.send(1, 0, 2, "0000000c#1", kPassFinish).send(3, 0, 1, "0000000c#1", kPassFinish);
    for (const bool first : {true, false}) {
      if (first == swapped) made.take(0, 3, 1, "0000000c#1", kPassFinish);
      if (first != swapped) made.take(0, 1, 2, "0000000c#1", kPassFinish);
    }
    made.take(0, swapped ? 2 : 1, 1, swapped ? "0000000b#1" : "0000000a#1");
    made.take(0, swapped ? 1 : 2, 1, swapped ? "0000000a#1" : "0000000b#1");
    return chronicle_of(made.history);
  };
  const Chronicle failing = run(true);
  const auto pair = critical_pair(failing, run(false), "");
  ASSERT_TRUE(pair);
  EXPECT_TRUE(pair->decides);
  EXPECT_EQ(text_of(failing, failing.moments[pair->first]),
            "takes PassFinish 1 from three [0000000c#1]");
}

TEST(Critical, WhatDiffersBehindTheFailureDecidesNothing) {
  Chronicle failing = with_links(true, true);
  failing.failed_at = 3;  // the second link is lost
  const auto pair = critical_pair(failing, with_links(false, false), "");
  ASSERT_TRUE(pair);
  EXPECT_EQ(text_of(failing, failing.moments[pair->first]), "loses one: reset");
}

TEST(Critical, AFailureThatCutsTheRunShortIsNoDifference) {
  HandMade failing({"a", "b"});
  failing.event(EventKind::peer_up, 0);
  HandMade holding({"a", "b"});
  holding.event(EventKind::peer_up, 0).event(EventKind::peer_up, 1);
  EXPECT_FALSE(critical_pair(chronicle_of(failing.history), chronicle_of(holding.history), ""));
}

TEST(Critical, TheEarliestDifferenceIsTheOneThatCounts) {
  // Goal: consequences at other workers are not named. Method: the server's answers follow its
  // order.
  const auto run = [](bool swapped) {
    HandMade made({"server", "one", "two"});
    made.send(1, 0, 1, "0000000a#1").send(2, 0, 1, "0000000b#1");
    made.take(0, swapped ? 2 : 1, 1, swapped ? "0000000b#1" : "0000000a#1");
    made.take(0, swapped ? 1 : 2, 1, swapped ? "0000000a#1" : "0000000b#1");
    made.event(swapped ? EventKind::peer_lost : EventKind::peer_up, 1);
    return chronicle_of(made.history);
  };
  EXPECT_EQ(critical_pair(run(true), run(false), "")->first, 2u);
}

}  // namespace
}  // namespace rehearsal::sim
