#include "sim/hunt/chosen_run.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <stdexcept>

#include "tests/temporary_folder.h"

namespace rehearsal::sim {
namespace {

constexpr const char* kFlags =
    "--seed 17 --faults mild --without resets,pauses --strategy pct:d=3,k=480 --benign --decide "
    "cut:2.0>0.0#10.0=980235 --decide "
    "crash_moment:#0.0=3";

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::invalid_argument& wrong) {
    return wrong.what();
  }
  return "";
}

TEST(ChosenRun, IsReadBackAsItWasWritten) {
  // Goal: nothing of a run is lost as text. Method: both ways, as flags and as a file.
  const ChosenRun run = parse_flags(kFlags);
  EXPECT_EQ(run.seed.value, 17u);
  EXPECT_EQ(run.faults, FaultLevel::mild);
  EXPECT_EQ(run.without, (std::vector<FaultClass>{FaultClass::resets, FaultClass::pauses}));
  EXPECT_EQ(run.strategy.kind, StrategyKind::pct);
  EXPECT_EQ(run.strategy.depth, 3u);
  EXPECT_EQ(run.strategy.length, 480u);
  EXPECT_EQ(run.otherwise, Otherwise::benign);
  ASSERT_EQ(run.decisions.size(), 2u);
  EXPECT_EQ(run.decisions[0].value, 980235u);
  EXPECT_EQ(to_flags(run), kFlags);
  const TemporaryFolder folder;
  const std::string file = folder.file("failure.run");
  EXPECT_TRUE(write_run(file, run, "it failed\nlike this --seed 3"));
  EXPECT_EQ(to_flags(read_run(file)), kFlags);
  for (const char* flags : {"--seed 3", "--seed 3 --strategy urw:s0.1=12,t0.0=3",
                            "--seed 3 --strategy delays:skip=17.40"})
    EXPECT_EQ(to_flags(parse_flags(flags)), flags);
}

TEST(ChosenRun, WhatItSaysGoesIntoTheOptionsAndNothingElse) {
  // Goal: the test's own options stay. Method: one that the run does not have.
  const ClusterOptions options = parse_flags(kFlags).applied_to(
      {.faults = FaultLevel::hostile, .crashes = 3, .without = {FaultClass::clocks}});
  EXPECT_EQ(options.crashes, 3u);
  EXPECT_EQ(options.faults, FaultLevel::mild);
  EXPECT_EQ(options.without,
            (std::vector<FaultClass>{FaultClass::clocks, FaultClass::resets, FaultClass::pauses}));
  EXPECT_EQ(options.strategy.kind, StrategyKind::pct);
  EXPECT_EQ(options.otherwise, Otherwise::benign);
  EXPECT_EQ(options.overrides.size(), 2u);
}

TEST(ChosenRun, WhatIsNoneIsRefusedWithALine) {
  // Goal: no silent default. Method: each kind of mistake.
  EXPECT_EQ(refusal([] { static_cast<void>(parse_flags("")); }), "it names no --seed");
  EXPECT_EQ(refusal([] { static_cast<void>(parse_flags("--seed")); }),
            "--seed: its value is missing");
  EXPECT_EQ(refusal([] { static_cast<void>(parse_flags("--seed x")); }),
            "--seed x: give a whole number");
  EXPECT_EQ(refusal([] { static_cast<void>(parse_flags("--seed 1 --strategy best")); }),
            "--strategy 'best': there is no such strategy");
  EXPECT_EQ(refusal([] { static_cast<void>(parse_flags("--seed 1 --faults some")); }),
            "--faults some: give none, mild or hostile");
  EXPECT_EQ(refusal([] { static_cast<void>(parse_flags("--seed 1 --without resets,rain")); }),
            "--without rain: there is no such class");
  EXPECT_EQ(refusal([] { static_cast<void>(parse_flags("--seed 1 --decide cut")); }).empty(),
            false);
  EXPECT_EQ(refusal([] { static_cast<void>(parse_flags("17")); }),
            "'17' is none of --seed, --faults, --without, --strategy, --benign, --decide");
  EXPECT_EQ(refusal([] { static_cast<void>(read_run("/no/such")); }),
            "/no/such cannot be read: No such file or directory");
  EXPECT_FALSE(write_run("/no/such/file", {}, ""));
}

}  // namespace
}  // namespace rehearsal::sim
