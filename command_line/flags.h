// The flags of every command: their names, what they mean, and what was typed.
#pragma once

#include <string>
#include <vector>

#include "command_line/backends.h"

namespace CLI {
class App;
}

namespace rehearsal::command_line {

// As typed; an empty text was not given.
struct Flags {
  std::vector<std::string> names;
  std::string seed, net, faults, crashes, mad, devices, restarts, partitions, pauses, network,
      strategy;
  std::vector<std::string> without;
  std::vector<std::string> set, mutants, decisions, redraws, only_faults;
  std::string compare, trace, crash_at, schedule, record, record_size;
  std::string seeds, time, first_seed, commit, jobs, shard, directory, shrink_time, junit;
  std::string rank, world_size, rendezvous, run_id, checkpoints;
  std::string watchdog, virtual_time_max;
  std::string metrics_port, spans, log, listen, advertise, auth;
  std::string peer_timeout, heartbeat, refusal_limit, collectives, spin;
  bool crash_sweep = false;
  bool coverage = false;
  bool benign = false;
  bool exception_traces = false;
  bool mutant_list = false;
  bool json = false;
};

// Makes `app` know the flags of this command, and fill `flags`.
void declare_flags(CLI::App& app, Flags& flags, const std::string& command,
                   const Backends& backends);

}  // namespace rehearsal::command_line
