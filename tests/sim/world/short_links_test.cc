// Goal: a program holds although every link is cut again and again behind a few frames. Method: 40
// small calls at once and a few large ones, rules that cut as long as the run lasts, 20 seeds each.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "core/api/worker.h"
#include "sim/cluster.h"
#include "tests/sim/adding_program.h"

namespace rehearsal::sim {
namespace {

int64_t size_of(const at::Tensor& tensor) { return tensor.numel(); }

Program many_calls() {
  FunctionRegistry registry;
  registry.function("add", &add).function("size_of", &size_of);
  Program program(registry);
  program.worker("ps").worker("trainer", [](Worker& worker) {
    std::vector<Future<int64_t>> calls;
    for (int64_t i = 0; i < 40; ++i) calls.push_back(worker.rpc_async("ps", &add, i, int64_t{1}));
    for (int64_t i = 1; i <= 3; ++i)
      calls.push_back(worker.rpc_async("ps", &size_of, at::zeros({20'000 + i})));
    for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(calls[static_cast<size_t>(i)].wait(), i + 1);
    for (int64_t i = 1; i <= 3; ++i)
      EXPECT_EQ(calls[static_cast<size_t>(39 + i)].wait(), 20'000 + i);
  });
  return program;
}

void expect_to_hold(const std::function<net_fake::Rule()>& make_rule, const std::string& what) {
  const Program program = many_calls();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Cluster cluster(Seed{seed}, program, {.faults = FaultLevel::none});
    const auto guard = cluster.network().rule(make_rule());
    const RunReport& report = cluster.try_run();
    EXPECT_TRUE(report.ok) << what << ", seed " << seed << "\n" << describe_failure(report);
  }
}

TEST(ShortLinks, AConnectionThatIsCutBehindOneFrameOfAWayOrAFewBringsSomethingForward) {
  for (const uint64_t frames : {1, 2, 3, 5, 10, 20})
    expect_to_hold([frames] { return net_fake::cut_after_frames(frames); },
                   "cut behind " + std::to_string(frames));
}

TEST(ShortLinks, SoDoesOneThatIsCutAtEveryFifthFrameOfTheNetwork) {
  for (const uint64_t frames : {5, 10, 20})
    expect_to_hold(
        [frames] {
          return [frames, sent = uint64_t{0}](const net_fake::FrameView&) mutable {
            return ++sent % frames == 0 ? net_fake::Action::cut() : net_fake::Action::pass();
          };
        },
        "cut at every " + std::to_string(frames));
}

TEST(ShortLinks, AndLargeMessagesPassConnectionsThatCarryOne) {
  // Each of the three tensors has 80 KB: a connection carries one and some small messages.
  expect_to_hold([] { return net_fake::cut_after_bytes(100'000); }, "cut behind 100,000 bytes");
}

}  // namespace
}  // namespace rehearsal::sim
