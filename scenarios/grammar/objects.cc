#include "scenarios/grammar/objects.h"

#include <chrono>
#include <utility>
#include <vector>

#include "scenarios/grammar/evaluation.h"
#include "scenarios/grammar/visits.h"

namespace rehearsal::grammar {

BatchEvaluator::BatchEvaluator(CallContext& context, int64_t size, int64_t delay)
    : batcher_(context,
               {.size = static_cast<uint64_t>(size), .delay = std::chrono::microseconds(delay)},
               [here = static_cast<const WorkerAccess&>(context)](std::vector<Item> items) {
                 std::vector<Outcome> outcomes;
                 for (const Item& item : items)
                   outcomes.push_back(grammar::evaluate(here, item.term, item.scope));
                 return outcomes;
               }) {}

Future<int64_t> BatchEvaluator::evaluate(CallContext& context, const Term& term,
                                         const Scope& scope) {
  check(context, scope);
  return batcher_.add({term, scope}).then([](const Outcome& outcome) { return value_of(outcome); });
}

Visitor::Visitor(CallContext& context, const RRef<Cell>& cell, int64_t amount, int64_t number)
    : here_(context), cell_(cell), amount_(amount), number_(number) {}

Visitor::~Visitor() {
  if (!cell_.valid()) return;
  try {
    cell_.with_timeout(Timeout::never()).rpc_sync(&Cell::add, amount_);
  } catch (const RpcError&) {
    try {
      here_.state<Visits>().missed.insert(number_);
    } catch (const RpcError&) {  // The state has ended, and nobody asks any more.
    }
  }
}

bool missed_visit(CallContext& context, int64_t number) {
  return context.state<Visits>().missed.contains(number);
}

void register_objects(FunctionRegistry& registry) {
  registry.function("missed_visit", &missed_visit);
  registry.type<BatchEvaluator>("BatchEvaluator")
      .constructor<CallContext&, int64_t, int64_t>()
      .method("evaluate", &BatchEvaluator::evaluate)
      .method("flush", &BatchEvaluator::flush)
      .runs_inline();
  registry.type<Visitor>("Visitor").constructor<CallContext&, RRef<Cell>, int64_t, int64_t>();
}

}  // namespace rehearsal::grammar
