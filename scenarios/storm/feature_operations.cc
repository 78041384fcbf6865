#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <chrono>

#include "core/api/remote_module.h"
#include "scenarios/storm/actor.h"
#include "scenarios/storm/features.h"

// An actor's operations with batches, modules, exceptions, scripts and several futures at once.
namespace rehearsal::storm {

// Full batches and such as only their delay closes; one of the callers gives up.
void Actor::add_to_batches(Dice& dice) {
  auto doubler = worker_.remote<Doubler>(anybody(dice));
  std::vector<Future<int64_t>> doubled;
  const auto count = static_cast<int64_t>(1 + dice.draw(7));
  for (int64_t i = 0; i < count; ++i) doubled.push_back(doubler.rpc_async(&Doubler::twice, i));
  const auto given_up = static_cast<size_t>(dice.draw(2 * static_cast<uint64_t>(count)));
  if (given_up < doubled.size()) doubled[given_up].cancel();
  for (size_t i = 0; i < doubled.size(); ++i) {
    const Result<int64_t> result = doubled[i].result();
    if (i == given_up && !result.ok() && result.error().kind == ErrorKind::cancelled) continue;
    if (!result.ok()) throw RpcError(result.error());
    if (result.value() != 2 * static_cast<int64_t>(i))
      throw WrongResult("a batch gave a result to another's item");
  }
}

void Actor::use_module(Dice& dice) {
  const auto weight = static_cast<int64_t>(1 + dice.draw(9));
  std::string on = worker_.workers()[anybody(dice).value].name;
  const auto place =
      static_cast<int>(places_.draw(static_cast<uint64_t>(worker_.device_count()) + 1));
  if (place > 0) on += "/" + worker_.device(place - 1).str();
  const RemoteModule<Weight> module(worker_, on, static_cast<double>(weight));
  const at::Tensor x = at::ones({3}, at::TensorOptions().dtype(at::kDouble));
  const auto sum = [](const at::Tensor& y) { return y.sum().item<double>(); };
  const Future<at::Tensor> later = module.forward_async(x);
  expect("a module", 3 * weight, static_cast<int64_t>(sum(module.forward(x))));
  expect("a module asked in passing", 3 * weight, static_cast<int64_t>(sum(later.wait())));
  expect("a module's remote result", 3 * weight,
         static_cast<int64_t>(sum(module.forward_remote(x).to_here())));
  expect("a module's parameters", 1, static_cast<int64_t>(module.remote_parameters().size()));
}

void Actor::be_refused(Dice& dice) {
  const WorkerId to = anybody(dice);
  const Journey way = journey(dice, 2);
  try {
    if (dice.happens(50)) {
      (void)worker_.rpc_sync(to, &refuse, way);
    } else {
      Stream<int64_t> items = worker_.rpc_stream(to, &refuse_at_last, way);
      for (int64_t item = 0; item < way.value % 5; ++item)
        expect("an item before a refusal", item, items.next().value_or(-1));
      (void)items.next();
    }
  } catch (const Refusal& refusal) {
    const int64_t number = way.value + way.hops;
    expect("a refusal", number, refusal.number);
    return expect("a refusal's counter", number, refusal.counter.rpc_sync(&Counter::total));
  }
  throw WrongResult("what refuses returned");
}

void Actor::call_script(Dice& dice) {
  const WorkerId to = anybody(dice);
  const auto times = static_cast<int64_t>(1 + dice.draw(5));
  const auto blended =
      worker_.rpc_sync<at::Tensor>(to, "script::storm.blend", somewhere(at::ones({4})),
                                   kwarg("times", times), kwarg("share", 3));
  expect("a script", 12 * times, blended.sum().item<int64_t>());
}

// The first of several, and all of them with what they came to.
void Actor::take_first(Dice& dice) {
  std::vector<RRef<Counter>> counters;
  std::vector<Future<Unit>> created;
  for (uint64_t left = 2 + dice.draw(3); left > 0; --left) {
    counters.push_back(worker_.remote<Counter>(anybody(dice), int64_t{4}));
    created.push_back(counters.back().created());
  }
  const size_t first = when_any(created).wait();
  if (!created.at(first).ready()) throw WrongResult("the first of several is not complete");
  created.at(first).wait();
  std::vector<Future<int64_t>> totals;
  for (const RRef<Counter>& counter : counters)
    totals.push_back(counter.rpc_async(&Counter::total));
  totals.push_back(worker_.rpc_async(anybody(dice), &fail, std::string("among others")));
  const std::vector<Result<int64_t>> all = worker_.collect_all(std::move(totals)).wait();
  if (all.back().ok()) throw WrongResult("what fails did not, among others");
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    if (!all[i].ok()) throw RpcError(all[i].error());
    expect("a counter among others", 4, all[i].value());
  }
}

}  // namespace rehearsal::storm
