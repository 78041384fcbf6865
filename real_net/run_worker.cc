#include "real_net/run_worker.h"

#include <ATen/Parallel.h>
#include <sys/random.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/check.h"
#include "core/base/printable.h"
#include "core/fibers/default_generator.h"
#include "core/fibers/wait_queue.h"
#include "real_net/tcp/host_addresses.h"
#include "real_net/tcp/own_addresses.h"
#include "real_net/worker/bounded.h"
#include "real_net/worker/collectives_choice.h"
#include "real_net/worker/devices_check.h"
#include "real_net/worker/group_card.h"
#include "real_net/worker/proof.h"
#include "real_net/worker/real_node.h"
#include "real_net/worker/rendezvous.h"
#include "real_net/worker/shortage.h"
#include "real_net/worker/spin_choice.h"
#include "real_net/worker/threads_choice.h"
#include "record/whole_file.h"

namespace rehearsal::real {
namespace {

// From the failure of a worker that recovers to its next life: longer than the others need to hear
// of the failure, so that their own come before it.
constexpr auto kStartAgain = std::chrono::milliseconds(300);

Incarnation fresh_incarnation(WorkerId worker) {
  uint64_t value = 0;
  while (value == 0) {
    const ssize_t count = getrandom(&value, sizeof value, 0);
    REHEARSAL_CHECK(count == sizeof value || value == 0, count);
  }
  return incarnation_of(worker, value);
}

// How others reach this machine. Looking up the name of the rendezvous may take long.
std::string host_of_this_machine(const Placement& placement) {
  constexpr auto kLimit = std::chrono::seconds(10);
  if (!placement.file.empty()) return "127.0.0.1";
  const std::function<std::string()> work = [placement] {
    return address_towards(placement.master, placement.for_others);
  };
  return within(std::chrono::steady_clock::now() + kLimit, work).value_or("127.0.0.1");
}

// Whether workers of other machines may come: none may before it is said how they prove themselves.
bool may_have_others(const WorkerOptions& options) {
  const Result<Auth> auth = choose_auth(options.auth, options.environment);
  return auth.ok() && auth.value().kind != Auth::Kind::unsaid;
}

void choose_addresses(const WorkerOptions& options, const Placement& placement,
                      RealNodeOptions& made) {
  const std::string host = host_of_this_machine(placement);
  made.listen = options.listen.value_or(Address{.host = host, .port = 0});
  if (is_anywhere(made.listen.host)) made.transport.advertise = Address{.host = host, .port = 0};
  if (options.advertise) made.transport.advertise = options.advertise;
}

PlacementFlags placement_flags(const WorkerOptions& options) {
  PlacementFlags flags = options.placement;
  if (!options.run_id.empty()) flags.run_id = options.run_id;
  return flags;
}

Status check_switches(const Environment& environment) {
  const std::pair<const char*, const char*> switches[] = {
      {"REHEARSAL_STRICT_LEAKS",
       "1 (references that are left at the shutdown are a failure) or 0 (a warning)"},
      {"REHEARSAL_EXCEPTION_TRACES",
       "1 (errors say where their exceptions were thrown) or 0 (they do not)"}};
  for (const auto& [variable, values] : switches) {
    const std::string text = environment(variable).value_or("0");
    if (text != "0" && text != "1")
      return wrong_arguments(variable + ("=" + text) + ": type " + std::string(values));
  }
  return Unit{};
}

Status check_placement(const Placement& placement, const std::vector<std::string>& names) {
  if (names.empty()) return wrong_arguments("the program has no workers");
  if (placement.world_size && *placement.world_size != names.size())
    return wrong_arguments("the program has " + std::to_string(names.size()) +
                           " workers, but the world size (" + placement.launcher + ") is " +
                           std::to_string(*placement.world_size));
  if (names.size() > kWorkersMax)
    return wrong_arguments("the program has " + std::to_string(names.size()) +
                           " workers; a group has at most " + std::to_string(kWorkersMax));
  if (placement.rank >= names.size())
    return wrong_arguments("rank " + std::to_string(placement.rank) + " (" + placement.launcher +
                           ") is not one of the program's " + std::to_string(names.size()) +
                           " workers");
  return Unit{};
}

RealNodeOptions node_options(const WorkerOptions& options, const Placement& placement,
                             const std::vector<std::string>& names, const NodeOptions& node) {
  RealNodeOptions made;
  made.node = node;
  made.node.id = {placement.rank};
  made.node.incarnation = fresh_incarnation({placement.rank});
  made.node.names = names;
  made.node.strict_leaks = options.node.strict_leaks ||
                           options.environment("REHEARSAL_STRICT_LEAKS").value_or("0") == "1";
  made.node.exception_traces =
      options.node.exception_traces ||
      options.environment("REHEARSAL_EXCEPTION_TRACES").value_or("0") == "1";
  made.runtime.torch_threads = options.torch_threads;
  made.lend_from = options.lend_from;
  made.checkpoints = options.checkpoints.empty()
                         ? options.environment("REHEARSAL_CHECKPOINTS").value_or("")
                         : options.checkpoints;
  made.transport.run = placement.run;
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

Status run_node(RealNode& node, const RealNodeOptions& options, Rendezvous& rendezvous,
                Observers& observers) {
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
       .over = [&node](const Error& why) { node.fail_join(why); },
       .waits =
           [&node, &observers](const std::string& word) {
             node.tell_waits([&observers, word](const std::string& what) {
               observers.tell("waits", word + "; " + what);
             });
           }});
  Status status = node.run();
  rendezvous.stop_following();
  const bool ended_well = status.ok() || status.error().kind == ErrorKind::rref_leaked;
  if (ended_well) rendezvous.leave(node.shut_down());
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
                    Observers& observers, bool& starts_again) {
  try {
    RealNode node(options, program);
    tell_metrics_address(node, observers);
    Status status = run_node(node, options, rendezvous, observers);
    starts_again = !status.ok() && node.starts_again();
    if (node.stuck().empty()) return status;
    leave_stuck(node, status, observers.log());
  } catch (const std::exception&) {
    const Error why = error_of_failure(options.node.names[options.node.id.value]);
    rendezvous.give_up(why);
    return why;
  }
}

// The things that a worker needs before it looks for the others.
struct Equipment {
  std::unique_ptr<Observers> observers;
  RealNodeOptions node;
  Collectives collectives = Collectives::own;
  Auth auth;
  std::map<std::string, std::string> settings;  // that all workers have in common
};

Status prove(const WorkerOptions& options, const Placement& placement, Equipment& made) {
  Result<Auth> auth = choose_auth(options.auth, options.environment);
  if (!auth.ok()) return auth.error();
  Observers& observers = *made.observers;
  const Address& listen = made.node.listen;
  const std::optional<Address>& advertise = made.node.transport.advertise;
  if (Status hidden = check_exposure(auth.value(), placement, listen, advertise); !hidden.ok())
    return hidden;
  made.auth = std::move(auth).value();
  if (made.auth.kind == Auth::Kind::none && !is_loopback(listen.host))
    observers.log().write(
        observe::LogLevel::warn, "auth_none",
        {{"why", "whoever reaches " + listen.host + " is believed to be a worker of this group"}});
  made.node.transport.on_unproven = [&observers](const Error& error) {
    observers.tell("unproven", "has refused a connection: " + error.text);
  };
  if (!made.auth.proves()) return Unit{};
  const Credentials::Tell tell = [&observers](const Error& error) {
    observers.tell("certificates", "goes on with the files that it has read: " + error.text);
  };
  Result<std::shared_ptr<Credentials>> credentials = Credentials::make(made.auth, tell);
  if (!credentials.ok()) return credentials.error();
  made.node.transport.credentials = std::move(credentials).value();
  return Unit{};
}

Result<Equipment> equip(const WorkerOptions& options, const Program& program,
                        const Placement& placement) {
  if (!fibers::default_generator_is_ours())
    return wrong_arguments(
        "LibTorch does not ask this program for its default generator, so random numbers "
        "would depend on timing: link LibTorch as a shared library");
  if (!fibers::wait_queue_is_ours())
    return wrong_arguments(
        "Boost.Fiber's primitives do not ask this program before they wait, so a worker that ends "
        "would hang: link the shared library, and one that was not linked with "
        "-Bsymbolic-functions");
  const std::vector<std::string> names = program.names();
  if (Status fits = check_placement(placement, names); !fits.ok()) return fits.error();
  if (Status fits = check_switches(options.environment); !fits.ok()) return fits.error();
  const size_t peers = program.is_dynamic() ? 0 : names.size() - 1;
  if (Status fits = check_descriptors(placement, peers); !fits.ok()) return fits.error();
  Result<std::unique_ptr<Observers>> watching =
      Observers::make(options.observe, options.environment, names, {placement.rank}, options.trace);
  if (!watching.ok()) return watching.error();
  const Result<NodeOptions> timed =
      with_liveness(options.node, options.liveness, options.environment);
  if (!timed.ok()) return timed.error();
  Equipment made{
      std::move(watching).value(), node_options(options, placement, names, timed.value()), {}};
  Observers& observers = *made.observers;
  if (options.torch_threads == 1) use_one_interop_thread(observers.log());
  const Result<Duration> spin = choose_spin(options.spin, options.environment);
  if (!spin.ok()) return spin.error();
  made.node.runtime.spin_max = spin.value();
  const Result<uint32_t> threads =
      choose_worker_threads(options.num_worker_threads, options.environment);
  if (!threads.ok()) return threads.error();
  made.node.runtime.worker_threads = threads.value();
  Result<std::optional<record::RecordOptions>> record =
      record_options(options.record, options.environment, names[placement.rank]);
  if (!record.ok()) return record.error();
  made.node.record = std::move(record).value();
  if (Status fits = check_devices(options.node.devices, made.node.record.has_value()); !fits.ok())
    return fits.error();
  made.node.trace = observers.trace();
  made.node.log = observers.log_trace();
  made.node.slow = observers.slow();
  made.node.slow_passes = observers.slow_passes();
  made.node.long_waits = observers.long_waits();
  made.node.metrics = observers.metrics();
  made.node.transport.on_shortage = [&observers](const Error& error) {
    observers.tell("shortage", "has too little: " + error.text);
  };
  choose_addresses(options, placement, made.node);
  if (Status proves = prove(options, placement, made); !proves.ok()) return proves.error();
  const Result<Collectives> collectives = choose_collectives(
      options.collectives, options.environment,
      {.is_recorded = made.node.record.has_value(), .proves = made.auth.proves()});
  if (!collectives.ok()) return collectives.error();
  made.collectives = collectives.value();
  auto settings = card_settings(options.must_agree);
  if (!settings.ok()) return settings.error();
  made.settings = std::move(settings).value();
  if (options.listen) {  // before anybody is waited for
    if (const auto there = listen_on(*options.listen); !there.ok()) return there.error();
  }
  return made;
}

// The same; what it throws, as an error that the others can be told.
Result<Equipment> equip_or_say_why(const WorkerOptions& options, const Program& program,
                                   const Placement& placement) {
  try {
    return equip(options, program, placement);
  } catch (const std::exception&) {
    return error_of_failure(std::to_string(placement.rank));
  }
}

RendezvousOptions rendezvous_options(const WorkerOptions& options, const Program& program,
                                     const Placement& placement) {
  return {.placement = placement,
          .names = program.names(),
          .timeout = options.node.join_timeout,
          .dynamic = program.is_dynamic(),
          .libtorch = TORCH_VERSION,
          .functions = program.registry().describe()};
}

// Gloo listens where the worker does: never at all addresses of the machine.
std::unique_ptr<GlooCarriers> make_gloo(const RealNodeOptions& node, const Rendezvous& rendezvous) {
  const bool anywhere = is_anywhere(node.listen.host);
  return std::make_unique<GlooCarriers>(
      GlooOptions{.host = anywhere ? node.transport.advertise->host : node.listen.host,
                  .store = rendezvous.store(),
                  .torch_threads = node.runtime.torch_threads});
}

Status run_placed(const WorkerOptions& options, const Program& program, bool& starts_again) {
  Result<Placement> placement = find_placement(placement_flags(options), options.environment);
  if (!placement.ok()) return placement.error();
  placement.value().for_others = may_have_others(options);
  RendezvousOptions meeting = rendezvous_options(options, program, placement.value());
  Result<Equipment> equipped = equip_or_say_why(options, program, placement.value());
  if (!equipped.ok()) {
    if (const auto auth = choose_auth(options.auth, options.environment); auth.ok())
      meeting.auth = auth.value();
    Rendezvous(meeting).refuse(equipped.error());
    return equipped.error();
  }
  Observers& observers = *equipped.value().observers;
  RealNodeOptions& made = equipped.value().node;
  meeting.settings = equipped.value().settings;
  meeting.settings["seed"] = std::to_string(made.node.seed.value);
  meeting.settings["peer_timeout"] = in_words(made.node.peer_timeout);
  meeting.settings["heartbeat"] = in_words(made.node.heartbeat);
  meeting.settings["collectives"] = name_of(equipped.value().collectives);
  meeting.settings["auth"] =
      equipped.value().auth.proves() ? name_of(equipped.value().auth.kind) : "none";
  meeting.auth = equipped.value().auth;
  meeting.credentials = made.transport.credentials;
  meeting.self = made.transport.advertise.value_or(made.listen);
  meeting.tell = [&observers](const std::string& line) { observers.tell("waits", line); };
  Rendezvous rendezvous(std::move(meeting));
  const Result<uint32_t> life = rendezvous.enter();
  if (!life.ok()) return life.error();
  made.node.life = life.value();
  made.node.founds_after = rendezvous.founds_after();
  choose_addresses(options, placement.value(), made);
  const std::unique_ptr<GlooCarriers> carriers =
      equipped.value().collectives == Collectives::gloo ? make_gloo(made, rendezvous) : nullptr;
  made.carriers = carriers.get();
  Status status = run_observed(made, program, rendezvous, observers, starts_again);
  if (starts_again)
    observers.log().write(observe::LogLevel::warn, "starts_again",
                          {{"why", to_string(status.error())}});
  if (Status written = observers.write_spans(); status.ok()) return written;
  return status;
}

Status run_or_say_why(const WorkerOptions& options, const Program& program, bool& starts_again) {
  try {
    return run_placed(options, program, starts_again);
  } catch (const std::exception&) {
    starts_again = false;
    return error_of_failure("");
  }
}

}  // namespace

void tell_torchrun(const Environment& environment, const Error& error) {
  const std::optional<std::string> path = environment("TORCHELASTIC_ERROR_FILE");
  if (!path) return;
  const std::string text = to_string(error);
  const nlohmann::json content = {
      {"message",
       {{"message", text},
        {"extraInfo",
         {{"py_callstack", error.trace.empty() ? text : text + "\n" + error.trace},
          {"timestamp", std::to_string(std::time(nullptr))}}}}}};
  const Status written = record::write_whole_file(
      *path, content.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  if (!written.ok())
    std::fprintf(stderr, "rehearsal: torchrun's error file: %s\n",
                 printable(written.error().text).c_str());
}

Status run_worker(const WorkerOptions& options, const Program& program) {
  bool starts_again = false;
  Status status = run_or_say_why(options, program, starts_again);
  while (std::exchange(starts_again, false)) {
    std::this_thread::sleep_for(kStartAgain);
    status = run_or_say_why(options, program, starts_again);
  }
  if (!status.ok()) tell_torchrun(options.environment, status.error());
  return status;
}

void refuse_to_join(const WorkerOptions& options, const Error& why) {
  tell_torchrun(options.environment, why);
  Result<Placement> placement = find_placement(placement_flags(options), options.environment);
  if (!placement.ok() || placement.value().world_size == 1u) return;
  placement.value().for_others = may_have_others(options);
  const Result<Auth> auth = choose_auth(options.auth, options.environment);
  Rendezvous({.placement = placement.value(),
              .names = {},
              .timeout = options.node.join_timeout,
              .auth = auth.ok() ? auth.value() : Auth{}})
      .refuse(why);
}

}  // namespace rehearsal::real
