#include "scenarios/grammar/term.h"

#include <algorithm>

#include "scenarios/storm/dice.h"

namespace rehearsal::grammar {
namespace {

using storm::Dice;

constexpr int64_t kPartsMax = 4;

TermKind kind_of(Dice& dice) {
  using enum TermKind;
  static constexpr TermKind kKinds[] = {sum,     sum,      sum,       caught,    caught,    failing,
                                        chained, chained,  with_cell, with_cell, with_cell, by_name,
                                        visited, streamed, in_haste,  endless,   given_up};
  return kKinds[dice.draw(std::size(kKinds))];
}

// Nobody knows how much a term has done that is given up, or has little time.
bool may_add(TermKind kind) {
  using enum TermKind;
  return kind != in_haste && kind != given_up && kind != streamed && kind != endless;
}

bool has_own_cell(TermKind kind) {
  return kind == TermKind::with_cell || kind == TermKind::visited;
}

size_t parts_of(TermKind kind, int64_t budget, Dice& dice) {
  if (kind == TermKind::sum)
    return 1 + static_cast<size_t>(dice.draw(static_cast<uint64_t>(std::min(budget, kPartsMax))));
  if (kind == TermKind::chained) return budget >= 2 ? 2 : 1;
  return 1;
}

std::vector<size_t> some_of(size_t cells, Dice& dice) {
  std::vector<size_t> some;
  for (size_t cell = 0; cell < cells; ++cell) {
    if (dice.happens(70)) some.push_back(cell);
    if (dice.happens(10)) some.push_back(cell);
  }
  return some;
}

// The outcomes of the pieces, in their order; the first that fails decides.
Outcome all_of(const std::vector<Meaning>& parts) {
  Outcome all;
  for (const Meaning& part : parts) {
    if (part.outcome.fails) return part.outcome;
    all.value = joined(all.value, part.outcome.value);
  }
  return all;
}

Outcome stream_outcome(const Term& term, const Shape& shape, size_t workers) {
  const std::vector<Term> items = items_of(term);
  Outcome read;
  for (size_t i = 0; i < read_of(shape, items.size()); ++i) {
    const Outcome item = meaning_of(items[i], workers, 0).outcome;
    if (item.fails) return item;
    read.value = joined(read.value, item.value);
  }
  return read;
}

}  // namespace

Shape shape_of(const Term& term, size_t workers, size_t cells) {
  Dice dice(Seed{term.word}, hash_text("term"));
  Shape shape;
  shape.word = dice.word();
  if (term.size <= 1) return shape;
  shape.kind = kind_of(dice);
  const int64_t budget = term.size - 1;
  const auto count = static_cast<int64_t>(parts_of(shape.kind, budget, dice));
  for (int64_t i = 0; i < count; ++i) {
    Part& part = shape.parts.emplace_back();
    part.term = {dice.word(), budget / count + (i < budget % count ? 1 : 0)};
    part.at = WorkerId{static_cast<uint32_t>(dice.draw(workers))};
    part.form = dice.word();
    if (may_add(shape.kind)) part.cells = some_of(cells, dice);
    if (has_own_cell(shape.kind)) part.cells.push_back(cells);
  }
  return shape;
}

Meaning meaning_of(const Term& term, size_t workers, size_t cells) {
  const Shape shape = shape_of(term, workers, cells);
  Meaning meaning{.outcome = {}, .added = std::vector<int64_t>(cells)};
  int64_t own_cell = start_of_cell(shape);
  std::vector<Meaning> parts;
  for (const Part& part : shape.parts) {
    // The second of a chain comes only behind a first that does not fail.
    if (shape.kind == TermKind::chained && !parts.empty() && parts.front().outcome.fails) break;
    Meaning& made = parts.emplace_back(meaning_of(part.term, workers, part.cells.size()));
    for (size_t i = 0; i < part.cells.size(); ++i)
      (part.cells[i] < cells ? meaning.added[part.cells[i]] : own_cell) += made.added[i];
  }
  Outcome& outcome = meaning.outcome;
  outcome = all_of(parts);
  switch (shape.kind) {
    case TermKind::leaf:
      outcome.value = static_cast<int64_t>(shape.word);
      for (size_t place = 0; place < cells; ++place) meaning.added[place] += amount_of(term, place);
      break;
    case TermKind::sum:
    case TermKind::chained:
      break;
    case TermKind::caught:
      outcome = {joined(outcome.value, outcome.fails ? 1 : 0), false};
      break;
    case TermKind::failing:
      outcome = {joined(outcome.value, 2), true};
      break;
    case TermKind::with_cell:
      if (!outcome.fails) outcome.value = joined(outcome.value, own_cell);
      break;
    case TermKind::by_name:
    case TermKind::visited:
      if (!outcome.fails) outcome.value = joined(outcome.value, own_cell + amount_of_other(shape));
      break;
    case TermKind::streamed:
      outcome = stream_outcome(term, shape, workers);
      break;
    case TermKind::in_haste:
    case TermKind::endless:
    case TermKind::given_up:
      outcome = outcome_anyway(shape);
      break;
  }
  return meaning;
}

int64_t amount_of(const Term& leaf, size_t place) {
  return 1 + static_cast<int64_t>((mix(leaf.word, place) >> 1) % 1000);
}

int64_t joined(int64_t one, int64_t other) {
  return static_cast<int64_t>(mix(static_cast<uint64_t>(one), static_cast<uint64_t>(other)) >> 1);
}

int64_t start_of_cell(const Shape& shape) { return static_cast<int64_t>(shape.word % 1000); }

int64_t amount_of_other(const Shape& shape) { return static_cast<int64_t>(shape.word % 77); }

std::vector<Term> items_of(const Term& stream) {
  Dice dice(Seed{stream.word}, hash_text("items"));
  std::vector<Term> items(dice.draw(6));
  const auto share = std::max<int64_t>(1, stream.size / (1 + static_cast<int64_t>(items.size())));
  for (Term& item : items) item = {dice.word(), share};
  return items;
}

size_t read_of(const Shape& shape, size_t items) {
  Dice dice(Seed{shape.word}, hash_text("read"));
  return dice.happens(60) ? items : static_cast<size_t>(dice.draw(items + 1));
}

Outcome outcome_anyway(const Shape& shape) { return {static_cast<int64_t>(shape.word), false}; }

}  // namespace rehearsal::grammar
