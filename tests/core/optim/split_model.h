#pragma once

#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/api/distributed_optimizer.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/core/autograd/remote_model.h"
#include "tests/effort.h"

// A model at three workers beside the same in one process, for tests of optimizers.
namespace rehearsal::testing {

// A matrix here, then a layer at "near", then one at "far".
class SplitModel {
 public:
  explicit SplitModel(Worker& worker)
      : worker_(worker),
        near_(worker.remote<Layer>("near", 4, 1)),
        far_(worker.remote<Layer>("far", 4, 2)),
        near_parameters_(near_.rpc_sync(&Layer::parameters)),
        far_parameters_(far_.rpc_sync(&Layer::parameters)),
        w_reference_(worker.rref(w_)) {}

  // Calls that are recorded, if the execution is.
  at::Tensor loss(int64_t seed) const {
    const at::Tensor first = at::matmul(numbers({3, 4}, seed), w_);
    const at::Tensor second = worker_.rpc_sync(near_, &Layer::forward, first);
    return worker_.rpc_sync(far_, &Layer::forward, second).pow(2).sum();
  }
  void backward(const AutogradContext& context, int64_t seed, double scale = 1) const {
    const auto recording = context.record();
    context.backward({loss(seed) * scale});
  }
  // Those of the twin's: w, weights, biases.
  std::vector<RRef<at::Tensor>> weights() const {
    return {w_reference_, near_parameters_.at(0), far_parameters_.at(0)};
  }
  std::vector<RRef<at::Tensor>> biases() const {
    return {near_parameters_.at(1), far_parameters_.at(1)};
  }
  std::vector<RRef<at::Tensor>> parameters() const {
    auto all = weights();
    for (const auto& bias : biases()) all.push_back(bias);
    return all;
  }
  std::vector<at::Tensor> values() const {
    const auto near = near_.rpc_sync(&Layer::values);
    const auto far = far_.rpc_sync(&Layer::values);
    return {w_.detach().clone(), near[0], far[0], near[1], far[1]};
  }
  const at::Tensor& w() const { return w_; }
  const RRef<Layer>& far() const { return far_; }

 private:
  Worker& worker_;
  at::Tensor w_ = numbers({4, 4}, 7).requires_grad_();
  RRef<Layer> near_;
  RRef<Layer> far_;
  std::vector<RRef<at::Tensor>> near_parameters_;
  std::vector<RRef<at::Tensor>> far_parameters_;
  RRef<at::Tensor> w_reference_;
};

class TwinModel {
 public:
  at::Tensor loss(int64_t seed) {
    return far_.forward(near_.forward(at::matmul(numbers({3, 4}, seed), w_))).pow(2).sum();
  }
  std::vector<at::Tensor> weights() const { return {w_, near_.weight_, far_.weight_}; }
  std::vector<at::Tensor> biases() const { return {near_.bias_, far_.bias_}; }
  std::vector<at::Tensor> parameters() const {
    return {w_, near_.weight_, far_.weight_, near_.bias_, far_.bias_};
  }

 private:
  at::Tensor w_ = numbers({4, 4}, 7).requires_grad_();
  Layer near_{4, 1};
  Layer far_{4, 2};
};

inline void expect_equal(const std::vector<at::Tensor>& values,
                         const std::vector<at::Tensor>& others, const std::string& when = "") {
  ASSERT_EQ(values.size(), others.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_TRUE(equal_bits(values[i], others[i])) << "parameter " << i << " " << when;
}

inline std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& tensor : tensors) all.push_back(tensor.detach().clone());
  return all;
}

// Runs a trainer beside "near" and "far" on clusters of which half have mild faults and half
// hostile ones.
inline void on_split_clusters(const std::function<void(Worker&)>& trainer,
                              FunctionRegistry registry = layer_functions()) {
  Program program(std::move(registry));
  program.worker("trainer", trainer);
  program.worker("near", [](Worker&) {});
  program.worker("far", [](Worker&) {});
  EXPECT_TRUE(sim::holds_for_seeds(tries(14), [&](Seed seed) {
    const auto faults = seed.value % 2 == 0 ? sim::FaultLevel::mild : sim::FaultLevel::hostile;
    sim::Cluster cluster(seed, program, {.faults = faults});
    cluster.run();
  }));
}

// Of the fastest of some calls to the slowest worker.
inline Duration round_trip(Worker& worker, const SplitModel& model) {
  Duration fastest = std::chrono::hours(1);
  for (int call = 0; call < 5; ++call) {
    const Instant begin = worker.now();
    static_cast<void>(model.loss(1));
    fastest = std::min<Duration>(fastest, worker.now() - begin);
  }
  return fastest;
}

// The text of what is thrown, an E; fails the test if none is.
template <class E, class F>
std::string text_thrown(F body) {
  try {
    body();
  } catch (const E& thrown) {
    return thrown.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace rehearsal::testing
