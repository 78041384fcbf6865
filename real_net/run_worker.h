#pragma once

#include <optional>
#include <string>

#include "core/api/program.h"
#include "core/node/node.h"
#include "real_net/worker/observers.h"
#include "real_net/worker/placement.h"
#include "real_net/worker/record_place.h"

namespace rehearsal::real {

// How a worker of a real cluster is run. An option left alone comes from the environment that the
// launcher set, or has a sensible default.
struct WorkerOptions {
  PlacementFlags placement;
  Environment environment = process_environment;

  // Where this worker listens; default: the address by which the others reach it, any free port.
  std::optional<Address> listen;
  // Where the others reach it, if that is elsewhere: behind a port that is forwarded, or a proxy.
  std::optional<Address> advertise;

  // Threads that run user functions. Zero: they run on the main thread, while it waits. Default: as
  // many as there are cores, two at least.
  uint32_t num_worker_threads = default_worker_threads();
  // LibTorch's intra-op threads. More than one changes the bits of some results.
  int torch_threads = 1;

  // Where this worker and its later lives keep what they save: FOLDER/WORKER/NAME.pt. Empty: what
  // the environment variable REHEARSAL_CHECKPOINTS says, else no checkpoint can be saved.
  std::string checkpoints;

  // `id`, `incarnation`, `life` and `names` are filled in.
  NodeOptions node;
  Trace* trace = nullptr;

  // Metrics over HTTP, a file of spans, the log; see observers.h.
  ObserverOptions observe;

  // The node's input is recorded in this folder, if one is named here or by REHEARSAL_RECORD; see
  // record_place.h.
  RecordPlace record;

  [[nodiscard]] static WorkerOptions from_environment() { return {}; }
  [[nodiscard]] static uint32_t default_worker_threads();
};

// Runs the worker of `program` that this process is: finds out which one, meets the others, joins,
// runs its function on the calling thread and shuts down. If that worker has been there before, and
// its group has not ended well since, it is that worker come back, in its next life. Returns why it
// failed, if so: then one line says what to do, and torchrun's error file, if there is one, is
// written.
//
// If user functions are left that do not end although they were told to, they are named on standard
// error and the process is left by _Exit(1): nobody can stop them.
[[nodiscard]] Status run_worker(const WorkerOptions& options, const Program& program);

}  // namespace rehearsal::real
