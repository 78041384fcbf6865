#include "scenarios/random_model/random_model.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/mutants.h"
#include "tests/scenarios/simulated.h"

namespace rehearsal {
namespace {

// How the first of so many seeds fails whose run does with a rule left out; nothing if none does.
std::optional<std::string> failure_with(const std::string& mutant,
                                        const std::vector<std::string>& assignments,
                                        uint64_t last) {
  const Scenario scenario = random_model::scenario();
  const command_line::Backends backends = command_line::shipped_backends();
  for (uint64_t seed = 1; seed <= last; ++seed) {
    command_line::RunSettings settings;
    settings.scenario = &scenario;
    settings.options = scenario.options.parse(assignments, "tiny");
    settings.seed = Seed{seed};
    settings.faults = sim::FaultLevel::hostile;
    settings.crashes = 0;
    settings.mutants = {mutant};
    Reporter reporter{
        .line = [](const std::string&) {}, .progress = [](const std::string&) {}, .results = {}};
    const command_line::RunOutcome outcome = backends.simulate(settings, reporter);
    if (!outcome.ok) return failure_text(outcome);
  }
  return std::nullopt;
}

TEST(RandomModel, DrawnModelsHaveTheGradientsOfOneProcess) {
  // Goal: the property for which the scenario is there: however a model is cut over workers, and
  // whatever it consists of, its gradients are those of one process. Method: 400 models of three
  // sizes, of two to eight workers, without faults; each compares itself.
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const std::string workers = "workers=" + std::to_string(2 + seed % 7);
    const std::string nodes = "nodes=" + std::to_string(seed % 3 == 0 ? 16 : seed % 3 * 4);
    const std::string passes = "passes=" + std::to_string(1 + seed % 3);
    const SimulatedRun run =
        simulated(random_model::scenario(), seed, sim::FaultLevel::none, {workers, nodes, passes});
    ASSERT_TRUE(run.outcome.ok) << seed << ": " << failure_text(run.outcome);
  }
}

TEST(RandomModel, FaultsChangeNoBit) {
  // Goal: a gradient depends on the program only. Method: the same models without faults and as
  // hostile as it gets.
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Scenario scenario = random_model::scenario();
    const SimulatedRun calm = simulated(scenario, seed, sim::FaultLevel::none, {"nodes=8"});
    const SimulatedRun hostile = simulated(scenario, seed, sim::FaultLevel::hostile, {"nodes=8"});
    ASSERT_TRUE(calm.outcome.ok) << seed << ": " << failure_text(calm.outcome);
    ASSERT_TRUE(hostile.outcome.ok) << seed << ": " << failure_text(hostile.outcome);
    EXPECT_EQ(hostile.outcome.results.tensors(), calm.outcome.results.tensors()) << seed;
    EXPECT_GE(calm.outcome.results.numbers().at("gradients compared"), 1);
  }
}

TEST(RandomModel, ModelsThatOnceFailedHold) {
  // 18068: a sparse and a dense gradient had waited for a third, which never came.
  for (const uint64_t seed : {18068}) {
    const SimulatedRun run = simulated(random_model::scenario(), seed, sim::FaultLevel::none);
    EXPECT_TRUE(run.outcome.ok) << seed << ": " << failure_text(run.outcome);
  }
}

TEST(RandomModel, FindsWhatIsLeftOut) {
  // Goal: the scenario sees mistakes. Method: rules of the protocol that are left out, each found
  // within few seeds.
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  for (const char* mutant : {"undefined_gradient_not_sent", "undecided_ignored",
                             "mark_answered_at_once", "pass_not_resumed", "backward_returns_early",
                             "execution_forgets_context", "unused_result_hangs"}) {
    EXPECT_NE(failure_with(mutant, {"nodes=6", "passes=2"}, 20), std::nullopt) << mutant;
  }
  // Only at workers that the leader has not met can its question come before their gradients.
  EXPECT_NE(failure_with("backward_returns_before_commit", {"nodes=3", "workers=8"}, 200),
            std::nullopt);
}

}  // namespace
}  // namespace rehearsal
