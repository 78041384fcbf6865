#include "scenarios/ddp_rpc/trainer.h"

#include <torch/optim/sgd.h>

#include "command_line/scenario.h"
#include "core/api/data_parallel.h"
#include "core/api/distributed_optimizer.h"

namespace rehearsal::ddp_rpc {
namespace {

std::vector<std::string> all_trainers(const Settings& settings) {
  std::vector<std::string> names;
  for (int64_t number = 0; number < settings.trainers; ++number)
    names.push_back(trainer_name(number));
  return names;
}

// Runs `body` at one member after the other, by rank: what they change at a third place then does
// not depend on who comes first. Nobody goes on before all have.
template <class Body>
void one_after_the_other(const ProcessGroup& group, Body body) {
  const at::Tensor token = at::zeros({1});
  if (group.rank() > 0) group.recv(token, group.rank() - 1);
  body();
  if (group.rank() + 1 < group.size()) group.send(token, group.rank() + 1);
  group.barrier();
}

}  // namespace

std::string trainer_name(int64_t number) { return "trainer" + std::to_string(number); }

Report run_trainer(CallContext& call, const RemoteModule<Table>& table, const Settings& settings,
                   int64_t number) {
  Report report;
  const ProcessGroup trainers(call, all_trainers(settings));
  const Dense dense(dense_seed(settings, number));
  const DistributedDataParallel replicas(trainers, dense);
  std::vector<RRef<at::Tensor>> parameters = table.remote_parameters();
  for (const at::Tensor& parameter : dense.parameters()) parameters.push_back(call.rref(parameter));
  const DistributedOptimizer optimizer(call, parameters, torch::optim::SGDOptions(kLearningRate));
  for (int64_t epoch = 0; epoch < settings.epochs; ++epoch) {
    for (int64_t i = 0; i < settings.batches; ++i) {
      const Batch batch = draw_batch(settings, number, epoch, i);
      const AutogradContext context = AutogradContext(call);
      const auto recording = context.record();
      const at::Tensor loss = at::cross_entropy_loss(
          dense.forward(table.forward(batch.indices, batch.offsets)), batch.targets);
      context.backward({loss});
      replicas.average_gradients(context);
      one_after_the_other(trainers, [&] { optimizer.step(context); });
      report.losses.push_back(loss.item<double>());
      report.dense.push_back(
          digest_of(std::vector<at::Tensor>{dense.weight.detach(), dense.bias.detach()}));
    }
    call.note("loss", report.losses.back());
  }
  return report;
}

void register_trainer(FunctionRegistry& registry) {
  registry.function("run_trainer", &run_trainer);
}

}  // namespace rehearsal::ddp_rpc
