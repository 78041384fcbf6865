// Goal: sparse gradients are stepped with, clipped and refused as LibTorch's own functions do it.
// Method: a table at another worker beside the same here; bits, or the same text of the error.
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "core/base/printable.h"
#include "tests/core/optim/split_model.h"

namespace rehearsal::testing {
namespace {

using torch::optim::SGD;
using torch::optim::SGDOptions;

// Rows of a table, whose gradient is sparse.
class Table {
 public:
  at::Tensor forward(const at::Tensor& rows) {
    return at::embedding(table_, rows, -1, false, /*sparse=*/true);
  }
  RRef<at::Tensor> parameter(CallContext& call) { return call.rref(table_); }
  at::Tensor value() { return table_.detach().clone(); }

  at::Tensor table_ = numbers({6, 3}, 5).requires_grad_();
};

FunctionRegistry table_functions() {
  FunctionRegistry registry = layer_functions();
  registry.type<Table>("Table")
      .constructor<>()
      .method("forward", &Table::forward)
      .method("parameter", &Table::parameter)
      .method("value", &Table::value);
  return registry;
}

at::Tensor rows(int64_t step) { return at::tensor({1, 4, 1, 5}, at::kLong) - step % 2; }
at::Tensor loss_of(const at::Tensor& embedded) { return embedded.pow(2).sum(); }

// The text of what LibTorch throws, without its own trace; empty if nothing is.
std::string libtorch_refuses(const std::function<void()>& body) {
  try {
    body();
  } catch (const c10::Error& thrown) {
    return thrown.what_without_backtrace();
  }
  return {};
}

// Does the same to a table at "far" and to one here, for two steps.
template <class Optimizer, class Options>
void compare(Worker& worker, const Options& options,
             const std::function<void(const DistributedOptimizer&, const AutogradContext&)>& change,
             const std::function<void(const at::Tensor&)>& change_here) {
  const auto table = worker.remote<Table>("far");
  Table same_table;
  const DistributedOptimizer optimizer(worker, {table.rpc_sync(&Table::parameter)}, options);
  Optimizer same(std::vector<at::Tensor>{same_table.table_}, options);
  for (int64_t step = 0; step < 2; ++step) {
    const AutogradContext context = worker.autograd_context();
    context.backward({loss_of(context.rpc_sync(table, &Table::forward, rows(step)))});
    same.zero_grad();
    loss_of(same_table.forward(rows(step))).backward();
    const std::string refusal = libtorch_refuses([&] {
      change_here(same_table.table_);
      same.step();
    });
    const auto distributed = [&] {
      change(optimizer, context);
      optimizer.step(context);
    };
    if (refusal.empty()) {
      distributed();
    } else {
      const std::string text = text_thrown<RpcError>(distributed);
      EXPECT_TRUE(contains(text, "'far' failed")) << text;
      EXPECT_TRUE(contains(text, printable(refusal))) << text << "\nbut here: " << refusal;
    }
    EXPECT_TRUE(equal_bits(table.rpc_sync(&Table::value), same_table.table_));
  }
}

const auto kNothing = [](const DistributedOptimizer&, const AutogradContext&) {};
const auto kNothingHere = [](const at::Tensor&) {};

TEST(SparseGradients, AreSteppedWithWhereLibtorchDoes) {
  on_split_clusters(
      [](Worker& worker) {
        compare<SGD>(worker, SGDOptions(0.1), kNothing, kNothingHere);
        compare<torch::optim::Adagrad>(worker, torch::optim::AdagradOptions(0.1), kNothing,
                                       kNothingHere);
      },
      table_functions());
}

TEST(SparseGradients, AreRefusedWhereLibtorchRefusesThem) {
  on_split_clusters(
      [](Worker& worker) {
        compare<torch::optim::Adam>(worker, torch::optim::AdamOptions(0.1), kNothing, kNothingHere);
        compare<torch::optim::RMSprop>(worker, torch::optim::RMSpropOptions(0.1), kNothing,
                                       kNothingHere);
      },
      table_functions());
}

TEST(SparseGradients, AreClippedByNormAsPytorchClipsThem) {
  on_split_clusters(
      [](Worker& worker) {
        compare<SGD>(
            worker, SGDOptions(0.1),
            [](const DistributedOptimizer& optimizer, const AutogradContext& context) {
              EXPECT_GT(optimizer.clip_grad_norm(context, 0.5), 1.0);
            },
            [](const at::Tensor& parameter) {
              // LibTorch's C++ function scales a copy of a sparse gradient; PyTorch's the gradient.
              at::Tensor gradient = parameter.grad();
              gradient.mul_((0.5 / (gradient.norm(2) + 1e-6)).clamp_max(1.0));
            });
      },
      table_functions());
}

TEST(SparseGradients, AreClippedByValueAsLibtorchClipsThem) {
  on_split_clusters(
      [](Worker& worker) {
        compare<SGD>(
            worker, SGDOptions(0.1),
            [](const DistributedOptimizer& optimizer, const AutogradContext& context) {
              optimizer.clip_grad_value(context, 0.5);
            },
            [](const at::Tensor& parameter) {
              torch::nn::utils::clip_grad_value_({parameter}, 0.5);
            });
      },
      table_functions());
}

TEST(SparseGradients, AreAccumulatedAsAutogradAddsThem) {
  on_split_clusters(
      [](Worker& worker) {
        const auto table = worker.remote<Table>("far");
        Table same_table;
        const DistributedOptimizer optimizer(worker, {table.rpc_sync(&Table::parameter)},
                                             SGDOptions(0.1));
        SGD same(std::vector<at::Tensor>{same_table.table_}, SGDOptions(0.1));
        for (int64_t step = 0; step < 3; ++step) {
          const AutogradContext context = worker.autograd_context();
          context.backward({loss_of(context.rpc_sync(table, &Table::forward, rows(step)))});
          loss_of(same_table.forward(rows(step))).backward();
          optimizer.accumulate(context);
        }
        optimizer.step();
        same.step();
        EXPECT_TRUE(equal_bits(table.rpc_sync(&Table::value), same_table.table_));
      },
      table_functions());
}

TEST(DenseGradients, AreClippedByValueAsLibtorchClipsThem) {
  on_split_clusters([](Worker& worker) {
    const SplitModel model(worker);
    TwinModel twin;
    const DistributedOptimizer optimizer(worker, model.parameters(), SGDOptions(0.1));
    SGD same(twin.parameters(), SGDOptions(0.1));
    for (int step = 0; step < 3; ++step) {
      const AutogradContext context = worker.autograd_context();
      model.backward(context, 30 + step);
      optimizer.clip_grad_value(context, 0.2);
      optimizer.step(context);
      same.zero_grad();
      twin.loss(30 + step).backward();
      torch::nn::utils::clip_grad_value_(twin.parameters(), 0.2);
      same.step();
      expect_equal(model.values(), twin.parameters());
    }
  });
}

}  // namespace
}  // namespace rehearsal::testing
