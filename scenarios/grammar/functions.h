#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/program.h"
#include "core/api/rref.h"
#include "scenarios/grammar/term.h"

// The values and functions of the grammar's programs.
namespace rehearsal::grammar {

// A result that is not the sequential model's.
class WrongResult : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void expect(const std::string& what, int64_t expected, int64_t found);

// A term that fails, with the number that the model gives it.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
  explicit Failure(int64_t failing);
  int64_t number = 0;
  friend void describe(Failure& failure, auto&& fields) { fields(failure.number); }
};

// A number that others add to. Additions commute, so its total does not depend on their order.
class Cell {
 public:
  explicit Cell(int64_t start) : total_(start) {}
  int64_t add(int64_t amount) { return total_ += amount; }
  // Looks away between reading and writing: only the monitor makes it right.
  int64_t add_slowly(CallContext& context, int64_t amount);
  int64_t total() const { return total_; }

 private:
  int64_t total_;
};

// All that is sent beside a term: the cells that it may add to, and a tensor of ones that decides
// on which lane the message travels.
struct Scope {
  std::vector<RRef<Cell>> cells;
  at::Tensor ballast;
  friend void describe(Scope& scope, auto&& fields) { fields(scope.cells, scope.ballast); }
};

// That user code runs neither before its references are confirmed, nor with another's tensor, nor
// for anybody else. Throws WrongResult.
void check(const CallContext& context, const Scope& scope);
// Throws Failure if it fails.
[[nodiscard]] int64_t value_of(const Outcome& outcome);

// The value of a term, evaluated where the function runs. Throws Failure if the term fails.
int64_t evaluate_there(CallContext& context, const Term& term, const Scope& scope);
// The same, as part of a trace of that number.
int64_t evaluate_traced(CallContext& context, const std::string& trace, const Term& term,
                        const Scope& scope);
// The same with asynchronous execution, by a continuation.
Future<int64_t> evaluate_later(CallContext& context, const Term& term, const Scope& scope);
// The same as the only value of a stream.
void evaluate_in_stream(CallContext& context, StreamWriter<int64_t>& out, const Term& term,
                        const Scope& scope);
// The values of a stream's items, one after another.
void evaluate_items(CallContext& context, StreamWriter<int64_t>& out, const Term& stream);

// The scope's cells, one after another, over and over until there are fifty.
void lend_cells(CallContext& context, StreamWriter<RRef<Cell>>& out, const Scope& scope);

// Three without an end: one sees that it is given up, one is a promise that nobody completes, one
// gives one value after another. The ballast makes the message that asks for it small or large.
int64_t go_on_for_ever(CallContext& context, const at::Tensor& ballast);
Future<int64_t> wait_for_ever(CallContext& context);
void write_for_ever(CallContext& context, StreamWriter<int64_t>& out);

// An object that evaluates, and knows how often it was asked.
class Evaluator {
 public:
  Evaluator() = default;
  // Counts the calls. Throws WrongResult if this is not the one of this number.
  void take_turn(int64_t number, const at::Tensor& ballast);
  int64_t evaluate(CallContext& context, int64_t number, const Term& term, const Scope& scope);
  // Once, as the only value of a stream.
  void evaluate_in_stream(CallContext& context, StreamWriter<int64_t>& out, const Term& term,
                          const Scope& scope);

 private:
  int64_t turns_ = 0;
};

int64_t look(CallContext& context, const RRef<int64_t>& number);
void add_there(CallContext& context, const RRef<Cell>& cell, int64_t amount);
// The cell is found by the name under which that worker has published it. The total afterwards.
int64_t add_by_name(CallContext& context, int64_t publisher, const std::string& name,
                    int64_t amount);

[[nodiscard]] FunctionRegistry functions();

}  // namespace rehearsal::grammar
