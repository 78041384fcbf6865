#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "real_net/tcp/socket.h"

namespace rehearsal::real {

// Which worker of how many this process is, and where they meet.
struct Placement {
  std::string launcher;  // who said so, for people: "flags", "torchrun", "Slurm", …
  uint32_t rank = 0;
  std::optional<uint32_t> world_size;  // empty: as many as the program has workers

  // They meet in a store. It is served at `master`, or is a file if `file` is not empty.
  Address master;
  std::string file;
  bool agent_serves = false;  // the launcher serves the store, and no worker may
  // Workers of other machines may come: it was chosen how workers prove themselves. Else a name of
  // the store that stands for loopback here is loopback.
  bool for_others = false;
  // The descriptor of a socket that listens at `master` already; else rank 0 opens one.
  std::optional<int> listening;
  // The id of the run, the same at all its workers: two runs never mix, wherever they meet. Of
  // torchrun also the restart count. Empty: nobody has given one.
  std::string run;
};

// The flags of the command line; a missing one is taken from the environment.
struct PlacementFlags {
  std::optional<uint32_t> rank;
  std::optional<uint32_t> world_size;
  // env://, tcp://host:port or file:///path.
  std::optional<std::string> rendezvous;
  // Of rank 0, where it serves the rendezvous: the descriptor of a socket that listens there
  // already. A launcher may open it at any free port and hand it on, and no other program can take
  // that port in between. It stays open. Empty: rank 0 opens one.
  std::optional<int> listening = {};
  // Empty: as REHEARSAL_RUN_ID says, else the launcher's.
  std::string run_id;
};

// The value of an environment variable, if it is set.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
[[nodiscard]] std::optional<std::string> process_environment(const std::string& name);

// Asks, in this order: the flags, torchrun (torchelastic), Slurm, MPI, a Kubernetes indexed job,
// plain RANK and WORLD_SIZE. The first that knows a rank decides. The error (bad_arguments) says
// which variable is missing or wrong.
[[nodiscard]] Result<Placement> find_placement(const PlacementFlags& flags,
                                               const Environment& environment);

// A launcher that has started this process as one of several.
struct ManyRanks {
  std::string launcher;
  uint32_t count = 0;
};
// Nothing if there is only one, or if it cannot be told for sure.
[[nodiscard]] std::optional<ManyRanks> launched_as_one_of_many(const Environment& environment);

// The first host of a Slurm node list: "gpu[03-05,9],login" names "gpu03".
[[nodiscard]] std::string first_slurm_host(const std::string& node_list);

}  // namespace rehearsal::real
