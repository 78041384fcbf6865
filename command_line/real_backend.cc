#include "command_line/real_backend.h"

#include <ATen/Context.h>

#include <optional>
#include <stdexcept>

#include "command_line/devices_flag.h"
#include "command_line/output_folder.h"
#include "command_line/wrong_use.h"
#include "real_net/cuda_devices.h"
#include "real_net/run_worker.h"
#include "sim/simulated_devices.h"

namespace rehearsal::command_line {
namespace {

// Sees one node, on its strand.
class CallCounter final : public Trace {
 public:
  void on_event(const Event& event) override {
    if (event.kind == EventKind::call_executed) ++calls_;
    if (event.kind == EventKind::frame_sent && event.message_type != 0) ++messages_;
  }
  bool hears_notes() const override { return false; }
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

real::WorkerOptions options_at(const WorkerPlace& place) {
  real::WorkerOptions options = real::WorkerOptions::from_environment();
  options.placement = {.rank = place.rank,
                       .world_size = place.world_size,
                       .rendezvous = place.rendezvous,
                       .listening = place.listening};
  options.run_id = place.run_id;
  options.auth = place.auth;
  return options;
}

// The others are told if it cannot be used here.
Program program_of(const RunSettings& settings, const WorkerPlace& place, Reporter& reporter) {
  try {
    return settings.program(reporter);
  } catch (const WrongUse& wrong) {
    refuse_real_worker(place, wrong.what());
    throw;
  }
}

// The error, and where its exception was thrown, if that is known.
std::string with_trace(const Error& error) {
  if (error.trace.empty()) return to_string(error);
  const size_t end = error.trace.find_last_not_of('\n');
  return to_string(error) + "\n" + error.trace.substr(0, end + 1);
}

// Those that the settings name; `simulated` has them, if they are. Others are told if there are
// none.
DevicesHere devices_of(const RunSettings& settings, const WorkerPlace& place,
                       std::optional<sim::SimulatedDevices>& simulated) {
  const int count = settings.device_count();
  if (count == 0) return {};
  at::globalContext().setWarnOnAccumulateGradStreamMismatch(false);  // as in simulate
  if (!are_of_cuda(settings.devices)) {
    simulated.emplace(sim::SimulatedDevicesOptions{
        .count = count, .seed = settings.seed.value, .for_all_threads = true});
    return simulated->here();
  }
  Result<DevicesHere> there = real::cuda_devices();
  if (!there.ok()) {
    refuse_real_worker(place, there.error().text);
    throw WrongUse("--devices " + settings.devices + ": " + there.error().text);
  }
  there.value().count = count;
  return there.value();
}

// A wait that is missing fails the worker, as the oracle does that of a simulated one.
void judge_devices(sim::SimulatedDevices& devices, RunOutcome& outcome) {
  try {
    devices.check();
  } catch (const std::runtime_error& found) {
    outcome.ok = false;
    outcome.failure = sim::RunFailure{"device waits", "", found.what()};
  }
}

}  // namespace

void refuse_real_worker(const WorkerPlace& place, const std::string& why) {
  real::refuse_to_join(options_at(place), {.kind = ErrorKind::bad_arguments, .text = why});
}

RunOutcome serve_real_worker(const RunSettings& settings, const WorkerPlace& place,
                             Reporter& reporter) {
  make_folder("--checkpoints", settings.checkpoints);
  const Program program = program_of(settings, place, reporter);
  CallCounter counter;
  real::WorkerOptions options = options_at(place);
  options.must_agree = settings.scenario->options.shared(settings.options);
  options.must_agree["scenario"] = settings.scenario->name;
  if (!settings.devices.empty()) options.must_agree["devices"] = settings.devices;
  options.listen = real::parse_address(place.listen);
  options.advertise = real::parse_address(place.advertise);
  options.node.seed = settings.seed;
  options.liveness = {settings.liveness.peer_timeout, settings.liveness.heartbeat,
                      settings.liveness.refusal_limit};
  options.collectives = settings.collectives;
  options.spin = settings.spin;
  options.checkpoints = settings.checkpoints;
  options.observe = {.metrics = place.metrics, .spans = place.spans, .log = place.log};
  options.node.mutants = settings.mutants;
  options.node.exception_traces = settings.exception_traces;
  options.trace = &counter;
  options.record = {.folder = settings.record_folder,
                    .bytes = settings.record_bytes,
                    .arguments = run_arguments(settings)};
  std::optional<sim::SimulatedDevices> devices;
  options.node.devices = devices_of(settings, place, devices);
  const Status status = real::run_worker(options, program);
  if (!status.ok() && is_wrong_use(status.error())) throw WrongUse(status.error().text);
  RunOutcome outcome;
  outcome.ok = status.ok();
  if (!status.ok()) outcome.failure = sim::RunFailure{"error", "", with_trace(status.error())};
  if (outcome.ok && devices) judge_devices(*devices, outcome);
  outcome.torch_threads = options.torch_threads;
  outcome.calls = counter.calls();
  outcome.messages = counter.messages();
  outcome.results = reporter.results;
  return outcome;
}

}  // namespace rehearsal::command_line
