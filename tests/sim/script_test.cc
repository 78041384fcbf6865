#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "core/api/worker.h"
#include "core/functions/script_library.h"
#include "sim/cluster.h"

namespace rehearsal::sim {
namespace {

constexpr const char* kSource = R"(
def layer(x, w, scale: float = 1.0):
    return torch.relu(torch.matmul(x, w)) * scale
def noisy(x):
    return x + torch.rand_like(x)
)";

FunctionRegistry script_functions() {
  FunctionRegistry registry;
  registry.script("net", kSource);
  return registry;
}

// The values that the main saw, for comparing runs.
struct Seen {
  at::Tensor gradient;
  at::Tensor noise;
  std::string events;
};

void train(Worker& worker, Seen& seen) {
  const AutogradContext context = worker.autograd_context();
  const at::Tensor w = at::full({3, 2}, 0.5).set_requires_grad(true);
  const at::Tensor x = at::ones({4, 3});
  at::Tensor y = context.rpc_sync<at::Tensor>("ps", "script::net.layer", x, w, kwarg("scale", 2));
  y = context.rpc_async<at::Tensor>("ps", "script::net.layer", y, w.slice(0, 0, 2)).wait();
  context.backward({y.sum()});
  seen.gradient = context.get_gradients().find(w);
  seen.noise = worker.rpc_sync<at::Tensor>("ps", "script::net.noisy", x);
}

// Goal: a run of scripts is a function of the seed. Method: several runs of one program in this
// process, so that the scripts have run before.
TEST(Scripts, RunsOfOneSeedAreEqualEventByEvent) {
  Seen seen;
  Program program(script_functions());
  program.worker("ps");
  program.worker("trainer", [&seen](Worker& worker) { train(worker, seen); });
  const auto run = [&](uint64_t seed) {
    std::ostringstream out;
    Cluster cluster(Seed{seed}, program, {.faults = FaultLevel::hostile, .event_lines = &out});
    cluster.run();
    seen.events = out.str();
    return seen;
  };
  const Seen first = run(5);
  for (int again = 0; again < 3; ++again) {
    const Seen later = run(5);
    EXPECT_EQ(later.events, first.events);
    EXPECT_TRUE(at::equal(later.gradient, first.gradient));
    EXPECT_TRUE(at::equal(later.noise, first.noise));
  }
  EXPECT_FALSE(at::equal(run(6).noise, first.noise));
}

TEST(Scripts, GradientsFlowThroughThem) {
  // Goal: the same as LibTorch alone computes. Method: the program of one process.
  Seen seen;
  Program program(script_functions());
  program.worker("ps");
  program.worker("trainer", [&seen](Worker& worker) { train(worker, seen); });
  Cluster cluster(Seed{1}, program);
  cluster.run();
  const at::Tensor w = at::full({3, 2}, 0.5).set_requires_grad(true);
  at::Tensor y = at::relu(at::matmul(at::ones({4, 3}), w)) * 2;
  y = at::relu(at::matmul(y, w.slice(0, 0, 2)));
  y.sum().backward();
  EXPECT_TRUE(at::equal(seen.gradient, w.grad()));
}

}  // namespace
}  // namespace rehearsal::sim
