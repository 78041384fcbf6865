// The model of `ddp_rpc`, the batches that it learns from, and its training in one process.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/api/function_registry.h"

namespace rehearsal::ddp_rpc {

// As in the example.
inline constexpr int64_t kRows = 100;
inline constexpr int64_t kWidth = 16;
inline constexpr int64_t kClasses = 8;
inline constexpr double kLearningRate = 0.05;

struct Settings {
  int64_t trainers = 2;
  int64_t epochs = 1;
  int64_t batches = 1;  // of each trainer in an epoch
  uint64_t seed = 0;

  friend void describe(Settings& settings, auto&& fields) {
    fields(settings.trainers, settings.epochs, settings.batches, settings.seed);
  }
};

// The sparse part: rows of numbers, added up in bags.
class Table : public torch::nn::Module {
 public:
  explicit Table(int64_t seed);

  // long {indices}, and where in them each bag begins, long {bags}: float {bags, kWidth}.
  at::Tensor forward(const at::Tensor& indices, const at::Tensor& offsets);
  // The present rows, outside of any graph, on the CPU.
  at::Tensor rows() const { return weight_.detach().cpu().clone(); }

 private:
  at::Tensor weight_;
};

// The dense part, of which each trainer has a replica: float {bags, kWidth} to the scores of each
// class. Replicas with other seeds begin with other numbers.
class Dense : public torch::nn::Module {
 public:
  explicit Dense(int64_t seed);

  at::Tensor forward(const at::Tensor& bags) const { return at::linear(bags, weight, bias); }

  at::Tensor weight;
  at::Tensor bias;
};

struct Batch {
  at::Tensor indices;
  at::Tensor offsets;
  at::Tensor targets;  // long {bags}, of classes
};

// The same for the same numbers.
[[nodiscard]] Batch draw_batch(const Settings& settings, int64_t trainer, int64_t epoch,
                               int64_t number);
[[nodiscard]] int64_t table_seed(const Settings& settings);
[[nodiscard]] int64_t dense_seed(const Settings& settings, int64_t trainer);

struct TrainedAlone {
  std::vector<std::vector<double>> losses;  // by trainer and step
  std::vector<std::string> dense;           // a digest of the dense part after each step
  at::Tensor rows;                          // at the end
  at::Tensor used;                          // bool {kRows}: those that were looked up
};

// The same training in this process, by LibTorch's own passes and optimizers: in each step the
// passes of all trainers, then their steps of the table in the order of the trainers, and one of
// the dense part with the mean.
[[nodiscard]] TrainedAlone train_alone(const Settings& settings);

void register_table(FunctionRegistry& registry);

}  // namespace rehearsal::ddp_rpc
