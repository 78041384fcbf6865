#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/api/autograd_context.h"
#include "core/api/pipeline_seat.h"
#include "core/api/remote_module.h"

namespace rehearsal {

class Worker;
struct PipelineParts;

// The order in which the stages of a pipeline work through the micro-batches of one step.
enum class PipelineSchedule : uint8_t {
  fill_drain,  // all forward passes, then all backward passes
  // Backward passes as soon as they can run: fewer activations are kept. Stages that are dealt to
  // the workers in turn, several to each, are interleaved, which loses less time (Narayanan et al.,
  // 2021), but only if the micro-batches are a multiple of the workers.
  one_f_one_b,
  // The same, and the gradients of weights later than those that other stages wait for, when a
  // worker would have nothing to do. A stage keeps what it has for its products of matrices,
  // convolutions, sums and products of numbers until then. Other operators have no such parts: they
  // run whole, but for what only leaves need.
  zero_bubble,
};

// One stage: a remote module that takes one or several tensors and gives one.
class PipelineStage {
 public:
  static constexpr size_t kInput = SIZE_MAX;  // the input of the whole model

  // `from`: what the module's forward takes, in its order: earlier stages by number, or the input;
  // none: the stage before this one, or the input.
  template <ModuleLike T>
  PipelineStage(RemoteModule<T> module, std::vector<size_t> from = {})
      : owner_(module.owner()),
        from_(std::move(from)),
        forward_([module = std::move(module)](const Calls& calls, const RRef<PipelineSeat>& seat,
                                              const PipelineAction& action,
                                              const std::vector<RRef<at::Tensor>>& inputs) {
          return module.with(calls).remote(&ServedModule<ModuleOf<T>>::forward_in_turn, seat,
                                           action, inputs);
        }) {}

 private:
  friend struct PipelineParts;
  using Forward = std::function<RRef<at::Tensor>(const Calls& calls, const RRef<PipelineSeat>& seat,
                                                 const PipelineAction& action,
                                                 const std::vector<RRef<at::Tensor>>& inputs)>;

  WorkerInfo owner_;
  std::vector<size_t> from_;
  Forward forward_;
};

// The work of one owner during a step.
struct PipelineReport {
  WorkerInfo owner;
  std::vector<PipelineSpan> spans;  // in the order in which they ran
  double bubble = 0;                // the part of the step's time in which it had nothing to do
};

// The outcome of a step: a context for each micro-batch, with its gradients at every owner.
struct PipelineStep {
  std::vector<AutogradContext> contexts;
  std::vector<at::Tensor> losses;       // without a graph
  std::vector<PipelineReport> reports;  // in rank order; if they were asked for
};

// A picture of who computed when: a row for each owner, with so many columns of time. A span begins
// with its pass and micro-batch: "F2" forward, "B2" backward, "W2" for weights ("F1:2" of stage 1,
// if some owner has several stages); a dot is time in which the owner had nothing to do. Each row
// has its owner's clock: those of several machines may be apart. Empty unless the step's reports
// were asked for.
[[nodiscard]] std::string picture_of(const PipelineStep& step, size_t columns);

// The same as an SVG document, whose time is so many pixels wide, with a scale in milliseconds. A
// span is a bar that says its micro-batch, and all of it where the pointer rests.
[[nodiscard]] std::string svg_picture_of(const PipelineStep& step, size_t pixels);

// A model in stages that live at several workers, through which the micro-batches of each step run
// one behind the other (GPipe, PipeDream). The outputs of a stage go to the next one's worker
// directly. Each micro-batch has an autograd context of its own, whose gradients are those of the
// undivided model for it.
//
//   Pipeline pipeline(worker, {first, second}, {.schedule = PipelineSchedule::one_f_one_b});
//   PipelineStep step = pipeline.step(input.chunk(8), [&](const at::Tensor& out, size_t i) {
//     return loss(out, targets[i]);
//   });
//
// A worker runs one action at a time, in an order that is the same in every run. Stages that share
// a worker are interleaved.
class Pipeline {
 public:
  struct Options {
    PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
    bool reports = false;  // one more round trip for each step
    Timeout step_timeout = Timeout::never();
  };

  // Throws std::invalid_argument for no stages, for a stage that takes what comes later, and for
  // one that the last does not depend on. Never parks.
  Pipeline(const Worker& worker, std::vector<PipelineStage> stages, const Options& options);
  Pipeline(const Worker& worker, std::vector<PipelineStage> stages);
  ~Pipeline();

  // The loss of a micro-batch's output, of one element; called here, perhaps for several at a time.
  using Loss = std::function<at::Tensor(const at::Tensor& output, size_t micro_batch)>;

  // The forward and backward pass of each micro-batch. Parks until all have ended, or for
  // step_timeout. Throws RpcError if one failed: the others' turns end then with its reason.
  // Throws std::invalid_argument for no micro-batches, and for an empty loss.
  [[nodiscard]] PipelineStep step(const std::vector<at::Tensor>& micro_batches,
                                  const Loss& loss) const;

  // The last stage's outputs alone, without gradients. Parks. Throws as step does.
  [[nodiscard]] std::vector<at::Tensor> forward(const std::vector<at::Tensor>& micro_batches) const;

 private:
  std::shared_ptr<const PipelineParts> parts_;
};

// The functions that every program has: seats, and the leader's part.
void register_pipeline(FunctionRegistry& registry);

}  // namespace rehearsal
