#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/api/program.h"
#include "core/node/node.h"
#include "real_net/worker/liveness.h"
#include "real_net/worker/observers.h"
#include "real_net/worker/placement.h"
#include "real_net/worker/record_place.h"

namespace rehearsal::real {

// How a worker of a real cluster is run. An option left alone comes from the environment that the
// launcher set, or has a sensible default.
struct WorkerOptions {
  PlacementFlags placement;
  Environment environment = process_environment;

  // Tells this launch of the program from every other: workers whose ids differ never meet. Empty:
  // what REHEARSAL_RUN_ID says, else the launcher's (torchrun, Slurm, MPI), else none. Without one,
  // a second launch at the same rendezvous is still refused while the first is there.
  std::string run_id;

  // Settings of the program that must be the same at all workers, by name: a worker that comes with
  // others is refused, naming the first that differs and both values. Of a value above 1,000 bytes
  // its beginning, its size and its hash are compared; there may be 1,000, with names of up to 200
  // bytes. `node.seed`, `peer_timeout` and `heartbeat` are compared anyway, as are names, functions
  // and LibTorch.
  std::map<std::string, std::string> must_agree;

  // How the workers of the group prove to each other that they belong to it: none,
  // secret:file=PATH, secret:env=VARIABLE, secret:fd=DESCRIPTOR or
  // certificates:cert=PATH,key=PATH,ca=PATH[,crl=PATH], the last two with `,protection=mac` if
  // links need not be encrypted; see real_net/auth/auth.h. Empty: as REHEARSAL_AUTH says; without
  // it, a worker that others than this machine could reach is refused.
  std::string auth;

  // Where this worker listens; default: the address by which the others reach it, any free port.
  std::optional<Address> listen;
  // Where the others reach it, if that is elsewhere: behind a port that is forwarded, or a proxy.
  std::optional<Address> advertise;

  // Threads that run user functions. Zero: they run on the main thread, while it waits. None: as
  // REHEARSAL_WORKER_THREADS says, else as many as there are cores, two at least.
  std::optional<uint32_t> num_worker_threads;
  // How long a thread that waits looks at the network again and again before it sleeps: "60us",
  // say; "0": it sleeps at once. Empty: as REHEARSAL_SPIN says, else 60us. See
  // RuntimeOptions::spin_max.
  std::string spin;
  // LibTorch's intra-op threads. More than one changes the bits of some results.
  int torch_threads = 1;

  // Where this worker and its later lives keep what they save: FOLDER/WORKER/NAME.pt. Empty: what
  // the environment variable REHEARSAL_CHECKPOINTS says, else no checkpoint can be saved.
  std::string checkpoints;

  // `id`, `incarnation`, `life` and `names` are filled in, and what `liveness` says. `strict_leaks`
  // is also on if the variable REHEARSAL_STRICT_LEAKS is 1: then the worker fails if references are
  // still held at the shutdown, which else are one warning each in its log. So is
  // `exception_traces` if REHEARSAL_EXCEPTION_TRACES is 1.
  NodeOptions node;
  // Tensors on devices of so many bytes go to workers of this machine from device to device,
  // without the host (README.md); UINT64_MAX: none does.
  uint64_t lend_from = kLendFrom;
  // How soon a peer is taken for dead; see liveness.h.
  LivenessOptions liveness;
  // The carrier of large tensors of process groups over TCP: "own", the calls, or "gloo". Empty:
  // as the environment variable REHEARSAL_COLLECTIVES says, else "own". See collectives_choice.h.
  std::string collectives;
  Trace* trace = nullptr;

  // Metrics over HTTP, a file of spans, the log; see observers.h.
  ObserverOptions observe;

  // The node's input is recorded in this folder, if one is named here or by REHEARSAL_RECORD; see
  // record_place.h.
  RecordPlace record;

  [[nodiscard]] static WorkerOptions from_environment() { return {}; }
};

// Runs the worker of `program` that this process is: finds out which one, meets the others, joins,
// runs its function on the calling thread and shuts down. If that worker has been there before, and
// its group has not ended well since, it is that worker come back, in its next life. Returns why it
// failed, if so: then one line says what to do, and torchrun's error file, if there is one, is
// written. A worker that is `recovering` (Program) begins its next life at once, in this process.
//
// If user functions are left that do not end although they were told to, they are named on standard
// error and the process is left by _Exit(1): nobody can stop them.
[[nodiscard]] Status run_worker(const WorkerOptions& options, const Program& program);

// Writes torchrun's error file, if there is one, for its report: that shows the call stack in it,
// and nothing else of it, so the error stands there; one that cannot be written is told on standard
// error. run_worker does it for its own failures.
void tell_torchrun(const Environment& environment, const Error& error);

// Instead of run_worker, for a program that finds out itself that this worker cannot run, a bad
// option, say: tells the others of its group, if they wait or come within three seconds (less if
// `node.join_timeout` is), and torchrun.
void refuse_to_join(const WorkerOptions& options, const Error& why);

}  // namespace rehearsal::real
