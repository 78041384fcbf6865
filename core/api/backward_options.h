#pragma once

#include "core/api/draft.h"
#include "core/wire/pass_name.h"

namespace rehearsal {

// The manner of a backward pass.
struct BackwardOptions {
  // Keeps the graph at all workers: another pass may go over it.
  bool retain_graph = false;

  // Records the pass itself, at all workers: the gradients then have a history, and a later pass in
  // the same context may start from what is computed of them (gradients of gradients). Keeps the
  // graph.
  bool create_graph = false;

  // `smart` finds out which of the tensors that crossed workers the roots depend on, and costs
  // nothing where they depend on all of them. `fast` takes that for granted: one that gets no
  // gradient is an error that names it.
  PassMode mode = PassMode::smart;

  // From the start of the pass. A pass has no limit unless this or the call that it runs in has
  // one. Once all workers agree that it is complete it ends well, also if its time passes
  // meanwhile: nothing but the loss of a worker makes it fail then.
  Timeout deadline = Timeout::never();
};

}  // namespace rehearsal
