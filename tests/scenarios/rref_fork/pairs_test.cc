// Every order of the messages of references, two by two, with each fault: the stories below are
// small enough to be explored completely, and together they bring every pair on its way at once
// that can be.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "tests/pins.h"
#include "tests/scenarios/rref_fork/explored_stories.h"

namespace rehearsal::sim::explore {
namespace {

using Kind = Transition::Kind;
using enum Letter;

using Pair = std::pair<Letter, Letter>;

// The pairs of which a matrix says `wanted`, but for these.
std::string pairs_that_are(bool wanted, const Matrix& matrix, const std::set<Pair>& but) {
  std::ostringstream out;
  for (size_t one = 0; one < kLetters; ++one)
    for (size_t other = one; other < kLetters; ++other) {
      const Pair pair{static_cast<Letter>(one), static_cast<Letter>(other)};
      if (matrix[one][other] == wanted && !but.contains(pair))
        out << to_string(pair.first) << " and " << to_string(pair.second) << "; ";
    }
  return out.str();
}

// Of one reference: there is one creation and one answer to it; what comes of the answer, or of
// another one that the owner gives, comes after it.
const std::set<Pair>& impossible() {
  static const std::set<Pair> pairs = {{create, create},       {create, created},
                                       {created, created},     {create, fork_confirm},
                                       {create, child_accept}, {create, user_delete}};
  return pairs;
}

void expect_all_but(const Matrix& seen, const std::set<Pair>& but) {
  EXPECT_EQ(pairs_that_are(false, seen, but), "") << "never together";
  for (const auto& [one, other] : but)
    EXPECT_FALSE(seen[static_cast<size_t>(one)][static_cast<size_t>(other)])
        << to_string(one) << " and " << to_string(other) << " are together after all";
}

TEST(Pairs, EveryScheduleOfEveryStoryHolds) {
  // Goal: no order and no fault breaks what the oracles look at. Method: all schedules.
  EXPECT_TRUE(explored().failures.empty()) << explored().failures.front();
}

TEST(Pairs, EveryStoryHasTheSchedulesThatItHad) {
  // Goal: no order is left out, or explored twice, without being seen. Method: how many there are.
  const Pins pins("tests/scenarios/rref_fork");
  for (const auto& [story, schedules] : explored().schedules)
    EXPECT_TRUE(pins.hold(story, schedules));
}

TEST(Pairs, OfOneReferenceAreOnTheirWayTogether) {
  // Goal: nothing that can happen is left out. Method: what is missing is what cannot be.
  expect_all_but(explored().one_reference.together, impossible());
}

TEST(Pairs, OfOneReferenceMeetEachFault) {
  for (const Kind fault : kFaults) {
    SCOPED_TRACE(to_string(Transition{fault, 0, 1}));
    expect_all_but(explored().one_reference.at.at(fault), impossible());
  }
}

TEST(Pairs, AnOwnerThatIsGivenUpLetsAnswersOvertakeTheCreation) {
  // Goal: what only a loss brings together is tried as well. Method: a worker that takes the owner
  // or the creator for dead answers what waited for the creation, which is still on its way.
  const Matrix& after = explored().one_reference.after.at(Kind::give_up);
  for (const Letter answer : {fork_confirm, child_accept})
    EXPECT_TRUE(after[static_cast<size_t>(create)][static_cast<size_t>(answer)])
        << to_string(answer);
  EXPECT_FALSE(after[static_cast<size_t>(create)][static_cast<size_t>(user_delete)]);
}

TEST(Pairs, OfTwoReferencesAreTogetherWhereOfOneTheyCannotBe) {
  const std::set<Pair> one_only = {{create, fork_confirm}, {create, child_accept}};
  expect_all_but(explored().any.together, one_only);
  for (const Kind fault : kFaults) expect_all_but(explored().any.at.at(fault), one_only);
}

}  // namespace
}  // namespace rehearsal::sim::explore
