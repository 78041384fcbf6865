// The grammar's programs: that they consist of all there is, and mean what they do.
#include "scenarios/grammar/grammar.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "scenarios/grammar/functions.h"
#include "scenarios/grammar/term.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/effort.h"

namespace rehearsal::grammar {
namespace {

constexpr size_t kWorkers = 3;

// All terms of a program, opened.
void collect(const Term& term, size_t cells, std::map<TermKind, uint64_t>& kinds) {
  const Shape shape = shape_of(term, kWorkers, cells);
  ++kinds[shape.kind];
  for (const Part& part : shape.parts) collect(part.term, part.cells.size(), kinds);
}

TEST(Grammar, ATermOfEachKindIsDrawn) {
  std::map<TermKind, uint64_t> kinds;
  for (uint64_t word = 1; word <= 200; ++word) collect({word, 12}, 0, kinds);
  EXPECT_EQ(kinds.size(), static_cast<size_t>(TermKind::given_up) + 1);
  for (const auto& [kind, times] : kinds) EXPECT_GT(times, 20u) << static_cast<int>(kind);
}

TEST(Grammar, ATermHasNoMorePiecesThanItsSize) {
  for (uint64_t word = 1; word <= 200; ++word) {
    std::map<TermKind, uint64_t> kinds;
    collect({word, 15}, 0, kinds);
    uint64_t pieces = 0;
    for (const auto& [kind, times] : kinds) pieces += times;
    EXPECT_LE(pieces, 15u);
  }
}

TEST(Grammar, ATermMeansTheSameWhenItIsOpenedAgainAndAnotherSomethingElse) {
  std::set<int64_t> values;
  for (uint64_t word = 1; word <= 100; ++word) {
    const Meaning meaning = meaning_of({word, 10}, kWorkers, 2);
    EXPECT_EQ(meaning.outcome, meaning_of({word, 10}, kWorkers, 2).outcome);
    EXPECT_EQ(meaning.added.size(), 2u);
    values.insert(meaning.outcome.value);
  }
  EXPECT_EQ(values.size(), 100u);
}

// Of a leaf that adds to two cells, of a term that fails, of one that goes on.
TEST(Grammar, TheModelIsThatOfThePieces) {
  const Term leaf{7, 1};
  const Meaning meaning = meaning_of(leaf, kWorkers, 2);
  EXPECT_FALSE(meaning.outcome.fails);
  EXPECT_EQ(meaning.added, (std::vector<int64_t>{amount_of(leaf, 0), amount_of(leaf, 1)}));
  bool failed = false;
  bool caught = false;
  for (uint64_t word = 1; word <= 100; ++word) {
    const Shape shape = shape_of({word, 2}, kWorkers, 0);
    if (shape.parts.size() != 1) continue;
    const Outcome outcome = meaning_of({word, 2}, kWorkers, 0).outcome;
    const int64_t piece =
        joined(0, meaning_of(shape.parts.front().term, kWorkers, 0).outcome.value);
    if (shape.kind == TermKind::failing) {
      failed = true;
      EXPECT_EQ(outcome, (Outcome{joined(piece, 2), true}));
    } else if (shape.kind == TermKind::caught) {
      caught = true;
      EXPECT_EQ(outcome, (Outcome{joined(piece, 0), false}));
    }
  }
  EXPECT_TRUE(failed && caught);
}

// A cell that forgets an amount, an order that is not kept, a failure that is swallowed: all of it
// would show as another value.
TEST(Grammar, AWrongResultIsTold) {
  EXPECT_THROW(expect("a cell", 3, 4), WrongResult);
  EXPECT_NO_THROW(expect("a cell", 3, 3));
  Evaluator evaluator;
  evaluator.take_turn(0, at::Tensor(at::empty({0})));
  EXPECT_THROW(evaluator.take_turn(2, at::Tensor(at::empty({0}))), WrongResult);
}

TEST(Grammar, ProgramsHoldUnderManySeeds) {
  const Scenario scenario = grammar_scenario();
  EXPECT_TRUE(sim::holds_for_seeds(tries(60), [&](Seed seed) {
    Reporter reporter;
    const Options options = scenario.options.parse({}, "tiny");
    const Program program = scenario.program({options, seed, reporter});
    sim::Cluster(seed, program, {.faults = sim::FaultLevel::hostile}).run();
  }));
}

}  // namespace
}  // namespace rehearsal::grammar
