#include "sim/testing/hunt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

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
                       .trial = [this](Seed seed, const ClusterOptions&) {
                         tried_.push_back(seed.value);
                         return fails(seed.value);
                       }});
  }
  std::optional<SeenFailure> fails(uint64_t seed) const {
    if (std::find(failing_.begin(), failing_.end(), seed) == failing_.end()) return std::nullopt;
    return SeenFailure{"oracle", "it broke"};
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
std::optional<SeenFailure> needs_two(const ClusterOptions& options) {
  uint64_t first = 0;
  uint64_t second = 0;
  for (const Override& decision : options.overrides) {
    if (decision.key.number == 12) first = decision.value;
    if (decision.key.number == 77) second = decision.value;
  }
  if (options.otherwise == Otherwise::drawn) {
    for (uint64_t i = 0; i < 100; ++i)
      options.report->choices.push_back({{.kind = DecisionKind::cut, .number = i}, 100 + i});
    return SeenFailure{"oracle", "it broke with all"};
  }
  if (first >= 40 && second > 0) return SeenFailure{"oracle", "it broke with two"};
  if (second > 0) return SeenFailure{"another oracle", "it broke otherwise"};
  return std::nullopt;
}

TEST_F(HuntSeeds, AFailureIsMadeSmallAndLeavesItsReport) {
  // Goal: only what it needs to fail alike; files that say so. Method: a run whose needs are known.
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "hunt_seeds_report";
  options_.report_folder = folder.string();
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
  EXPECT_EQ(hunted.report, (folder / "Suite_Test.Name_0").string());
  EXPECT_EQ(to_flags(read_run(hunted.report + "/failure.run")), to_flags(hunted.run));
  std::ifstream events(hunted.report + "/events.txt");
  std::string line;
  EXPECT_TRUE(std::getline(events, line));
  EXPECT_EQ(line, "an event");
  std::ifstream text(hunted.report + "/failure.txt");
  std::ostringstream read;
  read << text.rdbuf();
  EXPECT_NE(read.str().find("2 of its 100 choices are left"), std::string::npos) << read.str();
  EXPECT_TRUE(read.str().ends_with(command_of(hunted.run) + "\n")) << read.str();
  std::filesystem::remove_all(folder);
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
