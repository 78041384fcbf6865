#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/calls.h"
#include "core/api/leaf_gradients.h"

namespace rehearsal {

// A distributed autograd context: what is called through it is recorded, here and at every worker
// that such a call reaches, so that `backward` can follow the gradients. Calls of a served function
// are recorded in the context that its own call came in.
//
//   AutogradContext context = worker.autograd_context();
//   torch::Tensor embedded = context.rpc_sync(table, &EmbeddingTable::forward, ids);
//   context.backward({loss(embedded)});
//   optimizer.step(context);
//
// Copies name the same context. When the last one is gone the context ends at every worker; that
// never parks. The records of a call are then lost: wait for it first.
class AutogradContext : public Calls {
 public:
  // Made by Worker::autograd_context.
  explicit AutogradContext(Calls calls);

  [[nodiscard]] const AutogradContextId& id() const { return context_name()->id; }

  // Computes the gradients of the sum of the roots with respect to all leaves that they depend on,
  // at all workers, and adds them to the context; never to `.grad`. The roots are tensors of one
  // element that are here. Parks until every worker has finished. Throws RpcError: everywhere or
  // nowhere are gradients added, unless a worker was lost at the very end.
  //
  // Every tensor that requires gradients and was sent in the context must be among what the roots
  // depend on: else the error names it. Without `retain_graph` there can be one pass over a graph.
  // A pass has no time limit unless `deadline` or the call that it runs in has one.
  void backward(const std::vector<at::Tensor>& roots, bool retain_graph = false,
                Timeout deadline = Timeout::never()) const;

  // The same, of a root at another worker. Parks.
  void backward_at(const RRef<at::Tensor>& root, bool retain_graph = false,
                   Timeout deadline = Timeout::never()) const;

  // The gradients of this worker's leaves, by tensor. Parks for a moment. Throws RpcError.
  [[nodiscard]] LeafGradients get_gradients() const;

 private:
  struct Ending;  // ends the context
  std::shared_ptr<const Ending> ending_;
};

// The gradients of the leaves of the worker that serves the call, in the context that the call is
// recorded in. Parks for a moment. Throws RpcError, also if the call is recorded in none.
[[nodiscard]] LeafGradients get_gradients(const CallContext& call);

// The function that every program has: a pass that starts at the root's owner.
class FunctionRegistry;
void register_autograd(FunctionRegistry& registry);

}  // namespace rehearsal
