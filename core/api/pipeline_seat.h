#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/api/call_context.h"

namespace rehearsal {

enum class PipelinePass : uint8_t {
  forward,
  backward,  // all of it, or what leads to the inputs of the stage, if the schedule divides it
  weights,   // the gradients of parameters, if the schedule divides the backward pass
};
constexpr PipelinePass last_enumerator(PipelinePass /*pass*/) { return PipelinePass::weights; }

// "F", "B" or "W".
[[nodiscard]] std::string letter_of(PipelinePass pass);

// One piece of work of a pipeline: a stage's pass for one micro-batch.
struct PipelineAction {
  PipelinePass pass = PipelinePass::forward;
  uint32_t stage = 0;
  uint32_t micro_batch = 0;

  auto operator<=>(const PipelineAction&) const = default;
  friend void describe(PipelineAction& action, auto&& fields) {
    fields(action.pass, action.stage, action.micro_batch);
  }
};
// "F2 of 5": the forward pass of stage 2 for micro-batch 5; B for backward, W for weights.
[[nodiscard]] std::string to_string(const PipelineAction& action);

// When an action ran, in nanoseconds on its worker's own time line.
struct PipelineSpan {
  PipelineAction action;
  int64_t begin = 0;
  int64_t end = 0;
  friend void describe(PipelineSpan& span, auto&& fields) {
    fields(span.action, span.begin, span.end);
  }
};

class GatedSection;
class PipelineTurns;

// The order of the turns that one worker's stages take in one step of a Pipeline. Only the leader
// of the step refers to it, so that it dies with the step, and with a leader that is lost here:
// then every turn that has not come fails. Those that wait for one keep the seat, but not this.
class PipelineLead {
 public:
  PipelineLead(CallContext& call, std::vector<PipelineAction> order);
  ~PipelineLead();
  PipelineLead(PipelineLead&&) noexcept;
  PipelineLead& operator=(PipelineLead&&) noexcept;

  [[nodiscard]] const std::shared_ptr<PipelineTurns>& turns() const { return turns_; }

  static void register_in(FunctionRegistry& registry);

 private:
  std::shared_ptr<PipelineTurns> turns_;
  std::string leader_;
};

// A worker's part in one step of a Pipeline: its stages act one at a time, in the order of `lead`.
// Made by the pipeline at each owner of a stage, through which its methods are called.
class PipelineSeat {
 public:
  explicit PipelineSeat(const RRef<PipelineLead>& lead);

  // Complete when all before the action has ended: its turn has come. Fails with `cancelled` if
  // the step is abandoned, and with bad_arguments for an action that is none of this worker's.
  Future<Unit> begin(const PipelineAction& action);
  // The passes backward of this micro-batch are over, also where one never began: its turn passes.
  void end_backwards(uint32_t micro_batch);
  // Every turn that has not come fails with this reason, now and later.
  void abandon(const std::string& reason);
  // The actions that have ended, in their order; without those that never began.
  Future<std::vector<PipelineSpan>> spans();

  [[nodiscard]] const std::shared_ptr<PipelineTurns>& turns() const { return turns_; }

  static void register_in(FunctionRegistry& registry);

 private:
  std::shared_ptr<PipelineTurns> turns_;
};

// The values of these references, which are fetched side by side. Parks. Throws RpcError, of kind
// bad_arguments unless there are `expected` of them.
[[nodiscard]] std::vector<at::Tensor> fetch_inputs(const std::vector<RRef<at::Tensor>>& inputs,
                                                   size_t expected);

// The turn of one forward action, which ends with this object; and, through a gate in the graph
// (core/api/pass_gate.h), those of the actions backward that belong to it.
class PipelineTurn {
 public:
  // Parks until the turn has come. Throws RpcError.
  PipelineTurn(CallContext& call, const RRef<PipelineSeat>& seat, const PipelineAction& forward);
  ~PipelineTurn();
  PipelineTurn(const PipelineTurn&) = delete;
  PipelineTurn& operator=(const PipelineTurn&) = delete;

  // The same values, to compute the output with.
  [[nodiscard]] std::vector<at::Tensor> enter(const std::vector<at::Tensor>& inputs);
  // The same values, to be returned. A backward pass goes on behind them when the gradient of the
  // output is complete and the turn has come. The turn ends when those of all inputs are complete,
  // or at once if there is nothing to do.
  [[nodiscard]] at::Tensor leave(const at::Tensor& output);

 private:
  const RRef<PipelineSeat> seat_;
  const std::shared_ptr<PipelineTurns> turns_;
  const PipelineAction forward_;
  const std::unique_ptr<GatedSection> section_;
};

}  // namespace rehearsal
