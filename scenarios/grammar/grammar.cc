#include "scenarios/grammar/grammar.h"

#include <ATen/Functions.h>

#include <chrono>

#include "scenarios/grammar/evaluation.h"
#include "scenarios/grammar/meetings.h"
#include "scenarios/grammar/visits.h"
#include "scenarios/storm/dice.h"
#include "scenarios/storm/drawn_faults.h"

namespace rehearsal {
namespace {

using grammar::Term;
using storm::Dice;

bool is_loss(ErrorKind kind) {
  using enum ErrorKind;
  // A worker that has come back is in no meeting of the others.
  return kind == peer_lost || kind == fenced || kind == rref_deleted || kind == timeout ||
         kind == cancelled;
}

Term term_of(const WorkerAccess& worker, Seed seed, int64_t number, int64_t size) {
  Dice dice(seed, mix(hash_text(worker.name()), static_cast<uint64_t>(number)));
  return {dice.word(), 1 + static_cast<int64_t>(dice.draw(static_cast<uint64_t>(size)))};
}

// The outcome of one term, checked.
int64_t evaluate_checked(const Worker& worker, const Term& term) {
  const grammar::Outcome found = grammar::evaluate(worker, term, {});
  const grammar::Outcome expected = meaning_of(term, worker.workers().size(), 0).outcome;
  grammar::expect("whether a term fails", expected.fails ? 1 : 0, found.fails ? 1 : 0);
  grammar::expect("a term", expected.value, found.value);
  return found.value;
}

Program grammar_program(const ScenarioRun& run) {
  const int64_t terms = run.options.integer("terms");
  const int64_t size = run.options.integer("pieces");
  static const Program functions(grammar::functions());  // what a run shares with all others
  Program program = functions;
  program.worker(
      "worker",
      [terms, size, seed = run.seed, &reporter = run.reporter](Worker& worker) {
        worker.set_default_timeout(Timeout::never());
        int64_t digest = 0;
        int64_t lost = 0;
        for (int64_t number = 0; number < terms; ++number) {
          try {
            const Term term = term_of(worker, seed, number, size);
            digest = grammar::joined(digest, evaluate_checked(worker, term));
            if (number + 1 < terms) grammar::meet(worker, seed, number);
          } catch (const RpcError& error) {
            if (!is_loss(error.kind())) throw;
            ++lost;
          } catch (const grammar::Elsewhere&) {
            ++lost;
          }
        }
        // A worker that was restarted says the same once more.
        if (reporter.results.tensors().contains(worker.name())) return;
        reporter.results.tensor(worker.name(), at::full({1}, digest, at::TensorOptions(at::kLong)));
        reporter.results.number("lost terms of " + worker.name(), static_cast<double>(lost));
      },
      Count{static_cast<uint32_t>(run.options.integer("workers"))});
  program.state<grammar::Visits>();
  return program;
}

// Small limits make common what is rare.
void draw_limits(NodeOptions& node, const ScenarioFaults& plan, Seed seed) {
  Dice dice(seed, hash_text("limits"));
  node.rpc_timeout = {};
  if (dice.happens(40)) node.window_frames = 2 + dice.draw(4);
  if (dice.happens(40)) node.execution_limit = static_cast<uint32_t>(1 + dice.draw(2));
  if (dice.happens(30)) node.window_bytes = uint64_t{16 * 1024} << dice.draw(6);
  if (dice.happens(30)) node.peer_timeout = std::chrono::seconds(10 + dice.draw(20));
  if (dice.happens(30)) node.heartbeat = node.peer_timeout / static_cast<int64_t>(3 + dice.draw(6));
  if (!plan.long_partitions && !plan.long_pauses) node.shutdown_timeout = std::chrono::hours(1);
}

// Terms may be lost only where a worker could be.
std::optional<std::string> judge(const Results& results, const ScenarioFaults& plan) {
  return storm::unexcused(results, plan, "lost terms");
}

}  // namespace

Scenario grammar_scenario() {
  Scenario scenario;
  scenario.name = "grammar";
  scenario.summary = "programs drawn from a grammar of all that the API can say";
  scenario.options
      .integer("terms", {.full = 20,
                         .tiny = 3,
                         .min = 1,
                         .max = 100'000,
                         .meaning = "terms of each worker, one after another",
                         .drawn_min = 1,
                         .drawn_max = 4})
      .integer("pieces", {.full = 30,
                          .tiny = 12,
                          .min = 1,
                          .max = 1000,
                          .meaning = "pieces of the largest of them",
                          .drawn_min = 4,
                          .drawn_max = 30})
      .integer("workers", {.full = 4,
                           .tiny = 3,
                           .min = 1,
                           .max = 64,
                           .meaning = "workers of the group",
                           .drawn_min = 2,
                           .drawn_max = 5});
  scenario.program = grammar_program;
  scenario.draw_faults = [](const Options&, Seed seed) {
    return storm::draw_faults(seed, /*crash_percent=*/30, /*restart_percent=*/50);
  };
  scenario.adjust_node = draw_limits;
  scenario.verdict = judge;
  return scenario;
}

}  // namespace rehearsal
