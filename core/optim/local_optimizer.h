#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/leaf_gradients.h"
#include "core/base/stream_set.h"
#include "core/optim/accumulated_gradients.h"
#include "core/optim/optimizer_orders.h"

namespace rehearsal {

class FunctionRegistry;

// A DistributedOptimizer's part at one owner: an optimizer over the parameters that live there. The
// gradients are those of the autograd context that a call is recorded in, those that were
// accumulated, or the sum of both, as the order says. It works on aliases of the parameters, so
// that nobody's `.grad` is touched. All optimizers of a worker step one at a time. On devices its
// work comes after all that the streams of the parameters have been given, and before what they are
// given later.
//
// Each method parks before it changes anything, then does all its work at once. Throws RpcError: of
// kind autograd if no parameter has a gradient where one must, and std::logic_error for an order
// that a later one has overtaken.
class LocalOptimizer {
 public:
  // A parameter that is given twice in a group counts once. Throws std::invalid_argument for one in
  // two groups and for the result of a computation, and what the optimizer's constructor throws.
  LocalOptimizer(const CallContext& call, const OptimizerSettings& settings);
  ~LocalOptimizer();

  // Changes the parameters that have a gradient, with these options from now on.
  void step(CallContext& call, const OrderName& order, const std::vector<SentOptions>& changed);

  // Whether this step has been applied. Its attempts before this order's will not be any more.
  StepState step_state(const OrderName& order);

  // Keeps the context's gradients as a term of the next step.
  void accumulate(CallContext& call, const OrderName& order);

  // The 2-norm of each parameter's gradient, by position; undefined for one without a gradient and
  // for one that was given before.
  [[nodiscard]] std::vector<at::Tensor> gradient_norms(CallContext& call, const OrderName& order);

  // Multiplies the gradients themselves.
  void scale_gradients(CallContext& call, const OrderName& order, const at::Tensor& factor);

  // Bounds each element of the gradients themselves.
  void clamp_gradients(CallContext& call, const OrderName& order, double bound);

  // Multiplies the gradients themselves, once for each order. Whether all elements are finite.
  bool unscale_gradients(CallContext& call, const OrderName& order, double factor);

  // Makes it callable in every program.
  static void register_in(FunctionRegistry& registry);

 private:
  friend class OptimizerInCheckpoint;
  struct Parameter {
    at::Tensor tensor;
    at::Tensor alias;  // the same storage, with a gradient of its own
  };
  void add_parameters(const SentGroup& group, std::vector<at::Tensor>& aliases);
  at::Tensor value_of(const RRef<at::Tensor>& reference);
  [[nodiscard]] BesideStreams beside_parameters(const CallContext& call) const;
  [[nodiscard]] LeafGradients context_gradients(CallContext& call, const OrderName& order) const;
  [[nodiscard]] bool has_gradient(const LeafGradients& gradients) const;
  void give_back(const CallContext& call, const OrderName& order,
                 const LeafGradients& of_context) const;
  LeafGradients begin(const OrderName& order, const LeafGradients& of_context);
  template <class Change>
  void change_gradients(CallContext& call, const OrderName& order, Change change);
  void apply_step(CallContext& call, const OrderName& order, const LeafGradients& gradients);

  const Mutants mutants_;
  const OptimizerKind* kind_;
  std::vector<Parameter> parameters_;  // each once
  std::vector<size_t> places_;         // of each given parameter that came first, its position
  size_t given_ = 0;
  std::vector<Streams> streams_;  // in which the parameters live, each once
  std::vector<uint64_t> groups_;  // their positions among all groups
  std::unique_ptr<torch::optim::Optimizer> optimizer_;

  AccumulatedGradients accumulated_;
  std::pair<uint64_t, uint64_t> latest_;  // the place of the latest order
  uint64_t stepped_ = 0;                  // the order of the last step that began
  bool stepped_whole_ = true;             // and that it ended
  uint64_t unscaled_ = 0;                 // the order of the last unscaling
  bool unscaled_finite_ = true;           // and its outcome
};

}  // namespace rehearsal
