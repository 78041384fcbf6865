#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <chrono>
#include <cmath>

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

// x · weight of the first · weight of the second, by one of four ways.
at::Tensor through_layers(const AutogradContext& context, const RRef<Layer>& first,
                          const RRef<Layer>& second, const at::Tensor& x, uint64_t way) {
  const std::vector<RRef<Layer>> both{second};
  if (way == 0) return context.rpc_sync(first, &Layer::forward, x, both);
  const auto recording = context.record();
  switch (way) {
    case 1:
      return first.rpc_sync(&Layer::forward_asynchronously, x, second);
    case 2:
      return second.rpc_sync(&Layer::forward_fetched,
                             first.remote(&Layer::forward, x, std::vector<RRef<Layer>>{}));
    default:
      return first.rpc_async(&Layer::forward, x, std::vector<RRef<Layer>>{})
          .then([second](const at::Tensor& once) {
            return second.rpc_async(&Layer::forward, once, std::vector<RRef<Layer>>{});
          })
          .wait();
  }
}

// For a pass whose roots depend on all that was sent.
BackwardOptions any_mode(Dice& dice) {
  return {.mode = dice.happens(50) ? PassMode::fast : PassMode::smart};
}

}  // namespace

Actor::Loss Actor::far_loss(const AutogradContext& context, Dice& dice, uint64_t calls_max) {
  // Large ones go by a lane of their own.
  const int64_t size = dice.happens(10) ? 20'000 : 3;
  Loss loss{.x = somewhere(at::ones({size})).set_requires_grad(true), .sum = {}};
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
  // Memory that the pass has let go of is given out again before its gradients are taken.
  if (worker_.device_count() > 0) (void)(loss.x.detach() * 1);
  const at::Tensor gradient = context.get_gradients().find(loss.x);
  if (!gradient.defined()) throw WrongResult("a tensor that was used got no gradient");
  if (!gradient.equal(at::full_like(gradient, loss.expected)))
    throw WrongResult("a gradient is " + std::to_string(gradient[0].item<double>()) + ", not " +
                      std::to_string(loss.expected));
  expect("a gradient", static_cast<int64_t>(loss.expected), gradient[0].item<int64_t>());
}

void Actor::propagate(Dice& dice) {
  const AutogradContext context = worker_.autograd_context();
  const Loss loss = far_loss(context, dice, 2);
  context.backward({loss.sum}, any_mode(dice));
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

// Results that nothing depends on: FAST names one of them, SMART leaves them out.
void Actor::propagate_in_part(Dice& dice) {
  if (dice.happens(20)) return propagate_beside(dice);
  const AutogradContext context = worker_.autograd_context();
  Loss loss = far_loss(context, dice, 1);
  const bool fast = dice.happens(30);
  if (!fast && dice.happens(70)) add_branches(context, dice, loss);
  static_cast<void>(context.rpc_sync(anybody(dice), &scale, loss.x, 2.0, journey(dice, 1)));
  if (!fast) {
    context.backward({loss.sum});
    return expect_gradient(context, loss);
  }
  try {
    context.backward({loss.sum}, {.mode = PassMode::fast});
  } catch (const RpcError& error) {
    if (error.error().text.find("no gradient came back") == std::string::npos) throw;
    return;
  }
  throw WrongResult("a pass succeeded although a result was not used");
}

// A result from elsewhere goes two ways, of which one ends nowhere: the workers before it cannot
// know by themselves whether more gradients will come.
void Actor::add_branches(const AutogradContext& context, Dice& dice, Loss& loss) {
  const Journey there = journey(dice, 2);
  const Journey on = journey(dice, 2);
  const at::Tensor once = context.rpc_sync(anybody(dice), &scale, loss.x, 2.0, there);
  const WorkerId next = anybody(dice);
  const at::Tensor used = context.rpc_sync(next, &scale, once, 1.0, on);
  static_cast<void>(context.rpc_sync(dice.happens(50) ? next : anybody(dice), &scale, once * 3, 2.0,
                                     journey(dice, 2)));
  loss.sum = loss.sum + used.sum();
  loss.expected += std::pow(2.0, static_cast<double>(there.hops + 1));
}

// A pass that fails may be run again: a worker that it does not need may be lost at any moment.
void Actor::propagate_again(Dice& dice) {
  const auto layer = worker_.remote<Layer>(anybody(dice), 2.0);
  const WorkerId idle = anybody(dice);
  const AutogradContext context = worker_.autograd_context();
  const std::vector<RRef<Layer>> nothing;
  const at::Tensor out =
      context.rpc_sync(layer, &Layer::forward, somewhere(at::ones({3})), nothing);
  try {
    static_cast<void>(context.rpc_sync(
        idle, &scale, somewhere(at::ones({3})).set_requires_grad(true), 2.0, journey(dice, 2)));
  } catch (const RpcError& error) {
    if (error.kind() != ErrorKind::peer_lost && error.kind() != ErrorKind::fenced) throw;
  }
  try {
    context.backward({out.sum()}, /*retain_graph=*/true);
  } catch (const RpcError& error) {
    if (error.kind() != ErrorKind::peer_lost && error.kind() != ErrorKind::fenced) throw;
    context.backward({out.sum()}, /*retain_graph=*/true);
  }
  const at::Tensor gradient = context.rpc_sync(layer, &Layer::gradient);
  if (!gradient.defined()) throw WrongResult("a layer has no gradient though backward returned");
  expect("a layer's gradient", 3, gradient.sum().item<int64_t>());
}

// A call beside the context, or before it, is an error of the pass that names it.
void Actor::propagate_beside(Dice& dice) {
  const double weight = static_cast<double>(1 + dice.draw(3));
  const auto layer = worker_.remote<Layer>(anybody(dice), weight);
  const at::Tensor x = somewhere(at::ones({3})).set_requires_grad(true);
  const AutogradContext context = worker_.autograd_context();
  const RRef<at::Tensor> there = layer.remote(&Layer::forward, x, std::vector<RRef<Layer>>{});
  at::Tensor out;
  if (dice.happens(50)) {
    out = context.to_here(there);
  } else {
    const auto recording = context.record();
    out = layer.rpc_sync(&Layer::forward, there.with_timeout(Timeout::never()).to_here(),
                         std::vector<RRef<Layer>>{});
  }
  try {
    context.backward({out.sum()});
  } catch (const RpcError& error) {
    if (error.error().text.find("the arguments of 'Layer.forward'") == std::string::npos) throw;
    return;
  }
  throw WrongResult("a pass succeeded although a call was not recorded");
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
      through_layers(context, first, second, somewhere(at::ones({3})), dice.draw(4));
  context.backward({out.sum()}, any_mode(dice));
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
  static_cast<void>(context.rpc_async(anybody(dice), &sum_of, somewhere(at::ones({size}))));
}

}  // namespace rehearsal::storm
