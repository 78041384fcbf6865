#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/api/worker_access.h"

// Training that goes on when workers crash, as torchrun restarts a job's processes: a worker
// that is `recovering` (Program) begins a new life when it has lost another, makes everything anew
// and resumes from the last checkpoint. Where one main uses what another has made (lookup), both
// meet before, by a barrier: else it may find what a life has made that is about to end. Where
// several mains train together they also meet at the end, when the result is told or on a disk: who
// has left before cannot go on with a life that begins later.
//
//   program.worker("ps").recovering().worker("trainer", train).recovering();
//
//   void train(Worker& worker) {
//     RemoteModule<Net> net(worker, "ps");
//     …
//     for (int64_t step = checkpoint.resume(); step < kSteps; ++step) …
//   }
namespace rehearsal {

// The end of an earlier life of a worker, which was not a crash of its own.
struct EndedLife {
  uint32_t life = 0;  // from 0; those that are missing crashed
  std::string lost;   // the worker that it had lost
  std::string why;
  friend void describe(EndedLife& ended, auto&& fields) {
    fields(ended.life, ended.lost, ended.why);
  }
};

// Those of this worker, the oldest first; the last 100. None where it has no place for
// checkpoints. Blocks while the disk works. Throws RpcError (storage).
[[nodiscard]] std::vector<EndedLife> ended_lives(const WorkerAccess& worker);

// Whether an error may be the consequence of a worker's crash: then a new life may have more luck.
[[nodiscard]] bool is_recoverable(ErrorKind kind);

}  // namespace rehearsal
