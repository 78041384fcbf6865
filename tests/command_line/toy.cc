#include "tests/command_line/toy.h"

#include <ATen/Functions.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "command_line/run_stream.h"
#include "command_line/wrong_use.h"
#include "core/base/check.h"
#include "sim/explain/history_file.h"
#include "sim/hunt/choice_lists.h"

namespace rehearsal::command_line::toy {
namespace {

constexpr int64_t kNever = -1;

Program toy_program(const ScenarioRun& run) {
  if (run.options.integer("unusable") == 1) throw WrongUse("the toy cannot be used like this");
  Program program{FunctionRegistry{}};
  program.worker("leader", [](Worker&) {});
  program.worker(
      "follower", [](Worker&) {}, Count{static_cast<uint32_t>(run.options.integer("followers"))});
  return program;
}

bool is(const RunSettings& settings, const char* option) {
  return settings.options.integer(option) == static_cast<int64_t>(settings.seed.value);
}

// One call from the leader to the follower.
void write_history(const RunSettings& settings) {
  if (settings.history_file.empty()) return;
  std::ofstream file(settings.history_file);
  sim::HistoryWriter history(file);
  history.begin({"leader", "follower0"});
  history.add({.event = EventKind::frame_sent,
               .worker = 0,
               .peer = 1,
               .id = "00000007#0",
               .message_type = 1,
               .number = 1});
  history.add(
      {.kind = sim::EntryKind::sent, .worker = 0, .peer = 1, .message_type = 1, .number = 1});
  history.add({.kind = sim::EntryKind::arrived, .worker = 1, .peer = 0, .number = 1});
  history.add({.event = EventKind::frame, .worker = 1, .peer = 0, .id = "00000007#0"});
}

constexpr const char* kCut = "cut:1.0>0.0#7.0=1";
constexpr const char* kHold = "hold:1.2#0.2=3";

bool has(const std::vector<sim::Override>& decisions, const char* decision) {
  return std::any_of(decisions.begin(), decisions.end(),
                     [decision](const sim::Override& made) { return to_string(made) == decision; });
}

// A run that fails because of a cut and of the order that `walk` chose: for which a step was held
// back. The cut alone breaks something else.
void fail_by_decisions(const RunSettings& settings, RunOutcome& outcome) {
  const std::vector<sim::Override> all =
      sim::parse_overrides({"latency:1.0>0.0#1.0=5", kCut, "pick:#3.0=2", kHold});
  if (settings.record) outcome.choices = all;
  const std::vector<sim::Override>& made = settings.benign ? settings.decisions : all;
  const bool ordered = settings.benign ? has(made, kHold) : settings.strategy == "walk";
  if (!has(made, kCut)) return;
  outcome.ok = false;
  outcome.failure = ordered ? sim::RunFailure{"toy oracle", "object 7", "it broke"}
                            : sim::RunFailure{"other oracle", "thing", "it bent"};
}

// A run with 400 cuts, which fails because of one of them.
void fail_by_one_cut(const RunSettings& settings, RunOutcome& outcome) {
  std::vector<std::string> all;
  for (int message = 0; message < 400; ++message)
    all.push_back("cut:1.0>0.0#" + std::to_string(message) + ".0=1");
  if (settings.record) outcome.choices = sim::parse_overrides(all);
  if (settings.benign && !has(settings.decisions, kCut)) return;
  outcome.ok = false;
  outcome.failure = sim::RunFailure{"toy oracle", "object 7", "it broke"};
}

// The need of two decisions, of a run that ends its process: which leaves what it has chosen in a
// file.
void die_by_decisions(const RunSettings& settings) {
  RunSettings recorded = settings;
  recorded.record = true;
  RunOutcome outcome;
  outcome.ok = true;
  fail_by_decisions(recorded, outcome);
  std::ofstream choices(settings.choices_file);
  for (const std::string& choice : sim::texts_of(outcome.choices)) {
    if (choice == kHold) choices << "hold:1.2#0.2=1\n";  // It grows.
    choices << choice << std::endl;
  }
  choices << "cut:1.0>0.0#99" << std::flush;
  std::cerr << "a run begins" << std::endl;
  const bool is_intact = outcome.ok || outcome.failure->oracle != "toy oracle";
  REHEARSAL_CHECK(is_intact, settings.seed.value);
  REHEARSAL_CHECK(outcome.ok, "bent");
}

RunOutcome simulate(const RunSettings& settings, Reporter& reporter) {
  const uint64_t seed = settings.seed.value;
  write_history(settings);
  reporter.line("line of seed " + std::to_string(seed));
  if (is(settings, "abort_at")) std::abort();
  if (is(settings, "dies_at")) die_by_decisions(settings);
  while (is(settings, "hang_at")) sleep(1);
  const char* user = std::getenv("LOGNAME");
  const bool perturbed = user != nullptr && std::string(user) == "somebody";
  const bool drifts = is(settings, "drift_at") && perturbed;
  RunOutcome outcome;
  if (!settings.trace_file.empty()) {
    RunStream trace(settings.trace_file);
    *trace.stream() << "start\n" << (drifts ? "drifted" : "straight") << "\nend\n";
    outcome.unwritten = trace.close();
  }
  outcome.decisions = {{"follower0", 3}, {"leader", 4}};
  const bool fatal_crash = settings.crash_at && settings.crash_at->worker == "leader" &&
                           settings.crash_at->decision == 2 && is(settings, "fragile_at");
  outcome.ok = !is(settings, "fail_at") && !fatal_crash;
  if (!outcome.ok) outcome.failure = sim::RunFailure{"toy oracle", "object 7", "it broke"};
  if (is(settings, "needs_at")) fail_by_decisions(settings, outcome);
  if (is(settings, "cut_at")) fail_by_one_cut(settings, outcome);
  outcome.fingerprint = std::to_string(seed * 1000 + (drifts ? 1 : 0));
  if (is(settings, "flaky_at")) *outcome.fingerprint += std::to_string(getpid());
  if (settings.tell_coverage) outcome.coverage = {1, 2 + static_cast<uint32_t>(seed % 3)};
  outcome.virtual_seconds = 1.5;
  outcome.calls = 3;
  outcome.messages = 4;
  reporter.results.number("half", static_cast<double>(seed) / 2);
  reporter.results.tensor("weight", at::full({2, 2}, static_cast<double>(seed)));
  reporter.results.tensor("bias", at::zeros({2}));
  outcome.results = reporter.results;
  return outcome;
}

RunOutcome serve(const RunSettings& settings, const WorkerPlace& place, Reporter& reporter) {
  const char* variable = std::getenv("RANK");
  if (!place.rank && variable == nullptr) throw WrongUse("no rank: set RANK or type --rank");
  const int64_t rank = place.rank ? int64_t{*place.rank} : std::stoll(variable);
  if (settings.options.integer("abort_at") == rank) std::abort();
  RunOutcome outcome;
  outcome.ok = settings.options.integer("fail_at") != rank;
  if (!outcome.ok) outcome.failure = sim::RunFailure{"error", "", "peer_lost: leader"};
  outcome.calls = 3;
  outcome.messages = 4;
  if (rank == 0) {
    reporter.line("leader at " + std::string(std::getenv("MASTER_ADDR")));
    const auto seed = static_cast<double>(settings.seed.value);
    reporter.results.tensor("weight", at::full({2, 2}, seed));
    reporter.results.number("half", seed / 2);
  }
  if (rank == 1) reporter.results.tensor("bias", at::zeros({2}));
  outcome.results = reporter.results;
  return outcome;
}

}  // namespace

std::vector<Scenario> scenarios() {
  Scenario toy;
  toy.name = "toy";
  toy.summary = "what a test asks for";
  const auto seed_option = [&](const char* name, const char* meaning) {
    toy.options.integer(name, {kNever, kNever, kNever, 1'000'000, meaning});
  };
  seed_option("fail_at", "seed, or rank, that fails");
  seed_option("abort_at", "seed, or rank, that aborts");
  seed_option("drift_at", "seed that depends on the environment");
  seed_option("fragile_at", "seed that does not survive a crash of the leader at 2");
  seed_option("hang_at", "seed that never ends");
  seed_option("needs_at", "seed that fails because of some decisions");
  seed_option("cut_at", "seed that fails because of one of many decisions");
  seed_option("dies_at", "seed that ends its process because of the same decisions");
  seed_option("flaky_at", "seed whose run is another one in every process");
  toy.options.integer("unusable", {0, 0, 0, 1, "1: the program refuses"})
      .integer("followers", {2, 1, 1, 9, "workers beside the leader"})
      .real("rate", {0.5, 0.25, 0, 1, "a number"})
      .path("file", {"/dev/null", "a file"});
  toy.program = toy_program;
  Scenario other = toy;
  other.name = "other";
  other.draw_faults = [](const Options&, Seed seed) {
    return ScenarioFaults{
        .faults = seed.value % 2 == 0 ? sim::FaultLevel::hostile : sim::FaultLevel::none,
        .crashes = 1,
        .restarts = sim::Restart::amnesia,
        .long_partitions = true,
        .long_pauses = true};
  };
  return {toy, other};
}

Backends backends() {
  return {.simulate = simulate,
          .serve = serve,
          .strategies = {"swarm", "walk"},
          .portfolio = nullptr,
          .networks = {"near", "far"},
          .fault_classes = {"resets", "partitions"},
          .mutants = {"no_fencing"},
          .check_strategy = nullptr,
          .check_redraw = nullptr};
}

}  // namespace rehearsal::command_line::toy
