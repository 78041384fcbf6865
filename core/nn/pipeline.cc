#include "core/api/pipeline.h"

#include <map>
#include <stdexcept>
#include <utility>

#include "core/api/worker.h"
#include "core/nn/pipeline_order.h"

namespace rehearsal {
namespace {

// By owner.
using Seats = std::map<WorkerId, RRef<PipelineSeat>>;

// Held by a leader for as long as its step lasts.
struct LedStep {
  std::vector<RRef<PipelineLead>> leads;
  Seats seats;
};

}  // namespace

// The facts that all steps have in common.
struct PipelineParts {
  PipelineParts(const Worker& leader, std::vector<PipelineStage> given,
                const Pipeline::Options& chosen)
      : worker(leader), stages(std::move(given)), options(chosen) {
    if (stages.empty()) throw std::invalid_argument("a pipeline without stages");
    for (size_t stage = 0; stage < stages.size(); ++stage) {
      std::vector<size_t>& from = stages[stage].from_;
      if (from.empty()) from = {stage == 0 ? PipelineStage::kInput : stage - 1};
      shape.owners.push_back(stages[stage].owner_.id);
      shape.sources.emplace_back();
      for (const size_t source : from) {
        if (source == PipelineStage::kInput) continue;
        if (source >= stage)
          throw std::invalid_argument("stage " + std::to_string(stage) +
                                      " of a pipeline takes the output of stage " +
                                      std::to_string(source) + ", which is not before it");
        shape.sources.back().push_back(source);
      }
    }
    check_all_are_used();
  }

  // One action. Never parks.
  [[nodiscard]] RRef<at::Tensor> forward(const Calls& calls, const RRef<PipelineSeat>& seat,
                                         const PipelineAction& action,
                                         const RRef<at::Tensor>& input,
                                         const std::vector<RRef<at::Tensor>>& outputs) const {
    const PipelineStage& stage = stages[action.stage];
    std::vector<RRef<at::Tensor>> taken;
    for (const size_t source : stage.from_)
      taken.push_back(source == PipelineStage::kInput ? input : outputs.at(source));
    return stage.forward_(calls, seat, action, taken);
  }

  [[nodiscard]] LedStep lead(uint32_t micro_batches, PipelineSchedule schedule) const {
    PipelineShape of_step = shape;
    of_step.micro_batches = micro_batches;
    LedStep led;
    for (auto& [owner, order] : pipeline_orders(of_step, schedule)) {
      led.leads.push_back(worker.remote<PipelineLead>(owner, order));
      led.seats.emplace(owner, worker.remote<PipelineSeat>(owner, led.leads.back()));
    }
    return led;
  }

  const Worker worker;
  std::vector<PipelineStage> stages;
  const Pipeline::Options options;
  PipelineShape shape;  // of one micro-batch

 private:
  void check_all_are_used() const {
    std::vector<bool> used(stages.size());
    used.back() = true;
    for (size_t stage = used.size(); stage-- > 0;) {
      if (!used[stage])
        throw std::invalid_argument("the last stage of a pipeline does not depend on stage " +
                                    std::to_string(stage));
      for (const size_t source : shape.sources[stage]) used[source] = true;
    }
  }
};

// One step, at the worker that leads it. Its method runs for all micro-batches side by side.
class PipelineRun {
 public:
  PipelineRun(std::shared_ptr<const PipelineParts> parts, Seats seats,
              std::vector<at::Tensor> inputs, Pipeline::Loss loss)
      : parts_(std::move(parts)),
        seats_(std::move(seats)),
        inputs_(std::move(inputs)),
        loss_(std::move(loss)) {}

  // The loss, after its backward pass; without a loss function the output.
  at::Tensor micro_batch(CallContext& call, uint32_t number) {
    const at::Tensor output = forward(call, number).to_here(Timeout::never());
    if (!loss_) return output;
    const at::Tensor loss = loss_(output, number);
    backward(call, {loss});
    end_backwards(call, number);
    return loss.detach();
  }

  static void register_in(FunctionRegistry& registry) {
    registry.type<PipelineRun>("rehearsal.PipelineRun")
        .method("micro_batch", &PipelineRun::micro_batch);
  }

 private:
  // The last stage's output. Never parks: what each stage waits for, it fetches itself.
  // A stage waits for its turn as long as the step lasts, whatever the default of calls is.
  RRef<at::Tensor> forward(CallContext& call, uint32_t number) const {
    const Calls unlimited = call.with_timeout(Timeout::never());
    const RRef<at::Tensor> input = call.rref(inputs_.at(number));
    std::vector<RRef<at::Tensor>> outputs;
    for (uint32_t stage = 0; stage < parts_->stages.size(); ++stage)
      outputs.push_back(parts_->forward(unlimited, seat_of(stage),
                                        {PipelinePass::forward, stage, number}, input, outputs));
    return outputs.back();
  }

  [[nodiscard]] const RRef<PipelineSeat>& seat_of(uint32_t stage) const {
    return seats_.at(parts_->shape.owners[stage]);
  }

  // Of stages that the loss does not depend on: nothing at the owner shows their end.
  void end_backwards(CallContext& call, uint32_t number) const {
    std::vector<Future<Unit>> ended;
    for (const auto& [owner, seat] : seats_)
      ended.push_back(call.rpc_async(seat, &PipelineSeat::end_backwards, number));
    for (const Future<Unit>& future : ended) future.wait();
  }

  const std::shared_ptr<const PipelineParts> parts_;
  const Seats seats_;
  const std::vector<at::Tensor> inputs_;
  const Pipeline::Loss loss_;  // empty: forward only
};

namespace {

uint32_t count_of(const std::vector<at::Tensor>& micro_batches) {
  if (micro_batches.empty()) throw std::invalid_argument("a step without micro-batches");
  return static_cast<uint32_t>(micro_batches.size());
}

// One micro-batch under way. Begun as a value that is created: those wait for no place to execute,
// which one that waits for another's turn might take from it.
Future<at::Tensor> begin(const Calls& calls, const RRef<PipelineRun>& run, uint32_t number,
                         Timeout timeout) {
  return calls.with_timeout(Timeout::never())
      .remote(run, &PipelineRun::micro_batch, number)
      .to_here_async(timeout);
}

// The values of all. If one fails, the turns of the others end, and so do they.
std::vector<at::Tensor> wait_for_all(const PipelineParts& parts, const Seats& seats,
                                     const std::vector<Future<at::Tensor>>& futures) {
  auto all = parts.worker.when_all(IfOneFails::keep_rest, futures).result();
  if (all.ok()) return std::move(all).value();
  const std::string why = "another micro-batch of the step failed: " + to_string(all.error());
  std::vector<Future<Unit>> abandoned;
  for (const auto& [owner, seat] : seats)
    abandoned.push_back(parts.worker.rpc_async(seat, &PipelineSeat::abandon, why));
  for (const Future<Unit>& future : abandoned) static_cast<void>(future.result());
  for (const Future<at::Tensor>& future : futures) static_cast<void>(future.result());
  throw RpcError(std::move(all.error()));
}

std::vector<PipelineReport> reports_of(const PipelineParts& parts, const Seats& seats,
                                       Duration time) {
  std::vector<Future<std::vector<PipelineSpan>>> asked;
  for (const auto& [owner, seat] : seats)
    asked.push_back(parts.worker.rpc_async(seat, &PipelineSeat::spans));
  std::vector<PipelineReport> reports;
  for (const auto& [owner, seat] : seats) {
    PipelineReport& report = reports.emplace_back();
    report.owner = seat.owner();
    report.spans = asked[reports.size() - 1].wait();
    int64_t busy = 0;
    for (const PipelineSpan& span : report.spans) busy += span.end - span.begin;
    if (time.count() > 0)
      report.bubble = 1 - static_cast<double>(busy) / static_cast<double>(time.count());
  }
  return reports;
}

}  // namespace

Pipeline::Pipeline(const Worker& worker, std::vector<PipelineStage> stages, const Options& options)
    : parts_(std::make_shared<const PipelineParts>(worker, std::move(stages), options)) {}
Pipeline::Pipeline(const Worker& worker, std::vector<PipelineStage> stages)
    : Pipeline(worker, std::move(stages), Options()) {}
Pipeline::~Pipeline() = default;

PipelineStep Pipeline::step(const std::vector<at::Tensor>& micro_batches, const Loss& loss) const {
  if (!loss) throw std::invalid_argument("a step without a loss: use forward for outputs alone");
  const Worker& worker = parts_->worker;
  const uint32_t count = count_of(micro_batches);
  const LedStep led = parts_->lead(count, parts_->options.schedule);
  const Instant start = worker.now();
  const RRef<PipelineRun> run = worker.rref(PipelineRun(parts_, led.seats, micro_batches, loss));
  PipelineStep step;
  std::vector<Future<at::Tensor>> losses;
  for (uint32_t number = 0; number < count; ++number) {
    step.contexts.push_back(worker.autograd_context());
    losses.push_back(begin(step.contexts.back(), run, number, parts_->options.step_timeout));
  }
  step.losses = wait_for_all(*parts_, led.seats, losses);
  if (parts_->options.reports) step.reports = reports_of(*parts_, led.seats, worker.now() - start);
  return step;
}

std::vector<at::Tensor> Pipeline::forward(const std::vector<at::Tensor>& micro_batches) const {
  const Worker& worker = parts_->worker;
  const uint32_t count = count_of(micro_batches);
  const LedStep led = parts_->lead(count, PipelineSchedule::fill_drain);
  const RRef<PipelineRun> run = worker.rref(PipelineRun(parts_, led.seats, micro_batches, {}));
  std::vector<Future<at::Tensor>> outputs;
  for (uint32_t number = 0; number < count; ++number)
    outputs.push_back(begin(worker, run, number, parts_->options.step_timeout));
  std::vector<at::Tensor> values = wait_for_all(*parts_, led.seats, outputs);
  for (at::Tensor& value : values) value = value.detach();
  return values;
}

void register_pipeline(FunctionRegistry& registry) {
  PipelineLead::register_in(registry);
  PipelineSeat::register_in(registry);
  PipelineRun::register_in(registry);
}

}  // namespace rehearsal
