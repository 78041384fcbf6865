#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/ids.h"

// The programs of the grammar: what they consist of, and what each must give.
namespace rehearsal::grammar {

// A piece of a program. All that it does follows from its word; it has at most so many pieces.
struct Term {
  uint64_t word = 0;
  int64_t size = 1;
  friend void describe(Term& term, auto&& fields) { fields(term.word, term.size); }
};

enum class TermKind : uint8_t {
  leaf,       // adds to each cell
  sum,        // several at once
  caught,     // goes on if its piece fails
  failing,    // fails with what its piece gives
  chained,    // the second piece when the first has ended
  with_cell,  // gives its piece a cell to add to, and looks at it afterwards
  by_name,    // the same, but others find the cell by its name
  visited,    // as with_cell; a value elsewhere adds to the cell, too, when it dies
  streamed,   // one value after another, to the end or not
  in_haste,   // with little time
  endless,    // has something go on for ever, and gives it up
  given_up,   // cancelled at some moment
};

// One piece of a term: where it is evaluated and how, and which of the term's cells it may add to,
// some of them twice.
struct Part {
  Term term;
  WorkerId at;
  uint64_t form = 0;
  std::vector<size_t> cells;
};

// A term, opened: `word` is what its evaluation draws from.
struct Shape {
  TermKind kind{};
  std::vector<Part> parts;
  uint64_t word = 0;
};
// `cells`: how many the term may add to. A new one of `with_cell` or `visited` is behind them.
[[nodiscard]] Shape shape_of(const Term& term, size_t workers, size_t cells);

// The end of an evaluation: a value, or the number of what it failed with.
struct Outcome {
  int64_t value = 0;
  bool fails = false;
  bool operator==(const Outcome&) const = default;
};

// The sequential model: the outcome, and what comes to each of the cells.
struct Meaning {
  Outcome outcome;
  std::vector<int64_t> added;
};
[[nodiscard]] Meaning meaning_of(const Term& term, size_t workers, size_t cells);

// ---- what the model and the evaluation have in common ----

// By a leaf, to the cell in this place.
[[nodiscard]] int64_t amount_of(const Term& leaf, size_t place);
// Of several values, in their order.
[[nodiscard]] int64_t joined(int64_t one, int64_t other);
[[nodiscard]] int64_t start_of_cell(const Shape& shape);
// By whoever finds it by its name, or dies.
[[nodiscard]] int64_t amount_of_other(const Shape& shape);
// The terms of a stream's values, and how many of them are read.
[[nodiscard]] std::vector<Term> items_of(const Term& stream);
[[nodiscard]] size_t read_of(const Shape& shape, size_t items);
// Of a term whose piece may or may not have its time.
[[nodiscard]] Outcome outcome_anyway(const Shape& shape);

}  // namespace rehearsal::grammar
