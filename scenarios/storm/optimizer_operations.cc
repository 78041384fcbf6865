#include <ATen/Functions.h>
#include <torch/optim/sgd.h>

#include "scenarios/storm/actor.h"
#include "scenarios/storm/training.h"

// An actor's operations with distributed optimizers.
namespace rehearsal::storm {

void Actor::train(Dice& dice) {
  if (dice.happens(10)) return train_with_what_cannot_be_made(dice);
  Training training(worker_, dice);
  for (uint64_t rounds = 1 + dice.draw(4); rounds > 0; --rounds)
    if (!training.round()) return;
  if (!training.hurries()) digest_ = mix(digest_, training.digest());
  training.end(/*looks=*/!recordable_);
}

// The first step tells that the constructor threw at the owner.
void Actor::train_with_what_cannot_be_made(Dice& dice) {
  const WorkerId owner = anybody(dice);
  const std::vector<RRef<at::Tensor>> parameters{
      worker_.remote(owner, &drawn_parameter, dice.word())};
  const DistributedOptimizer optimizer(worker_, parameters, torch::optim::SGDOptions(-1));
  const AutogradContext context = worker_.autograd_context();
  const at::Tensor product =
      context.rpc_sync(owner, &times_parameter, somewhere(at::ones({3})), parameters.front());
  context.backward({product.sum()});
  try {
    optimizer.step(context);
  } catch (const RpcError& error) {
    if (error.kind() != ErrorKind::remote_exception) throw;
    if (error.error().text.find("learning rate") == std::string::npos)
      throw WrongResult("an optimizer that cannot be made told '" + error.error().text + "'");
    return;
  }
  throw WrongResult("an optimizer that cannot be made stepped");
}

}  // namespace rehearsal::storm
