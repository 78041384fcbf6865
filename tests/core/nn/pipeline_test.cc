// Pipelines over simulated workers, beside the undivided model here.
#include "core/api/pipeline.h"

#include <gtest/gtest.h>

#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/core/nn/pipeline_models.h"
#include "tests/effort.h"

namespace rehearsal::testing {
namespace {

using sim::Cluster;
using sim::ClusterOptions;
using sim::FaultLevel;

// Four stages, of which the last takes the first one's output, too.
void train_beside_twin(Worker& worker, PipelineSchedule schedule,
                       const std::vector<std::string>& at) {
  const RemoteModule<Block> first(worker, at[0], 1);
  const RemoteModule<Block> second(worker, at[1], 2);
  const RemoteModule<Block> third(worker, at[2], 3);
  const RemoteModule<Joint> fourth(worker, at[3], 4);
  const Pipeline pipeline(worker, {first, second, third, {fourth, {2, 0}}},
                          {.schedule = schedule, .reports = true});
  std::vector<at::Tensor> inputs;
  for (int64_t i = 0; i < 5; ++i) inputs.push_back(numbers({3, kStageWidth}, 100 + i));
  const PipelineStep step = pipeline.step(inputs, loss_of);

  Block same_first(1);
  Block same_second(2);
  Block same_third(3);
  Joint same_fourth(4);
  const std::vector<at::Tensor> weights{same_first.weight_, same_second.weight_, same_third.weight_,
                                        same_fourth.weight_};
  const std::vector<RRef<at::Tensor>> parameters{
      first.remote_parameters().at(0), second.remote_parameters().at(0),
      third.remote_parameters().at(0), fourth.remote_parameters().at(0)};
  const auto outputs = pipeline.forward(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor one = same_first.forward(inputs[i]);
    const at::Tensor output =
        same_fourth.forward(same_third.forward(same_second.forward(one)), one);
    EXPECT_TRUE(equal_bits(outputs[i], output.detach()));
    const at::Tensor loss = loss_of(output, i);
    EXPECT_TRUE(equal_bits(step.losses.at(i), loss.detach()));
    const auto expected = torch::autograd::grad({loss}, weights);
    for (size_t j = 0; j < weights.size(); ++j)
      EXPECT_TRUE(equal_bits(
          step.contexts.at(i).rpc_sync(parameters[j].owner().id, &gradient_of, parameters[j]),
          expected[j]))
          << "micro-batch " << i << ", stage " << j;
  }
}

TEST(Pipeline, EveryMicroBatchHasTheGradientsOfTheUndividedModel) {
  // Goal: outputs, losses and gradients, whatever the schedule and wherever the stages are, one's
  // own worker and a shared one included. Method: seeds of each, mild and hostile.
  for (const PipelineSchedule schedule : kSchedules)
    for (const auto& places :
         std::vector<std::vector<std::string>>{{"stage0", "stage1", "stage2", "stage3"},
                                               {"leader", "stage0", "leader", "stage0"},
                                               {"stage0", "stage0", "stage1", "stage1"}}) {
      const Program program =
          over_workers([&](Worker& worker) { train_beside_twin(worker, schedule, places); }, 4);
      for (const FaultLevel faults : {FaultLevel::mild, FaultLevel::hostile})
        EXPECT_TRUE(sim::holds_for_seeds(tries(2), [&](Seed seed) {
          ClusterOptions options{.faults = faults};
          // A micro-batch never waits for a place to execute that another has, which waits for it.
          if (seed.value % 2 == 0)
            options.adjust_node = [](NodeOptions& node) { node.execution_limit = 1; };
          Cluster(seed, program, options).run();
        }));
    }
}

// Which stage's worker each of so many stages shares, in every way there is: {0, 0, 2, 0} puts all
// but the third at one worker.
std::vector<std::vector<size_t>> all_partitions(size_t stages) {
  std::vector<std::vector<size_t>> found{{}};
  for (size_t stage = 0; stage < stages; ++stage) {
    std::vector<std::vector<size_t>> longer;
    for (const std::vector<size_t>& partition : found)
      for (size_t first = 0; first <= stage; ++first)
        if (first == stage || partition[first] == first) {
          longer.push_back(partition);
          longer.back().push_back(first);
        }
    found = std::move(longer);
  }
  return found;
}

// One step of a diamond: its middle stages do not depend on each other. The gradient of what the
// last one takes second comes first.
void train_diamond(Worker& worker, PipelineSchedule schedule, const std::vector<std::string>& at,
                   const std::vector<size_t>& joined, int64_t micro_batches) {
  const RemoteModule<Block> first(worker, at[0], 1);
  const RemoteModule<Block> left(worker, at[1], 2);
  const RemoteModule<Block> right(worker, at[2], 3);
  const RemoteModule<Joint> last(worker, at[3], 4);
  const Pipeline pipeline(worker, {first, {left, {0}}, {right, {0}}, {last, joined}},
                          {.schedule = schedule});
  std::vector<at::Tensor> inputs;
  for (int64_t i = 0; i < micro_batches; ++i) inputs.push_back(numbers({3, kStageWidth}, 100 + i));
  const PipelineStep step = pipeline.step(inputs, loss_of);

  Block same_first(1);
  Block same_left(2);
  Block same_right(3);
  Joint same_last(4);
  const std::vector<at::Tensor> weights{same_first.weight_, same_left.weight_, same_right.weight_,
                                        same_last.weight_};
  const std::vector<RRef<at::Tensor>> parameters{
      first.remote_parameters().at(0), left.remote_parameters().at(0),
      right.remote_parameters().at(0), last.remote_parameters().at(0)};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor one = same_first.forward(inputs[i]);
    const at::Tensor sides[] = {same_left.forward(one), same_right.forward(one)};
    const at::Tensor loss =
        loss_of(same_last.forward(sides[joined[0] - 1], sides[joined[1] - 1]), i);
    const auto expected = torch::autograd::grad({loss}, weights);
    for (size_t j = 0; j < weights.size(); ++j)
      EXPECT_TRUE(equal_bits(
          step.contexts.at(i).rpc_sync(parameters[j].owner().id, &gradient_of, parameters[j]),
          expected[j]))
          << "micro-batch " << i << ", stage " << j;
  }
}

TEST(Pipeline, NoStageOfADiamondWaitsForOneThatWaitsForIt) {
  // Goal: a worker goes on with whichever of its stages has its turn, whatever gradients came
  // first. Method: a diamond whose stages share workers in every way, the leader's included, with
  // one to six micro-batches. A wrong order stops it in any run, so one seed of each is enough, and
  // a quarter of the combinations with each change.
  uint64_t number = 0;
  for (const PipelineSchedule schedule : kSchedules)
    for (const std::vector<size_t>& partition : all_partitions(4))
      for (const std::vector<size_t>& joined : {std::vector<size_t>{1, 2}, {2, 1}}) {
        ++number;
        for (const int64_t micro_batches : {1, 2, 4, 6}) {
          if (++number % every(4) != 0) continue;
          const auto at_leader = static_cast<size_t>(micro_batches) % 5;  // 4: no stage
          std::vector<std::string> at;
          for (const size_t first : partition)
            at.push_back(first == at_leader ? "leader" : "stage" + std::to_string(first));
          const Program program = over_workers(
              [&](Worker& worker) { train_diamond(worker, schedule, at, joined, micro_batches); },
              4);
          ASSERT_TRUE(sim::holds_for_seeds(
              1, [&](Seed seed) { Cluster(seed, program, {.faults = FaultLevel::mild}).run(); }))
              << ::testing::PrintToString(at) << ", " << micro_batches << " micro-batches";
        }
      }
}

// The time of one step of so many slow stages, and the greatest number of micro-batches that its
// workers keep something of, by worker.
struct SlowStep {
  Duration time{};
  std::vector<int> kept;
};

template <class Block>
SlowStep slow_step(PipelineSchedule schedule, size_t stages, size_t workers, size_t micro_batches,
                   double bubble) {
  SlowStep found;
  const Program program = over_workers(
      [&](Worker& worker) {
        std::vector<PipelineStage> made;
        for (size_t i = 0; i < stages; ++i)
          made.emplace_back(RemoteModule<Block>(worker, "stage" + std::to_string(i % workers), i));
        const Pipeline pipeline(worker, made, {.schedule = schedule, .reports = true});
        const std::vector<at::Tensor> inputs(micro_batches, numbers({3, kStageWidth}, 1));
        const Instant begin = worker.now();
        const PipelineStep step = pipeline.step(inputs, loss_of);
        found.time = worker.now() - begin;
        const PipelinePass last = schedule == PipelineSchedule::zero_bubble
                                      ? PipelinePass::weights
                                      : PipelinePass::backward;
        for (const PipelineReport& report : step.reports) {
          EXPECT_NEAR(report.bubble, bubble, bubble / 20) << report.owner.name;
          int kept = 0;
          int most = 0;
          for (const PipelineSpan& span : report.spans) {
            if (span.action.pass == PipelinePass::forward) ++kept;
            if (span.action.pass == last) --kept;
            most = std::max(most, kept);
          }
          EXPECT_EQ(kept, 0) << report.owner.name;
          found.kept.push_back(most);
        }
      },
      workers);
  Cluster(Seed{1}, program, {.faults = FaultLevel::none}).run();
  return found;
}

void expect_theory(const SlowStep& found, Duration theory) {
  EXPECT_GE(found.time, theory);
  EXPECT_LE(found.time, theory + theory / 20) << std::chrono::duration<double>(found.time).count();
}

TEST(Pipeline, WastesNoMoreThanTheBubbleOfItsSchedule) {
  // Goal: the time of a step is what theory says, and 1F1B keeps as many micro-batches as there are
  // stages. Method: stages that sleep.
  for (const size_t stages : {2, 4}) {
    const auto rounds = static_cast<int64_t>(stages - 1 + 8);
    const double bubble = static_cast<double>(stages - 1) / static_cast<double>(rounds);
    const SlowStep step =
        slow_step<SlowBlock>(PipelineSchedule::one_f_one_b, stages, stages, 8, bubble);
    expect_theory(step, (kForwardTime + kBackwardTime) * rounds);
    EXPECT_EQ(step.kept.at(0), static_cast<int>(stages));
    const SlowStep filled =
        slow_step<SlowBlock>(PipelineSchedule::fill_drain, stages, stages, 8, bubble);
    expect_theory(filled, (kForwardTime + kBackwardTime) * rounds);
    EXPECT_EQ(filled.kept.at(0), 8);
  }
}

TEST(Pipeline, ZeroBubbleWaitsOnlyToFillAndDrain) {
  // Goal: with forward passes and both halves of backward passes of one time, a step of m
  // micro-batches on p workers takes 3m + p − 1 of it (ZB-H1, Qi et al., 2023), where 1F1B takes
  // 3(m + p − 1), and no worker keeps more than p micro-batches. Method: stages that sleep.
  for (const size_t stages : {2, 3, 4})
    for (const size_t micro_batches : {4, 8}) {
      const auto p = static_cast<int64_t>(stages);
      const auto m = static_cast<int64_t>(micro_batches);
      const double bubble = static_cast<double>(p - 1) / static_cast<double>(3 * m + p - 1);
      const SlowStep step = slow_step<HalvedBlock>(PipelineSchedule::zero_bubble, stages, stages,
                                                   micro_batches, bubble);
      expect_theory(step, kForwardTime * (3 * m + p - 1));
      for (const int kept : step.kept) EXPECT_EQ(kept, static_cast<int>(stages));
      const SlowStep undivided =
          slow_step<HalvedBlock>(PipelineSchedule::one_f_one_b, stages, stages, micro_batches,
                                 static_cast<double>(p - 1) / static_cast<double>(m + p - 1));
      expect_theory(undivided, kForwardTime * 3 * (m + p - 1));
    }
}

TEST(Pipeline, InterleavesTheStagesOfAWorker) {
  // Goal: with v stages on each worker the bubble is a v-th (interleaved 1F1B, Narayanan et al.,
  // 2021), and with divided backward passes a third of that. Method: four slow stages on two
  // workers, beside the same work as one stage each.
  expect_theory(slow_step<SlowBlock>(PipelineSchedule::one_f_one_b, 4, 2, 8, 1.0 / 17),
                (kForwardTime + kBackwardTime) * (8 * 2 + 1));
  expect_theory(slow_step<HalvedBlock>(PipelineSchedule::zero_bubble, 4, 2, 8, 1.0 / 49),
                kForwardTime * (3 * 8 * 2 + 1));
}

TEST(Pipeline, RefusesStagesThatMakeNoModel) {
  run_once(functions(), [](Worker& worker) {
    const RemoteModule<Block> block(worker, "ps", 1);
    const RemoteModule<Joint> joint(worker, "ps", 2);
    EXPECT_THROW(Pipeline(worker, {}), std::invalid_argument);
    EXPECT_THROW(Pipeline(worker, {{block, {1}}, block}), std::invalid_argument);
    EXPECT_THROW(Pipeline(worker, {block, {block, {PipelineStage::kInput}}}),
                 std::invalid_argument);
    const Pipeline sound(worker, {block});
    EXPECT_THROW((void)sound.step({numbers({3, kStageWidth}, 1)}, {}), std::invalid_argument);
    EXPECT_THROW((void)sound.step({}, loss_of), std::invalid_argument);
    EXPECT_THROW((void)sound.forward({}), std::invalid_argument);
    const Pipeline lacking(worker, {block, {joint, {0}}});
    const Error error = error_of([&] {
      (void)lacking.step({numbers({3, kStageWidth}, 1)}, loss_of);
    });
    EXPECT_NE(error.text.find("takes 2 inputs, not 1"), std::string::npos) << error.text;
  });
}

}  // namespace
}  // namespace rehearsal::testing
