#include "scenarios/batch_parameter_server/batch_parameter_server.h"

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/batch_parameter_server/server.h"
#include "scenarios/batch_parameter_server/trainer.h"
#include "sim/cluster.h"
#include "tests/reference/row.h"
#include "tests/scenarios/one_at_once.h"
#include "tests/scenarios/simulated.h"

namespace rehearsal::batch_parameter_server {
namespace {

using one_at_once::number_of;

Settings small_settings(int64_t trainers) {
  return {.sizes = {.side = 4, .channels = 2, .blocks = 1, .classes = 3},
          .trainers = trainers,
          .batches = 2,
          .rows = 2,
          .seed = 3};
}

// Rows: examples/batch_update_parameter_server_test::BatchUpdateParameterServerTest.{
// Rows: test_batch_updating_parameter_server}
TEST(BatchParameterServer, EachRoundIsOneUpdateWithTheModelOfOneProcessForEveryTrainer) {
  // Goal: three trainers with four batches each make four updates; in each round all get the same
  // model, bit for bit that of one process which steps with the mean gradients. Method: the
  // scenario, which compares them itself and throws, in both worlds.
  const Scenario batches = scenario();
  const Options options = batches.options.parse({"trainers=3", "batches=4"}, "tiny");
  std::list<Reporter> reporters;
  reference::in_both_worlds([&] {
    Reporter& reporter = reporters.emplace_back();
    reporter.line = reporter.progress = [](const std::string&) {};
    return batches.program({options, Seed{11}, reporter});
  });
  ASSERT_GE(reporters.size(), 28u) << "25 simulated runs, and three over TCP";
  for (const Reporter& reporter : reporters) {
    EXPECT_EQ(reporter.results.numbers().at("updates"), 4);
    EXPECT_EQ(reporter.results.digest(), reporters.front().results.digest());
  }
}

TEST(BatchParameterServer, FaultsChangeNoBit) {
  // Goal: the order in which gradients arrive decides nothing. Method: five trainers at every
  // level, and another seed.
  const auto calm = simulated(scenario(), 5, sim::FaultLevel::none, {"trainers=5"});
  ASSERT_TRUE(calm.outcome.ok) << failure_text(calm.outcome);
  EXPECT_EQ(calm.outcome.results.tensors().size(), 5u);
  for (const sim::FaultLevel faults : {sim::FaultLevel::mild, sim::FaultLevel::hostile}) {
    const auto run = simulated(scenario(), 5, faults, {"trainers=5"});
    ASSERT_TRUE(run.outcome.ok) << failure_text(run.outcome);
    EXPECT_EQ(run.outcome.results.digest(), calm.outcome.results.digest());
    EXPECT_EQ(run.outcome.results.numbers(), calm.outcome.results.numbers());
    EXPECT_EQ(run.lines, calm.lines);
  }
  const auto other = simulated(scenario(), 6, sim::FaultLevel::none, {"trainers=5"});
  EXPECT_NE(other.outcome.results.digest(), calm.outcome.results.digest());
}

TEST(BatchParameterServer, TheFullSizeHolds) {
  // Goal: the default run. Method: the line that it ends with.
  const auto run = simulated(scenario(), 1, sim::FaultLevel::mild, {"size=full"});
  ASSERT_TRUE(run.outcome.ok) << failure_text(run.outcome);
  ASSERT_EQ(run.lines.size(), 1u);
  EXPECT_EQ(run.lines[0].substr(0, 48), "6 updates with the gradients of 5 trainers each;");
}

TEST(BatchParameterServer, OneProcessStepsWithTheMean) {
  // Goal: what the scenario compares with is what it says. Method: a round by hand.
  Settings settings = small_settings(2);
  settings.batches = 1;
  const TrainedAlone trained = train_alone(settings);
  std::vector<at::Tensor> model = first_parameters(settings);
  const at::Tensor loss =
      net_loss(model, batch_of(settings, 0, 0)) + net_loss(model, batch_of(settings, 1, 0));
  (loss / 2).backward();
  for (size_t i = 0; i < model.size(); ++i) {
    const at::Tensor expected = model[i].detach() - kLearningRate * model[i].grad();
    EXPECT_TRUE(expected.allclose(trained.parameters[i], 1e-6, 1e-9)) << i;
    EXPECT_FALSE(model[i].equal(trained.parameters[i])) << i;
  }
}

std::vector<at::Tensor> ones() {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : first_parameters(small_settings(2)))
    gradients.push_back(at::ones_like(parameter));
  return gradients;
}

// A server that keeps its stack until the answer is there.
class HoldingServer : public Server {
 public:
  using Server::Server;
  std::vector<at::Tensor> hold(int64_t trainer, const std::vector<at::Tensor>& gradients) {
    return update_and_fetch(trainer, gradients).wait();
  }
};

// Two trainers, at a server that runs one function at once.
Program one_function_at_once(const one_at_once::Ask<HoldingServer>& ask) {
  FunctionRegistry registry;
  registry.type<HoldingServer>("HoldingServer")
      .constructor<CallContext&, Settings>()
      .method("update_and_fetch", &Server::update_and_fetch)
      .method("hold", &HoldingServer::hold);
  return one_at_once::program(std::move(registry), "ps", "trainer", small_settings(2), ask);
}

TEST(BatchParameterServer, ATrainerThatWaitsHoldsNoExecutionAtTheServer) {
  // Goal: however many trainers wait, the server serves. Method: it may execute one function at
  // once, and two trainers wait for each other, in both worlds.
  const Program program =
      one_function_at_once([](Worker& worker, const RRef<HoldingServer>& server) {
        for (int round = 0; round < 3; ++round)
          static_cast<void>(server.rpc_sync(&Server::update_and_fetch, number_of(worker), ones()));
      });
  reference::in_both_worlds(program, {.adjust_node = one_at_once::adjust_node});
}

TEST(BatchParameterServer, OneThatHeldAnExecutionWouldLetNoOtherIn) {
  // Goal: the test before can fail. Method: the same with a method that waits for the answer.
  const auto kinds = one_at_once::failures<HoldingServer>(
      one_function_at_once, [](Worker& worker, const RRef<HoldingServer>& server) {
        static_cast<void>(server.rpc_sync(&HoldingServer::hold, number_of(worker), ones()));
      });
  const std::map<std::string, ErrorKind> expected = {{"trainer0", ErrorKind::timeout},
                                                     {"trainer1", ErrorKind::timeout}};
  EXPECT_EQ(kinds, expected);
}

TEST(BatchParameterServer, ATrainerThatComesTwiceInARoundIsSeen) {
  // Goal: a round is one contribution of each. Method: trainer 1 twice.
  FunctionRegistry registry;
  register_server(registry);
  Program program(std::move(registry));
  program.worker("ps");
  program.worker("trainer", [](Worker& worker) {
    const auto server = worker.remote<Server>("ps", small_settings(2));
    const auto first = server.rpc_async(&Server::update_and_fetch, int64_t{1}, ones());
    const Error error = reference::error_of(
        [&] { static_cast<void>(server.rpc_sync(&Server::update_and_fetch, int64_t{1}, ones())); });
    EXPECT_EQ(error.text, "std::logic_error: trainer 0 is not once in its round");
    EXPECT_EQ(reference::error_of([&] { static_cast<void>(first.wait()); }).text, error.text);
  });
  sim::Cluster(Seed{1}, program).run();
}

}  // namespace
}  // namespace rehearsal::batch_parameter_server
