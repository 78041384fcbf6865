#include "real_net/run_worker.h"

#include <ATen/Parallel.h>
#include <sys/random.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/check.h"
#include "core/fibers/default_generator.h"
#include "real_net/worker/real_node.h"
#include "real_net/worker/rendezvous.h"

namespace rehearsal::real {
namespace {

Error wrong(std::string text) {
  return {.kind = ErrorKind::bad_arguments, .text = std::move(text)};
}

Incarnation fresh_incarnation() {
  uint64_t value = 0;
  while (value == 0) {
    const ssize_t count = getrandom(&value, sizeof value, 0);
    REHEARSAL_CHECK(count == sizeof value || value == 0, count);
  }
  return {value};
}

// torchrun shows its users what this file says.
void write_error_file(const WorkerOptions& options, const Error& error) {
  const std::optional<std::string> path = options.environment("TORCHELASTIC_ERROR_FILE");
  if (!path) return;
  const nlohmann::json content = {
      {"message",
       {{"message", to_string(error)},
        {"extraInfo", {{"py_callstack", ""}, {"timestamp", std::to_string(std::time(nullptr))}}}}}};
  std::ofstream(*path) << content.dump();
}

Status check_placement(const Placement& placement, const std::vector<std::string>& names) {
  if (names.empty()) return wrong("the program has no workers");
  if (placement.world_size && *placement.world_size != names.size())
    return wrong("the program has " + std::to_string(names.size()) +
                 " workers, but the world size (" + placement.launcher + ") is " +
                 std::to_string(*placement.world_size));
  if (placement.rank >= names.size())
    return wrong("rank " + std::to_string(placement.rank) + " (" + placement.launcher +
                 ") is not one of the program's " + std::to_string(names.size()) + " workers");
  return Unit{};
}

RealNodeOptions node_options(const WorkerOptions& options, const Placement& placement,
                             const std::vector<std::string>& names) {
  RealNodeOptions made;
  made.node = options.node;
  made.node.id = {placement.rank};
  made.node.incarnation = fresh_incarnation();
  made.node.names = names;
  made.runtime.worker_threads = options.num_worker_threads;
  made.runtime.torch_threads = options.torch_threads;
  made.checkpoints = options.checkpoints.empty()
                         ? options.environment("REHEARSAL_CHECKPOINTS").value_or("")
                         : options.checkpoints;
  const bool by_file = !placement.file.empty();
  const std::string host = by_file ? "127.0.0.1" : address_towards(placement.master);
  made.listen = options.listen.value_or(Address{.host = host, .port = 0});
  const bool anywhere = made.listen.host == "0.0.0.0" || made.listen.host == "::";
  if (anywhere) made.transport.advertise = Address{.host = host, .port = 0};
  if (options.advertise) made.transport.advertise = options.advertise;
  return made;
}

// A user who asked for any free port must be told which it is.
void tell_metrics_address(const RealNode& node, Observers& observers) {
  if (!node.metrics_address()) return;
  const std::string url = "http://" + to_string(*node.metrics_address()) + "/metrics";
  observers.log().write(observe::LogLevel::info, "metrics", {{"url", url}});
  if (observers.metrics()->port == 0)
    std::fprintf(stderr, "rehearsal: metrics are at %s\n", url.c_str());
}

Status run_node(RealNode& node, const RealNodeOptions& options, Rendezvous& rendezvous) {
  const WorkerId self = options.node.id;
  const Result<Members> members =
      rendezvous.meet({.name = options.node.names[self.value],
                       .address = node.reached_at(),
                       .incarnation = options.node.incarnation,
                       .world_size = static_cast<uint32_t>(options.node.names.size())});
  if (!members.ok()) return members.error();
  for (uint32_t rank = 0; rank < members.value().size(); ++rank)
    if (rank != self.value && members.value()[rank])
      node.set_address({rank}, members.value()[rank]->address);
  rendezvous.follow(
      {.joined = [&node] { return node.joined(); },
       .moved = [&node](WorkerId peer, const Address& address) { node.set_address(peer, address); },
       .over = [&node](const Error& why) { node.abort(why); }});
  Status status = node.run();
  rendezvous.stop_following();
  if (status.ok()) rendezvous.leave(node.shut_down());
  return status;
}

[[noreturn]] void leave_stuck(const RealNode& node, const Status& status, observe::Log& log) {
  using enum observe::LogLevel;
  if (!status.ok()) log.write(error, "failed", {{"why", to_string(status.error())}});
  for (const std::string& label : node.stuck())
    log.write(error, "stuck",
              {{"function", label},
               {"why", "it does not end although it was told to; the process is left without it"}});
  std::fflush(nullptr);
  std::_Exit(1);
}

// Only TorchScript's `fork` uses these threads. A program that has started them keeps them.
void use_one_interop_thread(observe::Log& log) {
  if (at::get_num_interop_threads() == 1) return;
  try {
    at::set_num_interop_threads(1);
  } catch (const c10::Error&) {
    log.write(observe::LogLevel::warn, "interop_threads",
              {{"count", std::to_string(at::get_num_interop_threads())},
               {"why", "the program has started LibTorch's inter-op threads before"}});
  }
}

Status run_observed(const RealNodeOptions& options, const Program& program, Rendezvous& rendezvous,
                    Observers& observers) {
  try {
    RealNode node(options, program);
    tell_metrics_address(node, observers);
    Status status = run_node(node, options, rendezvous);
    if (node.stuck().empty()) return status;
    leave_stuck(node, status, observers.log());
  } catch (const RpcError& error) {
    rendezvous.give_up(error.error());
    return error.error();
  }
}

Status run_placed(const WorkerOptions& options, const Program& program) {
  if (!fibers::default_generator_is_ours())
    return wrong(
        "LibTorch does not ask this program for its default generator, so random numbers "
        "would depend on timing: link LibTorch as a shared library");
  Result<Placement> placement = find_placement(options.placement, options.environment);
  if (!placement.ok()) return placement.error();
  const std::vector<std::string> names = program.names();
  if (Status fits = check_placement(placement.value(), names); !fits.ok()) return fits.error();
  Result<std::unique_ptr<Observers>> watching = Observers::make(
      options.observe, options.environment, names, {placement.value().rank}, options.trace);
  if (!watching.ok()) return watching.error();
  Observers& observers = *watching.value();
  if (options.torch_threads == 1) use_one_interop_thread(observers.log());
  RealNodeOptions made = node_options(options, placement.value(), names);
  Result<std::optional<record::RecordOptions>> record =
      record_options(options.record, options.environment, names[placement.value().rank]);
  if (!record.ok()) return record.error();
  made.record = std::move(record).value();
  made.trace = observers.trace();
  made.log = observers.log_trace();
  made.metrics = observers.metrics();
  if (options.listen) {  // before anybody is waited for
    if (const auto there = listen_on(*options.listen); !there.ok()) return there.error();
  }
  Rendezvous rendezvous({.placement = placement.value(),
                         .names = names,
                         .timeout = options.node.join_timeout,
                         .dynamic = program.is_dynamic()});
  const Result<uint32_t> life = rendezvous.enter();
  if (!life.ok()) return life.error();
  made.node.life = life.value();
  Status status = run_observed(made, program, rendezvous, observers);
  if (Status written = observers.write_spans(); status.ok()) return written;
  return status;
}

}  // namespace

uint32_t WorkerOptions::default_worker_threads() {
  return std::max(2u, std::thread::hardware_concurrency());
}

Status run_worker(const WorkerOptions& options, const Program& program) {
  Status status = run_placed(options, program);
  if (!status.ok()) write_error_file(options, status.error());
  return status;
}

}  // namespace rehearsal::real
