#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <cmath>
#include <optional>

#include "scenarios/storm/actor.h"
#include "scenarios/storm/device_values.h"

// An actor's operations with tensors on devices: whoever uses one comes after what made it.
namespace rehearsal::storm {
namespace {

double scaled_by(double factor, const Journey& way) {
  return std::pow(factor, static_cast<double>(way.hops + 1));
}

// The second comes after the first.
void join(const c10::Stream& first, const c10::Stream& second) {
  c10::Event reached(first.device_type());
  reached.record(first);
  reached.block(second);
}

}  // namespace

void Actor::one_device_operation(Dice& dice) {
  using Operation = void (Actor::*)(Dice&);
  static constexpr Operation kOperations[] = {
      &Actor::change_in_place,       &Actor::lend_own_value,        &Actor::let_scale_later,
      &Actor::fetch_from_afar,       &Actor::add_to_device_batches, &Actor::add_to_pools,
      &Actor::bring_to_waiting,      &Actor::let_read_aside,        &Actor::double_in_pools,
      &Actor::propagate_beside_main, &Actor::continue_beside,       &Actor::gather};
  (this->*kOperations[dice.draw(std::size(kOperations))])(dice);
}

void Actor::expect_everywhere(const std::string& what, double expected, const at::Tensor& found) {
  const at::Tensor here = found.cpu();
  if (!here.equal(at::full_like(here, expected)))
    throw WrongResult(what + " is " + std::to_string(here[0].item<double>()) +
                      " at its beginning, not " + std::to_string(expected) + " everywhere");
  expect(what, static_cast<int64_t>(expected), here[0].item<int64_t>());
}

// Its methods run one after another, in the streams in which it was made.
void Actor::change_in_place(Dice& dice) {
  const auto start = static_cast<double>(dice.draw(1000));
  const auto cell = worker_.remote<Cell>(anybody(dice), start, dice.word());
  std::vector<Future<Unit>> added;
  std::vector<Future<at::Tensor>> around;
  for (uint64_t left = 1 + dice.draw(3); left > 0; --left) {
    added.push_back(cell.rpc_async(&Cell::add, 3.0));
    if (dice.happens(50))
      around.push_back(cell.rpc_async(&Cell::add_around, 1.0, journey(dice, 1)));
  }
  for (const auto& one : added) one.wait();
  for (const auto& one : around) static_cast<void>(one.wait() + 1);
  const auto expected =
      start + 3 * static_cast<double>(added.size()) + 2 * static_cast<double>(around.size());
  const bool fetches = dice.happens(50);
  expect_everywhere("a cell", expected,
                    fetches ? cell.remote(&Cell::get).to_here() : cell.rpc_sync(&Cell::get));
}

void Actor::lend_own_value(Dice& dice) {
  const auto start = static_cast<double>(dice.draw(1000));
  const auto cell = worker_.remote<Cell>(worker_.id(), start, dice.word());
  const Future<Unit> added = cell.rpc_async(&Cell::add, 1.0);
  at::Tensor lent;
  cell.with_local([&](Cell& value) {
    value.add(2.0);
    lent = value.get() * 1;
  });
  added.wait();
  const at::Tensor read = cell.local_value().get() * 1;
  expect_everywhere("one's own cell", start + 3, read);
  expect_everywhere("one's own cell at the end", start + 3, cell.rpc_sync(&Cell::get));
}

// The values of these references come by futures.
void Actor::let_scale_later(Dice& dice) {
  const Journey way = journey(dice, 2);
  const auto x = filled(worker_, places_.word(), 3);
  const RRef<at::Tensor> scaled = worker_.remote(
      anybody(dice), dice.happens(50) ? &scale_asynchronously : &scale_in_pool, x, 2.0, way);
  const double expected = 3 * scaled_by(2, way);
  if (dice.happens(50)) {
    const at::Tensor twice = worker_.rpc_sync(anybody(dice), &fetched_twice, scaled);
    expect_everywhere("what was scaled and doubled", 2 * expected, twice);
  }
  expect_everywhere("what was scaled later", expected, scaled.to_here() * 1);
}

void Actor::fetch_from_afar(Dice& dice) {
  const WorkerId owner = anybody(dice);
  const auto made = dice.happens(50) ? worker_.remote(owner, &made_there, 4.0, dice.word())
                                     : worker_.rref(filled(worker_, dice.word(), 4));
  const auto again = worker_.remote(anybody(dice), &fetched_twice, made);
  expect_everywhere("what was fetched from afar", 8, again.to_here() * 1);
  expect_everywhere("what others have fetched", 4, made.to_here());
}

// Its memory is given out again as soon as nobody refers to it.
void Actor::let_read_aside(Dice& dice) {
  const uint64_t place = places_.word();
  std::vector<Future<Unit>> read;
  for (uint64_t left = 1 + dice.draw(3); left > 0; --left) {
    const auto own = worker_.rref(filled(worker_, place, 6));
    read.push_back(worker_.rpc_async(worker_.id(), &read_aside, own));
  }
  for (const auto& one : read) one.wait();
  worker_.sleep(std::chrono::milliseconds(1));
  for (int i = 0; i < 4; ++i) (void)filled(worker_, place, 9);
}

void Actor::add_to_device_batches(Dice& dice) {
  const auto doubler = worker_.remote<DeviceDoubler>(anybody(dice), dice.word());
  std::vector<Future<at::Tensor>> doubled;
  for (uint64_t i = 0, count = 1 + dice.draw(7); i < count; ++i)
    doubled.push_back(doubler.rpc_async(&DeviceDoubler::twice,
                                        filled(worker_, places_.word(), static_cast<double>(i))));
  for (size_t i = 0; i < doubled.size(); ++i)
    expect_everywhere("an item of a batch", 2 * static_cast<double>(i), doubled[i].wait());
}

// Others add to it, too, and what its worker has lost counts no more.
void Actor::add_to_pools(Dice& dice) {
  std::vector<Future<at::Tensor>> sums;
  for (uint64_t left = 1 + dice.draw(4); left > 0; --left)
    sums.push_back(
        worker_.rpc_async(anybody(dice), &add_to_pool, filled(worker_, places_.word(), 1)));
  for (const auto& one : sums) {
    const at::Tensor sum = one.wait().cpu();
    if (sum[0].item<double>() < 1 || !sum.equal(sum[0].expand_as(sum)))
      throw WrongResult("a pool is not the sum of what was put in");
  }
}

void Actor::bring_to_waiting(Dice& dice) {
  const WorkerId owner = anybody(dice);
  const auto room = worker_.remote<WaitingRoom>(owner);
  const std::vector<Future<at::Tensor>> taken = {room.rpc_async(&WaitingRoom::take),
                                                 worker_.rpc_async(owner, &take_from, room)};
  room.rpc_async(&WaitingRoom::bring, filled(worker_, places_.word(), 5)).wait();
  for (const auto& one : taken) expect_everywhere("what was brought", 10, one.wait());
  // Not before: a creation goes on when its creator is lost, and nobody else would bring anything.
  const RRef<at::Tensor> kept = worker_.remote(owner, &take_from, room);
  expect_everywhere("what was brought for others", 20,
                    worker_.rpc_sync(anybody(dice), &fetched_twice, kept));
}

// Calls that others make, too, are in one batch with these.
void Actor::double_in_pools(Dice& dice) {
  const WorkerId to = anybody(dice);
  const bool own = dice.happens(30);
  std::vector<Future<at::Tensor>> doubled;
  for (uint64_t i = 0, count = 1 + dice.draw(6); i < count; ++i) {
    const at::Tensor item = filled(worker_, places_.word(), static_cast<double>(i));
    doubled.push_back(own ? worker_.state<Pool>().twice(item)
                          : worker_.rpc_async(to, &double_in_pool, item));
  }
  const RRef<at::Tensor> kept =
      worker_.remote(to, &double_in_pool, filled(worker_, places_.word(), 5));
  expect_everywhere("an item of a pool for others", 20,
                    worker_.rpc_sync(anybody(dice), &fetched_twice, kept));
  // Memory that the batch has let go of is given out again.
  for (int i = 0; i < 3; ++i) (void)filled(worker_, places_.word(), 9);
  for (size_t i = 0; i < doubled.size(); ++i)
    expect_everywhere("an item of a pool", 2 * static_cast<double>(i), doubled[i].wait());
}

// The loss, of this worker alone or not, is computed on another stream than that of the main, which
// has two passes made of it.
void Actor::propagate_beside_main(Dice& dice) {
  std::optional<AutogradContext> context = worker_.autograd_context();
  const auto place = static_cast<int>(dice.draw(static_cast<uint64_t>(worker_.device_count())));
  const c10::impl::VirtualGuardImpl kind(worker_.device(place).type());
  const c10::Stream own = kind.getStream(worker_.device(place));
  const c10::Stream beside = kind.getStreamFromGlobalPool(worker_.device(place));
  Loss loss{.x = at::ones({kFilled}).to(worker_.device(place)).set_requires_grad(true), .sum = {}};
  join(own, beside);
  {
    const c10::StreamGuard guard(beside);
    const Journey way = journey(dice, 1);
    const at::Tensor scaled = dice.happens(50)
                                  ? context->rpc_sync(anybody(dice), &scale, loss.x, 2.0, way)
                                  : loss.x * scaled_by(2, way);
    loss.sum = (scaled + scaled * loss.x).sum();
    loss.expected = 2 * 3 * scaled_by(2, way);  // of two passes
  }
  join(beside, own);
  for (const bool again : {true, false}) context->backward({loss.sum}, /*retain_graph=*/again);
  if (dice.happens(50)) {
    expect_gradient(*context, loss);
  } else {
    // Memory of its gradients, which the sum of both passes reads, is given out again meanwhile.
    (void)context->get_gradients();
    context.reset();
    worker_.sleep(std::chrono::milliseconds(1));
    const c10::StreamGuard guard(beside);
    for (int i = 0; i < 3; ++i) (void)(loss.x.detach() * 1);
  }
  join(beside, own);
}

// A continuation uses what was computed here before, and is read on another stream.
void Actor::continue_beside(Dice& dice) {
  const Journey way = journey(dice, 2);
  const at::Tensor x = filled(worker_, places_.word(), 3);
  const at::Tensor beside = filled(worker_, places_.word(), 1);
  const Future<at::Tensor> sum =
      worker_.rpc_async(anybody(dice), &scale, x, 2.0, way)
          .then([beside](const at::Tensor& scaled) { return scaled + beside.to(scaled.device()); });
  const double expected = 3 * scaled_by(2, way) + 1;
  const at::Tensor read = sum.wait();
  if (read.device().is_cpu()) return expect_everywhere("a sum", expected, read);
  const c10::impl::VirtualGuardImpl kind(read.device().type());
  const c10::StreamGuard elsewhere(kind.getStreamFromGlobalPool(read.device()));
  const at::Tensor there = sum.wait();
  there.record_stream(kind.getStream(read.device()));
  expect_everywhere("a sum that is read elsewhere", expected, there * 1);
}

void Actor::gather(Dice& dice) {
  std::vector<Future<at::Tensor>> parts;
  double expected = 0;
  for (uint64_t left = 2 + dice.draw(3); left > 0; --left) {
    const Journey way = journey(dice, 1);
    parts.push_back(
        worker_.rpc_async(anybody(dice), &scale, filled(worker_, places_.word(), 1), 2.0, way));
    expected += scaled_by(2, way);
  }
  const Future<at::Tensor> sum = when_all(parts).then([](const std::vector<at::Tensor>& all) {
    at::Tensor sum = all.front() * 1;
    for (size_t i = 1; i < all.size(); ++i) sum.add_(all[i].to(sum.device()));
    return sum;
  });
  expect_everywhere("what was gathered", expected, sum.wait());
}

}  // namespace rehearsal::storm
