#include "scenarios/shared_state/shared_state.h"

#include <gtest/gtest.h>

#include "tests/scenarios/simulated.h"
#include "tests/scenarios/tool_run.h"

namespace rehearsal {
namespace {

TEST(SharedState, EveryItemIsTakenOnceInWhateverOrder) {
  // Goal: the primitives keep what their names promise. Method: the sum of all items, in calm and
  // in a hundred hostile orders.
  const SimulatedRun calm = simulated(shared_state::scenario(), 1, sim::FaultLevel::none);
  ASSERT_TRUE(calm.outcome.ok) << failure_text(calm.outcome);
  EXPECT_EQ(calm.outcome.results.numbers().at("items"), 2 * 4);
  // The producers have ranks 3 and 4, and put 300,000 to 300,003 and 400,000 to 400,003: each is
  // scored, which makes it 2 * item + 1.
  EXPECT_EQ(calm.outcome.results.numbers().at("sum"), 2 * (4 * 700'000 + 2 * 6) + 8);
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const SimulatedRun run = simulated(shared_state::scenario(), seed, sim::FaultLevel::hostile);
    ASSERT_TRUE(run.outcome.ok) << seed << ": " << failure_text(run.outcome);
    EXPECT_EQ(run.outcome.results.digest(), calm.outcome.results.digest()) << seed;
  }
}

struct Planted {
  const char* plant;
  const char* text;
};

class Plants : public testing::TestWithParam<Planted> {};

TEST_P(Plants, AreFoundAndToldByThePrimitivesName) {
  // Goal: a mistake that such code is known for shows itself in minutes, and says where. Method: a
  // hunt, and the line that it prints.
  const Planted& planted = GetParam();
  const command_line::ToolRun run = command_line::run_tool(
      std::string("hunt shared_state --seeds 2000 --jobs 1 --json --set plant=") + planted.plant);
  EXPECT_EQ(run.status, 1) << run.err;
  const command_line::Json failure = run.json().at("failure");
  const std::string message = failure.at("message");
  EXPECT_NE(message.find(planted.text), std::string::npos) << message;
  if (planted.plant == std::string("1")) {  // Its name depends on what the compiler has inlined.
    EXPECT_NE(message.find("condition"), std::string::npos) << message;
  }
  const std::string replay = failure.at("replay");
  const command_line::ToolRun again =
      command_line::run_tool(replay.substr(replay.find(" run ")) + " --json");
  EXPECT_EQ(again.status, 1);
  EXPECT_EQ(again.json().at("failure").at("message"), message);
}

INSTANTIATE_TEST_SUITE_P(
    SharedState, Plants,
    testing::Values(Planted{"1", "put waits for "},
                    Planted{"2", "a batch was taken that is not there"},
                    Planted{"3", "score waits for boost::fibers::mutex::lock(), held by main"}),
    [](const testing::TestParamInfo<Planted>& info) {
      return std::string("plant") + info.param.plant;
    });

}  // namespace
}  // namespace rehearsal
