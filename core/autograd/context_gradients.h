#pragma once

#include <map>
#include <optional>
#include <set>

#include "core/api/leaf_gradients.h"
#include "core/base/ids.h"
#include "core/wire/pass_name.h"

namespace rehearsal {

// The gradients of one worker's leaves in one context: the sum of all passes that have succeeded.
// First those of each starter are added up in the order of its passes, then what the starters have,
// by rank: so the bits of the sum do not depend on the schedule.
//
// A pass may fail after this worker has kept its gradients, because another one was lost before it
// had. So those of each pass are kept apart until its starter says that it has ended, which it does
// with its next pass (PassName::settled). Until then they can be taken back.
class ContextGradients {
 public:
  // Adds the gradients of a pass. `neighbours` have to hear if they are taken back.
  void keep(const PassName& pass, LeafGradients added, std::set<WorkerId> neighbours);

  // Whether something of the pass is kept apart.
  [[nodiscard]] bool keeps(const PassId& pass) const;

  // The pass has failed. None if nothing of it is kept apart, else the neighbours.
  std::optional<std::set<WorkerId>> take_back(const PassId& pass);

  // Whether the name of a pass says how one ended that is kept apart here.
  [[nodiscard]] bool concerned_by(const PassName& pass) const;

  // A starter says with a new pass how its former ones have ended. Throws what LibTorch throws of
  // gradients that cannot be added; then nothing is changed.
  void settle(const PassName& pass);

  // Whether it is not known how a pass of this life of a worker ended.
  [[nodiscard]] bool has_unsettled(Incarnation starter) const;

  // From now on the gradients are these, whatever the passes so far have added, also one that is
  // taken back later; later ones add to them.
  void replace(LeafGradients gradients);

  // Safe to keep: a later pass changes none of these tensors. Throws as `settle` does.
  [[nodiscard]] LeafGradients sum() const;

  // How many leaves have a gradient, at most.
  [[nodiscard]] size_t size() const;

 private:
  struct Kept {
    LeafGradients added;
    std::set<WorkerId> neighbours;
  };
  struct Part {  // of one starter
    LeafGradients settled;
    std::map<PassId, Kept> unsettled;
  };
  LeafGradients replaced_;
  std::map<WorkerId, Part> parts_;  // since then
};

}  // namespace rehearsal
