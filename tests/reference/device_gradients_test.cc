// Goal: the gradients of tensors on devices are those of the same graph on the CPU, come after what
// made them, and are where their tensors came from. Method: the reference's tests of gradients on
// GPUs, on simulated devices, which tell each wait that is missing.
#include <c10/core/StreamGuard.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/linear.h>

#include <vector>

#include "core/api/autograd_context.h"
#include "core/api/remote_module.h"
#include "tests/reference/devices.h"

namespace rehearsal::reference::device_gradients_test {
namespace {

// Of x², by a pass of LibTorch's own.
at::Tensor slope(const at::Tensor& x) {
  const at::AutoGradMode grad(true);
  const at::Tensor leaf = x.detach().clone().requires_grad_();
  worked(leaf * leaf).sum().backward();
  return leaf.grad();
}

at::Tensor slope_there(const at::Tensor& x) { return slope(x); }

at::Tensor slope_after_a_call(CallContext& call, const at::Tensor& x) {
  return slope(call.rpc_sync("worker2", &twice, x) / 2);
}

// Runs such a pass in its backward.
struct Squared : torch::autograd::Function<Squared> {
  static at::Tensor forward(torch::autograd::AutogradContext* local, const at::Tensor& x) {
    local->save_for_backward({x});
    return x * x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* local,
                                                 const torch::autograd::variable_list& gradients) {
    return {gradients[0] * slope(local->get_saved_variables()[0])};
  }
};

at::Tensor squared(const at::Tensor& x) { return Squared::apply(x); }

std::vector<at::Tensor> two_and_three(const at::Tensor& x, const at::Tensor& y) {
  return {worked(x) * 2, worked(y) * 3};
}

FunctionRegistry doubling() {
  FunctionRegistry registry;
  registry.function("twice", &twice)
      .function("slope_there", &slope_there)
      .function("slope_after_a_call", &slope_after_a_call)
      .function("squared", &squared)
      .function("two_and_three", &two_and_three);
  return registry;
}

void holds(const Program::Main& main, uint64_t seeds) {
  in_both_worlds(three_workers(doubling(), main), {.seeds = tries(seeds), .devices = 1});
}

// Linear layers that live at other workers, on their devices.
FunctionRegistry layers() {
  FunctionRegistry registry;
  register_module<torch::nn::LinearImpl>(registry, "Linear").constructor<int64_t, int64_t>();
  return registry;
}

// Rows: dist_autograd_test::TensorPipeCudaDistAutogradTest.{test_dist_autograd_sync_streams,
// Rows: test_gradients_synchronizations}
TEST(DeviceGradients, FlowThroughLayersOfSeveralWorkers) {
  const Program program = three_workers(layers(), [](Worker& worker) {
    constexpr int64_t kWidth = 8;
    std::vector<RemoteModule<torch::nn::LinearImpl>> remote;
    for (const char* to : {"worker1/cuda:0", "worker2/cuda:0", "worker1/cuda:0"})
      remote.emplace_back(worker, RemoteDevice(to), kWidth, kWidth);
    for (int pass = 0; pass < 2; ++pass) {
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      const at::Tensor input = at::ones({4, kWidth}).to(worker.device(0)).set_requires_grad(true);
      at::Tensor x = input;
      for (const auto& layer : remote) x = layer.forward(x);
      context.backward({x.sum()});
      const at::Tensor gradient = context.get_gradients().find(input);
      ASSERT_TRUE(gradient.defined());
      EXPECT_EQ(gradient.device(), worker.device(0));
      // The same here, on the CPU.
      at::Tensor product = at::ones({1, kWidth});
      for (size_t i = remote.size(); i > 0; --i) {
        const std::vector<RRef<at::Tensor>> parameters = remote[i - 1].remote_parameters();
        product = product.matmul(parameters[0].to_here().cpu().detach());
      }
      EXPECT_TRUE(at::allclose(gradient.cpu(), product.expand({4, kWidth}), 1e-5, 1e-6));
    }
  });
  in_both_worlds(program, {.seeds = tries(10), .devices = 1});
}

// Rows: dist_autograd_test::CudaDistAutogradTest.{test_gpu_simple, test_gpu_to_cpu_continuation,
// Rows: test_gpu_to_cpu_continuation_gpu_root}
TEST(DeviceGradients, GoFromOneDeviceToTheOther) {
  holds(
      [](Worker& worker) {
        const at::Tensor of_cpu = at::full({kSide}, 3.).set_requires_grad(true);
        const at::Tensor of_device = on(worker, 0, 2).set_requires_grad(true);
        for (const bool root_on_device : {false, true}) {
          const AutogradContext context = worker.autograd_context();
          const auto recording = context.record();
          const at::Tensor moved = of_cpu.to(worker.device(0)) * of_device;
          const at::Tensor back = worked(moved).cpu() * of_cpu;
          context.backward({root_on_device ? back.to(worker.device(0)).sum() : back.sum()});
          const LeafGradients gradients = context.get_gradients();
          expect_all(gradients.find(of_cpu), 12);
          expect_all(gradients.find(of_device), 9);
        }
      },
      8);
}

TEST(DeviceGradients, AreFoundByPassesOfLibTorchInServedFunctions) {
  holds(
      [](Worker& worker) {
        const at::Tensor three = on(worker, 0, 3);
        expect_all(worker.rpc_sync("worker1", &slope_there, three), 6);
        expect_all(worker.rpc_sync("worker1", &slope_after_a_call, three), 6);
        expect_all(worker.remote("worker1", &slope_there, three).to_here(), 6);
      },
      8);
}

TEST(DeviceGradients, AreFoundByPassesOfLibTorchWithinABackwardPass) {
  holds(
      [](Worker& worker) {
        const at::Tensor leaf = on(worker, 0, 3).set_requires_grad(true);
        const AutogradContext context = worker.autograd_context();
        const auto recording = context.record();
        const at::Tensor there = worker.rpc_sync("worker1", &squared, leaf);
        context.backward({(there + squared(leaf)).sum()});
        expect_all(context.get_gradients().find(leaf), 12);
      },
      8);
}

TEST(DeviceGradients, OfOneMessageMayBeOnSeveralDevices) {
  const auto main = [](Worker& worker) {
    const at::Tensor x = on(worker, 0, 1).set_requires_grad(true);
    const at::Tensor y = on(worker, 1, 1).set_requires_grad(true);
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    const std::vector<at::Tensor> there = worker.rpc_sync("worker1", &two_and_three, x, y);
    context.backward({worked(there[0]).sum(), worked(there[1]).sum()});
    expect_all(context.get_gradients().find(x), 2);
    expect_all(context.get_gradients().find(y), 3);
  };
  in_both_worlds(three_workers(doubling(), main, 2), {.seeds = tries(8), .devices = 2});
}

// Those of three passes in each of many contexts, from a stream that is not the leaf's.
TEST(DeviceGradients, OfPassesAreAddedUp) {
  holds(
      [](Worker& worker) {
        const at::Tensor leaf = on(worker, 0, 3).set_requires_grad(true);
        const c10::Stream other = new_stream(worker.device(0));
        for (int i = 0; i < 12; ++i) {
          const AutogradContext context = worker.autograd_context();
          const auto recording = context.record();
          const at::Tensor doubled = worker.rpc_sync("worker1", &twice, leaf);
          const at::Tensor root = (worked(doubled) + worked(leaf)).sum();
          c10::Event made(other.device_type());
          made.record(c10::impl::VirtualGuardImpl(other.device_type()).getStream(other.device()));
          made.block(other);
          const c10::StreamGuard guard(other);
          context.backward({root}, /*retain_graph=*/true);
          context.backward({root}, /*retain_graph=*/true);
          context.backward({root});
          const at::Tensor gradient = worked(context.get_gradients().find(leaf));
          if (i % 4 == 0) expect_all(gradient, 9);
        }
      },
      8);
}

}  // namespace
}  // namespace rehearsal::reference::device_gradients_test
