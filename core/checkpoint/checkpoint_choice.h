#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint_desk.h"

namespace rehearsal {

// The cut that a run goes on from.
struct CheckpointChoice {
  uint64_t run = 0;                        // the new one
  CheckpointTag from;                      // run zero: the beginning
  std::vector<std::string> holders;        // of `from`
  std::vector<CheckpointPlace> directory;  // of its pieces
  friend void describe(CheckpointChoice& choice, auto&& fields) {
    fields(choice.run, choice.from, choice.holders, choice.directory);
  }
};

// Asks these workers for the cuts that they have. The answers are in the workers' order.
using AskHolders =
    std::function<std::vector<HeldCheckpoints>(const std::vector<std::string>& workers)>;

// The latest cut of which all its holders have their part, starting from what `workers` know: the
// holders that they name are asked too. Throws RpcError of kind storage if a later cut is known to
// have been complete, unless `accept_loss`; of kind protocol if one worker tells of a run that
// cannot have begun; and what `ask` throws.
[[nodiscard]] CheckpointChoice choose_checkpoint(const std::string& name,
                                                 const std::vector<std::string>& workers,
                                                 const AskHolders& ask, bool accept_loss);

}  // namespace rehearsal
