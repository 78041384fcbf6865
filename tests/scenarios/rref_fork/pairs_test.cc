// Every order of the messages of references, two by two, with each fault: the stories below are
// small enough to be explored completely, and together they bring every pair on its way at once
// that can be.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "scenarios/rref_fork/rref_fork.h"
#include "sim/explore/dpor.h"
#include "sim/explore/explorer.h"
#include "sim/explore/runs.h"
#include "tests/pins.h"
#include "tests/scenarios/rref_fork/under_way.h"

namespace rehearsal::sim::explore {
namespace {

using Kind = Transition::Kind;
using enum Letter;

constexpr std::array kFaults = {Kind::cut, Kind::crash, Kind::give_up};

struct Story {
  const char* name;
  std::vector<std::string> options;
  bool one_reference = true;
};

const std::vector<Story>& stories() {
  static const std::vector<Story> all = {
      {"created, passed on once and dropped", {}},
      {"passed on twice, dropped by one, kept by the other",
       {"waits=1", "keeps=1", "forks=2", "use=5"}},
      {"passed on twice in one call", {"waits=1", "copies=2"}},
      {"fetched while it is passed on", {"waits=1", "keeps=1", "fetches=1", "use=4"}},
      {"passed on to be fetched", {"waits=1", "use=2"}},
      {"fetched twice while it is created", {"forks=0", "fetches=2", "large=1"}},
      {"passed on by a user", {"waits=1", "use=3"}},
      {"passed on by the owner", {"waits=1", "keeps=1", "forks=0", "owner_use=2"}},
      {"two references", {"references=2", "forks=0"}, false},
  };
  return all;
}

using Matrix = std::array<std::array<bool, kLetters>, kLetters>;

// The pairs of letters that all stories together have brought on their way at once.
struct Seen {
  Matrix together{};
  std::map<Kind, Matrix> at;
  std::map<Kind, Matrix> after;
};

void include(Matrix& seen, const Pairs& pairs) {
  for (size_t one = 0; one < kLetters; ++one)
    for (size_t other = 0; other < kLetters; ++other)
      if (pairs[one][other] > 0) seen[one][other] = true;
}

struct Explored {
  Seen one_reference;
  Seen any;
  std::vector<std::string> failures;
  std::vector<std::pair<std::string, uint64_t>> schedules;  // of each story
};

void include(Seen& seen, const UnderWay& under_way) {
  include(seen.together, under_way.together());
  for (const Kind fault : kFaults) {
    include(seen.at[fault], under_way.with(fault).at);
    include(seen.after[fault], under_way.with(fault).after);
  }
}

std::string command_of(const Story& story, const Schedule& schedule) {
  std::string command = "rehearsal explore rref_fork";
  for (const std::string& option : story.options) command += " --set " + option;
  return command + " --schedule '" + to_string(schedule) + "'";
}

// Runs all there are with these faults. Returns how many; 0 if one fails.
uint64_t explore_all(const Program& program, const std::vector<Transition>& faults,
                     const Story& story, Explored& explored) {
  Dpor search;
  UnderWay under_way(search);
  const ExploreOptions options{.traces = {&under_way}};
  Runs runs(program, options);
  while (search.begin_run()) {
    under_way.begin_run(faults);
    const std::optional<RunReport> report = runs.run(faults, under_way);
    if (report && !report->ok) {
      explored.failures.push_back(describe_failure(*report) + "\n" +
                                  command_of(story, schedule_of(faults, search)));
      return 0;
    }
    if (report) under_way.count();
    search.end_run();
  }
  include(explored.any, under_way);
  if (story.one_reference) include(explored.one_reference, under_way);
  return search.schedules();
}

Explored explore_stories() {
  Explored explored;
  const Scenario scenario = rref_fork_scenario();
  for (const Story& story : stories()) {
    Reporter reporter;
    const Options options = scenario.options.parse(story.options, "tiny");
    const Program program = scenario.program({options, Seed{1}, reporter});
    uint64_t schedules = 0;
    for (const auto& faults : fault_sets(static_cast<uint32_t>(program.names().size()), 1))
      schedules += explore_all(program, faults, story, explored);
    explored.schedules.emplace_back(story.name, schedules);
  }
  return explored;
}

// Explored once for all tests.
const Explored& explored() {
  static const Explored once = explore_stories();
  return once;
}

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
