#include "scenarios/storm/device_values.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <chrono>
#include <utility>

namespace rehearsal::storm {

at::Tensor filled(const WorkerAccess& worker, uint64_t word, double value) {
  return placed(worker, word, at::full({kFilled}, value)) * 1;
}

Cell::Cell(CallContext& context, double value, uint64_t word)
    : tensor_(filled(context, word, value)) {}

at::Tensor Cell::add_around(CallContext& context, double number, const Journey& meanwhile) {
  tensor_.add_(number);
  const Leg leg = next_leg(meanwhile, context.caller()->names().size());
  context.rpc_sync(leg.to, &travel, Journey{leg.journey.word, 0, 0});
  tensor_.add_(number);
  return get();
}

at::Tensor made_there(CallContext& context, double value, uint64_t word) {
  return filled(context, word, value);
}

at::Tensor fetched_twice(const RRef<at::Tensor>& reference) { return reference.to_here() * 2; }

void read_aside(const RRef<at::Tensor>& reference) { (void)(reference.local_value() * 2); }

DeviceDoubler::DeviceDoubler(CallContext& context, uint64_t word)
    : two_(placed(context, word, at::full({1}, 2.0))),
      batcher_(context, {.size = 3, .delay = std::chrono::milliseconds(2)},
               [this](std::vector<at::Tensor> items) {
                 for (at::Tensor& item : items) item = item.to(two_.device()) * two_;
                 two_ = two_ * 1;
                 return items;
               }) {}

Pool::Pool(Worker& worker)
    : batcher_(worker, {.size = 3, .delay = std::chrono::milliseconds(2)},
               [](std::vector<at::Tensor> items) {
                 for (at::Tensor& item : items) item = item * 2;
                 return items;
               }) {}

at::Tensor Pool::add(const at::Tensor& tensor) {
  if (sum_.defined())
    sum_.add_(tensor.to(sum_.device()));
  else
    sum_ = tensor * 1;
  return sum_ * 1;
}

at::Tensor add_to_pool(CallContext& context, const at::Tensor& tensor) {
  return context.with_state<Pool>([&](Pool& pool) { return pool.add(tensor); });
}

Future<at::Tensor> scale_in_pool(CallContext& context, const at::Tensor& x, double factor,
                                 const Journey& journey) {
  return context.with_state<Pool>([&](Pool&) {
    const Leg leg = next_leg(journey, context.caller()->names().size());
    return context.rpc_async(leg.to, &scale, x, factor, journey);
  });
}

Future<at::Tensor> double_in_pool(CallContext& context, const at::Tensor& item) {
  return context.state<Pool>().twice(item * 1);
}

Future<at::Tensor> WaitingRoom::take(CallContext& context) {
  const Promise<at::Tensor> promise = context.promise<at::Tensor>();
  if (brought_.defined())
    promise.complete(brought_);
  else
    waiting_.push_back(promise);
  return promise.future();
}

void WaitingRoom::bring(const at::Tensor& tensor) {
  brought_ = tensor * 2;
  for (const auto& promise : std::exchange(waiting_, {})) promise.complete(brought_);
}

Future<at::Tensor> take_from(CallContext& context, const RRef<WaitingRoom>& room) {
  return room.with_local([&](WaitingRoom& here) { return here.take(context); });
}

void register_devices(FunctionRegistry& registry) {
  registry.function("made_there", &made_there)
      .function("fetched_twice", &fetched_twice)
      .function("read_aside", &read_aside)
      .function("add_to_pool", &add_to_pool)
      .function("scale_in_pool", &scale_in_pool)
      .function("double_in_pool", &double_in_pool)
      .function("take_from", &take_from);
  registry.type<Cell>("Cell")
      .constructor<CallContext&, double, uint64_t>()
      .method("add", &Cell::add)
      .method("add_around", &Cell::add_around)
      .method("get", &Cell::get);
  registry.type<DeviceDoubler>("DeviceDoubler")
      .constructor<CallContext&, uint64_t>()
      .method("twice", &DeviceDoubler::twice);
  registry.type<WaitingRoom>("WaitingRoom")
      .constructor<>()
      .method("take", &WaitingRoom::take)
      .method("bring", &WaitingRoom::bring);
}

}  // namespace rehearsal::storm
