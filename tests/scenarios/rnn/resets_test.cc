// Training over TCP while its connections are reset.
#include <gtest/gtest.h>

#include "scenarios/rnn/rnn.h"
#include "tests/real_net/support/loopback_group.h"
#include "tests/scenarios/simulated.h"

namespace rehearsal::rnn {
namespace {

using std::chrono::milliseconds;

TEST(Rnn, ResetsOverTcpChangeNoBit) {
  // Goal: the simulator's bits. Method: TCP through a proxy that resets after every 200,000 bytes.
  const std::vector<std::string> assignments = {"world_size=3", "batches=12"};
  const Scenario scenario = rnn::scenario();
  const uint64_t seed = real::LoopbackGroup::kSeed.value;
  const SimulatedRun run = simulated(scenario, seed, sim::FaultLevel::hostile, assignments);
  ASSERT_TRUE(run.outcome.ok) << failure_text(run.outcome);

  const Options options = scenario.options.parse(assignments, "tiny");
  Reporter reporter;
  reporter.line = reporter.progress = [](const std::string&) {};
  const Program program = scenario.program({options, Seed{seed}, reporter});
  real::GroupOptions group_options{.through_proxies = true};
  group_options.node.peer_timeout = std::chrono::seconds(10);
  group_options.node.heartbeat = milliseconds(200);
  real::LoopbackGroup group(program, group_options);
  for (const uint32_t rank : {0u, 1u, 2u}) group.proxy(rank).set_reset_after(200'000);
  for (const Status& status : group.run()) EXPECT_TRUE(status.ok()) << to_string(status.error());
  EXPECT_EQ(reporter.results.digest(), run.outcome.results.digest());
  uint64_t bytes = 0;
  for (const uint32_t rank : {0u, 1u, 2u}) bytes += group.proxy(rank).forwarded_bytes();
  EXPECT_GT(bytes, 5 * 200'000u);  // There were resets.
}

}  // namespace
}  // namespace rehearsal::rnn
