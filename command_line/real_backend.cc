#include "command_line/real_backend.h"

#include "command_line/output_folder.h"
#include "command_line/wrong_use.h"
#include "real_net/run_worker.h"

namespace rehearsal::command_line {
namespace {

// Sees one node, on its strand.
class CallCounter final : public Trace {
 public:
  void on_event(const Event& event) override {
    if (event.kind == EventKind::call_executed) ++calls_;
    if (event.kind == EventKind::frame_sent && event.message_type != 0) ++messages_;
  }
  int64_t calls() const { return calls_; }
  int64_t messages() const { return messages_; }

 private:
  int64_t calls_ = 0;
  int64_t messages_ = 0;
};

// The error of somebody who has been told what to do differently before the run began: a missing
// rank, a rank taken twice, a port in use.
bool is_wrong_use(const Error& error) {
  return error.kind == ErrorKind::bad_arguments && error.worker.empty() && error.function.empty();
}

}  // namespace

RunOutcome serve_real_worker(const RunSettings& settings, const WorkerPlace& place,
                             Reporter& reporter) {
  make_folder("--checkpoints", settings.checkpoints);
  const Program program = settings.scenario->program({settings.options, settings.seed, reporter});
  CallCounter counter;
  real::WorkerOptions options = real::WorkerOptions::from_environment();
  options.placement = {place.rank, place.world_size, place.rendezvous};
  options.listen = real::parse_address(place.listen);
  options.advertise = real::parse_address(place.advertise);
  options.node.seed = settings.seed;
  options.checkpoints = settings.checkpoints;
  options.observe = {.metrics = place.metrics, .spans = place.spans, .log = place.log};
  options.node.mutants = settings.mutants;
  options.trace = &counter;
  options.record = {.folder = settings.record_folder,
                    .bytes = settings.record_bytes,
                    .arguments = run_arguments(settings)};
  const Status status = real::run_worker(options, program);
  if (!status.ok() && is_wrong_use(status.error())) throw WrongUse(status.error().text);
  RunOutcome outcome;
  outcome.ok = status.ok();
  if (!status.ok()) outcome.failure = sim::RunFailure{"error", "", to_string(status.error())};
  outcome.torch_threads = options.torch_threads;
  outcome.calls = counter.calls();
  outcome.messages = counter.messages();
  outcome.results = reporter.results;
  return outcome;
}

}  // namespace rehearsal::command_line
