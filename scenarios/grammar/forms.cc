#include <ATen/Functions.h>

#include <chrono>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "scenarios/grammar/changed.h"
#include "scenarios/grammar/evaluation.h"
#include "scenarios/grammar/objects.h"
#include "scenarios/storm/dice.h"

// The forms in which one worker has another evaluate, add and look.
namespace rehearsal::grammar {
namespace {

using std::chrono::minutes;
using storm::Dice;

// A piece that somebody is asked to evaluate.
struct Asking {
  const WorkerAccess& here;
  const Part& part;
  const Scope& scope;
  Dice dice;

  [[nodiscard]] Calls calls() const { return here.with_timeout(Timeout::never()); }
  [[nodiscard]] WorkerId anybody() {
    return WorkerId{static_cast<uint32_t>(dice.draw(here.caller()->names().size()))};
  }
};

// The outcome, whenever it is asked for.
Wait ended(const Outcome& outcome) {
  return [outcome] {
    if (outcome.fails) throw Failure(outcome.value);
    return outcome.value;
  };
}

RRef<int64_t> created(Asking& ask) {
  if (ask.dice.happens(50))
    return ask.calls().remote(ask.part.at, &evaluate_there, ask.part.term, ask.scope);
  return ask.calls().remote_by_name<int64_t>(ask.part.at, "evaluate", ask.part.term, ask.scope);
}

// As sixteen digits.
std::string hex_of(uint64_t word) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(word));
  return text;
}

// ---- which park, some of them until the value is there ----

Wait call(Asking& ask) {
  return ended(outcome_of([&ask] {
    return ask.calls().rpc_sync(ask.part.at, &evaluate_there, ask.part.term, ask.scope);
  }));
}
Wait call_in_place(Asking& ask) { return ended(evaluate(ask.here, ask.part.term, ask.scope)); }
Wait call_shielded(Asking& ask) {
  const Shield shield = ask.here.shielded(minutes(60));
  return call(ask);
}

// Behind some of the references of a stream, of which the others are given up.
Wait call_behind_references(Asking& ask) {
  {
    Stream<RRef<Cell>> lent = ask.calls().rpc_stream(ask.anybody(), &lend_cells, ask.scope);
    for (uint64_t left = ask.dice.draw(5); left > 0; --left) {
      const std::optional<RRef<Cell>> cell = lent.next();
      if (cell) static_cast<void>(total_of(ask.here, *cell, ask.dice.word()));
    }
    if (ask.dice.happens(50)) lent.cancel();
  }
  return call(ask);
}

// Behind tensors that are changed in place when they have been sent.
Wait call_behind_changes(Asking& ask) {
  send_and_change(ask.here, ask.part.at, ask.dice);
  return call(ask);
}

Wait create_and_fetch(Asking& ask) {
  return [value = created(ask)] { return value.to_here(Timeout::never()); };
}
Wait only_value_of(const std::shared_ptr<Stream<int64_t>>& stream) {
  return [stream] {
    std::optional<int64_t> last;
    for (const int64_t value : *stream) last = value;
    if (!last) throw WrongResult("a stream ended without its value");
    return *last;
  };
}
Wait read_stream(Asking& ask) {
  const Calls calls = ask.calls();
  auto stream = std::make_shared<Stream<int64_t>>(
      ask.dice.happens(50)
          ? calls.rpc_stream<int64_t>(ask.part.at, "evaluate_in_stream", ask.part.term, ask.scope)
          : calls.rpc_stream(ask.part.at, &evaluate_in_stream, ask.part.term, ask.scope));
  return only_value_of(stream);
}
Wait read_stream_of_object(Asking& ask) {
  const Calls calls = ask.calls();
  const auto object = calls.remote<Evaluator>(ask.part.at);
  return only_value_of(std::make_shared<Stream<int64_t>>(
      calls.rpc_stream(object, &Evaluator::evaluate_in_stream, ask.part.term, ask.scope)));
}

// ---- which never park, so that a continuation can begin them ----

Future<int64_t> call_later(Asking& ask) {
  return ask.calls().rpc_async(ask.part.at, &evaluate_there, ask.part.term, ask.scope);
}
Future<int64_t> call_by_name(Asking& ask) {
  return ask.calls().rpc_async<int64_t>(ask.part.at, "evaluate", ask.part.term, ask.scope);
}
Future<int64_t> call_asynchronous(Asking& ask) {
  return ask.calls().rpc_async(ask.part.at, &evaluate_later, ask.part.term, ask.scope);
}
// A promise that a continuation completes.
Future<int64_t> call_by_promise(Asking& ask) {
  const Promise<int64_t> promise = ask.here.promise<int64_t>();
  static_cast<void>(
      ask.calls()
          .rpc_async(ask.part.at, &evaluate_there, ask.part.term, ask.scope)
          .then([promise](const Result<int64_t>& result) { promise.complete(result); }));
  return promise.future();
}
Future<int64_t> call_in_continuation(Asking& ask) {
  return ask.here.after(std::chrono::microseconds(ask.dice.draw(500)))
      .then([calls = ask.calls(), part = ask.part, scope = ask.scope](Unit) {
        return calls.rpc_async(part.at, &evaluate_there, part.term, scope);
      });
}
Future<int64_t> create_and_fetch_later(Asking& ask) {
  const RRef<int64_t> value = created(ask);
  return ask.dice.happens(50) ? value.to_here_async(Timeout::never())
                              : ask.calls().to_here_async(value);
}
Future<int64_t> create_and_let_look(Asking& ask) {
  return ask.calls().rpc_async(ask.anybody(), &look, created(ask));
}
Future<int64_t> create_and_see(Asking& ask) {
  const RRef<int64_t> value = created(ask);
  return value.created(Timeout::never()).then([value](Unit) {
    return value.to_here_async(Timeout::never());
  });
}
Future<int64_t> ask_object(Asking& ask) {
  const auto object = ask.calls().remote<Evaluator>(ask.part.at);
  if (ask.dice.happens(50))
    return object.with_timeout(Timeout::never())
        .rpc_async(&Evaluator::evaluate, int64_t{0}, ask.part.term, ask.scope);
  return ask.calls().rpc_async(object, &Evaluator::evaluate, int64_t{0}, ask.part.term, ask.scope);
}
// Behind calls that are made before it, large and small ones.
Future<int64_t> ask_object_in_order(Asking& ask) {
  const auto object = ask.calls().remote<Evaluator>(ask.part.at);
  const InOrder<Evaluator> own =
      ask.dice.happens(50) ? object.in_order() : InOrder<Evaluator>(object);
  const InOrder<Evaluator> in_order = own.with_timeout(Timeout::never());
  int64_t turns = 0;
  std::vector<Future<Unit>> before;
  for (uint64_t left = ask.dice.draw(3); left > 0; --left)
    before.push_back(in_order.rpc_async(&Evaluator::take_turn, turns++, ask.scope.ballast));
  Future<int64_t> value;
  if (ask.dice.happens(30))
    value = in_order.remote(&Evaluator::evaluate, turns, ask.part.term, ask.scope)
                .to_here_async(Timeout::never());
  else
    value = in_order.rpc_async(&Evaluator::evaluate, turns, ask.part.term, ask.scope);
  return ask.here.when_all(before).then([value](const std::vector<Unit>&) { return value; });
}
// In a batch with others, which are leaves.
Future<int64_t> ask_in_batch(Asking& ask) {
  const auto size = static_cast<int64_t>(1 + ask.dice.draw(4));
  const auto delay = static_cast<int64_t>(ask.dice.draw(2000));
  const auto object = ask.calls().remote<BatchEvaluator>(ask.part.at, size, delay);
  const RRef<BatchEvaluator> asked = object.with_timeout(Timeout::never());
  std::vector<Future<int64_t>> others;
  for (uint64_t left = ask.dice.draw(3); left > 0; --left)
    others.push_back(asked.rpc_async(&BatchEvaluator::evaluate, Term{ask.dice.word(), 1},
                                     Scope{.cells = {}, .ballast = at::ones({0})}));
  const Future<int64_t> value =
      asked.rpc_async(&BatchEvaluator::evaluate, ask.part.term, ask.scope);
  if (ask.dice.happens(30)) static_cast<void>(asked.rpc_async(&BatchEvaluator::flush));
  return ask.here.when_all(others).then([value](const std::vector<int64_t>&) { return value; });
}
Future<int64_t> call_traced(Asking& ask) {
  const std::string trace = hex_of(ask.dice.word()) + hex_of(ask.dice.word());
  return ask.calls()
      .with_traceparent("00-" + trace + "-" + hex_of(ask.dice.word() | 1) + "-01")
      .rpc_async(ask.part.at, &evaluate_traced, trace, ask.part.term, ask.scope);
}
// The stream is given up when its only value is there.
Future<int64_t> read_one(Asking& ask) {
  auto stream = std::make_shared<Stream<int64_t>>(
      ask.calls().rpc_stream(ask.part.at, &evaluate_in_stream, ask.part.term, ask.scope));
  return stream->next_async().then([stream](const std::optional<int64_t>& value) {
    if (!value) throw WrongResult("a stream ended without its value");
    return *value;
  });
}

using Form = Wait (*)(Asking&);
constexpr Form kForms[] = {call,
                           call,
                           call_in_place,
                           call_shielded,
                           call_behind_references,
                           call_behind_changes,
                           create_and_fetch,
                           read_stream,
                           read_stream_of_object};
using LaterForm = Future<int64_t> (*)(Asking&);
constexpr LaterForm kLaterForms[] = {call_later,
                                     call_later,
                                     call_by_name,
                                     call_asynchronous,
                                     call_by_promise,
                                     call_in_continuation,
                                     create_and_fetch_later,
                                     create_and_let_look,
                                     create_and_see,
                                     ask_object,
                                     ask_object_in_order,
                                     ask_in_batch,
                                     call_traced,
                                     read_one};

}  // namespace

Wait begin(const WorkerAccess& here, const Part& part, const Scope& scope) {
  Asking ask{.here = here, .part = part, .scope = scope, .dice{Seed{part.form}, hash_text("form")}};
  const uint64_t form = ask.dice.draw(std::size(kForms) + std::size(kLaterForms));
  if (form < std::size(kForms)) return kForms[form](ask);
  return [later = kLaterForms[form - std::size(kForms)](ask)] { return later.wait(); };
}

Future<int64_t> begin_later(const WorkerAccess& here, const Part& part, const Scope& scope) {
  Asking ask{
      .here = here, .part = part, .scope = scope, .dice{Seed{part.form}, hash_text("later")}};
  return kLaterForms[ask.dice.draw(std::size(kLaterForms))](ask);
}

void add(const WorkerAccess& here, const RRef<Cell>& given, int64_t amount, uint64_t form) {
  const Calls calls = here.with_timeout(Timeout::never());
  const RRef<Cell> cell = given.with_timeout(Timeout::never());
  Dice dice(Seed{form}, hash_text("add"));
  switch (dice.draw(8)) {
    case 0:
      return static_cast<void>(cell.rpc_sync(&Cell::add, amount));
    case 1:
      return static_cast<void>(calls.rpc_async(cell, &Cell::add_slowly, amount).wait());
    case 2:
      return static_cast<void>(cell.in_order().rpc_sync(&Cell::add_slowly, amount));
    case 3:
      return static_cast<void>(cell.remote(&Cell::add, amount).created(Timeout::never()).wait());
    case 4:
      return static_cast<void>(
          cell.in_order().remote(&Cell::add, amount).to_here(Timeout::never()));
    case 5:
      return static_cast<void>(
          calls.remote(cell, &Cell::add_slowly, amount).to_here(Timeout::never()));
    case 6:
      return static_cast<void>(cell.rpc_async(&Cell::add_slowly, amount).wait());
    default: {
      const auto to = static_cast<uint32_t>(dice.draw(here.caller()->names().size()));
      return static_cast<void>(calls.rpc_sync(WorkerId{to}, &add_there, cell, amount));
    }
  }
}

int64_t total_of(const WorkerAccess& here, const RRef<Cell>& given, uint64_t form) {
  const RRef<Cell> cell = given.with_timeout(Timeout::never());
  switch (Dice(Seed{form}, hash_text("total")).draw(4)) {
    case 0:
      return cell.rpc_sync(&Cell::total);
    case 1:
      return here.with_timeout(Timeout::never()).rpc_async(cell, &Cell::total).wait();
    case 2:
      return cell.in_order().rpc_async(&Cell::total).wait();
    default:
      return cell.remote(&Cell::total).to_here(Timeout::never());
  }
}

}  // namespace rehearsal::grammar
