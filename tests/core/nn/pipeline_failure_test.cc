// Pipelines of which a stage fails, dies, or has nothing to do backward.
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

TEST(Pipeline, AStageThatFailsEndsTheStepForAll) {
  // Goal: the error of one micro-batch is the step's, nobody waits for its turn for ever, and the
  // next step is as good as new. Method: a stage that throws once, first, between and last;
  // forward, backward, and at the gradient of its weight.
  for (const PipelineSchedule schedule : kSchedules)
    for (const PipelinePass where :
         {PipelinePass::forward, PipelinePass::backward, PipelinePass::weights})
      for (const size_t broken : {0, 1, 2}) {
        const Program program = over_workers(
            [schedule, where, broken](Worker& worker) {
              std::vector<PipelineStage> stages;
              for (size_t i = 0; i < 3; ++i) {
                const std::string at = "stage" + std::to_string(i);
                if (i == broken)
                  stages.emplace_back(RemoteModule<Broken>(worker, at, static_cast<int>(where)));
                else
                  stages.emplace_back(RemoteModule<Block>(worker, at, 1));
              }
              const Pipeline pipeline(worker, stages, {.schedule = schedule});
              const std::vector<at::Tensor> inputs(4, numbers({3, kStageWidth}, 1));
              const Error error = error_of([&] { (void)pipeline.step(inputs, loss_of); });
              EXPECT_NE(error.text.find("the third micro-batch breaks it"), std::string::npos)
                  << error.text;
              EXPECT_EQ(pipeline.step(inputs, loss_of).losses.size(), 4u);
            },
            3);
        EXPECT_TRUE(sim::holds_for_seeds(
            tries(2),
            [&](Seed seed) {
              Cluster(seed, program, ClusterOptions{.faults = FaultLevel::mild}).run();
            }))
            << broken << ", pass " << static_cast<int>(where);
      }
}

TEST(Pipeline, EndsWhicheverWorkerDiesAtWhicheverMoment) {
  // Goal: a step ends well or names the stage that was lost, and nobody is left waiting for a turn,
  // also without a leader. Method: a crash at each event of a stage, and of the leader; with each
  // schedule at others of them.
  for (const PipelineSchedule schedule : kSchedules) {
    const Program program = over_workers(
        [schedule](Worker& worker) {
          const Pipeline pipeline(
              worker,
              {RemoteModule<Block>(worker, "stage0", 1), RemoteModule<Block>(worker, "stage1", 2)},
              {.schedule = schedule});
          try {
            (void)pipeline.step(std::vector<at::Tensor>(3, numbers({3, kStageWidth}, 1)), loss_of);
          } catch (const RpcError& error) {
            EXPECT_EQ(error.kind(), ErrorKind::peer_lost) << to_string(error.error());
            EXPECT_EQ(error.error().worker, "stage1") << to_string(error.error());
          }
        },
        2);
    for (const uint32_t victim : {0U, 2U}) {
      const uint64_t stride = every(std::size(kSchedules));
      uint64_t moment = static_cast<uint64_t>(schedule) % stride;
      for (; moment < 1000; moment += stride) {
        ClusterOptions options{.faults = FaultLevel::none};
        options.crash_points = {{WorkerId{victim}, moment}};
        const auto report = Cluster(Seed{1}, program, options).try_run();
        ASSERT_TRUE(report.ok) << victim << " at " << moment << ": " << to_text(*report.failure);
        if (!report.workers.at(victim).crashed) break;
      }
      EXPECT_LT(moment, 1000u);
    }
  }
}

// A step of four stages, which live at two workers by turns.
Program interleaved(PipelineSchedule schedule) {
  return over_workers(
      [schedule](Worker& worker) {
        std::vector<PipelineStage> stages;
        for (const int64_t stage : {0, 1, 2, 3})
          stages.emplace_back(
              RemoteModule<Block>(worker, "stage" + std::to_string(stage % 2), stage));
        try {
          const Pipeline pipeline(worker, stages, {.schedule = schedule});
          (void)pipeline.step(std::vector<at::Tensor>(3, numbers({3, kStageWidth}, 1)), loss_of);
        } catch (const RpcError& error) {
          // By the lost worker itself, or by another that waited for a turn there.
          const bool names_it = to_string(error.error()).find("stage0") != std::string::npos ||
                                to_string(error.error()).find("leader") != std::string::npos;
          EXPECT_TRUE(names_it) << to_string(error.error());
        }
      },
      2);
}

TEST(Pipeline, EndsWhereALeaderIsLostToOneOwnerAlone) {
  // Goal: turns whose leader is lost end, though another owner still holds what waits for them.
  // Method: of the leader's messages to one owner so many arrive, then they hear no more of each
  // other; for each number that the step has.
  for (const PipelineSchedule schedule : kSchedules) {
    const Program program = interleaved(schedule);
    bool is_lost = true;
    for (uint64_t beyond = 0; is_lost; ++beyond) {
      ASSERT_LT(beyond, 1000u);
      is_lost = false;
      std::optional<uint64_t> last;  // that arrives
      uint64_t sent = 0;
      Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
      const auto rule = cluster.network().rule([&](const net_fake::FrameView& frame) {
        const bool goes = frame.from == WorkerId{0} && frame.to == WorkerId{1};
        const bool comes = frame.from == WorkerId{1} && frame.to == WorkerId{0};
        if (goes) sent = std::max(sent, frame.number);
        is_lost |= goes && last && frame.number > *last;
        return is_lost && (goes || comes) ? net_fake::Action::cut() : net_fake::Action::pass();
      });
      ASSERT_TRUE(
          cluster.run_until([&] { return cluster.node("leader").census().pending_calls > 0; }));
      last = sent + beyond;
      const auto report = cluster.try_run();
      // Two workers that have lost each other, and a third neither, come to no common end: a main
      // fails then, but no wait is left.
      if (!report.ok)
        ASSERT_EQ(report.failure->oracle, "main") << beyond << ": " << to_text(*report.failure);
    }
  }
}

// Stages 0 and 1 take the input, 2 joins them.
void train_joined(Worker& worker, PipelineSchedule schedule, PipelineStage joint,
                  const RemoteModule<Block>& first, const RemoteModule<Block>& second) {
  const Pipeline pipeline(
      worker,
      {{first, {PipelineStage::kInput}}, {second, {PipelineStage::kInput}}, std::move(joint)},
      {.schedule = schedule});
  const PipelineStep step =
      pipeline.step(std::vector<at::Tensor>(5, numbers({3, kStageWidth}, 1)), loss_of);
  EXPECT_EQ(step.losses.size(), 5u);
  for (const AutogradContext& context : step.contexts) {
    const auto gradient = [&](const RemoteModule<Block>& module) {
      const RRef<at::Tensor> weight = module.remote_parameters().at(0);
      return context.rpc_sync(weight.owner().id, &gradient_of, weight);
    };
    EXPECT_FALSE(gradient(first).defined());
    EXPECT_TRUE(gradient(second).defined());
  }
}

TEST(Pipeline, AStageThatGetsNoGradientKeepsNobodyWaiting) {
  // Goal: the turns of a stage whose output is used without its gradient pass as those of others.
  // Method: a joint that cuts the graph of one input, with stages at one worker and at several.
  for (const PipelineSchedule schedule : kSchedules)
    for (const std::vector<std::string>& at :
         std::vector<std::vector<std::string>>{{"stage0", "stage1", "stage2"},
                                               {"stage0", "stage0", "stage1"},
                                               {"stage0", "stage1", "stage0"},
                                               {"stage0", "stage0", "stage0"}}) {
      const Program program = over_workers(
          [&](Worker& worker) {
            train_joined(worker, schedule, {RemoteModule<Cutting>(worker, at[2]), {0, 1}},
                         RemoteModule<Block>(worker, at[0], 1),
                         RemoteModule<Block>(worker, at[1], 2));
          },
          3);
      EXPECT_TRUE(sim::holds_for_seeds(tries(2), [&](Seed seed) {
        Cluster(seed, program, ClusterOptions{.faults = FaultLevel::mild}).run();
      })) << ::testing::PrintToString(at);
    }
}

TEST(Pipeline, AStageMayCallOthersAndDropTheirResults) {
  // Goal: a send function that gets no gradient, which is known only late in the pass, keeps no
  // stage of a chain waiting for ever. Method: stages that send their input in a call of their own.
  for (const PipelineSchedule schedule : kSchedules) {
    const Program program = over_workers(
        [schedule](Worker& worker) {
          const Pipeline pipeline(
              worker,
              {RemoteModule<Block>(worker, "stage0", 1), RemoteModule<Chatty>(worker, "stage1", 2),
               RemoteModule<Block>(worker, "stage2", 3)},
              {.schedule = schedule});
          EXPECT_EQ(pipeline.step(std::vector<at::Tensor>(6, numbers({3, kStageWidth}, 1)), loss_of)
                        .losses.size(),
                    6u);
        },
        3);
    EXPECT_TRUE(sim::holds_for_seeds(tries(2), [&](Seed seed) {
      Cluster(seed, program, ClusterOptions{.faults = FaultLevel::mild}).run();
    }));
  }
}

}  // namespace
}  // namespace rehearsal::testing
