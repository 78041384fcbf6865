// Goal: contexts that have been released leave nothing, however many there were. Method: two
// workers over loopback; what this process holds after the first of them and after all.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "core/api/autograd_context.h"
#include "core/api/worker.h"
#include "tests/endurance/how_long.h"
#include "tests/endurance/process_meter.h"
#include "tests/real_net/support/loopback_group.h"

namespace rehearsal::endurance {
namespace {

constexpr int64_t kWarmUpContexts = 2'000;
constexpr int64_t kContextsForASecond = 500;
// A worker remembers which execution made which node, up to 262,144 of each thread: 50 bytes for
// each execution, of which a context has up to four. A context that stayed would be some kilobytes.
constexpr uint64_t kMakersOfContext = 200;

at::Tensor twice(const at::Tensor& x) { return x * 2; }
at::Tensor twice_at(CallContext& call, const std::string& to, const at::Tensor& x) {
  return call.rpc_sync(to, &twice, x);
}

// One of each kind: with a pass, with two, with a result that is not used, with none at all.
void use_context(Worker& worker, int64_t number) {
  const at::Tensor x = at::ones({16}).requires_grad_();
  const AutogradContext context = worker.autograd_context();
  const at::Tensor far = context.rpc_sync("other", &twice_at, worker.name(), x);
  if (number % 4 == 3) return;
  if (number % 4 == 2) (void)context.rpc_sync("other", &twice, far);
  context.backward({far.sum()}, /*retain_graph=*/number % 4 == 1);
  if (number % 4 == 1) context.backward({far.sum()});
  const double each = number % 4 == 1 ? 4 : 2;
  ASSERT_EQ(context.get_gradients().find(x).sum().item<double>(), 16 * each);
}

TEST(Contexts, LeaveNothing) {
  const int64_t contexts = kWarmUpContexts + kContextsForASecond * how_long().count();
  Holdings before;
  Holdings after;
  FunctionRegistry registry;
  registry.function("twice", &twice).function("twice_at", &twice_at);
  Program program(std::move(registry));
  program.worker("main", [&](Worker& worker) {
    for (int64_t number = 0; number < contexts; ++number) {
      if (number == kWarmUpContexts) before = Holdings::now();
      ASSERT_NO_FATAL_FAILURE(use_context(worker, number));
    }
    after = Holdings::now();
  });
  program.worker("other");
  for (const Status& end : real::LoopbackGroup(program, {}).run())
    EXPECT_TRUE(end.ok()) << to_string(end.error());
  const std::string both =
      to_string(before) + "; " + std::to_string(contexts) + " contexts later " + to_string(after);
  const auto counted = static_cast<uint64_t>(contexts - kWarmUpContexts);
  EXPECT_LE(after.allocated_bytes,
            before.allocated_bytes + kAllocatedSlack + kMakersOfContext * counted)
      << both;
  EXPECT_EQ(after.descriptors, before.descriptors) << both;
  std::printf("%s\n", both.c_str());
}

}  // namespace
}  // namespace rehearsal::endurance
