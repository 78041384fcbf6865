#include "scenarios/random_training/head_replica.h"

#include "scenarios/random_training/optimizers.h"
#include "scenarios/random_training/wrong_result.h"

namespace rehearsal::random_training {
namespace {

// Another replica than that of rank 0 begins with other parameters.
int64_t first_seed(const Plan& plan, const ProcessGroup& group) {
  return plan.head_seed + static_cast<int64_t>(group.rank());
}

std::vector<RRef<at::Tensor>> references_to(const Worker& worker, const Head& head) {
  std::vector<RRef<at::Tensor>> parameters;
  for (const at::Tensor& parameter : head.parameters())
    parameters.push_back(worker.rref(parameter));
  return parameters;
}

}  // namespace

HeadReplica::HeadReplica(const Worker& worker, const Plan& plan)
    : worker_(worker),
      plan_(plan),
      group_(worker, trainers_of(plan)),
      head_(std::make_shared<Head>(first_seed(plan, group_))),
      replicas_(replicas()),
      optimizer_(head_->parameters(), kHeadRate),
      distributed_(worker, references_to(worker, *head_), torch::optim::SGDOptions(kHeadRate)) {
  expect(group_.names() == trainers_of(plan) && group_.size() == plan.trainers &&
             group_.names()[group_.rank()] == worker.name(),
         "a process group of others");
}

DistributedDataParallel HeadReplica::replicas() const {
  const DataParallelOptions options{.bucket_bytes = plan_.bucket_bytes};
  // Two ways to name the same: 2, 8, 32, … bytes, or 1, 4, 16, ….
  if (plan_.bucket_bytes % 3 == 1) return DistributedDataParallel(group_, *head_, options);
  return DistributedDataParallel(group_, head_->parameters(), {}, options);
}

void HeadReplica::add_to(DistributedCheckpoint& checkpoint) {
  const std::string name = "head" + std::to_string(group_.rank());
  checkpoint.module(name, head_).optimizer(name + "-sgd", optimizer_).value(name + "-seen", seen_);
}

void HeadReplica::step(size_t number) {
  expect(seen_ == static_cast<int64_t>(number), "a replica that has made another number of steps");
  const HeadForm form = plan_.steps[number].heads[group_.rank()];
  if (form == HeadForm::leaf) {
    optimizer_.zero_grad();
    loss(number).backward();
    replicas_.average_gradients();
    optimizer_.step();
  } else {
    const AutogradContext context = worker_.autograd_context();
    if (form == HeadForm::context) {
      context.backward({loss(number)});
      replicas_.average_gradients(context);
    } else {
      context.rpc_sync(worker_.id(), &head_pass, static_cast<int64_t>(number));
    }
    distributed_.step(context);
  }
  ++seen_;
}

void HeadReplica::pass(CallContext& call, size_t number) const {
  expect(call.autograd_context().has_value(), "a call that is recorded in no context");
  backward(call, {loss(number)});
  replicas_.average_gradients(call);
}

at::Tensor HeadReplica::loss(size_t number) const {
  return head_loss(*head_, plan_, number, replicas_.group().rank());
}

void head_pass(CallContext& call, int64_t number) {
  call.state<HeadDesk>().replica->pass(call, static_cast<size_t>(number));
}

}  // namespace rehearsal::random_training
