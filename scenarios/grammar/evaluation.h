#pragma once

#include <functional>

#include "core/api/worker_access.h"
#include "scenarios/grammar/functions.h"
#include "scenarios/grammar/term.h"

// How terms are evaluated: what each kind does, and the forms in which it has its pieces evaluated.
namespace rehearsal::grammar {

inline constexpr const char* kFailsWith = "the term fails with ";

// Evaluates the term here; its pieces wherever it says. Parks. Throws WrongResult, and the RpcError
// of what fails because a worker is lost, or because this execution is given up.
[[nodiscard]] Outcome evaluate(const WorkerAccess& here, const Term& term, const Scope& scope);

// The end of something that was begun: parks, and throws Failure or RpcError.
using Wait = std::function<int64_t()>;

// Begins to evaluate a piece at its worker, in its form. Some forms end it, too. `scope` is the
// piece's own. It holds `here`, which outlives it.
[[nodiscard]] Wait begin(const WorkerAccess& here, const Part& part, const Scope& scope);
// The same in a form that never parks, as continuations must not.
[[nodiscard]] Future<int64_t> begin_later(const WorkerAccess& here, const Part& part,
                                          const Scope& scope);

// Adds to the cell, in one of the forms in which a program can, and waits until that is done.
void add(const WorkerAccess& here, const RRef<Cell>& cell, int64_t amount, uint64_t form);
// The sum that is in it.
[[nodiscard]] int64_t total_of(const WorkerAccess& here, const RRef<Cell>& cell, uint64_t form);

// Throws the RpcError of anything but a failing term.
[[nodiscard]] Outcome outcome_of(const Wait& wait);
[[nodiscard]] inline Outcome outcome_of(const Result<int64_t>& result) {
  return outcome_of([&result] { return Result<int64_t>(result).or_throw(); });
}

}  // namespace rehearsal::grammar
