#include "scenarios/storm/functions.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <stdexcept>

namespace rehearsal::storm {
namespace {

int64_t combine(int64_t inner, int64_t hops) {
  return static_cast<int64_t>(mix(static_cast<uint64_t>(inner), static_cast<uint64_t>(hops)) >> 2);
}

int64_t arrive(const Journey& journey) {
  return combine(journey.value, static_cast<int64_t>(journey.word >> 40));
}

size_t group_size(const CallContext& context) { return context.caller()->names().size(); }

// User code must not run before its references are confirmed.
void require_confirmed(const RRef<Counter>& counter) {
  if (!counter.confirmed_by_owner())
    throw std::logic_error("the reference " + to_string(counter.shared_handle()->id().causal) +
                           " was given to user code before its owner had confirmed it");
}

}  // namespace

Leg next_leg(const Journey& journey, size_t workers) {
  const uint64_t word = mix(journey.word, static_cast<uint64_t>(journey.hops)) >> 1;
  return {WorkerId{static_cast<uint32_t>(word % workers)},
          {word, journey.hops - 1, journey.value + 1}};
}

int64_t travel(CallContext& context, const Journey& journey) {
  if (journey.hops == 0) return arrive(journey);
  const Leg leg = next_leg(journey, group_size(context));
  return combine(context.rpc_sync(leg.to, &travel, leg.journey), journey.hops);
}

Future<int64_t> travel_asynchronously(CallContext& context, const Journey& journey) {
  if (journey.hops == 0) {
    Promise<int64_t> promise = context.promise<int64_t>();
    promise.complete(arrive(journey));
    return promise.future();
  }
  const Leg leg = next_leg(journey, group_size(context));
  return context.rpc_async(leg.to, &travel_asynchronously, leg.journey)
      .then([hops = journey.hops](int64_t inner) { return combine(inner, hops); });
}

int64_t expected_travel(const Journey& journey, size_t workers) {
  if (journey.hops == 0) return arrive(journey);
  return combine(expected_travel(next_leg(journey, workers).journey, workers), journey.hops);
}

int64_t Counter::add_slowly(CallContext& context, const Journey& meanwhile) {
  const Leg leg = next_leg(meanwhile, group_size(context));
  const int64_t amount = meanwhile.value;
  context.rpc_sync(leg.to, &travel, Journey{leg.journey.word, 0, 0});
  return total_ += amount;
}

void bump(CallContext& context, const RRef<Counter>& counter, int64_t amount,
          const Journey& journey) {
  require_confirmed(counter);
  if (journey.hops > 0) {
    const Leg leg = next_leg(journey, group_size(context));
    const auto further = context.rpc_async(leg.to, &bump, counter, amount, leg.journey);
    context.rpc_sync(counter, &Counter::add, amount);
    further.wait();
    return;
  }
  context.rpc_sync(counter, &Counter::add, amount);
}

RRef<Counter> carry(CallContext& context, const RRef<Counter>& counter, const Journey& journey) {
  require_confirmed(counter);
  if (journey.hops == 0) return counter;
  const Leg leg = next_leg(journey, group_size(context));
  RRef<Counter> carried = context.rpc_sync(leg.to, &carry, counter, leg.journey);
  require_confirmed(carried);
  return carried;
}

void wander(CallContext& context, const RRef<Counter>& counter, const Journey& journey) {
  require_confirmed(counter);
  if (journey.hops == 0) return;
  const Leg leg = next_leg(journey, group_size(context));
  static_cast<void>(context.rpc_async(leg.to, &wander, counter, leg.journey));
}

void Shelf::put(const std::string& name, const RRef<Counter>& counter) {
  require_confirmed(counter);
  counters_.insert_or_assign(name, counter);
}

RRef<Counter> Shelf::get(const std::string& name) const { return counters_.at(name); }

void Shelf::drop(const std::string& name) { counters_.erase(name); }

double Blob::sum() const { return content_.sum().item<double>(); }

double weigh(CallContext& context, const RRef<Blob>& blob) {
  return context.rpc_sync(blob, &Blob::sum);
}

at::Tensor scale(CallContext& context, const at::Tensor& x, double factor, const Journey& journey) {
  at::Tensor scaled = x * factor;
  if (journey.hops == 0) return scaled;
  const Leg leg = next_leg(journey, group_size(context));
  return context.rpc_sync(leg.to, &scale, scaled, factor, leg.journey);
}

int64_t fail(const std::string& text) { throw std::runtime_error(text); }

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("travel", &travel)
      .function("travel_asynchronously", &travel_asynchronously)
      .function("bump", &bump)
      .function("carry", &carry)
      .function("wander", &wander)
      .function("weigh", &weigh)
      .function("scale", &scale)
      .function("fail", &fail);
  registry.type<Counter>("Counter")
      .constructor<int64_t>()
      .method("add", &Counter::add)
      .runs_inline()
      .method("add_slowly", &Counter::add_slowly)
      .method("total", &Counter::total);
  registry.type<Shelf>("Shelf")
      .constructor<>()
      .method("put", &Shelf::put)
      .method("get", &Shelf::get)
      .method("drop", &Shelf::drop)
      .method("size", &Shelf::size);
  registry.type<Blob>("Blob")
      .constructor<at::Tensor>()
      .method("content", &Blob::content)
      .method("sum", &Blob::sum);
  return registry;
}

}  // namespace rehearsal::storm
