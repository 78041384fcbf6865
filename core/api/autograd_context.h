#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "core/api/backward_options.h"
#include "core/api/call_context.h"
#include "core/api/calls.h"
#include "core/api/leaf_gradients.h"

namespace rehearsal {

// While it lives, all calls of its execution are recorded in a context, in every form: through the
// worker, through references and modules, and in the bodies given to Future::then. The context
// lives as long. It belongs to one execution and one block, and can be neither copied nor moved; a
// thread that is registered makes one of its own.
class [[nodiscard]] Recording {
 public:
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  friend class AutogradContext;
  Recording(std::shared_ptr<NodeStrand> strand, RecordedIn context,
            std::shared_ptr<const void> kept);

  const std::shared_ptr<NodeStrand> strand_;
  Execution* const execution_;
  RecordedIn before_;
  const std::shared_ptr<const void> kept_;
};

// A distributed autograd context: what is called in it is recorded, here and at every worker that
// such a call reaches, so that `backward` can follow the gradients.
//
//   AutogradContext context = worker.autograd_context();
//   auto recording = context.record();
//   torch::Tensor embedded = table.rpc_sync(&EmbeddingTable::forward, ids);
//   context.backward({loss(embedded)});
//   optimizer.step(context);
//
// Recorded are
// - every call of an execution while a Recording of it lives;
// - a call through the context itself: context.rpc_sync(table, …);
// - every call of a function that was itself called in the context, at whatever worker;
// - every call of a continuation that one of these has given to Future::then, and of a Batcher's
//   body for items of this context alone.
// Calls with gradients switched off (NoGradGuard) are not, unless through the context itself.
//
// No gradient is lost in silence: a pass that reaches a tensor which came from another worker, but
// outside of the context, fails and names the call that brought it. LibTorch's own
// `loss.backward()` knows nothing of contexts: over a leaf that came from another worker it ends
// there, and nothing is told.
//
// Copies name the same context. When the last one is gone the context ends at every worker; that
// never parks. The records of a call are then lost: wait for it first. A call in a context that has
// ended fails with an error of kind autograd.
class AutogradContext : public Calls {
 public:
  // Made by Worker::autograd_context.
  explicit AutogradContext(Calls calls);

  [[nodiscard]] const AutogradContextId& id() const { return context_name()->id; }

  // Has the calling execution recorded in this context for as long as the result lives. Throws
  // RpcError (autograd) if it is recorded in another one already; in this one it may be.
  Recording record() const;

  // Computes the gradients of the sum of the roots with respect to all leaves that they depend on,
  // at all workers, and adds them to the context; never to `.grad`. The roots are tensors of one
  // element that are here, which may have come from other workers. Parks until every worker has
  // finished. Throws RpcError: everywhere or nowhere are gradients added. After an error the same
  // pass can be run again, as long as the workers live that it needs, if it retained the graph.
  //
  // Tensors that were sent in the context and that the roots do not depend on take no part. Nothing
  // that they depend on may have come from another worker outside of the context: else the error
  // names it. Without `retain_graph` there can be one pass over a graph.
  void backward(const std::vector<at::Tensor>& roots, const BackwardOptions& options = {}) const;
  void backward(const std::vector<at::Tensor>& roots, bool retain_graph,
                Timeout deadline = Timeout::never()) const;

  // The same, of a root at another worker, where the pass starts. Parks.
  void backward_at(const RRef<at::Tensor>& root, const BackwardOptions& options = {}) const;
  void backward_at(const RRef<at::Tensor>& root, bool retain_graph,
                   Timeout deadline = Timeout::never()) const;

  // One pass of the sum of several roots, wherever they are: they are fetched, and the pass starts
  // here. Parks.
  void backward_at(const std::vector<RRef<at::Tensor>>& roots,
                   const BackwardOptions& options = {}) const;

  // The gradients of this worker's leaves, by tensor. Parks for a moment. Throws RpcError.
  [[nodiscard]] LeafGradients get_gradients() const;

 private:
  struct Ending;  // ends the context
  std::shared_ptr<const Ending> ending_;
};

// The gradients of the leaves of the worker that serves the call, in the context that the call is
// recorded in. Parks for a moment. Throws RpcError, also if the call is recorded in none.
[[nodiscard]] LeafGradients get_gradients(const CallContext& call);

// A pass that starts at the worker that serves the call, in the context that the call is recorded
// in, as AutogradContext::backward. Parks. Throws RpcError, also if the call is recorded in none.
void backward(const CallContext& call, const std::vector<at::Tensor>& roots,
              const BackwardOptions& options = {});

// The function that every program has: a pass that starts at the root's owner.
class FunctionRegistry;
void register_autograd(FunctionRegistry& registry);

}  // namespace rehearsal
