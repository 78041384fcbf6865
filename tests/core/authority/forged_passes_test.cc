// One of three workers says of a backward pass what it may not, while another one's walk is under
// way: the pass goes on, or fails and names the liar; nobody's process ends.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/api/autograd_context.h"
#include "core/api/call_context.h"
#include "core/api/program.h"
#include "core/api/worker.h"
#include "core/fibers/thread_state.h"
#include "net_fake/witness.h"
#include "sim/world/cluster_parts.h"
#include "tests/core/authority/liar_group.h"

namespace rehearsal {
namespace {

using std::chrono::seconds;

constexpr WorkerId kStarter{0};
constexpr WorkerId kWalker{1};
constexpr WorkerId kFalse{2};

// So long the walk at b parks; it has done so by this instant. c lies then, and, where it needs an
// answer, once more when that has come.
constexpr Duration kParks = seconds(10);
constexpr Instant kParked = Instant{} + seconds(5);
constexpr Instant kAnswered = Instant{} + seconds(6);
constexpr Duration kMainLasts = seconds(30);

struct PassStage {
  bool by_way_of_c = false;
  const Worker* walker = nullptr;
  int parked = 0;
  // Of a's pass, once it has ended.
  MaybeError error;
  std::optional<at::Tensor> gradient;
};
PassStage* pass_stage = nullptr;

// Twice x; in a pass it parks first.
at::Tensor double_and_park(const at::Tensor& x) {
  at::Tensor y = x * 2;
  y.register_hook([](const at::Tensor& gradient) {
    ++pass_stage->parked;
    pass_stage->walker->sleep(kParks);
    return gradient;
  });
  return y;
}
at::Tensor double_elsewhere(CallContext& call, const at::Tensor& x) {
  return call.rpc_sync("b", &double_and_park, x);
}
int64_t take_part(int64_t number) { return number; }
// It requires gradients, whoever asks.
at::Tensor own_weight(int64_t number) {
  return at::ones({2}).requires_grad_() * static_cast<double>(number);
}

FunctionRegistry pass_functions() {
  FunctionRegistry registry;
  registry.function("double_and_park", &double_and_park);
  registry.function("double_elsewhere", &double_elsewhere);
  registry.function("own_weight", &own_weight).function("take_part", &take_part);
  return registry;
}

void run_a_pass(Worker& worker) {
  const at::Tensor x = at::ones({2}).requires_grad_();
  const AutogradContext context = worker.autograd_context();
  (void)context.rpc_sync("b", &take_part, 0);  // a hears of b itself how the pass goes.
  const at::Tensor y = pass_stage->by_way_of_c ? context.rpc_sync("c", &double_elsewhere, x)
                                               : context.rpc_sync("b", &double_and_park, x);
  try {
    context.backward({y.sum()});
    pass_stage->gradient = context.get_gradients().find(x);
  } catch (const RpcError& thrown) {
    pass_stage->error = thrown.error();
  }
  worker.sleep(kMainLasts);
}

Program pass_program() {
  Program program(pass_functions());
  program.worker("a", &run_a_pass);
  program.worker("b", [](Worker& worker) {
    pass_stage->walker = &worker;
    worker.sleep(kMainLasts);
  });
  program.worker("c", [](Worker& worker) { worker.sleep(kMainLasts); });
  return program;
}

// The last messages of some kinds, and how many have come from the false worker to the walker.
class Overheard final : public net_fake::Witness {
 public:
  void on_sent(sim::LifeId from, sim::LifeId to, const Frame& frame, uint64_t) override {
    if (frame.body == nullptr) return;
    const Message message = liar::message_of(*frame.body);
    if (std::holds_alternative<Gradients>(message.content) && to.worker == kWalker)
      gradients = frame.body;
    if (std::holds_alternative<Response>(message.content) && from.worker == kWalker)
      response = frame.body;
  }
  void on_arrived(sim::LifeId from, sim::LifeId to, const Frame& frame) override {
    if (frame.body != nullptr && from.worker == kFalse && to.worker == kWalker) ++arrived;
  }
  void on_broken(sim::LifeId, sim::LifeId, std::string_view) override {}
  void on_partition(const net_fake::Partition&) override {}
  void on_healed() override {}

  std::shared_ptr<const FrameBody> gradients;  // to b
  std::shared_ptr<const FrameBody> response;   // of b
  uint64_t arrived = 0;                        // at b, of c
};

class ForgedPasses : public ::testing::Test {
 protected:
  ForgedPasses() { pass_stage = &stage_; }
  ~ForgedPasses() override {
    parts_.reset();
    pass_stage = nullptr;
  }

  // Runs until the walk at b is parked, in a pass that a has started.
  void park(bool by_way_of_c) {
    stage_.by_way_of_c = by_way_of_c;
    parts_.emplace(Seed{1}, program_,
                   sim::ClusterOptions{.faults = sim::FaultLevel::none, .oracles = false});
    parts_->network().set_witness(&overheard_);
    parts_->begin();
    run_to(kParked);
    ASSERT_EQ(stage_.parked, 1);
    ASSERT_TRUE(overheard_.gradients);
    ASSERT_FALSE(stage_.error || stage_.gradient);
  }
  void run_to(Instant limit) {
    while (parts_->step(limit)) {
    }
  }
  void run_to_end() {
    while (parts_->step()) {
    }
    for (const WorkerId worker : {kStarter, kWalker})
      ASSERT_TRUE(parts_->life(worker).result()) << worker;
  }
  void expect_both_end_well() {
    for (const WorkerId worker : {kStarter, kWalker}) {
      const Status& result = *parts_->life(worker).result();
      EXPECT_TRUE(result.ok()) << to_string(result.error());
    }
  }
  [[nodiscard]] Gradients gradients_to_b() const {
    return std::get<Gradients>(liar::message_of(*overheard_.gradients).content);
  }
  void lie(WorkerId to, Message message) {
    sim::Life& liar = parts_->life(kFalse);
    liar.runtime().post([&] { liar.node().say(to, std::move(message)); });
  }
  [[nodiscard]] uint32_t number_of(const std::string& name) const {
    return program_.registry().position(name).value();
  }

  const fibers::DefaultThreadState state_;
  PassStage stage_;
  Overheard overheard_;
  const Program program_ = pass_program();
  std::optional<sim::ClusterParts> parts_;
};

TEST_F(ForgedPasses, WhoTakesNoPartFailsNoPass) {
  // c, which is not in the context, tells a and b that the pass has failed: it ends well.
  park(/*by_way_of_c=*/false);
  for (const WorkerId to : {kStarter, kWalker})
    lie(to, Message{PassFailed{.pass = gradients_to_b().pass,
                               .error = {.kind = ErrorKind::autograd, .text = "no"}}});
  run_to_end();
  EXPECT_FALSE(stage_.error) << to_string(*stage_.error);
  ASSERT_TRUE(stage_.gradient);
  EXPECT_TRUE(at::equal(*stage_.gradient, at::full({2}, 2.F)));
  expect_both_end_well();
}

TEST_F(ForgedPasses, ACommitWhileAWalkIsUnderWayFailsThePass) {
  // c, which takes part, tells b to keep gradients that b has not yet: the pass fails by its word.
  park(/*by_way_of_c=*/true);
  lie(kWalker, Message{PassFinish{gradients_to_b().pass, PassWave::commit}});
  run_to_end();
  EXPECT_FALSE(stage_.gradient);
  ASSERT_TRUE(stage_.error);
  EXPECT_EQ(stage_.error->kind, ErrorKind::protocol);
  EXPECT_EQ(stage_.error->worker, "c");
  EXPECT_NE(stage_.error->text.find("by its PassFinish.wave"), std::string::npos)
      << stage_.error->text;
  expect_both_end_well();
}

TEST_F(ForgedPasses, GradientsForWhatWasSentAfterTheWalkBeganFailThePass) {
  // Goal: a walk is given what it has planned, and nothing else. Method: while b's walk is parked c
  // calls b in the context, is given a tensor that requires gradients, and sends gradients of it in
  // the pass. c is paused until the pass has ended, or its own node would blame b for the answer.
  park(/*by_way_of_c=*/true);
  const Gradients true_ones = gradients_to_b();
  Call call{.id = CallId{{parts_->life(kFalse).view().incarnation, {7, 7}, 0}}};
  call.function = number_of("own_weight");
  call.context = ContextName{true_ones.pass.id.context, true_ones.pass.context_creator};
  ValueWriter(call.arguments).integer(3);
  lie(kWalker, Message{call});
  run_to(kAnswered);
  ASSERT_TRUE(overheard_.response);
  const Message answer = liar::message_of(*overheard_.response);
  ASSERT_EQ(std::get<Response>(answer.content).id, call.id);
  ASSERT_TRUE(std::get<Response>(answer.content).autograd);
  Gradients false_ones = true_ones;
  false_ones.message = std::get<Response>(answer.content).autograd->message;
  const uint64_t before = overheard_.arrived;
  lie(kWalker, Message{std::move(false_ones)});
  while (overheard_.arrived == before && parts_->step(kAnswered + seconds(1))) {
  }
  ASSERT_EQ(overheard_.arrived, before + 1);
  parts_->pause(kFalse, seconds(15));
  run_to_end();
  EXPECT_FALSE(stage_.gradient);
  ASSERT_TRUE(stage_.error);
  EXPECT_NE(stage_.error->text.find("said not to depend"), std::string::npos) << stage_.error->text;
}

}  // namespace
}  // namespace rehearsal
