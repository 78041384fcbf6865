#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/api/backward_options.h"
#include "core/api/call_context.h"
#include "core/api/function_registry.h"
#include "core/api/rref.h"
#include "scenarios/random_model/model.h"
#include "scenarios/random_model/operators.h"

namespace rehearsal::random_model {

// The state of every worker: the model, which all of them have drawn alike.
struct Plan {
  std::shared_ptr<const Model> model;
};

// The inputs of a node: those that are arguments, and those that its worker fetches, each in order.
struct Arguments {
  Outputs values;
  std::vector<RRef<Outputs>> references;
  friend void describe(Arguments& arguments, auto&& fields) {
    fields(arguments.values, arguments.references);
  }
};

// One worker's part of the model: its leaves, and what its nodes compute. Another attempt to run
// the model makes another one.
class Part {
 public:
  Part(CallContext& call, int64_t worker);

  // Of a leaf: itself.
  Outputs run(CallContext& call, int64_t node, const Arguments& arguments);
  at::Tensor loss(CallContext& call, int64_t node, const Arguments& arguments);

  // A pass that starts here, in the context of the call.
  void start(CallContext& call, int64_t pass, const std::vector<RRef<at::Tensor>>& roots);

  // Of its leaves, in order, as the context of the call has them.
  Outputs gradients(CallContext& call);
  at::Tensor penalty(CallContext& call);

 private:
  [[nodiscard]] Outputs inputs_of(CallContext& call, const Node& node, const Arguments& arguments,
                                  bool& owned) const;

  const std::shared_ptr<const Model> model_;
  std::vector<size_t> leaves_;
  Outputs tensors_;
};

// A node where a worker computes it, and its inputs: on a device that the node has drawn, or on the
// CPU.
struct Placed {
  Node node;
  Outputs inputs;
};
[[nodiscard]] Placed placed(const WorkerAccess& worker, const Node& node, const Outputs& inputs);

// Runs a node of `part` through the workers of `via`, each of which calls the next.
Outputs relay(CallContext& call, const std::vector<int64_t>& via, const RRef<Part>& part,
              int64_t node, const Arguments& arguments);

// The manner of a pass of the model, but for its deadline.
[[nodiscard]] BackwardOptions options_of(const Model& model, const Pass& pass);

[[nodiscard]] FunctionRegistry functions();

}  // namespace rehearsal::random_model
