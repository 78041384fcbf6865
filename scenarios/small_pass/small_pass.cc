#include "scenarios/small_pass/small_pass.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/api/autograd_context.h"
#include "core/api/worker.h"

namespace rehearsal {
namespace {

constexpr WorkerId kFirst{1};
constexpr WorkerId kSecond{2};

at::Tensor twice(const at::Tensor& x) { return x * 2; }

bool is_lost_peer(const RpcError& error) {
  return error.kind() == ErrorKind::peer_lost || error.kind() == ErrorKind::fenced;
}

// None if a worker was lost meanwhile.
template <class Body>
auto unless_lost(Body body) -> std::optional<decltype(body())> {
  try {
    return body();
  } catch (const RpcError& error) {
    if (!is_lost_peer(error)) throw;
    return std::nullopt;
  }
}

struct PassStory {
  explicit PassStory(const Options& options)
      : is_diamond(options.integer("diamond") != 0),
        has_unused(options.integer("unused") != 0),
        runs_again(options.integer("again") != 0) {}
  bool is_diamond;  // what the first worker gives is used here, too
  bool has_unused;  // and goes to the second once more, for nothing
  bool runs_again;  // a pass that lost a worker
};

// x → first → second, and back: x · 4, and x · 2 beside it in a diamond.
void lead(Worker& worker, const PassStory& story) {
  const at::Tensor x = at::ones({}).requires_grad_();
  const AutogradContext context = worker.autograd_context();
  const auto once = unless_lost([&] { return context.rpc_sync(kFirst, &twice, x); });
  if (!once) return;
  if (story.has_unused) unless_lost([&] { return context.rpc_sync(kSecond, &twice, *once); });
  const auto far = unless_lost([&] { return context.rpc_sync(kSecond, &twice, *once); });
  if (!far) return;
  const at::Tensor loss = story.is_diamond ? *far + *once : *far;
  bool is_done = false;
  for (int tries = story.runs_again ? 2 : 1; tries > 0 && !is_done; --tries)
    is_done = unless_lost([&] {
                context.backward({loss}, /*retain_graph=*/true);
                return true;
              }).has_value();
  const at::Tensor gradient = context.get_gradients().find(x);
  const float expected = story.is_diamond ? 6 : 4;
  if (is_done && (!gradient.defined() || gradient.item<float>() != expected))
    throw std::logic_error("the gradient is wrong");
  if (!is_done && gradient.defined()) throw std::logic_error("a failed pass left a gradient");
}

Program small_pass_program(const ScenarioRun& run) {
  FunctionRegistry registry;
  registry.function("twice", &twice);
  Program program(std::move(registry));
  program.worker("leader",
                 [story = PassStory(run.options)](Worker& worker) { lead(worker, story); });
  program.worker("first").worker("second");
  return program;
}

// Whether the pass has this in it. A hunt has some with it and some without.
OptionTable::Integer part(std::string meaning) {
  return {.full = 1,
          .tiny = 1,
          .min = 0,
          .max = 1,
          .meaning = std::move(meaning),
          .drawn_min = 0,
          .drawn_max = 1};
}

}  // namespace

Scenario small_pass_scenario() {
  Scenario scenario;
  scenario.name = "small_pass";
  scenario.summary = "one backward pass that needs a part of its graph; small enough for explore";
  scenario.options.integer("diamond", part("1: what the first worker gives is used twice"))
      .integer("unused", part("1: it is used a third time, for nothing"))
      .integer("again", part("1: a pass that has lost a worker is run again"))
      .integer("faults", {.full = 1,
                          .tiny = 1,
                          .min = 0,
                          .max = 2,
                          .meaning = "cuts, crashes and false suspicions in a run of explore"});
  scenario.program = small_pass_program;
  return scenario;
}

}  // namespace rehearsal
