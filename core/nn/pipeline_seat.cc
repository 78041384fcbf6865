#include "core/api/pipeline_seat.h"

#include <utility>

#include "core/api/pass_gate.h"
#include "core/functions/function_registry.h"
#include "core/nn/pipeline_turns.h"

namespace rehearsal {

std::string letter_of(PipelinePass pass) { return {"FBW"[static_cast<size_t>(pass)]}; }

std::string to_string(const PipelineAction& action) {
  return letter_of(action.pass) + std::to_string(action.stage) + " of " +
         std::to_string(action.micro_batch);
}

// ---- the leader's hold --------------------------------------------------------------

PipelineLead::PipelineLead(CallContext& call, std::vector<PipelineAction> order)
    : turns_(std::make_shared<PipelineTurns>(call.caller()->strand(), std::move(order))),
      leader_(call.caller_info().name) {}
PipelineLead::~PipelineLead() {
  if (turns_)
    turns_->abandon("the step of the pipeline has ended, or its leader, '" + leader_ +
                    "', is lost");
}
PipelineLead::PipelineLead(PipelineLead&&) noexcept = default;
PipelineLead& PipelineLead::operator=(PipelineLead&&) noexcept = default;

void PipelineLead::register_in(FunctionRegistry& registry) {
  registry.type<PipelineLead>("rehearsal.PipelineLead")
      .constructor<CallContext&, std::vector<PipelineAction>>();
}

// ---- a seat -----------------------------------------------------------------------

PipelineSeat::PipelineSeat(const RRef<PipelineLead>& lead) : turns_(lead.local_value().turns()) {}

Future<Unit> PipelineSeat::begin(const PipelineAction& action) {
  const Promise<Unit> promise(turns_->strand());
  turns_->begin(action, [promise](Status status) { promise.complete(std::move(status)); });
  return promise.future();
}
void PipelineSeat::end_backwards(uint32_t micro_batch) { turns_->end_backwards(micro_batch); }
void PipelineSeat::abandon(const std::string& reason) { turns_->abandon(reason); }
Future<std::vector<PipelineSpan>> PipelineSeat::spans() { return turns_->spans(); }

void PipelineSeat::register_in(FunctionRegistry& registry) {
  registry.type<PipelineSeat>("rehearsal.PipelineSeat")
      .constructor<const RRef<PipelineLead>&>()
      .method("begin", &PipelineSeat::begin)
      .method("end_backwards", &PipelineSeat::end_backwards)
      .method("abandon", &PipelineSeat::abandon)
      .method("spans", &PipelineSeat::spans);
}

std::vector<at::Tensor> fetch_inputs(const std::vector<RRef<at::Tensor>>& inputs, size_t expected) {
  if (inputs.size() != expected)
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "a stage takes " + std::to_string(expected) + " inputs, not " +
                            std::to_string(inputs.size())});
  std::vector<Future<at::Tensor>> fetched;
  for (const RRef<at::Tensor>& input : inputs)
    fetched.push_back(input.to_here_async(Timeout::never()));
  std::vector<at::Tensor> values;
  for (const Future<at::Tensor>& future : fetched) values.push_back(future.wait());
  return values;
}

// ---- a turn -----------------------------------------------------------------------

namespace {

// The turns backward of one stage and micro-batch.
class StageGate final : public PassGate {
 public:
  StageGate(std::shared_ptr<PipelineTurns> turns, const PipelineAction& forward)
      : turns_(std::move(turns)), stage_(forward.stage), micro_batch_(forward.micro_batch) {}

  [[nodiscard]] bool holds_leaves() const override { return turns_->divides_backwards(); }
  void ask(GatePart part, UniqueFunction<void(Status)> open) override {
    turns_->begin(action(part), std::move(open));
  }
  void end(GatePart part) override { turns_->end(action(part)); }

 private:
  [[nodiscard]] PipelineAction action(GatePart part) const {
    const bool flows = part == GatePart::flow;
    return {flows ? PipelinePass::backward : PipelinePass::weights, stage_, micro_batch_};
  }

  const std::shared_ptr<PipelineTurns> turns_;
  const uint32_t stage_;
  const uint32_t micro_batch_;
};

}  // namespace

PipelineTurn::PipelineTurn(CallContext& call, const RRef<PipelineSeat>& seat,
                           const PipelineAction& forward)
    : seat_(seat),
      turns_(seat.local_value().turns()),
      forward_(forward),
      section_(std::make_unique<GatedSection>(std::make_shared<StageGate>(turns_, forward))) {
  // A call, so that it ends with the call that waits here.
  call.with_timeout(Timeout::never()).rpc_sync(seat_, &PipelineSeat::begin, forward_);
}

PipelineTurn::~PipelineTurn() { turns_->end(forward_); }

std::vector<at::Tensor> PipelineTurn::enter(const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> inside;
  for (const at::Tensor& input : inputs) inside.push_back(section_->enter(input));
  return inside;
}

at::Tensor PipelineTurn::leave(const at::Tensor& output) { return section_->leave(output); }

}  // namespace rehearsal
