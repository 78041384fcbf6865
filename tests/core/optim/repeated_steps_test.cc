// Goal: a step that failed at an owner, or whose answer was lost, is repeated and applied once.
// Method: an owner without gradients; an owner whose answers are held up; calls with so little time
// that many fail.
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "core/optim/libtorch_kinds.h"
#include "core/optim/local_optimizer.h"
#include "tests/core/optim/split_model.h"
#include "tests/effort.h"

namespace rehearsal::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using torch::optim::SGD;
using torch::optim::SGDOptions;

const SGDOptions kMomentum = SGDOptions(0.1).momentum(0.9);

TEST(RepeatedStep, OwnersThatHaveAppliedItChangeNothing) {
  on_split_clusters([](Worker& worker) {
    const SplitModel model(worker);
    DistributedOptimizer optimizer(worker, model.parameters(), kMomentum);
    EXPECT_EQ(text_thrown<std::logic_error>([&] { optimizer.retry_step(); }),
              "the last call of the optimizer was no step");
    const AutogradContext context = worker.autograd_context();
    context.backward({model.w().sum()});
    EXPECT_THROW(optimizer.step(context), RpcError);
    const auto& reports = optimizer.step_reports();
    ASSERT_EQ(reports.size(), 3u);
    EXPECT_EQ(reports[0].owner.name, "trainer");
    EXPECT_FALSE(reports[0].error);
    ASSERT_TRUE(reports[2].error);
    EXPECT_EQ(reports[2].error->kind, ErrorKind::autograd);

    EXPECT_THROW(optimizer.retry_step(context), RpcError);  // Nothing is different yet.
    optimizer.allow_owners_without_gradients();
    optimizer.retry_step(context);
    optimizer.retry_step(context);
    for (const OwnerReport& report : optimizer.step_reports()) {
      EXPECT_FALSE(report.error);
      EXPECT_FALSE(report.applied_before);
    }
    EXPECT_TRUE(equal_bits(model.w(), numbers({4, 4}, 7).add(at::ones({4, 4}), -0.1)));  // Once.
    const AutogradContext other = worker.autograd_context();
    EXPECT_EQ(text_thrown<std::logic_error>([&] { optimizer.retry_step(other); }),
              "the last step was one with other gradients");
    optimizer.accumulate(context);
    EXPECT_THROW(optimizer.retry_step(context), std::logic_error);
  });
}

// Trains beside the twin; every call of a step has little time, and is repeated until it is done.
void train_in_a_hurry(Worker& worker, int& repeated, int& applied_before) {
  const SplitModel model(worker);
  TwinModel twin;
  DistributedOptimizer optimizer(worker, model.parameters(), kMomentum);
  SGD same(twin.parameters(), kMomentum);
  const Duration time = round_trip(worker, model);
  for (int step = 0; step < 4; ++step) {
    const AutogradContext context(worker.with_timeout(time));
    model.backward(context, 30 + step);
    try {
      optimizer.step(context);
    } catch (const RpcError&) {
      // The repetition keeps the options of the first attempt.
      optimizer.groups().param_groups()[0].options().set_lr(0.05);
      for (bool done = false; !done;) {
        worker.sleep(milliseconds(300));
        ASSERT_LT(++repeated, 20000);
        try {
          optimizer.retry_step(context);
          done = true;
        } catch (const RpcError&) {
        }
      }
      for (const OwnerReport& report : optimizer.step_reports())
        if (report.applied_before) ++applied_before;
    }
    same.zero_grad();
    twin.loss(30 + step).backward();
    same.step();
    same.param_groups()[0].options().set_lr(
        optimizer.groups().param_groups()[0].options().get_lr());
    expect_equal(model.values(), twin.parameters(), "after step " + std::to_string(step));
  }
}

TEST(RepeatedStep, CallsWithHardlyAnyTimeAreAppliedOnceEach) {
  int repeated = 0;
  int applied_before = 0;
  on_split_clusters([&](Worker& worker) { train_in_a_hurry(worker, repeated, applied_before); });
  EXPECT_GT(repeated, 20);
  EXPECT_GT(applied_before, 5);
}

TEST(RepeatedStep, AnAttemptThatIsLateIsVoid) {
  // Goal: between the question whether a step was applied and the step nothing changes. Method: the
  // calls that a DistributedOptimizer makes, in an order that it cannot be made to give them.
  on_split_clusters([](Worker& worker) {
    const SplitModel model(worker);
    const LibtorchKind sgd = libtorch_kind_of(kMomentum);
    const std::string options = sgd.kind->write(kMomentum);
    const auto local = worker.remote<LocalOptimizer>(
        "far", OptimizerSettings{
                   .kind = sgd.name,
                   .defaults = options,
                   .groups = {{.options = {0, options}, .parameters = {model.weights().at(2)}}},
                   .own = {}});
    const AutogradContext context = worker.autograd_context();
    model.backward(context, 30);
    const auto order = [](uint64_t number, uint64_t attempt) {
      return OrderName{.number = number, .attempt = attempt};
    };
    const auto step = [&](const OrderName& at) {
      context.rpc_sync(local, &LocalOptimizer::step, at, std::vector<SentOptions>());
    };
    const auto state = [&](const OrderName& at) {
      return context.rpc_sync(local, &LocalOptimizer::step_state, at);
    };
    const auto expect_void = [&](const std::function<void()>& call) {
      const auto before = model.values();
      EXPECT_TRUE(contains(text_thrown<RpcError>(call), "was overtaken by a later one"));
      expect_equal(model.values(), before);
    };
    EXPECT_EQ(state(order(2, 1)), StepState::not_applied);
    expect_void([&] { step(order(2, 0)); });
    expect_void([&] { context.rpc_sync(local, &LocalOptimizer::accumulate, order(1, 0)); });
    EXPECT_EQ(state(order(2, 2)), StepState::not_applied);
    const auto before = model.values();
    step(order(2, 2));
    EXPECT_FALSE(equal_bits(model.values().at(2), before.at(2)));
    EXPECT_EQ(state(order(2, 3)), StepState::applied);
    expect_void([&] { step(order(2, 2)); });
    expect_void(
        [&] { context.rpc_sync(local, &LocalOptimizer::unscale_gradients, order(1, 5), 0.5); });
  });
}

TEST(RepeatedStep, AnOwnerWhoseAnswerWasLostSaysThatItHasAppliedIt) {
  Program program(layer_functions());
  program.worker("trainer", [](Worker& worker) {
    const SplitModel model(worker);
    TwinModel twin;
    const DistributedOptimizer optimizer(worker, model.parameters(), kMomentum);
    SGD same(twin.parameters(), kMomentum);
    const AutogradContext context(worker.with_timeout(seconds(2)));
    model.backward(context, 30);
    worker.sleep(seconds(22));
    EXPECT_THROW(optimizer.step(context), RpcError);
    ASSERT_TRUE(optimizer.step_reports()[2].error);
    EXPECT_EQ(optimizer.step_reports()[2].error->kind, ErrorKind::timeout);
    worker.sleep(seconds(20));
    optimizer.retry_step(context);
    EXPECT_TRUE(optimizer.step_reports()[2].applied_before);
    EXPECT_FALSE(optimizer.step_reports()[1].applied_before);
    twin.loss(30).backward();
    same.step();
    expect_equal(model.values(), twin.parameters());
  });
  for (const char* layer : {"near", "far"}) program.worker(layer, [](Worker&) {});
  EXPECT_TRUE(sim::holds_for_seeds(tries(10), [&](Seed seed) {
    sim::Cluster cluster(seed, program, {.faults = sim::FaultLevel::none});
    cluster.at(seconds(20),
               [&] { static_cast<void>(cluster.network().block_one_way("far", "trainer")); });
    cluster.at(seconds(30), [&] { cluster.network().heal(); });
    cluster.run();
  }));
}

}  // namespace
}  // namespace rehearsal::testing
