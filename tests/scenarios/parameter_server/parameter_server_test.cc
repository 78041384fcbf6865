#include "scenarios/parameter_server/parameter_server.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/scenarios/simulated.h"

namespace rehearsal::parameter_server {
namespace {

TEST(ParameterServer, FaultsChangeNoBitOfOneTrainer) {
  // Goal: with one trainer the result is a function of the seed alone, dropout and all. Method: at
  // every level; with another seed, and without dropout, it is another one.
  const Scenario server = scenario();
  const auto calm = simulated(server, 5, sim::FaultLevel::none);
  ASSERT_TRUE(calm.outcome.ok) << failure_text(calm.outcome);
  EXPECT_EQ(calm.outcome.results.tensors().size(), 9u);
  for (const sim::FaultLevel faults : {sim::FaultLevel::mild, sim::FaultLevel::hostile}) {
    const auto run = simulated(server, 5, faults);
    ASSERT_TRUE(run.outcome.ok) << failure_text(run.outcome);
    EXPECT_EQ(run.outcome.results.digest(), calm.outcome.results.digest());
    EXPECT_EQ(run.outcome.results.numbers(), calm.outcome.results.numbers());
  }
  const auto other = simulated(server, 6, sim::FaultLevel::none);
  EXPECT_NE(other.outcome.results.digest(), calm.outcome.results.digest());
  const auto whole = simulated(server, 5, sim::FaultLevel::none, {"dropout=off"});
  EXPECT_NE(whole.outcome.results.digest(), calm.outcome.results.digest());
}

TEST(ParameterServer, SeveralTrainersShareOneModelAndEveryStepCountsOnce) {
  // Goal: trainers that do not wait for each other lose no step. Method: 50 hostile seeds.
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const auto run =
        simulated(scenario(), seed, sim::FaultLevel::hostile, {"trainers=3", "batches=4"});
    ASSERT_TRUE(run.outcome.ok) << seed << ": " << failure_text(run.outcome);
    const std::map<std::string, double> expected = {
        {"servers", 1}, {"steps", 12}, {"every step counts once", 1}};
    EXPECT_EQ(run.outcome.results.numbers(), expected);
    EXPECT_TRUE(run.outcome.results.tensors().empty());
  }
}

TEST(ParameterServer, TheVerdictCountsModelsAndStepsWhereNobodyCouldBeLost) {
  // Goal: what it judges, and when it does not. Method: results made by hand.
  const auto verdict = [](double servers, double once, int crashes) {
    Results results;
    results.number("servers", servers);
    results.number("every step counts once", once);
    ScenarioFaults plan;
    plan.crashes = crashes;
    return scenario().verdict(results, plan);
  };
  EXPECT_EQ(verdict(1, 1, 0), std::nullopt);
  EXPECT_EQ(verdict(2, 1, 0), "the trainers have several models");
  EXPECT_EQ(verdict(1, 0, 0), "the parameters are not what the steps of all trainers make of them");
  EXPECT_EQ(verdict(2, 0, 1), std::nullopt);
}

double loss_in(const std::string& line) { return std::stod(line.substr(line.rfind(' ') + 1)); }

std::vector<double> losses_of(const std::string& trainer, const std::vector<std::string>& lines) {
  std::vector<double> losses;
  for (const std::string& line : lines)
    if (line.starts_with(trainer + "  batch ")) losses.push_back(loss_in(line));
  return losses;
}

TEST(ParameterServer, OneTrainerLearnsTheDigits) {
  // Goal: the default training works. Method: three seeds; the mean loss of each fifth of the
  // batches is less than half of the first one's. At the end it is noise, and what follows which
  // depends on the processor's kernels.
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto run = simulated(scenario(), seed, sim::FaultLevel::mild, {"size=full"});
    ASSERT_TRUE(run.outcome.ok) << failure_text(run.outcome);
    const std::vector<double> losses = losses_of("trainer0", run.lines);
    ASSERT_EQ(losses.size(), 5u);
    for (size_t i = 1; i < losses.size(); ++i) EXPECT_LT(losses[i], losses[0] / 2) << seed;
    EXPECT_GT(run.outcome.results.numbers().at("accuracy"), 0.9);
  }
}

TEST(ParameterServer, ThreeTrainersLearnTheDigitsTogether) {
  const auto run =
      simulated(scenario(), 1, sim::FaultLevel::mild, {"size=full", "trainers=3", "batches=100"});
  ASSERT_TRUE(run.outcome.ok) << failure_text(run.outcome);
  for (const char* trainer : {"trainer0", "trainer1", "trainer2"}) {
    const std::vector<double> losses = losses_of(trainer, run.lines);
    ASSERT_EQ(losses.size(), 5u);
    EXPECT_LT(losses.back(), losses.front() / 2) << trainer;
  }
  EXPECT_GT(loss_in(run.lines.back()), 0.9) << run.lines.back();
}

}  // namespace
}  // namespace rehearsal::parameter_server
