#include "scenarios/grammar/functions.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <chrono>

#include "scenarios/grammar/changed.h"
#include "scenarios/grammar/evaluation.h"
#include "scenarios/grammar/meetings.h"
#include "scenarios/grammar/objects.h"

namespace rehearsal::grammar {
namespace {

// Parks until nobody waits any more for the function that runs here.
void go_on_until_given_up(CallContext& context) {
  constexpr std::chrono::microseconds kPauseMax(10'000);
  for (std::chrono::microseconds pause(50); !context.cancelled();
       pause = std::min(2 * pause, kPauseMax))
    context.sleep(pause);
}

void expect_compared(const RRef<Cell>& one, const RRef<Cell>& other) {
  const bool same = one == other;
  expect("the order of a reference and itself", same ? 1 : 0, (one <=> other) == 0 ? 1 : 0);
  const std::hash<RRef<Cell>> hash;
  if (same) expect("whether one reference has one hash", 1, hash(one) == hash(other) ? 1 : 0);
}

}  // namespace

void check(const CallContext& context, const Scope& scope) {
  for (const RRef<Cell>& cell : scope.cells)
    if (!cell.confirmed_by_owner())
      throw WrongResult("a reference was given to user code before its owner had confirmed it");
  for (const RRef<Cell>& one : scope.cells)
    for (const RRef<Cell>& other : scope.cells) expect_compared(one, other);
  expect("the sum of a tensor of ones", scope.ballast.numel(), scope.ballast.sum().item<int64_t>());
  const std::vector<WorkerInfo> workers = context.workers();
  const WorkerInfo caller = context.caller_info();
  expect("the caller of a function", 1, workers.at(caller.id.value).name == caller.name ? 1 : 0);
  expect("the worker of a function", context.id().value, context.worker_info().id.value);
  expect("the context of a function", 0, context.autograd_context() ? 1 : 0);
  expect("the device of a result on the CPU", 1, context.result_device(at::kCPU).is_cpu() ? 1 : 0);
}

int64_t value_of(const Outcome& outcome) {
  if (outcome.fails) throw Failure(outcome.value);
  return outcome.value;
}

void expect(const std::string& what, int64_t expected, int64_t found) {
  if (expected != found)
    throw WrongResult(what + " gave " + std::to_string(found) + ", not " +
                      std::to_string(expected));
}

Failure::Failure(int64_t failing)
    : std::runtime_error(kFailsWith + std::to_string(failing)), number(failing) {}

int64_t Cell::add_slowly(CallContext& context, int64_t amount) {
  const int64_t before = total_;
  context.sleep(std::chrono::microseconds(50));
  // The monitor was free meanwhile.
  const int64_t others = total_ - before;
  return total_ = before + others + amount;
}

int64_t evaluate_there(CallContext& context, const Term& term, const Scope& scope) {
  check(context, scope);
  return value_of(evaluate(context, term, scope));
}

int64_t evaluate_traced(CallContext& context, const std::string& trace, const Term& term,
                        const Scope& scope) {
  expect("the trace of a call", 1, context.traceparent().starts_with("00-" + trace) ? 1 : 0);
  return evaluate_there(context, term, scope);
}

Future<int64_t> evaluate_later(CallContext& context, const Term& term, const Scope& scope) {
  check(context, scope);
  const WorkerAccess here = context;
  return context.after(std::chrono::microseconds(term.word % 300)).then([here, term, scope](Unit) {
    return here.with_timeout(Timeout::never()).rpc_async(here.id(), &evaluate_there, term, scope);
  });
}

void evaluate_in_stream(CallContext& context, StreamWriter<int64_t>& out, const Term& term,
                        const Scope& scope) {
  out.write(evaluate_there(context, term, scope));
}

void evaluate_items(CallContext& context, StreamWriter<int64_t>& out, const Term& stream) {
  for (const Term& item : items_of(stream)) out.write(value_of(evaluate(context, item, {})));
}

void lend_cells(CallContext& context, StreamWriter<RRef<Cell>>& out, const Scope& scope) {
  check(context, scope);
  constexpr size_t kReferences = 50;
  for (size_t i = 0; i < kReferences && !scope.cells.empty(); ++i)
    out.write(scope.cells[i % scope.cells.size()]);
}

int64_t go_on_for_ever(CallContext& context, const at::Tensor& ballast) {
  expect("the sum of a tensor of ones", ballast.numel(), ballast.sum().item<int64_t>());
  go_on_until_given_up(context);
  return 0;
}

Future<int64_t> wait_for_ever(CallContext& context) {
  const Promise<int64_t> promise = context.promise<int64_t>();
  static_cast<void>(
      context.after(std::chrono::hours(10'000)).then([promise](Unit) { promise.complete(0); }));
  return promise.future();
}

void write_for_ever(CallContext& context, StreamWriter<int64_t>& out) {
  for (int64_t number = 0;; ++number) {
    out.write(number);
    context.sleep(std::chrono::microseconds(200));
  }
}

void Evaluator::take_turn(int64_t number, const at::Tensor& ballast) {
  expect("a call in its turn", number, turns_++);
  expect("the sum of a tensor of ones", ballast.numel(), ballast.sum().item<int64_t>());
}

int64_t Evaluator::evaluate(CallContext& context, int64_t number, const Term& term,
                            const Scope& scope) {
  take_turn(number, scope.ballast);
  return evaluate_there(context, term, scope);
}

void Evaluator::evaluate_in_stream(CallContext& context, StreamWriter<int64_t>& out,
                                   const Term& term, const Scope& scope) {
  out.write(evaluate(context, turns_, term, scope));
}

int64_t look(CallContext& context, const RRef<int64_t>& number) {
  return context.with_timeout(Timeout::never()).to_here(number);
}

void add_there(CallContext& context, const RRef<Cell>& cell, int64_t amount) {
  if (cell.is_owner())
    cell.with_local([amount](Cell& here) { here.add(amount); });
  else
    context.rpc_sync(cell, &Cell::add, amount);
}

int64_t add_by_name(CallContext& context, int64_t publisher, const std::string& name,
                    int64_t amount) {
  const auto cell =
      context.lookup<Cell>(WorkerId{static_cast<uint32_t>(publisher)}, name, Timeout::never());
  return cell.rpc_sync(&Cell::add, amount);
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.exception<Failure>("Failure");
  registry.function("evaluate", &evaluate_there)
      .function("evaluate_later", &evaluate_later)
      .function("evaluate_traced", &evaluate_traced)
      .function("go_on_for_ever", &go_on_for_ever)
      .function("wait_for_ever", &wait_for_ever)
      .function("write_for_ever", &write_for_ever)
      .function("evaluate_in_stream", &evaluate_in_stream)
      .function("evaluate_items", &evaluate_items)
      .function("lend_cells", &lend_cells)
      .function("look", &look)
      .function("add_there", &add_there)
      .function("add_by_name", &add_by_name)
      .function("work_there", &work_there);
  registry.type<Cell>("Cell")
      .constructor<int64_t>()
      .method("add", &Cell::add)
      .runs_inline()
      .method("add_slowly", &Cell::add_slowly)
      .method("total", &Cell::total);
  registry.type<Evaluator>("Evaluator")
      .constructor<>()
      .method("take_turn", &Evaluator::take_turn)
      .method("evaluate", &Evaluator::evaluate)
      .method("evaluate_in_stream", &Evaluator::evaluate_in_stream);
  register_changed(registry);
  register_objects(registry);
  return registry;
}

}  // namespace rehearsal::grammar
