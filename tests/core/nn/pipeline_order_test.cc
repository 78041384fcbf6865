#include "core/nn/pipeline_order.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace rehearsal {
namespace {

PipelineShape chain(uint32_t stages, uint32_t workers, uint32_t micro_batches) {
  PipelineShape shape{.owners = {}, .sources = {}, .micro_batches = micro_batches};
  for (uint32_t stage = 0; stage < stages; ++stage) {
    shape.owners.push_back(WorkerId{stage % workers});
    shape.sources.emplace_back();
    if (stage > 0) shape.sources.back() = {stage - 1};
  }
  return shape;
}

std::string text_of(const std::vector<PipelineAction>& order) {
  std::string text;
  for (const PipelineAction& action : order)
    text += " " + letter_of(action.pass) + std::to_string(action.micro_batch);
  return text;
}

TEST(PipelineOrder, FillDrainRunsAllForwardPassesFirst) {
  auto orders = pipeline_orders(chain(2, 2, 3), PipelineSchedule::fill_drain);
  EXPECT_EQ(text_of(orders[WorkerId{0}]), " F0 F1 F2 B0 B1 B2");
  EXPECT_EQ(text_of(orders[WorkerId{1}]), " F0 F1 F2 B0 B1 B2");
}

TEST(PipelineOrder, OneForwardOneBackwardIsThatOfThePaper) {
  auto orders = pipeline_orders(chain(4, 4, 6), PipelineSchedule::one_f_one_b);
  EXPECT_EQ(text_of(orders[WorkerId{0}]), " F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5");
  EXPECT_EQ(text_of(orders[WorkerId{1}]), " F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5");
  EXPECT_EQ(text_of(orders[WorkerId{2}]), " F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5");
  EXPECT_EQ(text_of(orders[WorkerId{3}]), " F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5");
}

TEST(PipelineOrder, ZeroBubbleWorksOnWeightsWhileOthersWait) {
  auto orders = pipeline_orders(chain(4, 4, 6), PipelineSchedule::zero_bubble);
  EXPECT_EQ(text_of(orders[WorkerId{0}]), " F0 F1 F2 F3 B0 W0 F4 B1 W1 F5 B2 W2 B3 W3 B4 W4 B5 W5");
  EXPECT_EQ(text_of(orders[WorkerId{1}]), " F0 F1 F2 B0 F3 B1 W0 F4 B2 W1 F5 B3 W2 B4 W3 B5 W4 W5");
  EXPECT_EQ(text_of(orders[WorkerId{2}]), " F0 F1 B0 F2 B1 F3 B2 W0 F4 B3 W1 F5 B4 W2 B5 W3 W4 W5");
  EXPECT_EQ(text_of(orders[WorkerId{3}]), " F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 W3 W4 W5");
}

TEST(PipelineOrder, AnyShapeCanBeRunInItsOrders) {
  // Goal: no worker waits for ever, and none forgets an action. Method: shapes with shared workers
  // and skip connections, run by the orders alone.
  for (const PipelineSchedule schedule :
       {PipelineSchedule::fill_drain, PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble})
    for (uint32_t stages = 1; stages <= 6; ++stages)
      for (uint32_t workers = 1; workers <= stages; ++workers)
        for (const uint32_t micro_batches : {1U, 2U, 5U, 6U, 12U}) {
          PipelineShape shape = chain(stages, workers, micro_batches);
          for (uint32_t stage = 2; stage < stages; ++stage) shape.sources[stage].push_back(0);
          auto orders = pipeline_orders(shape, schedule);
          std::set<PipelineAction> done;
          const auto is_ready = [&](const PipelineAction& action) {
            const auto [pass, stage, micro_batch] = action;
            if (pass == PipelinePass::weights)
              return done.contains({PipelinePass::backward, stage, micro_batch});
            if (pass == PipelinePass::backward) {
              if (!done.contains({PipelinePass::forward, stage, micro_batch})) return false;
              for (uint32_t user = stage + 1; user < stages; ++user)
                for (const size_t source : shape.sources[user])
                  if (source == stage &&
                      !done.contains({PipelinePass::backward, user, micro_batch}))
                    return false;
              return true;
            }
            for (const size_t source : shape.sources[stage])
              if (!done.contains(
                      {PipelinePass::forward, static_cast<uint32_t>(source), micro_batch}))
                return false;
            return true;
          };
          for (bool moves = true; moves;) {
            moves = false;
            for (auto& [worker, order] : orders)
              while (!order.empty() && is_ready(order.front())) {
                done.insert(order.front());
                order.erase(order.begin());
                moves = true;
              }
          }
          const size_t passes = schedule == PipelineSchedule::zero_bubble ? 3 : 2;
          EXPECT_EQ(done.size(), passes * stages * micro_batches)
              << stages << " stages, " << workers << " workers, " << micro_batches;
        }
}

}  // namespace
}  // namespace rehearsal
