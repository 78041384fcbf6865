// Goal: over real threads and TCP, through faults, crashes and returns, every call is accounted
// for, every worker ends, and nothing is left: no descriptor, thread, reference, slab or memory.
// Method: groups of workers in this process, one after the other, each behind a proxy in bad
// weather.
#include <gtest/gtest.h>

#include <list>

#include "core/base/mutants.h"
#include "scenarios/storm/storm.h"
#include "tests/endurance/how_long.h"
#include "tests/endurance/ledger.h"
#include "tests/endurance/node_rounds.h"
#include "tests/endurance/process_meter.h"

namespace rehearsal::endurance {
namespace {

constexpr uint32_t kWorkers = 4;
constexpr uint64_t kWarmUpRounds = 6;
// Holes between what is allocated count as resident.
constexpr uint64_t kResidentSlack = uint64_t{32} << 20;

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(lines.size(), 10); ++i) text += lines[i] + "\n";
  return text;
}

struct Outcome {
  NodeRounds::Counts counts;
  uint64_t calls = 0;
  uint64_t values = 0;
};

// Rounds until the time is over, or something is wrong.
void expect_nothing_grows(const std::function<Complaints(NodeRounds&, Seed)>& round,
                          NodeRounds& rounds) {
  Holdings before;
  const Stretch time(how_long() / 3);
  uint64_t seed = 0;
  while (!time.over() || rounds.counts().rounds <= kWarmUpRounds) {
    seed = next_seed(seed);
    const Complaints complaints = round(rounds, Seed{seed});
    ASSERT_TRUE(complaints.empty()) << "seed " << seed << ":\n" << joined(complaints);
    if (rounds.counts().rounds == kWarmUpRounds) before = Holdings::now();
  }
  const Holdings after = Holdings::now();
  const std::string both = to_string(before) + "; " + std::to_string(rounds.counts().rounds) +
                           " rounds later " + to_string(after);
  EXPECT_EQ(after.descriptors, before.descriptors) << both;
  EXPECT_EQ(after.threads, before.threads) << both;
  EXPECT_LE(after.allocated_bytes, before.allocated_bytes + kAllocatedSlack) << both;
  EXPECT_LE(after.resident_bytes, before.resident_bytes + kResidentSlack) << both;
  EXPECT_GT(rounds.counts().crashes, 0u);
  EXPECT_GT(rounds.counts().breaks, 0u);
  std::printf("%s; %lu crashes, %lu breaks, %lu ended well, %lu by a loss\n", both.c_str(),
              rounds.counts().crashes, rounds.counts().breaks, rounds.counts().ended_well,
              rounds.counts().ended_by_loss);
}

TEST(Rounds, EveryCallIsAccountedForAndNothingIsLeft) {
  NodeRounds rounds(kWorkers);
  uint64_t calls = 0;
  uint64_t values = 0;
  expect_nothing_grows(
      [&](NodeRounds& nodes, Seed seed) {
        Ledger ledger;
        Complaints complaints =
            nodes.run([&] { return ledger.program(kWorkers, 150, seed); }, {.seed = seed});
        for (const std::string& line : ledger.complaints()) complaints.push_back(line);
        calls += ledger.calls();
        values += ledger.values();
        return complaints;
      },
      rounds);
  std::printf("%lu calls, of which %lu gave values\n", calls, values);
  EXPECT_GT(values, calls / 2);
}

TEST(Rounds, StormsLeaveNothing) {
  NodeRounds rounds(kWorkers);
  const Scenario storm = storm_scenario();
  expect_nothing_grows(
      [&](NodeRounds& nodes, Seed seed) {
        const Options options = storm.options.parse({"operations=40", "workers=4"}, "full");
        std::list<Reporter> reporters;  // one for each life, as each would be a process
        const auto program = [&] {
          Reporter& reporter = reporters.emplace_back();
          reporter.line = reporter.progress = [](const std::string&) {};
          return storm.program({options, seed, reporter});
        };
        return nodes.run(program, {.seed = seed});
      },
      rounds);
}

TEST(Rounds, AForgottenRuleIsNoticed) {
  // Goal: the account above can fail. Method: what is sent again is taken again.
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants, and so no failure";
  NodeRounds rounds(kWorkers);
  std::string found;
  // Another complaint may come first: a call that creates a reference is refused the second time.
  const auto ran_twice = [&] { return found.find("has run twice") != std::string::npos; };
  for (uint64_t seed = 1; !ran_twice() && seed <= 40; ++seed) {
    Ledger ledger;
    const auto program = [&] { return ledger.program(kWorkers, 60, Seed{seed}); };
    (void)rounds.run(
        program, {.seed = Seed{seed}, .crashes_max = 0, .mutants = {"deduplication_forgotten"}});
    found = joined(ledger.complaints());
  }
  EXPECT_TRUE(ran_twice()) << found;
}

}  // namespace
}  // namespace rehearsal::endurance
