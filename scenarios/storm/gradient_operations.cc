#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <chrono>

#include "core/api/rref.h"
#include "scenarios/storm/actor.h"

// An actor's operations with autograd contexts.
namespace rehearsal::storm {
namespace {

// x · factor^(hops + 1), by one of three ways.
at::Tensor far_scaled(const AutogradContext& context, WorkerId to, const at::Tensor& x,
                      double factor, const Journey& way) {
  switch (way.word % 4) {
    case 0:
      return context.rpc_sync(to, &scale_asynchronously, x, factor, way);
    case 1:
      // The other worker's result is not used: its gradient is undefined.
      if (way.hops == 0) return context.rpc_sync(to, &scale_twice, x, factor, way).front();
      [[fallthrough]];
    default:
      return context.rpc_sync(to, &scale, x, factor, way);
  }
}

}  // namespace

Actor::Loss Actor::far_loss(const AutogradContext& context, Dice& dice, uint64_t calls_max) {
  Loss loss{.x = at::ones({3}).set_requires_grad(true), .sum = {}};
  for (uint64_t left = 1 + dice.draw(calls_max); left > 0; --left) {
    const WorkerId to = anybody(dice);
    const auto factor = static_cast<double>(1 + dice.draw(3));
    const Journey way = journey(dice, 2);
    const at::Tensor scaled = far_scaled(context, to, loss.x, factor, way);
    loss.sum = loss.sum.defined() ? loss.sum + scaled.sum() : scaled.sum();
    double product = 1;
    for (int64_t hop = 0; hop <= way.hops; ++hop) product *= factor;
    loss.expected += product;
  }
  return loss;
}

void Actor::expect_gradient(const AutogradContext& context, const Loss& loss) {
  const at::Tensor gradient = context.get_gradients().find(loss.x);
  if (!gradient.defined()) throw WrongResult("a tensor that was used got no gradient");
  if (!gradient.equal(at::full({3}, loss.expected)))
    throw WrongResult("a gradient is " + std::to_string(gradient[0].item<double>()) + ", not " +
                      std::to_string(loss.expected));
  expect("a gradient", static_cast<int64_t>(loss.expected), gradient[0].item<int64_t>());
}

void Actor::propagate(Dice& dice) {
  const AutogradContext context = worker_.autograd_context();
  const Loss loss = far_loss(context, dice, 2);
  context.backward({loss.sum});
  expect_gradient(context, loss);
}

// A pass that may fail for want of time adds nothing, and disturbs not the one that follows.
void Actor::propagate_in_time(Dice& dice) {
  const AutogradContext context = worker_.autograd_context();
  const Loss loss = far_loss(context, dice, 4);
  const auto patience = std::chrono::microseconds(1 + dice.draw(uint64_t{1} << dice.draw(16)));
  try {
    context.backward({loss.sum}, /*retain_graph=*/true, patience);
  } catch (const RpcError& error) {
    if (error.kind() != ErrorKind::timeout) throw;
    // A worker that heard nothing of the failure is still in the pass at the shutdown.
    if (dice.happens(50)) return kept_.push_back(context);
    context.backward({loss.sum});
  }
  expect_gradient(context, loss);
}

// A result that nothing depends on is an error that says so, at once.
void Actor::propagate_in_part(Dice& dice) {
  const AutogradContext context = worker_.autograd_context();
  const Loss loss = far_loss(context, dice, 1);
  static_cast<void>(context.rpc_sync(anybody(dice), &scale, loss.x, 2.0, journey(dice, 1)));
  try {
    context.backward({loss.sum});
  } catch (const RpcError& error) {
    if (error.error().text.find("no gradient came back") == std::string::npos) throw;
    return;
  }
  throw WrongResult("a pass succeeded although a result was not used");
}

// The gradients are at workers that may have been called by others only. All have them once
// backward returns.
void Actor::propagate_to_layers(Dice& dice) {
  const double first_weight = static_cast<double>(1 + dice.draw(3));
  const double second_weight = static_cast<double>(1 + dice.draw(3));
  const auto first = worker_.remote<Layer>(anybody(dice), first_weight);
  const auto second = worker_.remote<Layer>(anybody(dice), second_weight);
  const AutogradContext context = worker_.autograd_context();
  const at::Tensor out =
      context.rpc_sync(first, &Layer::forward, at::ones({3}), std::vector<RRef<Layer>>{second});
  context.backward({out.sum()});
  const auto expect_there = [&](const RRef<Layer>& layer, double expected) {
    const at::Tensor gradient = context.rpc_sync(layer, &Layer::gradient);
    if (!gradient.defined()) throw WrongResult("a layer has no gradient though backward returned");
    expect("a layer's gradient", static_cast<int64_t>(3 * expected),
           gradient.sum().item<int64_t>());
  };
  expect_there(second, first_weight);
  expect_there(first, second_weight);
  if (dice.happens(50)) kept_.push_back(context);
}

// Calls without anything to differentiate, and one that is on its way when the context ends.
void Actor::record_little(Dice& dice) {
  const AutogradContext context = worker_.autograd_context();
  const Journey way = journey(dice, 2);
  expect("a recorded journey", expected_travel(way, workers_),
         context.rpc_sync(anybody(dice), &travel, way));
  const auto size = static_cast<int64_t>(16 * 1024 + dice.draw(16 * 1024));
  static_cast<void>(context.rpc_async(anybody(dice), &sum_of, at::ones({size})));
}

}  // namespace rehearsal::storm
