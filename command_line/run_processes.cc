// `run --net tcp`: one process for each worker on this machine.
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <span>
#include <system_error>

#include "command_line/child_process.h"
#include "command_line/commands.h"
#include "command_line/output_files.h"
#include "command_line/output_folder.h"
#include "command_line/spans_file.h"
#include "command_line/temporary_folder.h"
#include "command_line/terminal.h"
#include "command_line/wrong_use.h"
#include "core/base/check.h"
#include "real_net/run_worker.h"
#include "real_net/tcp/socket.h"
#include "real_net/worker/collectives_choice.h"
#include "real_net/worker/proof.h"

namespace rehearsal::command_line {
namespace {

// When one worker has failed, the others have this long to notice and end by themselves: the
// default peer_timeout of 30 s, and time to spare.
constexpr double kGraceSeconds = 60;
constexpr const char* kLoopback = "127.0.0.1";

// Under a launcher, every rank would start a whole cluster.
void refuse_under_launcher(const RunSettings& settings, size_t workers) {
  const auto many = real::launched_as_one_of_many(real::process_environment);
  if (!many) return;
  const std::string count = std::to_string(workers);
  std::vector<std::string> line = {many->launcher};
  if (many->launcher == "torchrun")
    line.insert(line.end(), {"--no-python", "--nproc-per-node", count});
  else
    line.insert(line.end(), {"-n", count});
  line.insert(line.end(), {"rehearsal", "worker", settings.scenario->name, "--seed",
                           std::to_string(settings.seed.value)});
  for (const std::string& assignment : settings.options.assignments())
    line.insert(line.end(), {"--set", assignment});
  const std::string program = line.front();
  line.erase(line.begin());
  const std::string text =
      "--net tcp: " + many->launcher + " has started this command " + std::to_string(many->count) +
      " times, and each would be a cluster of its own; type " + shell_command(program, line);
  real::tell_torchrun(real::process_environment, {.kind = ErrorKind::bad_arguments, .text = text});
  throw WrongUse(text);
}

// So many random bytes, in hexadecimal digits.
std::string random_text(size_t bytes, const char* purpose) {
  std::array<unsigned char, 32> random{};
  REHEARSAL_CHECK(bytes <= random.size(), bytes);
  if (getrandom(random.data(), bytes, 0) != static_cast<ssize_t>(bytes))
    throw std::system_error(errno, std::generic_category(),
                            std::string("no random number for ") + purpose);
  std::string text;
  for (const unsigned char byte : std::span(random).first(bytes)) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

// Keeps this cluster apart from whatever else may meet at the same port.
std::string run_id() {
  if (const auto given = real::process_environment("REHEARSAL_RUN_ID")) return *given;
  return random_text(8, "a run id");
}

// The variables by which the workers of this cluster know each other: those that the user has set,
// else a secret that nobody else has; none where gloo is chosen, which has no use for it.
std::map<std::string, std::string> proof(const RunSettings& settings) {
  const auto variables = [](const std::string& secret, real::Protection protection) {
    const std::string suffix = ",protection=" + std::string(name_of(protection));
    return std::map<std::string, std::string>{
        {"REHEARSAL_AUTH", "secret:env=REHEARSAL_SECRET" + suffix}, {"REHEARSAL_SECRET", secret}};
  };
  if (const auto given = real::process_environment("REHEARSAL_AUTH")) {
    const Result<real::Auth> auth = real::choose_auth(*given, real::process_environment);
    if (!auth.ok()) throw WrongUse(auth.error().text);
    // The workers inherit no descriptor.
    if (given->starts_with("secret:fd="))
      return variables(auth.value().secret, auth.value().protection);
    return {};
  }
  const auto chosen = real::choose_collectives(settings.collectives, real::process_environment, {});
  if (chosen.ok() && chosen.value() == real::Collectives::gloo) return {};
  return variables(random_text(32, "the cluster's secret"), real::Protection::tls);
}

struct WorkerProcess {
  std::string name;
  std::unique_ptr<ChildProcess> process;
  std::optional<RunOutcome> outcome;
};

std::vector<WorkerProcess> start_workers(const Tool& tool, const RunSettings& settings,
                                         const std::vector<std::string>& names,
                                         const std::string& spans_folder) {
  // Handed on to rank 0, so that its port is never anybody else's.
  const real::FileDescriptor rendezvous =
      real::listen_on({.host = kLoopback, .port = 0}).or_throw();
  const std::string port = std::to_string(real::local_address(rendezvous).port);
  const std::string world_size = std::to_string(names.size());
  const std::string id = run_id();
  const std::map<std::string, std::string> secret = proof(settings);
  std::vector<WorkerProcess> workers;
  for (size_t rank = 0; rank < names.size(); ++rank) {
    ChildSetup setup{.arguments = {kWorkerChildCommand},
                     .tool = &tool,
                     .environment = {{"RANK", std::to_string(rank)},
                                     {"WORLD_SIZE", world_size},
                                     {"MASTER_ADDR", kLoopback},
                                     {"MASTER_PORT", port}}};
    if (rank == 0) setup.gives = rendezvous.get();
    setup.environment.insert(secret.begin(), secret.end());
    workers.push_back({names[rank], std::make_unique<ChildProcess>(setup), std::nullopt});
    Json request = to_json(settings);
    request["place"] = {{"rank", rank},
                        {"world_size", names.size()},
                        {"rendezvous", std::string("tcp://") + kLoopback + ":" + port},
                        {"run_id", id},
                        {"spans", spans_folder}};
    if (rank == 0) request["place"]["listening"] = kGivenDescriptor;
    workers.back().process->send(request);
  }
  return workers;
}

void pass_on(const Json& report, WorkerProcess& worker, Reporter& reporter) {
  const std::string kind = report.at("report").get<std::string>();
  if (kind == "line") reporter.line(report.at("text").get<std::string>());
  if (kind == "progress") reporter.progress(report.at("text").get<std::string>());
  if (kind == "outcome") worker.outcome = outcome_from_json(report.at("outcome"));
}

// The failure of a worker that has ended without success, if it did.
std::optional<sim::RunFailure> failure_of(WorkerProcess& worker) {
  if (worker.outcome && worker.outcome->ok) return std::nullopt;
  if (worker.outcome && worker.outcome->failure) {
    sim::RunFailure failure = *worker.outcome->failure;
    if (failure.object.empty()) failure.object = worker.name;
    return failure;
  }
  return sim::RunFailure{"process", worker.name,
                         "ended with " + describe_status(worker.process->wait())};
}

// Follows the workers until all have ended. Returns the first failure, in the order of time: what
// comes later is what it did to the others.
std::optional<sim::RunFailure> follow(std::vector<WorkerProcess>& workers, Reporter& reporter) {
  std::optional<sim::RunFailure> first_failure;
  std::optional<Stopwatch> since_failure;
  std::vector<WorkerProcess*> running;
  for (WorkerProcess& worker : workers) running.push_back(&worker);
  while (!running.empty()) {
    std::vector<ChildProcess*> processes;
    for (const WorkerProcess* worker : running) processes.push_back(worker->process.get());
    wait_for_reports(processes);
    std::vector<WorkerProcess*> still_running;
    for (WorkerProcess* worker : running) {
      for (const Json& report : worker->process->take_reports()) pass_on(report, *worker, reporter);
      if (!worker->process->reports_ended()) {
        still_running.push_back(worker);
      } else if (const auto failure = failure_of(*worker)) {
        reporter.line("a worker failed: " + to_text(*failure));
        if (!first_failure) first_failure = failure;
        if (!since_failure) since_failure.emplace();
      }
    }
    running = std::move(still_running);
    if (since_failure && since_failure->seconds() > kGraceSeconds) {
      for (const WorkerProcess* worker : running) worker->process->kill();
    }
  }
  return first_failure;
}

}  // namespace

RunOutcome run_processes(const Tool& tool, const RunSettings& settings, Reporter& reporter) {
  make_folder("--record", settings.record_folder);
  make_folder("--checkpoints", settings.checkpoints);
  check_output_file("--spans", settings.spans_file);
  Reporter unused;
  const Program program = settings.program(unused);
  refuse_under_launcher(settings, program.names().size());
  const TemporaryFolder folder;
  RunSettings placed = settings;
  if (placed.checkpoints.empty()) placed.checkpoints = folder.file("checkpoints");
  const std::string spans = settings.spans_file.empty() ? "" : folder.file("spans");
  std::vector<WorkerProcess> workers = start_workers(tool, placed, program.names(), spans);
  RunOutcome outcome;
  outcome.failure = follow(workers, reporter);
  outcome.ok = !outcome.failure;
  if (!spans.empty()) merge_spans_files(spans, settings.spans_file, outcome);
  for (const WorkerProcess& worker : workers) {
    if (!worker.outcome) continue;
    outcome.calls += worker.outcome->calls;
    outcome.messages += worker.outcome->messages;
    outcome.torch_threads = std::max(outcome.torch_threads, worker.outcome->torch_threads);
    outcome.results.merge(worker.outcome->results);
  }
  return outcome;
}

}  // namespace rehearsal::command_line
