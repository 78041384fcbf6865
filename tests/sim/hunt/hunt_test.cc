#include "sim/hunt/hunt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::sim {
namespace {

std::string command_of(const ChosenRun& run) { return "run it " + to_flags(run); }

class HuntSeeds : public testing::Test {
 protected:
  // Notes the seeds of all runs; those in `failing_` fail.
  Hunted hunt() {
    return hunt_seeds({.options = options_,
                       .environment = environment_,
                       .name = "Suite.Test",
                       .command_of = command_of,
                       .trial = [this](Seed seed, const ClusterOptions& options) {
                         // An extra run measures what a strategy has to know.
                         if (!options.profile) tried_.push_back(seed.value);
                         return fails(seed.value);
                       }});
  }
  std::optional<RunFailure> fails(uint64_t seed) const {
    if (std::find(failing_.begin(), failing_.end(), seed) == failing_.end()) return std::nullopt;
    return RunFailure{"oracle", "", "it broke"};
  }

  HuntOptions options_;
  Environment environment_;
  std::vector<uint64_t> failing_;
  std::vector<uint64_t> tried_;
};

TEST_F(HuntSeeds, TriesTwoHundredUnlessItIsTold) {
  EXPECT_EQ(hunt().seeds, 200u);
  options_.seeds = 7;
  EXPECT_EQ(hunt().seeds, 7u);
  environment_.seeds = 9;
  EXPECT_EQ(hunt().seeds, 9u);
}

TEST_F(HuntSeeds, TriesAtLeastOneSeedWhateverTheTime) {
  // Goal: a test never passes because nothing ran. Method: no time at all.
  options_.time = Duration::zero();
  EXPECT_EQ(hunt().seeds, 1u);
}

TEST_F(HuntSeeds, BeginsWhereTheTestOrTheCommitSays) {
  options_.seeds = 2;
  environment_.first_seed = Seed{50};
  static_cast<void>(hunt());
  EXPECT_EQ(tried_, (std::vector<uint64_t>{50, 51}));
  options_.first_seed = Seed{3};
  tried_.clear();
  static_cast<void>(hunt());
  EXPECT_EQ(tried_, (std::vector<uint64_t>{3, 4}));
}

TEST_F(HuntSeeds, ShardsShareTheSeeds) {
  // Goal: each seed in exactly one shard. Method: all of three, together.
  options_.seeds = 10;
  environment_.shard_count = 3;
  for (environment_.shard = 0; environment_.shard < 3; ++environment_.shard)
    static_cast<void>(hunt());
  std::sort(tried_.begin(), tried_.end());
  EXPECT_EQ(tried_, (std::vector<uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST_F(HuntSeeds, EndsAtTheFirstFailure) {
  failing_ = {5, 6};
  const Hunted hunted = hunt();
  EXPECT_EQ(hunted.seeds, 5u);
  EXPECT_EQ(hunted.found_with.value, 5u);
  EXPECT_EQ(describe(hunted, "run it"),
            "seed 5 failed, 5 tried: it broke\nrepeat it with:\nrun it");
}

// A run that has a hundred choices and fails alike whenever these two are made, one of them by at
// least 40.
std::optional<RunFailure> needs_two(const ClusterOptions& options) {
  uint64_t first = 0;
  uint64_t second = 0;
  for (const Override& decision : options.overrides) {
    if (decision.key.number == 12) first = decision.value;
    if (decision.key.number == 77) second = decision.value;
  }
  if (options.otherwise == Otherwise::drawn) {
    for (uint64_t i = 0; i < 100; ++i)
      options.report->choices.push_back({{.kind = DecisionKind::cut, .number = i}, 100 + i});
    return RunFailure{"oracle", "", "it broke with all"};
  }
  if (first >= 40 && second > 0) return RunFailure{"oracle", "", "it broke with two"};
  if (second > 0) return RunFailure{"another oracle", "", "it broke otherwise"};
  return std::nullopt;
}

TEST_F(HuntSeeds, AFailureIsMadeSmallAndLeavesItsReport) {
  // Goal: only what it needs to fail alike; files that say so. Method: a run whose needs are known.
  const TemporaryFolder made;
  const std::string folder = made.file("report");
  options_.report_folder = folder;
  const Hunted hunted = hunt_seeds({.options = options_,
                                    .environment = environment_,
                                    .name = "Suite/Test.Name/0",
                                    .command_of = command_of,
                                    .trial = [](Seed, const ClusterOptions& options) {
                                      if (options.event_lines != nullptr)
                                        *options.event_lines << "an event\n";
                                      return needs_two(options);
                                    }});
  EXPECT_EQ(hunted.failure->message, "it broke with two");
  EXPECT_EQ(hunted.choices, 100u);
  ASSERT_EQ(hunted.run.decisions.size(), 2u);
  EXPECT_EQ(hunted.run.otherwise, Otherwise::benign);
  EXPECT_EQ(hunted.report, folder + "/Suite_Test.Name_0");
  EXPECT_EQ(to_flags(read_run(hunted.report + "/failure.run")), to_flags(hunted.run));
  std::ifstream events(hunted.report + "/events.txt");
  std::string line;
  EXPECT_TRUE(std::getline(events, line));
  EXPECT_EQ(line, "an event");
  const std::string text = read_whole_file(hunted.report + "/failure.txt");
  EXPECT_NE(text.find("2 of its 100 choices are left"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(command_of(hunted.run) + "\n")) << text;
}

// A run under a strategy fails where it holds back one event for two others; the same deviation in
// the order of instants does as well.
std::optional<RunFailure> needs_an_order(const ClusterOptions& options) {
  const Override held{{.kind = DecisionKind::hold, .number = 5}, 2};
  const Override harmless{{.kind = DecisionKind::hold, .number = 6}, 1};
  if (options.strategy.kind == StrategyKind::pct) {
    options.report->choices.push_back({{.kind = DecisionKind::priority, .number = 1}, 77});
    options.report->deviations = {held, harmless};
    options.report->widths = std::vector<uint8_t>(20, 2);
  }
  const auto gives = [&options, &held](const Override& given) {
    return given.key == held.key && given.value >= held.value &&
           options.strategy.kind == StrategyKind::timed_swarm;
  };
  const bool fails = options.strategy.kind == StrategyKind::pct ||
                     std::any_of(options.overrides.begin(), options.overrides.end(), gives);
  return fails ? std::optional(RunFailure{"oracle", "", "it broke"}) : std::nullopt;
}

TEST_F(HuntSeeds, AnOrderOfEventsIsLeftAsDeviationsWithoutItsStrategy) {
  // Goal: what `rehearsal shrink` does. Method: a strategy of which one deviation matters.
  options_.strategy = StrategyKind::pct;
  const Hunted hunted = hunt_seeds(
      {.options = options_,
       .environment = environment_,
       .name = "Suite.Test",
       .command_of = command_of,
       .trial = [](Seed, const ClusterOptions& options) { return needs_an_order(options); }});
  EXPECT_EQ(to_flags(hunted.run), "--seed 1 --faults none --benign --decide hold:#5.0=2");
}

TEST_F(HuntSeeds, ClassesOfFaultsThatDoNotMatterAreOff) {
  // Goal: the mildest faults first; what does not matter once all else is benign is not in the
  // line. Method: a run that needs hostile ones, and of these resets.
  size_t most = 0;
  options_.cluster.faults = FaultLevel::hostile;
  options_.shrink_time = std::chrono::seconds(5);
  const Hunted hunted = hunt_seeds(
      {.options = options_,
       .environment = environment_,
       .name = "Suite.Test",
       .command_of = command_of,
       .trial = [&most](Seed, const ClusterOptions& options) -> std::optional<RunFailure> {
         options.report->choices.push_back({{.kind = DecisionKind::cut, .number = 3}, 9});
         const auto& without = options.without;
         const bool resets =
             std::find(without.begin(), without.end(), FaultClass::resets) == without.end();
         if (options.faults != FaultLevel::hostile || !resets) return std::nullopt;
         most = std::max(most, without.size());
         return RunFailure{"oracle", "", "it broke"};
       }});
  EXPECT_EQ(most, kFaultClasses.size() - 3);  // Resets; nobody asked for crashes and madness.
  EXPECT_EQ(to_flags(hunted.run), "--seed 1 --benign");
}

TEST_F(HuntSeeds, AStrategyLearnsFromEarlierRuns) {
  // Goal: PCT knows the number of choices, URW the events of each chain. Method: runs that say so.
  std::vector<std::string> strategies;
  options_.seeds = 3;
  options_.strategy = StrategyKind::pct;
  const auto note = [&strategies](Seed, const ClusterOptions& options) {
    strategies.push_back(to_string(options.strategy) + (options.profile ? " profile" : ""));
    options.report->widths = std::vector<uint8_t>(20 + strategies.size(), 2);
    if (options.profile) options.report->counts = parse_strategy("urw:s0.1=12").counts;
    return std::optional<RunFailure>();
  };
  const auto hunt = [&] {
    return hunt_seeds({.options = options_,
                       .environment = environment_,
                       .name = "Suite.Test",
                       .command_of = command_of,
                       .trial = note});
  };
  static_cast<void>(hunt());
  EXPECT_EQ(strategies, (std::vector<std::string>{"pct", "pct:k=21", "pct:k=22"}));
  strategies.clear();
  options_.seeds = 1;
  options_.strategy = StrategyKind::urw;
  static_cast<void>(hunt());
  EXPECT_EQ(strategies, (std::vector<std::string>{"timed-swarm profile", "urw:s0.1=12"}));
}

TEST_F(HuntSeeds, WithoutAClusterItEndsWhereOneIsNeeded) {
  // Goal: no hunt that tries the same run again and again. Method: a trial that makes none.
  const auto hunt = [this](bool needs_cluster) {
    return hunt_seeds(
        {.options = options_,
         .environment = environment_,
         .name = "Suite.Test",
         .command_of = command_of,
         .trial = [this](Seed seed, const ClusterOptions&) { return fails(seed.value); },
         .needs_cluster = needs_cluster});
  };
  EXPECT_EQ(hunt(true).seeds, 1u);
  EXPECT_TRUE(hunt(true).without_cluster);
  EXPECT_EQ(hunt(false).seeds, 200u);
  failing_ = {1};
  EXPECT_EQ(describe(hunt(true), "run it"),
            "seed 1 failed, 1 tried: it broke\nno cluster was made with the options of the hunt: "
            "there is nothing to make small, and no event to show\nrepeat it with:\nrun it");
}

TEST_F(HuntSeeds, AReportThatCannotBeWrittenIsSaidAndTheLineIsThereAllTheSame) {
  failing_ = {1};
  options_.report_folder = "/proc/no";
  options_.shrink_time = Duration::zero();
  EXPECT_EQ(describe(hunt(), "run it"),
            "seed 1 failed, 1 tried: it broke\nits report cannot be written to "
            "/proc/no/Suite.Test\nrepeat it with:\nrun it");
}

TEST_F(HuntSeeds, WithoutTimeForItNothingIsShrunk) {
  failing_ = {1};
  options_.shrink_time = Duration::zero();
  static_cast<void>(hunt());
  EXPECT_EQ(tried_, (std::vector<uint64_t>{1}));
}

}  // namespace
}  // namespace rehearsal::sim
