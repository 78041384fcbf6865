#include "command_line/flags.h"

#include <CLI/CLI.hpp>

#include "command_line/help_texts.h"

namespace rehearsal::command_line {
namespace {

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

class FlagsOf {
 public:
  FlagsOf(CLI::App& app, Flags& flags, const std::string& command, const Backends& backends)
      : app_(app), flags_(flags), command_(command), backends_(backends) {}
  void declare();

 private:
  void declare_worker_flags();
  void declare_devices_flag();
  void declare_run_flags();
  void declare_search_flags();
  void declare_explore_flags();
  void declare_coverage();
  void declare_mutants();
  void declare_record_flags();
  void declare_liveness_flags();
  void text_flag(const std::string& flag, std::string& value, const std::string& meaning) {
    app_.add_option(flag, value, meaning);
  }

  CLI::App& app_;
  Flags& flags_;
  const std::string& command_;
  const Backends& backends_;
};

void FlagsOf::declare() {
  if (command_ == "verify") app_.description(kVerifyHelp);
  app_.footer("Examples:\n" + examples_of(command_) + "\n" + kExitStatus);
  app_.add_flag("--json", flags_.json, "One JSON object on standard output, nothing else");
  if (command_ == "list") {
    app_.add_flag("--mutants", flags_.mutant_list,
                  "The rules that --mutant can leave out instead; builds for tests only");
    return;
  }
  if (command_ == "run" || command_ == "hunt" || command_ == "verify" || command_ == "merge")
    text_flag("--junit", flags_.junit, "File for the result as JUnit's XML, as CI systems read it");
  if (command_ == "merge") {
    app_.add_option("FILE", flags_.names, "What 'hunt --shard I/N --json' printed, all N of them");
    return;
  }
  app_.add_option("NAME", flags_.names,
                  command_ == "hunt"
                      ? "Scenarios; 'rehearsal list' shows them [all, each in several ways]"
                      : "Scenario; 'rehearsal list' shows them");
  app_.add_option(
          "--set", flags_.set,
          command_ == "hunt" || command_ == "verify"
              ? "Option of the scenario, key=value; may be repeated [some drawn by the seed]"
              : "Option of the scenario, key=value; may be repeated")
      ->allow_extra_args(false);
  if (command_ == "worker") return declare_worker_flags();
  if (command_ == "explore") return declare_explore_flags();
  declare_run_flags();
  if (command_ == "run" || command_ == "shrink") {
    text_flag("--seed", flags_.seed, "Seed of the run [1]");
    text_flag("--crash-at", flags_.crash_at, "WORKER:N, a crash before its event N, from 0");
    app_.add_option("--redraw", flags_.redraws,
                    "SALT/N, draws one choice in N anew; may be repeated")
        ->allow_extra_args(false);
    app_.add_flag("--benign", flags_.benign, "What --decide does not give is benign, not drawn");
    app_.add_option("--decide", flags_.decisions,
                    "KEY=VALUE, one choice of the run; may be repeated")
        ->allow_extra_args(false);
  }
  if (command_ == "shrink") {
    text_flag("--for", flags_.time, "What it may take: 60s, 5m, 60s-cpu, 500runs [60s-cpu]");
    text_flag("--out", flags_.directory, "File for what is left, to be replayed");
  } else if (command_ == "run") {
    text_flag("--net", flags_.net, "sim: one process, virtual time; tcp: processes here [sim]");
    text_flag("--checkpoints", flags_.checkpoints,
              "With --net tcp: folder for what workers save [a temporary one]");
    declare_record_flags();
    declare_liveness_flags();
    text_flag("--compare", flags_.compare,
              "Earlier output of run --json; names the first tensor "
              "that differs");
    text_flag("--trace", flags_.trace, "File for all events of a simulated run, one line each");
    text_flag("--spans", flags_.spans, "File for the spans of all calls, for ui.perfetto.dev");
    app_.add_flag("--exception-traces", flags_.exception_traces,
                  "A failure says where its exception was thrown; 'replay' does");
  } else {
    declare_search_flags();
  }
}

void FlagsOf::declare_devices_flag() {
  const std::string same = command_ == "worker" ? "; the same at all workers" : "";
  text_flag("--devices", flags_.devices,
            "Simulated devices of each worker, which compute later: 1 to 64, or drawn (1 to 4); "
            "over TCP also cuda:N, so many GPUs; for scenarios that place tensors on devices "
            "[none]" +
                same);
}

void FlagsOf::declare_worker_flags() {
  text_flag("--seed", flags_.seed, "Seed of the run [1]; the same at all workers");
  declare_devices_flag();
  text_flag("--rank", flags_.rank, "Rank of this worker [from the environment]");
  text_flag("--world-size", flags_.world_size, "Number of workers [from the environment]");
  text_flag("--rendezvous", flags_.rendezvous,
            "env://, tcp://host:port or file:///path [env://: MASTER_ADDR and MASTER_PORT]");
  text_flag("--run-id", flags_.run_id,
            "Name of this launch, the same at all workers: others never mix with it "
            "[REHEARSAL_RUN_ID, or the launcher's]");
  text_flag(
      "--listen", flags_.listen,
      "HOST:PORT, where this worker listens [the address towards the rendezvous, a free port]");
  text_flag("--advertise", flags_.advertise,
            "HOST:PORT, where the others reach it, if that is elsewhere: behind a container, a "
            "proxy [where it listens]");
  text_flag(
      "--auth", flags_.auth,
      "How workers prove that they belong together: secret:file=PATH, secret:env=VARIABLE, "
      "secret:fd=DESCRIPTOR, certificates:cert=PATH,key=PATH,ca=PATH[,crl=PATH] or none; with "
      ",protection=mac behind it links can be read, not changed, and are faster "
      "[REHEARSAL_AUTH; without it nobody but this machine may reach it]");
  text_flag("--checkpoints", flags_.checkpoints,
            "Folder for what workers save [REHEARSAL_CHECKPOINTS, or none]");
  text_flag("--metrics-port", flags_.metrics_port,
            "Port for GET /metrics on loopback, or HOST:PORT; 0: a free one, which is told "
            "[REHEARSAL_METRICS, or none]");
  text_flag("--spans", flags_.spans,
            "Folder for WORKER.spans.json, for ui.perfetto.dev [REHEARSAL_SPANS, or none]");
  text_flag("--log", flags_.log,
            "What standard error tells: debug, info, warn, error or off [REHEARSAL_LOG, or warn]");
  declare_record_flags();
  declare_liveness_flags();
  app_.add_flag("--exception-traces", flags_.exception_traces,
                "Errors say where their exception was thrown [REHEARSAL_EXCEPTION_TRACES=1]");
}

void FlagsOf::declare_liveness_flags() {
  const std::string where = command_ == "run" ? "With --net tcp: " : "";
  text_flag("--peer-timeout", flags_.peer_timeout,
            where + "Silence after which a worker is given up [REHEARSAL_PEER_TIMEOUT, or 30s]");
  text_flag("--heartbeat", flags_.heartbeat,
            where + "How often an idle link says that it lives [REHEARSAL_HEARTBEAT, or 5s]");
  text_flag("--refusal-limit", flags_.refusal_limit,
            where +
                "How long its port refuses connections until a worker is given up; 0: that "
                "proves nothing [REHEARSAL_REFUSAL_LIMIT, or 1500ms]");
  text_flag("--spin", flags_.spin,
            where +
                "How long a thread that waits looks again and again before it sleeps; 0: it "
                "sleeps at once [REHEARSAL_SPIN, or 60us]");
  text_flag("--collectives", flags_.collectives,
            where +
                "own: calls carry all that process groups do; gloo: it carries their large "
                "tensors, at all workers [REHEARSAL_COLLECTIVES, or own]");
}

void FlagsOf::declare_run_flags() {
  text_flag(
      "--faults", flags_.faults,
      "none, mild or hostile; crashes, restarts, long partitions and long pauses have flags of "
      "their own [mild, or drawn by the scenario]");
  text_flag("--crashes", flags_.crashes, "Workers that crash [0, or drawn by the scenario]");
  text_flag("--mad", flags_.mad, "Workers that also say what is not true: 0 or 1 [0]");
  declare_devices_flag();
  text_flag(
      "--restarts", flags_.restarts,
      "Whether they come back: never, amnesia (without what they saved), checkpoint (with it) "
      "or drawn [never, or drawn by the scenario]");
  text_flag("--partitions", flags_.partitions,
            "long: partitions that outlive peer_timeout [short, or drawn by the scenario]");
  text_flag("--pauses", flags_.pauses,
            "long: workers that stand still, and clocks that jump, for longer than peer_timeout "
            "[short, or drawn by the scenario]");
  text_flag("--network", flags_.network,
            "How links behave: " + listed(backends_.networks) + " [drawn with the faults]");
  app_.add_option("--without", flags_.without,
                  "Classes of faults to leave out, of " + listed(backends_.fault_classes))
      ->delimiter(',')
      ->allow_extra_args(false);
  text_flag("--strategy", flags_.strategy,
            command_ == "hunt"
                ? "How the order of events is chosen; delays:bound=D: all within D [portfolio]"
            : command_ == "verify"
                ? "How the order of events is chosen [each seed another one]"
                : "How the order of events is chosen [" + backends_.strategies.front() + "]");
  text_flag("--watchdog", flags_.watchdog,
            "A simulated run without an event for so long, by the machine's clock, hangs and has "
            "failed; 0: it may [10s]");
  text_flag("--virtual-time-max", flags_.virtual_time_max,
            "A simulated run that lasts longer in virtual time has failed; 0: it may [168h]");
  declare_mutants();
}

void FlagsOf::declare_mutants() {
  app_.add_option("--mutant", flags_.mutants,
                  "Leave out one rule of the protocol, to test an oracle; builds for tests only")
      ->allow_extra_args(false);
}

void FlagsOf::declare_record_flags() {
  text_flag("--record", flags_.record,
            std::string(command_ == "run" ? "With --net tcp: folder" : "Folder") +
                " for NAME.record, all that reaches worker NAME, for 'replay' [REHEARSAL_RECORD]");
  text_flag("--record-size", flags_.record_size,
            "Bytes of each record, 4K to 4G; the oldest of them give way [256M]");
}

void FlagsOf::declare_coverage() {
  app_.add_flag("--coverage", flags_.coverage,
                "Tells which messages met which, what their receivers held, and what broke under "
                "them, in how many runs");
}

void FlagsOf::declare_explore_flags() {
  text_flag("--seed", flags_.seed, "Seed of the program [1]");
  declare_mutants();
  text_flag("--for", flags_.time,
            "What it may take: 60s, 5m, 60s-cpu, 500runs [until all is explored]");
  text_flag("--schedule", flags_.schedule, "Only this one, as a failure prints it");
  declare_coverage();
  app_.add_option(
          "--only", flags_.only_faults,
          "Only runs with these faults, as a row names them: none, cut:0,1, crash:2; may be "
          "repeated")
      ->allow_extra_args(false);
  text_flag("--out", flags_.directory, "Directory for what a failure leaves");
  text_flag("--trace", flags_.trace, "With --schedule: file for all its events, one line each");
}

void FlagsOf::declare_search_flags() {
  text_flag("--seeds", flags_.seeds,
            command_ == "hunt" ? "Seeds of each scenario [1000, if one is named]" : "Seeds [20]");
  text_flag("--first-seed", flags_.first_seed, "Where the seeds begin [1]");
  text_flag("--commit", flags_.commit, "Id of a commit, for a first seed that follows from it");
  if (command_ != "hunt") return;
  app_.add_flag("--crash-sweep", flags_.crash_sweep,
                "Every run again with a crash at each event of each worker [--seeds 1]");
  text_flag("--for", flags_.time,
            "What it may take instead: 60s, 2h, 60s-cpu, 500runs [60s, if no scenario is named]");
  text_flag("--jobs", flags_.jobs, "Processes [all cores]");
  declare_coverage();
  text_flag("--shard", flags_.shard, "I/N: only part I of N, from 0 to N-1; 'merge' joins them");
  text_flag("--out", flags_.directory, "Directory for what a failure leaves");
  text_flag("--shrink-for", flags_.shrink_time,
            "What making a failure smaller may take: 60s, 60s-cpu, 500runs; 0s: not done "
            "[60s-cpu]");
}

}  // namespace

void declare_flags(CLI::App& app, Flags& flags, const std::string& command,
                   const Backends& backends) {
  FlagsOf(app, flags, command, backends).declare();
}

}  // namespace rehearsal::command_line
