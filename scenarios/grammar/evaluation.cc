#include "scenarios/grammar/evaluation.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "scenarios/grammar/objects.h"
#include "scenarios/storm/dice.h"

namespace rehearsal::grammar {
namespace {

using std::chrono::microseconds;
using storm::Dice;

// Throws WrongResult unless all that a worker is told of itself and the others is right.
void look_around(const WorkerAccess& here) {
  const WorkerInfo self = here.info();
  const std::vector<WorkerInfo> all = here.workers();
  expect("a worker's own name", 1, self.name == here.name() && self.id == here.id() ? 1 : 0);
  for (size_t rank = 0; rank < all.size(); ++rank)
    expect("the rank of a worker", static_cast<int64_t>(rank), all[rank].id.value);
  expect("the worker of a name", self.id.value, here.worker_info(self.name).id.value);
  bool is_member = false;
  for (const WorkerInfo& member : here.members()) is_member |= member.id == self.id;
  expect("whether a worker is a member", 1, is_member ? 1 : 0);
  expect("the time of calls", 0, here.rpc_timeout().count());
  expect("whether there are tables", 1, here.debug_info().empty() ? 0 : 1);
  const Instant before = here.now();
  const Future<Unit> shorter = here.after(microseconds(4));
  const Future<Unit> longer = here.after(microseconds(10));
  static_cast<void>(here.when_all(IfOneFails::cancel_rest, shorter, longer).wait());
  static_cast<void>(here.when_all(shorter, longer).wait());
  const std::vector<Result<Unit>> outcomes =
      here.collect_all(IfOneFails::cancel_rest, std::vector{shorter, longer}).wait();
  expect("the number of outcomes", 2, static_cast<int64_t>(outcomes.size()));
  const auto [first, second] = here.collect_all(IfOneFails::cancel_rest, shorter, longer).wait();
  expect("whether both have come", 1, first.ok() && second.ok() ? 1 : 0);
  expect("whether time has passed", 1, here.now() - before >= microseconds(10) ? 1 : 0);
}

// One term under evaluation.
class Evaluation {
 public:
  Evaluation(const WorkerAccess& here, const Term& term, const Scope& scope)
      : here_(here),
        term_(term),
        scope_(scope),
        workers_(here.caller()->names().size()),
        shape_(shape_of(term, workers_, scope.cells.size())),
        dice_(Seed{shape_.word}, hash_text("evaluation")) {}

  Outcome run() {
    switch (shape_.kind) {
      case TermKind::leaf:
        return leaf();
      case TermKind::sum:
        return all();
      case TermKind::caught: {
        const Outcome outcome = only();
        return {joined(outcome.value, outcome.fails ? 1 : 0), false};
      }
      case TermKind::failing:
        return {joined(only().value, 2), true};
      case TermKind::chained:
        return chained();
      case TermKind::with_cell:
        return with_cell();
      case TermKind::by_name:
        return by_name();
      case TermKind::visited:
        return visited();
      case TermKind::streamed:
        return streamed();
      case TermKind::in_haste:
        return in_haste();
      case TermKind::endless:
        return endless();
      case TermKind::given_up:
        return given_up();
    }
    throw std::logic_error("a term of no kind");
  }

 private:
  Outcome leaf() {
    if (dice_.happens(10)) look_around(here_);
    for (size_t place = 0; place < scope_.cells.size(); ++place)
      add(here_, scope_.cells[place], amount_of(term_, place), dice_.word());
    return {static_cast<int64_t>(shape_.word), false};
  }

  // All pieces at once, or one after another; some of them share a tensor.
  Outcome all() {
    const at::Tensor shared = ballast();
    const bool collects = dice_.happens(25);
    Outcome outcome;
    for (const Outcome& part : collects ? collected(shared) : waited_for(shared)) {
      if (part.fails) return part;
      outcome.value = joined(outcome.value, part.value);
    }
    return outcome;
  }

  std::vector<Outcome> waited_for(const at::Tensor& shared) {
    const bool at_once = dice_.happens(60);
    std::vector<Wait> begun;
    std::vector<Outcome> ended;
    for (const Part& part : shape_.parts) {
      begun.push_back(begin(here_, part, scope_with(part, shared)));
      if (!at_once) ended.push_back(outcome_of(begun.back()));
    }
    if (at_once)
      for (const Wait& wait : begun) ended.push_back(outcome_of(wait));
    return ended;
  }

  std::vector<Outcome> collected(const at::Tensor& shared) {
    std::vector<Future<int64_t>> begun;
    for (const Part& part : shape_.parts)
      begun.push_back(begin_later(here_, part, scope_with(part, shared)));
    const size_t first = when_any(begun).wait();
    expect("whether the first of several is complete", 1, begun.at(first).ready() ? 1 : 0);
    if (begun.size() == 2) {
      const auto [one, other] = here_.collect_all(begun[0], begun[1]).wait();
      return {outcome_of(one), outcome_of(other)};
    }
    std::vector<Outcome> ended;
    for (const Result<int64_t>& result : here_.collect_all(begun).wait())
      ended.push_back(outcome_of(result));
    return ended;
  }

  Outcome only() {
    const Part& part = shape_.parts.front();
    const Outcome outcome = outcome_of(begin(here_, part, scope_of(part, {})));
    return outcome.fails ? outcome : Outcome{joined(0, outcome.value), false};
  }

  // The second piece is begun by a continuation of the first.
  Outcome chained() {
    if (shape_.parts.size() < 2) return only();
    const Part& first = shape_.parts[0];
    const Part& second = shape_.parts[1];
    const WorkerAccess here = here_;
    const Future<int64_t> both =
        here.with_timeout(Timeout::never())
            .rpc_async(first.at, &evaluate_there, first.term, scope_of(first, {}))
            .then([here, second, scope = scope_of(second, {})](int64_t value) {
              return begin_later(here, second, scope).then([value](int64_t next) {
                return joined(joined(0, value), next);
              });
            });
    return outcome_of([&both] { return both.wait(); });
  }

  Outcome with_cell() {
    const RRef<Cell> cell = make_cell();
    const Part& part = shape_.parts.front();
    const Outcome outcome = outcome_of(begin(here_, part, scope_of(part, cell)));
    const int64_t total = total_of(here_, cell, dice_.word());
    expect("a cell", expected_total(), total);
    return behind(outcome, total);
  }

  Outcome by_name() {
    const RRef<Cell> cell = make_cell();
    const std::string name = to_string(*cell.name());
    here_.publish(name, cell);
    const Part& part = shape_.parts.front();
    const Outcome outcome = outcome_of(begin(here_, part, scope_of(part, {})));
    const int64_t total = here_.rpc_sync(anybody(), &add_by_name, int64_t{here_.id().value}, name,
                                         amount_of_other(shape_));
    here_.unpublish(name);
    expect("a cell found by its name", start_of_cell(shape_) + amount_of_other(shape_), total);
    return behind(outcome, total);
  }

  Outcome visited() {
    const Calls calls = here_.with_timeout(Timeout::never());
    const RRef<Cell> cell = make_cell();
    const WorkerId owner = anybody();
    const auto number = static_cast<int64_t>(shape_.word);
    std::optional<RRef<Visitor>> visitor =
        calls.remote<Visitor>(owner, cell, amount_of_other(shape_), number);
    // Its worker has lost the visitor if it has lost this one.
    const RRef<Cell> beside = calls.remote<Cell>(owner, int64_t{0});
    const Part& part = shape_.parts.front();
    const Outcome outcome = outcome_of(begin(here_, part, scope_of(part, cell)));
    visitor->created(Timeout::never()).wait();
    visitor.reset();
    return behind(outcome, total_after_visit(cell, beside, number));
  }

  int64_t total_after_visit(const RRef<Cell>& cell, const RRef<Cell>& beside, int64_t number) {
    const Calls calls = here_.with_timeout(Timeout::never());
    const int64_t expected = expected_total() + amount_of_other(shape_);
    const uint64_t form = dice_.word();
    for (microseconds waited(0), pause(100); total_of(here_, cell, form) != expected;
         waited += pause, pause = std::min(2 * pause, microseconds(1'000'000))) {
      if (calls.rpc_sync(beside.owner(), &missed_visit, number))
        throw RpcError({.kind = ErrorKind::peer_lost,
                        .text = "a value that was to add to a cell has found it lost",
                        .worker = beside.owner().name});
      static_cast<void>(calls.rpc_sync(beside, &Cell::total));
      if (waited > std::chrono::seconds(300)) break;
      here_.sleep(pause);
    }
    const int64_t total = total_of(here_, cell, form);
    expect("a cell after a visit", expected, total);
    return total;
  }

  // Gives it so much time, or gives it up then.
  Outcome endless() {
    const WorkerId at = shape_.parts.front().at;
    const auto patience = microseconds(1 + dice_.draw(5000));
    const bool in_time = dice_.happens(50);
    const Calls calls = here_.with_timeout(in_time ? Timeout(patience) : Timeout::never());
    const uint64_t way = dice_.draw(3);
    if (way == 2) return read_for_ever(calls, at, in_time ? 1'000'000 : dice_.draw(10));
    const Future<int64_t> future = way == 0 ? calls.rpc_async(at, &go_on_for_ever, ballast())
                                            : calls.rpc_async(at, &wait_for_ever);
    if (!in_time) {
      here_.sleep(patience);
      future.cancel();
    }
    const Result<int64_t> result = future.result();
    if (result.ok()) throw WrongResult("something without an end has ended");
    const ErrorKind expected = in_time ? ErrorKind::timeout : ErrorKind::cancelled;
    if (result.error().kind != expected) throw RpcError(result.error());
    return outcome_anyway(shape_);
  }

  // Some values, or all that come in time.
  Outcome read_for_ever(const Calls& calls, WorkerId at, uint64_t wanted) {
    Stream<int64_t> stream = calls.rpc_stream(at, &write_for_ever);
    try {
      for (uint64_t read = 0; read < wanted; ++read)
        expect("a value of an endless stream", static_cast<int64_t>(read), next(stream));
    } catch (const RpcError& error) {
      if (error.kind() != ErrorKind::timeout) throw;
    }
    return outcome_anyway(shape_);
  }

  Outcome streamed() {
    const size_t items = items_of(term_).size();
    const size_t wanted = read_of(shape_, items);
    Stream<int64_t> stream = here_.with_timeout(Timeout::never())
                                 .with_credit(1 + dice_.draw(6))
                                 .rpc_stream(shape_.parts.front().at, &evaluate_items, term_);
    Outcome read;
    const Outcome outcome = outcome_of([&] {
      for (size_t i = 0; i < wanted; ++i) read.value = joined(read.value, next(stream));
      if (wanted == items && stream.next())
        throw WrongResult("a stream has more values than its items");
      return read.value;
    });
    if (!outcome.fails && wanted < items && dice_.happens(50)) see_cancelled(stream);
    return outcome;
  }

  int64_t next(Stream<int64_t>& stream) {
    const std::optional<int64_t> value =
        dice_.happens(50) ? stream.next() : stream.next_async().wait();
    if (!value) throw WrongResult("a stream ended before its last value");
    return *value;
  }

  // Values that had come are given first.
  static void see_cancelled(Stream<int64_t>& stream) {
    stream.cancel();
    try {
      while (stream.next()) {
      }
    } catch (const RpcError& error) {
      if (error.kind() != ErrorKind::cancelled) throw;
    } catch (const Failure&) {
    }
  }

  Outcome in_haste() {
    const Part& part = shape_.parts.front();
    const auto patience = microseconds(1 + dice_.draw(uint64_t{1} << dice_.draw(15)));
    try {
      expect_right(outcome_of([&] {
        return here_.with_timeout(patience).rpc_sync(part.at, &evaluate_there, part.term,
                                                     scope_of(part, {}));
      }));
    } catch (const RpcError& error) {
      if (error.kind() != ErrorKind::timeout) throw;
    }
    return outcome_anyway(shape_);
  }

  Outcome given_up() {
    const Part& part = shape_.parts.front();
    const Future<int64_t> future =
        here_.with_timeout(Timeout::never())
            .rpc_async(part.at, &evaluate_there, part.term, scope_of(part, {}));
    if (dice_.happens(60)) here_.sleep(microseconds(dice_.draw(3000)));
    future.cancel();
    try {
      expect_right(outcome_of([&future] { return future.wait(); }));
    } catch (const RpcError& error) {
      if (error.kind() != ErrorKind::cancelled) throw;
    }
    return outcome_anyway(shape_);
  }

  void expect_right(const Outcome& found) {
    const Outcome expected = meaning_of(shape_.parts.front().term, workers_, 0).outcome;
    expect("whether a hasty term fails", expected.fails ? 1 : 0, found.fails ? 1 : 0);
    expect("a hasty term", expected.value, found.value);
  }

  static Outcome behind(const Outcome& outcome, int64_t total) {
    return outcome.fails ? outcome : Outcome{joined(joined(0, outcome.value), total), false};
  }

  int64_t expected_total() const {
    const Part& part = shape_.parts.front();
    const Meaning meaning = meaning_of(part.term, workers_, part.cells.size());
    int64_t total = start_of_cell(shape_);
    for (size_t i = 0; i < part.cells.size(); ++i)
      if (part.cells[i] == scope_.cells.size()) total += meaning.added[i];
    return total;
  }

  WorkerId anybody() { return WorkerId{static_cast<uint32_t>(dice_.draw(workers_))}; }

  RRef<Cell> make_cell() {
    const int64_t start = start_of_cell(shape_);
    if (dice_.happens(25)) return here_.rref(Cell(start));
    return here_.with_timeout(Timeout::never()).remote<Cell>(anybody(), start);
  }

  // Most messages are small; some are so large that they take the other lane.
  at::Tensor ballast() {
    const uint64_t size = dice_.draw(100);
    if (size < 60) return at::ones({0});
    if (size < 85) return at::ones({static_cast<int64_t>(1 + dice_.draw(8))});
    return at::ones({static_cast<int64_t>(16 * 1024 + dice_.draw(16 * 1024))});
  }

  // Some of them share the tensor.
  Scope scope_with(const Part& part, const at::Tensor& shared) {
    Scope scope = scope_of(part, {});
    if (dice_.happens(40)) scope.ballast = shared;
    return scope;
  }

  Scope scope_of(const Part& part, const RRef<Cell>& own) {
    Scope scope{.cells = {}, .ballast = ballast()};
    for (const size_t cell : part.cells)
      scope.cells.push_back(cell < scope_.cells.size() ? scope_.cells[cell] : own);
    return scope;
  }

  const WorkerAccess& here_;
  const Term term_;
  const Scope& scope_;
  const size_t workers_;
  const Shape shape_;
  Dice dice_;
};

}  // namespace

Outcome evaluate(const WorkerAccess& here, const Term& term, const Scope& scope) {
  return Evaluation(here, term, scope).run();
}

Outcome outcome_of(const Wait& wait) {
  try {
    return {wait(), false};
  } catch (const Failure& failure) {
    return {failure.number, true};
  } catch (const RpcError& error) {
    // A creation that has failed keeps the text of its exception alone.
    const std::string& text = error.error().text;
    const size_t place = text.find(kFailsWith);
    if (error.kind() != ErrorKind::remote_exception || place == std::string::npos) throw;
    return {std::stoll(text.substr(place + std::string(kFailsWith).size())), true};
  }
}

}  // namespace rehearsal::grammar
