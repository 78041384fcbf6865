// Goal: --devices means what it says, or is told in one line. Method: words, for a scenario that
// uses devices.
#include "command_line/devices_flag.h"

#include <gtest/gtest.h>

#include "command_line/wrong_use.h"

namespace rehearsal::command_line {
namespace {

std::string parsed(const std::string& text, bool are_processes = false) {
  Scenario scenario;
  scenario.name = "user";
  scenario.uses_devices = true;
  return parse_devices(text, are_processes, scenario, {});
}

std::string refusal(const std::string& text, bool are_processes = false) {
  try {
    return "taken: " + parsed(text, are_processes);
  } catch (const WrongUse& wrong) {
    return wrong.what();
  }
}

TEST(DevicesFlag, NamesSimulatedOnesOrGpus) {
  EXPECT_EQ(devices_meant(parsed(""), Seed{1}), 0);
  EXPECT_EQ(devices_meant(parsed("3"), Seed{1}), 3);
  EXPECT_FALSE(are_of_cuda(parsed("3", true)));
  EXPECT_EQ(devices_meant(parsed("cuda:2", true), Seed{1}), 2);
  EXPECT_TRUE(are_of_cuda(parsed("cuda:2", true)));
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_GE(devices_meant(parsed("drawn"), Seed{seed}), 1);
    EXPECT_LE(devices_meant(parsed("drawn"), Seed{seed}), 4);
  }
}

TEST(DevicesFlag, OtherWordsAreRefused) {
  EXPECT_EQ(refusal("cuda:1"),
            "--devices cuda:1 needs --net tcp: in a simulated run devices are, too");
  for (const std::string wrong : {"0", "65", "-1", "2x", "cuda:", "cuda:0", "cuda:x", "cuda"})
    EXPECT_EQ(refusal(wrong, true), "--devices " + wrong +
                                        ": type a whole number from 1 to 64, drawn, or cuda:N for "
                                        "so many GPUs");
}

}  // namespace
}  // namespace rehearsal::command_line
