#pragma once

#include <cstdint>

#include "core/api/batcher.h"
#include "scenarios/grammar/functions.h"

// Values of the grammar's programs that call on their own: one that evaluates in batches, one that
// adds to a cell when it dies.
namespace rehearsal::grammar {

class BatchEvaluator {
 public:
  // Batches of at most so many terms; the first one waits so many microseconds for others.
  BatchEvaluator(CallContext& context, int64_t size, int64_t delay);
  // Throws Failure if the term fails; the others of its batch go on.
  Future<int64_t> evaluate(CallContext& context, const Term& term, const Scope& scope);
  void flush() { batcher_.flush(); }

 private:
  struct Item {
    Term term;
    Scope scope;
  };
  Batcher<Item, Outcome> batcher_;
};

class Visitor {
 public:
  // `number`: by which missed_visit knows it.
  Visitor(CallContext& context, const RRef<Cell>& cell, int64_t amount, int64_t number);
  Visitor(Visitor&&) = default;
  Visitor& operator=(Visitor&&) = delete;
  // Adds the amount, unless the cell is lost: then its worker notes that. Parks.
  ~Visitor();

 private:
  WorkerAccess here_;
  RRef<Cell> cell_;
  int64_t amount_;
  int64_t number_;
};

// Whether the visitor of that number, which has lived here, has found its cell lost.
bool missed_visit(CallContext& context, int64_t number);

void register_objects(FunctionRegistry& registry);

}  // namespace rehearsal::grammar
