#include "command_line/hunt_ways.h"

#include <gtest/gtest.h>

#include "tests/command_line/toy.h"

namespace rehearsal::command_line {
namespace {

class Ways : public testing::Test {
 protected:
  Ways() {
    asked_.scenario = &scenarios_.front();
    asked_.options = asked_.scenario->options.parse({}, "tiny");
  }
  // The flags of each way, behind the words that all have.
  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const RunSettings& way : ways_of(asked_)) {
      std::string& text = texts.emplace_back();
      const std::vector<std::string> words = run_arguments(way);
      for (size_t i = 4; i < words.size(); ++i) text += (text.empty() ? "" : " ") + words[i];
    }
    return texts;
  }

  std::vector<Scenario> scenarios_ = toy::scenarios();
  RunSettings asked_;
};

using Texts = std::vector<std::string>;

TEST_F(Ways, AreAsItDrawsThenWithCrashesThenWithLossesThenWithLies) {
  const std::string size = "--set size=tiny";
  EXPECT_EQ(texts(), (Texts{size, size + " --faults hostile --crashes 1 --restarts drawn",
                            size + " --faults hostile --partitions long --pauses long",
                            size + " --faults hostile --crashes 1 --mad 1"}));
}

TEST_F(Ways, AreOnDevicesWhereTheScenarioPlacesTensorsOnThem) {
  scenarios_.front().uses_devices = true;
  ASSERT_EQ(texts().size(), 5u);
  EXPECT_EQ(texts()[3],
            "--set size=tiny --faults hostile --crashes 1 --devices drawn --restarts drawn");
}

TEST_F(Ways, LeaveAloneWhatWasAskedFor) {
  asked_.faults = sim::FaultLevel::none;
  asked_.crashes = 0;
  asked_.restarts = sim::Restart::never;
  asked_.long_partitions = false;
  asked_.long_pauses = false;
  asked_.mad = 1;
  EXPECT_EQ(texts(), (Texts{"--set size=tiny --faults none --crashes 0 --mad 1 --restarts never "
                            "--partitions short --pauses short"}));
}

}  // namespace
}  // namespace rehearsal::command_line
