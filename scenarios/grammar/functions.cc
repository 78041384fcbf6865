#include "scenarios/grammar/functions.h"

#include <ATen/Functions.h>

#include <chrono>

#include "scenarios/grammar/evaluation.h"
#include "scenarios/grammar/meetings.h"

namespace rehearsal::grammar {
namespace {

// User code must not run before its references are confirmed, nor with another's tensor.
void check(const Scope& scope) {
  for (const RRef<Cell>& cell : scope.cells)
    if (!cell.confirmed_by_owner())
      throw WrongResult("a reference was given to user code before its owner had confirmed it");
  expect("the sum of a tensor of ones", scope.ballast.numel(), scope.ballast.sum().item<int64_t>());
}

int64_t value_of(const Outcome& outcome) {
  if (outcome.fails) throw Failure(outcome.value);
  return outcome.value;
}

}  // namespace

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
  check(scope);
  return value_of(evaluate(context, term, scope));
}

Future<int64_t> evaluate_later(CallContext& context, const Term& term, const Scope& scope) {
  check(scope);
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

void Evaluator::take_turn(int64_t number, const at::Tensor& ballast) {
  expect("a call in its turn", number, turns_++);
  expect("the sum of a tensor of ones", ballast.numel(), ballast.sum().item<int64_t>());
}

int64_t Evaluator::evaluate(CallContext& context, int64_t number, const Term& term,
                            const Scope& scope) {
  take_turn(number, scope.ballast);
  return evaluate_there(context, term, scope);
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
      .function("evaluate_in_stream", &evaluate_in_stream)
      .function("evaluate_items", &evaluate_items)
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
      .method("evaluate", &Evaluator::evaluate);
  return registry;
}

}  // namespace rehearsal::grammar
