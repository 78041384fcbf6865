#include "scenarios/storm/functions.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <stdexcept>

#include "scenarios/storm/device_values.h"
#include "scenarios/storm/features.h"
#include "scenarios/storm/training.h"

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

at::Tensor placed(const WorkerAccess& worker, uint64_t word, const at::Tensor& tensor) {
  const auto devices = static_cast<uint64_t>(worker.device_count());
  const uint64_t place = mix(word, hash_text("place")) % (devices + 1);
  if (place == 0) return tensor;
  return tensor.to(worker.device(static_cast<int>(place - 1)), /*non_blocking=*/true);
}

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

int64_t Counter::let_add(CallContext& context, const RRef<Counter>& self, const Journey& by) {
  const Leg leg = next_leg(by, group_size(context));
  context.rpc_sync(leg.to, &bump, self, by.value, Journey{leg.journey.word, 0, 0});
  return total_;
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

double Blob::sum_with(const at::Tensor& other) const { return sum() + sum_of(other); }

void Diary::write(CallContext& context, int64_t number, const at::Tensor& padding) {
  if (number % 2 == 1) context.rpc_sync(context.id(), &sum_of, padding);
  numbers_.push_back(number);
}

double sum_of(const at::Tensor& content) { return content.sum().item<double>(); }

double weigh(CallContext& context, const RRef<Blob>& blob) {
  return context.rpc_sync(blob, &Blob::sum);
}

// ---- streams ----------------------------------------------------------------

namespace {

// Too large for the small lane.
constexpr int64_t kLargePadding = 17 * 1024;

uint64_t reading_word(const Journey& journey, int64_t position) {
  return mix(journey.word, static_cast<uint64_t>(position));
}

// A reference to a counter here, or at another worker.
RRef<Counter> make_counter(CallContext& context, uint64_t word, int64_t number) {
  if (word % 8 == 0) return context.rref(Counter(number));
  const auto to = static_cast<uint32_t>((word >> 8) % group_size(context));
  return context.remote<Counter>(WorkerId{to}, number);
}

Reading make_reading(CallContext& context, const Journey& journey, int64_t position) {
  const uint64_t word = reading_word(journey, position);
  Reading reading;
  reading.number = expected_reading(journey, position, group_size(context));
  reading.padding = placed(context, word, at::ones({(word >> 4) % 4 == 0 ? kLargePadding : 1}));
  if (word % 4 == 0) reading.counter = make_counter(context, word, reading.number);
  return reading;
}

}  // namespace

void read_out(CallContext& context, StreamWriter<Reading>& out, const Journey& journey,
              int64_t count) {
  if (journey.hops == 0) {
    for (int64_t position = 0; position < count; ++position)
      out.write(make_reading(context, journey, position));
    return;
  }
  const Leg leg = next_leg(journey, group_size(context));
  const Calls calls = context.with_timeout(Timeout::never()).with_credit(1 + journey.word % 4);
  for (const Reading& reading : calls.rpc_stream(leg.to, &read_out, leg.journey, count)) {
    if (reading.counter) require_confirmed(*reading.counter);
    out.write(reading);
  }
}

int64_t expected_reading(const Journey& journey, int64_t position, size_t workers) {
  if (journey.hops > 0)
    return expected_reading(next_leg(journey, workers).journey, position, workers);
  return static_cast<int64_t>(mix(reading_word(journey, position)) >> 2);
}

Future<int64_t> Latch::wait(CallContext& context) {
  never_.push_back(context.promise<int64_t>());
  return never_.back().future();
}

int64_t hold(CallContext& context, const RRef<Latch>& latch, const Journey& journey) {
  const Calls calls = context.with_timeout(Timeout::never());
  if (journey.hops == 0) return calls.rpc_sync(latch, &Latch::wait);
  const Leg leg = next_leg(journey, group_size(context));
  return calls.rpc_sync(leg.to, &hold, latch, leg.journey);
}

at::Tensor scale(CallContext& context, const at::Tensor& x, double factor, const Journey& journey) {
  at::Tensor scaled = x * factor;
  if (journey.hops == 0) return scaled;
  const Leg leg = next_leg(journey, group_size(context));
  return context.rpc_sync(leg.to, &scale, scaled, factor, leg.journey);
}

Future<at::Tensor> scale_asynchronously(CallContext& context, const at::Tensor& x, double factor,
                                        const Journey& journey) {
  const at::Tensor scaled = x * factor;
  if (journey.hops == 0) {
    Promise<at::Tensor> promise = context.promise<at::Tensor>();
    promise.complete(scaled);
    return promise.future();
  }
  const Leg leg = next_leg(journey, group_size(context));
  return context.rpc_async(leg.to, &scale_asynchronously, scaled, factor, leg.journey);
}

std::vector<at::Tensor> scale_twice(CallContext& context, const at::Tensor& x, double factor,
                                    const Journey& journey) {
  const Leg leg = next_leg(journey, group_size(context));
  const Journey brief{leg.journey.word, 0, 0};
  return {x * factor, context.rpc_sync(leg.to, &scale, x, factor, brief)};
}

Layer::Layer(CallContext& context, double weight)
    : weight_(placed(context, mix(static_cast<uint64_t>(weight), context.id().value),
                     at::full({3}, weight))
                  .set_requires_grad(true)) {}

at::Tensor Layer::forward(const at::Tensor& x, const std::vector<RRef<Layer>>& next) {
  const at::Tensor scaled = x.to(weight_.device()) * weight_;
  if (next.empty()) return scaled;
  return next.front().rpc_sync(&Layer::forward, scaled, std::vector<RRef<Layer>>{});
}

Future<at::Tensor> Layer::forward_asynchronously(CallContext& context, const at::Tensor& x,
                                                 const RRef<Layer>& next) {
  const auto to = WorkerId{static_cast<uint32_t>(group_size(context) - 1)};
  return context.rpc_async(to, &travel, Journey{})
      .then([next, scaled = x.to(weight_.device()) * weight_](int64_t) {
        return next.rpc_async(&Layer::forward, scaled, std::vector<RRef<Layer>>{});
      });
}

at::Tensor Layer::gradient(CallContext& context) const {
  return get_gradients(context).find(weight_);
}

int64_t fail(const std::string& text) { throw std::runtime_error(text); }

int64_t fail_at_last(CallContext& context, const std::string& text, const Journey& journey) {
  if (journey.hops == 0) return fail(text);
  const Leg leg = next_leg(journey, group_size(context));
  return context.rpc_sync(leg.to, &fail_at_last, text, leg.journey);
}

// Its indices are of fewer rows than it has.
Broken break_at_last(CallContext& context, const RRef<Counter>& counter, const Journey& journey) {
  if (journey.hops == 0)
    return {counter, at::_sparse_compressed_tensor_unsafe(
                         at::zeros({2}, at::kLong), at::zeros({1}, at::kLong), at::ones({1}),
                         {4, 4}, at::TensorOptions(at::kFloat).layout(at::kSparseCsr))};
  const Leg leg = next_leg(journey, group_size(context));
  return context.rpc_sync(leg.to, &break_at_last, counter, leg.journey);
}

int64_t look(CallContext& context, const RRef<int64_t>& number) { return context.to_here(number); }

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("travel", &travel)
      .function("travel_asynchronously", &travel_asynchronously)
      .function("bump", &bump)
      .function("carry", &carry)
      .function("wander", &wander)
      .function("read_out", &read_out)
      .function("hold", &hold)
      .function("travel_locked", &travel_locked)
      .function("taken_there", &taken_there)
      .function("weigh", &weigh)
      .function("sum_of", &sum_of)
      .function("scale", &scale)
      .function("scale_asynchronously", &scale_asynchronously)
      .function("scale_twice", &scale_twice)
      .function("fail", &fail)
      .function("fail_at_last", &fail_at_last)
      .function("break_at_last", &break_at_last)
      .function("look", &look);
  registry.type<Counter>("Counter")
      .constructor<int64_t>()
      .method("add", &Counter::add)
      .runs_inline()
      .method("add_slowly", &Counter::add_slowly)
      .method("let_add", &Counter::let_add)
      .method("total", &Counter::total);
  registry.type<Shelf>("Shelf")
      .constructor<>()
      .method("put", &Shelf::put)
      .method("get", &Shelf::get)
      .method("drop", &Shelf::drop)
      .method("keep", &Shelf::keep)
      .method("size", &Shelf::size);
  registry.type<Lease>("Lease").constructor<CallContext&, const RRef<Lock>&>();
  registry.type<Lock>("Lock")
      .constructor<>()
      .method("take", &Lock::take)
      .method("give", &Lock::give)
      .method("taken", &Lock::taken);
  registry.type<Latch>("Latch").constructor<>().method("wait", &Latch::wait);
  registry.type<Diary>("Diary")
      .constructor<>()
      .method("write", &Diary::write)
      .method("numbers", &Diary::numbers);
  registry.type<Blob>("Blob")
      .constructor<at::Tensor>()
      .method("content", &Blob::content)
      .method("sum", &Blob::sum)
      .method("sum_with", &Blob::sum_with);
  registry.type<Layer>("Layer")
      .constructor<CallContext&, double>()
      .method("forward", &Layer::forward)
      .method("forward_asynchronously", &Layer::forward_asynchronously)
      .method("forward_fetched", &Layer::forward_fetched)
      .method("gradient", &Layer::gradient);
  registry.function("make_known", &make_known).function("call_back", &call_back);
  register_features(registry);
  register_values(registry);
  register_names(registry);
  register_training(registry);
  register_devices(registry);
  return registry;
}

}  // namespace rehearsal::storm
