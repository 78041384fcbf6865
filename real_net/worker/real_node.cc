#include "real_net/worker/real_node.h"

#include <ATen/Context.h>

#include <algorithm>

#include "core/api/program.h"
#include "core/base/check.h"
#include "observe/metrics_text.h"
#include "real_net/worker/cuda_ipc.h"
#include "real_net/worker/machine_lending.h"

namespace rehearsal::real {
namespace {

TransportOptions transport_options(const RealNodeOptions& options) {
  TransportOptions transport = options.transport;
  transport.names = options.node.names;
  transport.seed = options.node.seed;
  return transport;
}

RuntimeOptions runtime_options(const RealNodeOptions& options) {
  RuntimeOptions runtime = options.runtime;
  runtime.devices = options.node.devices;
  runtime.worker = options.node.names.at(options.node.id.value);
  return runtime;
}

RealNodeOptions with_lending(RealNodeOptions options) {
  const DevicesHere& devices = options.node.devices;
  if (devices.count == 0 || options.node.lending != nullptr) return options;
  std::shared_ptr<IpcMemory> ipc = devices.type == c10::kCUDA ? cuda_ipc() : nullptr;
  options.node.lending =
      std::make_shared<MachineLending>(std::move(ipc), devices, options.lend_from);
  return options;
}

SlabPoolOptions pool_options(const DevicesHere& devices) {
  if (devices.count == 0) return {};
  return {.pinned = at::globalContext().getPinnedMemoryAllocator(devices.type)};
}

TcpTransport& listening(TcpTransport& transport, const Address& address) {
  transport.listen(address).or_throw();
  return transport;
}

}  // namespace

RealNode::RealNode(RealNodeOptions options, const Program& program)
    : options_(with_lending(std::move(options))),
      pool_(pool_options(options_.node.devices)),
      runtime_(std::make_shared<RealRuntime>(runtime_options(options_))),
      transport_(*runtime_, pool_, transport_options(options_)),
      checkpoints_(options_.checkpoints, options_.node.names.at(options_.node.id.value)),
      metrics_(options_.metrics
                   ? std::make_unique<observe::Metrics>(options_.node.names, options_.node.id)
                   : nullptr),
      metrics_server_(metrics_ == nullptr
                          ? nullptr
                          : std::make_unique<MetricsServer>(
                                *runtime_, MetricsServerOptions{.address = *options_.metrics},
                                [this] { return metrics_text(snapshot()); })),
      timed_(timed()),
      recording_(recording()),
      node_(options_.node, program, environment()) {
  if (recording_ != nullptr) start_recording();
  if (metrics_server_ != nullptr) runtime_->post([this] { metrics_server_->start(); });
  if (options_.slow != nullptr) runtime_->post([this] { look_for_slow(); });
}

observe::MetricsSnapshot RealNode::snapshot() const {
  observe::MetricsSnapshot made = metrics_->snapshot(runtime_->now());
  made.send_functions = node_.census().send_functions;
  made.peaks = node_.peaks();
  const RealRuntime::PollingCounts polling = runtime_->polling_counts();
  made.polling = {.looks = polling.looks,
                  .yields = polling.yields,
                  .sleeps = polling.sleeps,
                  .wakes = polling.wakes};
  return made;
}

// Its timer runs also while every thread that runs executions is busy.
void RealNode::look_for_slow() {
  const Duration interval = std::clamp<Duration>(
      options_.slow->after() / 4, std::chrono::milliseconds(10), std::chrono::seconds(1));
  const Instant now = runtime_->now();
  options_.slow->look(now);
  if (options_.slow_passes != nullptr)
    options_.slow_passes->look(now, [this] { return node_.waits().others; });
  if (options_.long_waits != nullptr && node_.code_waits() > 0)
    options_.long_waits->look(node_.waits().stacks);
  runtime_->call_at(now + interval, [this] { look_for_slow(); });
}

void RealNode::Timed::on_event(const Event& event) {
  Event timed = event;
  timed.when = runtime_.now();
  traces_.on_event(timed);
  if (log_ != nullptr) log_->on_event(timed);
}

std::unique_ptr<RealNode::Timed> RealNode::timed() {
  observe::Traces traces;
  traces.add(options_.trace);
  traces.add(metrics_.get());
  if (traces.empty()) return nullptr;
  return std::make_unique<Timed>(*runtime_, std::move(traces), options_.log);
}

void RealNode::Course::on_event(const Event& event) {
  // Nothing runs at a worker that has not joined.
  if (event.kind == EventKind::execution_started) joined_ = true;
  if (next_ != nullptr) next_->on_event(event);
}

RealNode::Course& RealNode::trace() {
  course_.set_next(timed_ != nullptr ? timed_.get() : options_.log);
  return course_;
}

std::optional<Address> RealNode::metrics_address() const {
  if (metrics_server_ == nullptr) return std::nullopt;
  return metrics_server_->address();
}

std::unique_ptr<RealNode::Recording> RealNode::recording() {
  if (!options_.record) return nullptr;
  auto recorder = std::make_shared<record::Recorder>(*options_.record);
  auto runtime = std::make_shared<record::RecordingRuntime>(runtime_, *runtime_, recorder);
  record::RecordingCheckpoints checkpoints(checkpoints_, *runtime);
  return std::make_unique<Recording>(
      Recording{std::move(runtime), record::RecordingTransport(transport_, *recorder),
                record::RecordingTrace(trace(), *recorder), checkpoints, std::nullopt});
}

Node::Environment RealNode::environment() {
  listening(transport_, options_.listen);
  if (recording_ != nullptr)
    return {.runtime = recording_->runtime,
            .executions = recording_->runtime.get(),
            .transport = &recording_->transport,
            .trace = &recording_->trace,
            .checkpoints = &recording_->checkpoints,
            .carriers = options_.carriers};
  return {.runtime = runtime_,
          .executions = runtime_.get(),
          .transport = &transport_,
          .trace = &trace(),
          .checkpoints = &checkpoints_,
          .carriers = options_.carriers};
}

void RealNode::start_recording() {
  recording_->sink.emplace(node_.sink(), *recording_->runtime);
  recording_->runtime->recorder()
      .start({.greeting = node_.hello().greeting,
              .torch_threads = options_.runtime.torch_threads,
              .node = options_.node})
      .or_throw();
}

RealNode::~RealNode() {
  REHEARSAL_CHECK(stuck_.empty(), stuck_.front());
  runtime_->stop();
}

void RealNode::set_address(WorkerId peer, const Address& address) {
  runtime_->post([this, peer, address] { transport_.set_address(peer, address); });
}

void RealNode::abort(const Error& why) {
  runtime_->post([this, why] { abort_now(why); });
}

void RealNode::fail_join(const Error& why) {
  runtime_->post([this, why] {
    if (!joined()) abort_now(why);
  });
}

// On the strand.
void RealNode::abort_now(const Error& why) {
  if (recording_ == nullptr) return node_.abort(why);
  recording_->runtime->enter([&] { node_.abort(why); }, record::Aborted{why});
}

void RealNode::tell_waits(std::function<void(const std::string&)> tell) {
  runtime_->post([this, tell = std::move(tell)] {
    std::string waits = node_.waits().others;
    while (waits.ends_with('\n')) waits.pop_back();
    std::replace(waits.begin(), waits.end(), '\n', ';');
    if (!waits.empty()) tell(waits);
  });
}

Status RealNode::run() {
  const auto guard = runtime_->register_main(node_.main_execution());
  FrameSink& sink = recording_ != nullptr ? *recording_->sink : node_.sink();
  runtime_->post([this, &sink] { transport_.start(node_.hello(), sink); });
  Status status = run_main();
  leave_network();
  wait_for_executions();
  if (stuck_.empty()) let_go();
  if (options_.carriers != nullptr) options_.carriers->stop();
  return status;
}

Status RealNode::run_main() {
  if (recording_ == nullptr) return node_.run_main();
  Status status = recording_->runtime->run_main([this] { return node_.run_main(); });
  runtime_->post([this, status] { recording_->runtime->recorder().end(status); });
  return status;
}

// Ends what a node that failed still holds, in executions, where destructors may do anything. They
// are behind the end of the record.
void RealNode::let_go() {
  Waiter gone;
  const auto drop = [this, &gone] {
    node_.let_go();
    runtime_->wake(gone);
  };
  if (recording_ == nullptr)
    runtime_->post(drop);
  else
    recording_->runtime->post(drop);
  REHEARSAL_CHECK(runtime_->park(gone) == ParkOutcome::woken);
  wait_for_executions();
}

void RealNode::wait_for_executions() {
  if (!runtime_->wait_for_executions(options_.unwind_timeout)) stuck_ = runtime_->live_labels();
}

// Queued frames still leave; bounded by the transport's own limit.
void RealNode::leave_network() {
  Waiter stopped;
  runtime_->post([this, &stopped] {
    transport_.stop();
    transport_.when_stopped([this, &stopped] { runtime_->wake(stopped); });
  });
  const ParkOutcome outcome = runtime_->park(stopped);
  REHEARSAL_CHECK(outcome == ParkOutcome::woken);
}

}  // namespace rehearsal::real
