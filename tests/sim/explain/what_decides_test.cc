#include "sim/explain/what_decides.h"

#include <gtest/gtest.h>

#include "tests/sim/explain/entries.h"

namespace rehearsal::sim {
namespace {

using Lines = std::vector<std::string>;

// One client calls and another one answers that call; the server takes both in either order. Or
// the second one is about another call.
Chronicle two_sends(bool swapped, const std::string& second_id) {
  HandMade made({"server", "one", "two"});
  made.send(1, 0, 1, "0000000a#1").send(2, 0, 1, second_id);
  for (const bool first : {true, false}) {
    if (first == swapped) made.take(0, 2, 1, second_id);
    if (first != swapped) made.take(0, 1, 1, "0000000a#1");
  }
  return chronicle_of(made.history);
}

Subject told_by(const WhatDecides& decides) {
  Subject subject;
  decides.tell(subject);
  return subject;
}

TEST(WhatDecides, TwoEventsAboutTheSame) {
  const Chronicle failing = two_sends(true, "0000000a#1");
  WhatDecides decides(failing);
  const Decider decider{.words = "d"};
  decides.add(decider);
  decides.compare(failing, two_sends(false, "0000000a#1"), decider);
  const Subject subject = told_by(decides);
  ASSERT_TRUE(subject.critical);
  EXPECT_EQ(subject.critical->decision, "d");
  EXPECT_EQ(subject.notes, Lines());
}

TEST(WhatDecides, WithoutSuchTwoTheDecisionsAreNamed) {
  // Goal: those that say where something happens come first, three at most. Method: two events
  // without anything in common, and five decisions.
  const Chronicle failing = two_sends(true, "0000000b#1");
  WhatDecides decides(failing);
  const Decider one{.words = "property 1", .says_where = false};
  decides.add(one);
  for (const char* const cut : {"cut 1", "cut 2", "cut 3", "cut 4"}) decides.add({.words = cut});
  decides.compare(failing, two_sends(false, "0000000b#1"), one);
  const Subject subject = told_by(decides);
  EXPECT_FALSE(subject.critical);
  EXPECT_EQ(subject.notes,
            (Lines{"no two events alone decide by their order; without any of these it holds:",
                   "  cut 1", "  cut 2", "  cut 3", "  and 2 more"}));
}

TEST(WhatDecides, WithoutAPlaceTheRunsAreToldWhereTheyPart) {
  const Chronicle failing = two_sends(true, "0000000b#1");
  WhatDecides decides(failing);
  const Decider decider{.words = "step 6", .says_where = false};
  decides.add(decider);
  decides.compare(failing, two_sends(false, "0000000b#1"), decider);
  const Subject subject = told_by(decides);
  EXPECT_FALSE(subject.critical);
  EXPECT_EQ(subject.notes,
            (Lines{"no two events alone decide by their order; one that holds parts from it at "
                   "server:",
                   "  it fails: it takes Call 1 add(3) from two [0000000b#1]",
                   "  it holds: it takes Call 1 add(3) from one [0000000a#1]"}));
}

TEST(WhatDecides, ADecisionThatTheHoldingRunHasMoreIsNotNeeded) {
  const Chronicle failing = two_sends(true, "0000000b#1");
  WhatDecides decides(failing);
  decides.add({.words = "choice 7", .fails_with_it = false, .says_where = false});
  EXPECT_EQ(told_by(decides).notes,
            Lines{"another order of events holds, but no two events alone decide by theirs"});
}

TEST(WhatDecides, WithoutAnyRunThatHoldsNothingIsSaid) {
  const Chronicle failing = two_sends(true, "0000000a#1");
  const Subject subject = told_by(WhatDecides(failing));
  EXPECT_FALSE(subject.critical);
  EXPECT_EQ(subject.notes, Lines());
}

}  // namespace
}  // namespace rehearsal::sim
