// A context in which so much was sent that the marks of a pass would be too many for one message.
#include <gtest/gtest.h>

#include <vector>

#include "core/base/trace.h"
#include "core/wire/message.h"
#include "sim/cluster.h"
#include "tests/core/autograd/remote_model.h"

namespace rehearsal::testing {
namespace {

constexpr int64_t kParts = 40'000;

std::vector<at::Tensor> in_parts(const at::Tensor& whole) { return whole.unbind(); }

at::Tensor twice_joined(const at::Tensor& input) { return input * 2; }

// The trainer waits for gradients of `joined` that never come, and marks all of its parts.
void train_on_many_parts(Worker& worker) {
  const at::Tensor whole = at::ones({kParts}).requires_grad_();
  const AutogradContext context = worker.autograd_context();
  std::vector<at::Tensor> parts;
  for (int i = 0; i < 3; ++i)
    for (at::Tensor& part : context.rpc_sync("a", &in_parts, whole))
      parts.push_back(std::move(part));
  const at::Tensor joined = at::stack(parts);
  const at::Tensor used = context.rpc_sync("b", &twice_joined, joined);
  (void)context.rpc_sync("a", &twice_joined, joined);
  context.backward({used.sum()});
  EXPECT_TRUE(equal_bits(context.get_gradients().find(whole), at::full({kParts}, 6.F)));
}

struct CountsMarks final : Trace {
  void on_event(const Event& event) override {
    const bool is_marks = event.message_type == Message{Marks{}}.type();
    if (event.kind == EventKind::frame_sent && event.worker == WorkerId{0} && is_marks) ++count;
  }
  uint64_t count = 0;
};

TEST(ManyMarks, LeaveInSeveralMessages) {
  // Goal: the gradients are those of one process, however much a pass has to mark. Method: three
  // messages of 40,000 tensors each, all of which are marked: the third in a message of its own.
  FunctionRegistry registry;
  registry.function("in_parts", &in_parts).function("twice_joined", &twice_joined);
  Program program(registry);
  program.worker("trainer", train_on_many_parts).worker("a").worker("b");
  CountsMarks marks;
  sim::ClusterOptions options{.faults = sim::FaultLevel::none};
  options.traces = {&marks};
  sim::Cluster(Seed{1}, program, options).run();
  EXPECT_EQ(marks.count, 2u);
}

}  // namespace
}  // namespace rehearsal::testing
