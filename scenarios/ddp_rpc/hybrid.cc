#include "scenarios/ddp_rpc/hybrid.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/optim/sgd.h>

#include <utility>

#include "command_line/scenario.h"
#include "core/api/remote_module.h"
#include "core/base/hash.h"

namespace rehearsal::ddp_rpc {
namespace {

at::Tensor draw(at::IntArrayRef sizes, int64_t seed) {
  return at::rand(sizes, at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(seed)),
                  at::kFloat)
      .sub_(0.5);
}

int64_t draw_number(int64_t low, int64_t high, const at::Generator& generator) {
  return at::randint(low, high + 1, {1}, generator, at::kLong).item<int64_t>();
}

int64_t seed_of(const Settings& settings, std::string_view what, uint64_t number) {
  return static_cast<int64_t>(mix(mix(settings.seed, hash_text(what)), number) >> 1);
}

// In the order in which a process group of so many members adds small tensors up: a binomial tree.
at::Tensor sum_of(std::vector<at::Tensor> terms) {
  for (size_t reach = 1; reach < terms.size(); reach *= 2)
    for (size_t i = 0; i + reach < terms.size(); i += 2 * reach)
      terms[i] = terms[i] + terms[i + reach];
  return terms.front();
}

}  // namespace

Table::Table(int64_t seed) : weight_(register_parameter("weight", draw({kRows, kWidth}, seed))) {}

at::Tensor Table::forward(const at::Tensor& indices, const at::Tensor& offsets) {
  constexpr int64_t kSum = 0;
  return std::get<0>(at::embedding_bag(weight_, indices, offsets, /*scale_grad_by_freq=*/false,
                                       kSum, /*sparse=*/false));
}

Dense::Dense(int64_t seed)
    : weight(register_parameter("weight", draw({kClasses, kWidth}, seed))),
      bias(register_parameter("bias", draw({kClasses}, seed + 1))) {}

int64_t table_seed(const Settings& settings) { return seed_of(settings, "table", 0); }
int64_t dense_seed(const Settings& settings, int64_t trainer) {
  return seed_of(settings, "dense", static_cast<uint64_t>(trainer));
}

Batch draw_batch(const Settings& settings, int64_t trainer, int64_t epoch, int64_t number) {
  const int64_t place = (epoch * settings.batches + number) * settings.trainers + trainer;
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(
      static_cast<uint64_t>(seed_of(settings, "batch", static_cast<uint64_t>(place))));
  const int64_t indices = draw_number(20, 50, generator);
  std::vector<int64_t> offsets;
  for (int64_t begin = 0; begin < indices; begin += draw_number(1, 10, generator))
    offsets.push_back(begin);
  const auto bags = static_cast<int64_t>(offsets.size());
  return {.indices = at::randint(0, kRows, {indices}, generator, at::kLong),
          .offsets = at::tensor(offsets, at::kLong),
          .targets = at::randint(0, kClasses, {bags}, generator, at::kLong)};
}

TrainedAlone train_alone(const Settings& settings) {
  TrainedAlone trained;
  trained.losses.resize(static_cast<size_t>(settings.trainers));
  trained.used = at::zeros({kRows}, at::kBool);
  Table table(table_seed(settings));
  Dense dense(dense_seed(settings, 0));
  torch::optim::SGD table_optimizer(table.parameters(), kLearningRate);
  torch::optim::SGD dense_optimizer(dense.parameters(), kLearningRate);
  const at::Tensor rows = table.parameters().front();
  for (int64_t step = 0; step < settings.epochs * settings.batches; ++step) {
    std::vector<at::Tensor> of_rows;
    std::vector<at::Tensor> of_weight;
    std::vector<at::Tensor> of_bias;
    for (int64_t trainer = 0; trainer < settings.trainers; ++trainer) {
      const Batch batch =
          draw_batch(settings, trainer, step / settings.batches, step % settings.batches);
      const at::Tensor loss = at::cross_entropy_loss(
          dense.forward(table.forward(batch.indices, batch.offsets)), batch.targets);
      const auto gradients = torch::autograd::grad({loss}, {rows, dense.weight, dense.bias});
      of_rows.push_back(gradients[0]);
      of_weight.push_back(gradients[1]);
      of_bias.push_back(gradients[2]);
      trained.losses[static_cast<size_t>(trainer)].push_back(loss.item<double>());
      trained.used.index_fill_(0, batch.indices, true);
    }
    for (const at::Tensor& gradient : of_rows) {
      rows.mutable_grad() = gradient;
      table_optimizer.step();
    }
    dense.weight.mutable_grad() = sum_of(of_weight) / settings.trainers;
    dense.bias.mutable_grad() = sum_of(of_bias) / settings.trainers;
    dense_optimizer.step();
    trained.dense.push_back(
        digest_of(std::vector<at::Tensor>{dense.weight.detach(), dense.bias.detach()}));
  }
  trained.rows = table.rows();
  return trained;
}

void register_table(FunctionRegistry& registry) {
  register_module<Table, int64_t>(registry, "Table").method("rows", &Table::rows);
}

}  // namespace rehearsal::ddp_rpc
