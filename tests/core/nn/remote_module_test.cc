// Modules at other workers, beside the same module here.
#include "core/api/remote_module.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "core/api/distributed_optimizer.h"
#include "sim/oracles/quiet_oracle.h"
#include "tests/core/nn/remote_net.h"
#include "tests/effort.h"

namespace rehearsal::testing {
namespace {

void expect_equal(const std::vector<torch::Tensor>& found,
                  const std::vector<torch::Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(equal_bits(found[i], expected[i])) << "parameter " << i;
}

// ---- forward, gradients, steps ------------------------------------------------

// The three forms of a call, side by side in one loss; four steps of an optimizer.
void train_in_three_forms(Worker& worker) {
  const RemoteModule<Net> net(worker, "ps/cpu", kWidth, 5);
  const RemoteModule<Net> other(worker, "rank:2", kWidth, 50);
  auto parameters = net.remote_parameters();
  const auto more = other.remote_parameters();
  parameters.insert(parameters.end(), more.begin(), more.end());
  const DistributedOptimizer optimizer(worker, parameters,
                                       torch::optim::SGDOptions(0.1).momentum(0.9));
  Net same(kWidth, 5);
  Net same_other(kWidth, 50);
  auto same_parameters = same.parameters();
  for (const torch::Tensor& parameter : same_other.parameters())
    same_parameters.push_back(parameter);
  torch::optim::SGD same_optimizer(same_parameters, torch::optim::SGDOptions(0.1).momentum(0.9));

  for (int64_t step = 0; step < 4; ++step) {
    const torch::Tensor input = numbers({3, kWidth}, 900 + step);
    const AutogradContext context = worker.autograd_context();
    const auto bound = other.with(context);
    const torch::Tensor first = net.with(context).forward(input);
    const Future<torch::Tensor> second = bound.forward_async(first);
    const RRef<torch::Tensor> third = bound.forward_remote(first);
    const torch::Tensor loss = (second.wait() + context.to_here(third)).pow(2).mean();
    context.backward({loss});

    same_optimizer.zero_grad();
    const torch::Tensor local = same.forward(input);
    const torch::Tensor local_loss =
        (same_other.forward(local) + same_other.forward(local)).pow(2).mean();
    EXPECT_TRUE(equal_bits(loss, local_loss)) << "step " << step;
    local_loss.backward();
    optimizer.step(context);
    same_optimizer.step();
  }
  for (size_t i = 0; i < parameters.size(); ++i)
    EXPECT_TRUE(torch::allclose(parameters[i].to_here(), same_parameters[i])) << i;
}

TEST(RemoteModule, AllThreeFormsOfForwardTrainAsTheLocalTwinDoes) {
  // Goal: outputs, gradients and steps of two remote modules. Method: beside the same modules here,
  // many seeds.
  Program program(net_functions());
  program.worker("trainer", train_in_three_forms).worker("ps", serve).worker("other", serve);
  EXPECT_TRUE(holds_under_faults(program));
}

TEST(RemoteModule, OneModuleTrainsWithTheBitsOfItsTwin) {
  // Goal: no bit differs where each parameter is used once. Method: as above, one module.
  Program program(net_functions());
  program.worker("trainer", [](Worker& worker) {
    const RemoteModule<Net> net(worker, "ps", kWidth, 5);
    const DistributedOptimizer optimizer(worker, net.remote_parameters(),
                                         torch::optim::AdamOptions(0.01));
    Net same(kWidth, 5);
    torch::optim::Adam same_optimizer(same.parameters(), torch::optim::AdamOptions(0.01));
    for (int64_t step = 0; step < 3; ++step) {
      const torch::Tensor input = numbers({3, kWidth}, 900 + step);
      const AutogradContext context = worker.autograd_context();
      context.backward({net.with(context).forward(input).pow(2).sum()});
      optimizer.step(context);
      same_optimizer.zero_grad();
      same.forward(input).pow(2).sum().backward();
      same_optimizer.step();
    }
    expect_equal(net.rpc_sync(&Net::values), same.values());
  });
  program.worker("ps", serve);
  EXPECT_TRUE(holds_under_faults(program));
}

TEST(RemoteModule, UnboundCallsAreNotRecorded) {
  // Goal: what is not bound to a context computes only. Method: all forms, without one.
  run_once(net_functions(), [](Worker& worker) {
    const RemoteModule<Net> net(worker, "ps", kWidth, 5);
    const torch::Tensor input = numbers({2, kWidth}, 9);
    const torch::Tensor expected = Net(kWidth, 5).forward(input);
    for (const torch::Tensor& output : {net.forward(input), net.forward_async(input).wait(),
                                        net.forward_remote(input).to_here()}) {
      EXPECT_TRUE(equal_bits(output, expected));
      EXPECT_EQ(output.grad_fn(), nullptr);
    }
  });
}

// ---- parameters and modes ---------------------------------------------------

TEST(RemoteModule, ParametersAreTheSameReferencesEachTimeInTheModulesOrder) {
  // Goal: order, names and identity. Method: asked twice, of the module and of it alone.
  run_once(net_functions(), [](Worker& worker) {
    const RemoteModule<Net> net(worker, "ps", kWidth, 5);
    const auto parameters = net.remote_parameters();
    ASSERT_EQ(parameters.size(), 3u);
    EXPECT_EQ(net.remote_parameters(), parameters);
    EXPECT_EQ(net.remote_parameters(/*recurse=*/false),
              (std::vector<RRef<torch::Tensor>>{parameters.front()}));
    EXPECT_EQ(net.names(), (std::vector<std::string>{"scale", "linear.weight", "linear.bias"}));
    EXPECT_EQ(net.names(/*recurse=*/false), (std::vector<std::string>{"scale"}));
    const auto expected = Net(kWidth, 5).values();
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(parameters[i].owner_name(), "ps");
      EXPECT_TRUE(equal_bits(parameters[i].to_here(), expected[i]));
    }
    EXPECT_EQ(net.module_rref(), net.module_rref());
    EXPECT_EQ(net, RemoteModule<Net>(net.module_rref()));
    EXPECT_FALSE(net == RemoteModule<Net>(worker, "ps", kWidth, 5));
  });
}

TEST(RemoteModule, TrainAndEvalReachTheModule) {
  // Goal: the mode is the module's. Method: dropout of everything.
  FunctionRegistry registry;
  register_module<torch::nn::Dropout, double>(registry, "Dropout");
  run_once(std::move(registry), [](Worker& worker) {
    const RemoteModule<torch::nn::Dropout> dropout(worker, "ps", 1.0);
    EXPECT_TRUE(dropout.is_training());
    EXPECT_TRUE(equal_bits(dropout.forward(torch::ones({3})), torch::zeros({3})));
    dropout.eval();
    EXPECT_FALSE(dropout.is_training());
    EXPECT_TRUE(equal_bits(dropout.forward(torch::ones({3})), torch::ones({3})));
    dropout.train();
    EXPECT_TRUE(dropout.is_training());
  });
}

// ---- where it is ------------------------------------------------------------

TEST(RemoteModule, LivesWhereItsPlaceSays) {
  // Goal: both forms, the caller's own worker, and what there is none of. Method: owner and device.
  run_once(net_functions(), [](Worker& worker) {
    EXPECT_EQ(RemoteModule<Net>(worker, "ps", kWidth, 1).owner().name, "ps");
    EXPECT_EQ(RemoteModule<Net>(worker, "rank:1/cpu", kWidth, 1).owner().name, "ps");
    const RemoteModule<Net> here(worker, worker.info(), kWidth, 1);
    EXPECT_EQ(here.owner().name, "trainer");
    EXPECT_EQ(here.device(), c10::Device(c10::kCPU));
    here.to(c10::Device(c10::kCPU, 0));
    EXPECT_EQ(here.device(), c10::Device(c10::kCPU, 0));
    EXPECT_EQ((*here.module_rref().local_value()).parameters().size(), 3u);
    const auto make = [&](const char* on) { RemoteModule<Net>(worker, on, kWidth, 1); };
    EXPECT_EQ(error_of([&] { make("ps/gpu"); }).kind, ErrorKind::bad_arguments);
    EXPECT_EQ(error_of([&] { make("pss"); }).text,
              "there is no worker named 'pss'; there are: trainer ps");
    EXPECT_EQ(error_of([&] { make("rank:2"); }).text,
              "there is no worker of that rank: ranks go from 0 to 1");
  });
}

TEST(RemoteModule, ADeviceThatItsOwnerDoesNotHaveIsRefusedThere) {
  // Goal: the owner says so, with its name. Method: as a place, and to move to.
  run_once(net_functions(), [](Worker& worker) {
    const RemoteModule<Net> nowhere(worker, "ps/vulkan", kWidth, 1);
    const Error refused = error_of([&] { (void)nowhere.forward(torch::ones({1, kWidth})); });
    EXPECT_EQ(refused.kind, ErrorKind::bad_arguments);
    EXPECT_EQ(refused.worker, "ps");
    EXPECT_EQ(refused.text, "worker 'ps' has no device 'vulkan': 0 of this type hold values there");
    const RemoteModule<Net> net(worker, "ps", kWidth, 1);
    EXPECT_EQ(error_of([&] { net.to(c10::Device("vulkan")); }).text, refused.text);
    EXPECT_EQ(net.device(), c10::Device(c10::kCPU));
  });
}

// ---- as a value -------------------------------------------------------------

// Returns its caller's name: a module may take a CallContext first, as functions do.
class Witness : public torch::nn::Module {
 public:
  std::string forward(CallContext& call) { return call.caller_info().name; }
};

std::vector<std::string> visit(const RemoteModule<Witness>& witness, const RemoteModule<Net>& net) {
  return {witness.forward(), witness.owner().name, net.owner().name,
          std::to_string(net.remote_parameters().size())};
}

TEST(RemoteModule, IsSentToAWorkerThatThenCallsItsOwnerDirectly) {
  // Goal: a handle is a value. Method: a third worker uses two of them; the first is not in the
  // way.
  FunctionRegistry registry = net_functions();
  register_module<Witness>(registry, "Witness").constructor<>();
  registry.function("visit", &visit);
  Program program(std::move(registry));
  program.worker("trainer", [](Worker& worker) {
    const RemoteModule<Witness> witness(worker, "ps");
    const RemoteModule<Net> net(worker, "ps", kWidth, 5);
    EXPECT_EQ(witness.forward(), "trainer");
    EXPECT_EQ(worker.rpc_sync("visitor", &visit, witness, net),
              (std::vector<std::string>{"visitor", "ps", "ps", "3"}));
    EXPECT_EQ(
        error_of([&] { worker.rpc_sync("visitor", &visit, RemoteModule<Witness>(), net); }).kind,
        ErrorKind::bad_arguments);
    EXPECT_EQ(error_of([] { (void)RemoteModule<Net>().forward(torch::ones({1})); }).text,
              "the remote module is empty");
  });
  program.worker("ps", serve).worker("visitor", serve);
  EXPECT_TRUE(holds_under_faults(program));
}

// ---- how it is made ---------------------------------------------------------

torch::nn::Sequential two_layers(int64_t width) {
  return torch::nn::Sequential(torch::nn::Linear(width, width), torch::nn::Tanh(),
                               torch::nn::Linear(torch::nn::LinearOptions(width, 2).bias(false)));
}
std::shared_ptr<Net> net_of_caller(CallContext& call, int64_t width) {
  return std::make_shared<Net>(width, static_cast<int64_t>(call.caller_info().id.value) + 7);
}
std::shared_ptr<Net> no_net() { return nullptr; }
int64_t no_module(int64_t number) { return number; }

static_assert(ModuleFactory<decltype(&two_layers)>);
static_assert(ModuleFactory<decltype(&net_of_caller)>);
static_assert(!ModuleFactory<decltype(&no_module)>, "a factory makes a module");
static_assert(ModuleLike<torch::nn::Linear> && ModuleLike<torch::nn::LinearImpl>);
static_assert(!ModuleLike<int64_t> && !ModuleLike<std::shared_ptr<std::string>>);

FunctionRegistry factory_functions() {
  FunctionRegistry registry;
  register_module<torch::nn::Linear, int64_t, int64_t>(registry, "Linear");
  register_module<torch::nn::Sequential>(registry, "Sequential").factory<&two_layers>("two_layers");
  register_module<Net, int64_t, int64_t>(registry, "Net")
      .factory<&net_of_caller>("net_of_caller")
      .factory<&no_net>("no_net")
      .method("values", &Net::values);
  return registry;
}

TEST(RemoteModule, LibTorchsOwnModulesAreMadeByConstructorOrFactory) {
  // Goal: no wrapper is needed for them. Method: their parameters are fetched into a twin.
  run_once(factory_functions(), [](Worker& worker) {
    const torch::NoGradGuard no_grad;
    const torch::Tensor input = numbers({3, kWidth}, 40);
    const auto fill = [](const auto& twin, const auto& parameters) {
      const auto mine = twin->parameters();
      ASSERT_EQ(mine.size(), parameters.size());
      for (size_t i = 0; i < mine.size(); ++i) mine[i].copy_(parameters[i].to_here());
    };
    const RemoteModule<torch::nn::Linear> linear(worker, "ps", kWidth, 2);
    torch::nn::Linear same_linear(kWidth, 2);
    fill(same_linear, linear.remote_parameters());
    EXPECT_TRUE(equal_bits(linear.forward(input), same_linear->forward(input)));

    const auto layers =
        RemoteModule<torch::nn::Sequential>::made_by<&two_layers>(worker, "ps/cpu", kWidth);
    auto same_layers = two_layers(kWidth);
    EXPECT_EQ(layers.names(), (std::vector<std::string>{"0.weight", "0.bias", "2.weight"}));
    fill(same_layers, layers.remote_parameters());
    EXPECT_TRUE(equal_bits(layers.forward(input), same_layers->forward(input)));

    const auto net = RemoteModule<Net>::made_by<&net_of_caller>(worker, "ps", kWidth);
    expect_equal(net.rpc_sync(&Net::values), Net(kWidth, 7).values());
    expect_equal(net.rpc_async(&Net::values).wait(), Net(kWidth, 7).values());
    expect_equal(net.remote(&Net::values).to_here(), Net(kWidth, 7).values());
  });
}

TEST(RemoteModule, WhatThrowsAtTheOwnerReachesTheCaller) {
  // Goal: constructor, forward, factory and mode. Method: each fails; the module lives on.
  run_once(factory_functions(), [](Worker& worker) {
    const RemoteModule<Net> wide(worker, "ps", 65, 1);
    const Error made = error_of([&] { (void)wide.remote_parameters(); });
    EXPECT_EQ(made.kind, ErrorKind::remote_exception);
    EXPECT_EQ(made.text, "std::length_error: too wide for this test");
    EXPECT_EQ(made.worker, "ps");

    const RemoteModule<Net> net(worker, "ps", kWidth, 1);
    const Error failed = error_of([&] { (void)net.forward(torch::ones({kWidth})); });
    EXPECT_EQ(failed.text, "std::invalid_argument: rows are expected");
    EXPECT_EQ(failed.worker, "ps");
    EXPECT_EQ(failed.function, "Net.forward");
    EXPECT_EQ(net.forward(torch::ones({1, kWidth})).size(0), 1);

    const auto none = RemoteModule<Net>::made_by<&no_net>(worker, "ps");
    EXPECT_EQ(error_of([&] { none.train(); }).text, "the factory returned no module");

    const Error unknown = error_of([&] { RemoteModule<Net>(worker, "ps", std::string("x")); });
    EXPECT_EQ(unknown.kind, ErrorKind::bad_arguments);
    EXPECT_EQ(unknown.text,
              "no constructor of Net takes (device,bytes,); there are: Net(device,int64,int64,)");
  });
}

// ---- its monitor ------------------------------------------------------------

class Tally : public torch::nn::Module {
 public:
  int64_t forward(int64_t amount) { return total_ += amount; }

 private:
  int64_t total_ = 0;
};

// Of all forwards of the module no two run at once.
class OneAtATime : public sim::QuietOracle {
 public:
  std::string_view name() const override { return "monitor"; }
  void on_event(const sim::Observation& seen, sim::Findings& findings) override {
    if (seen.event.text != "Tally.forward") return;
    if (seen.event.kind == EventKind::execution_ended) --running_;
    if (seen.event.kind == EventKind::execution_started && ++running_ > 1)
      findings.fail(name(), "the module", "a forward begins while another one runs");
  }

 private:
  int64_t running_ = 0;
};

TEST(RemoteModule, ForwardRunsInTheModulesMonitor) {
  // Goal: one forward at a time. Method: many side by side; an oracle looks at every event.
  FunctionRegistry registry;
  register_module<Tally>(registry, "Tally").constructor<>();
  Program program(std::move(registry));
  program.worker("trainer", [](Worker& worker) {
    const RemoteModule<Tally> tally(worker, "ps");
    std::vector<Future<int64_t>> totals;
    for (int64_t amount = 1; amount <= 8; ++amount) totals.push_back(tally.forward_async(amount));
    for (const auto& total : totals) EXPECT_LE(total.wait(), 36);
    EXPECT_EQ(tally.forward(0), 36);
  });
  program.worker("ps", serve);
  EXPECT_TRUE(sim::hunt({.seeds = tries(25), .cluster = {.faults = sim::FaultLevel::mild}},
                        [&](Seed seed, const sim::ClusterOptions& options) {
                          sim::Cluster cluster(seed, program, options);
                          cluster.add_oracle(std::make_unique<OneAtATime>());
                          cluster.run();
                        }));
}

}  // namespace
}  // namespace rehearsal::testing
