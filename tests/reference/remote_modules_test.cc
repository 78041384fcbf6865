// Goal: a module that lives at another worker computes and tells its parameters as one here does.
// Method: the reference's tests of remote modules.
#include <torch/nn/module.h>

#include <stdexcept>
#include <tuple>

#include "core/api/remote_module.h"
#include "tests/reference/row.h"

namespace rehearsal::reference::remote_modules_test {
namespace {

using Reversed = std::tuple<std::string, int64_t, at::Tensor>;

// Gives its arguments back, the last first.
class Reverser : public torch::nn::Module {
 public:
  Reverser() : weight_(register_parameter("weight", at::ones({1}))) {}
  Reversed forward(const at::Tensor& tensor, int64_t number, const std::string& word) {
    return {word, number, tensor};
  }

 private:
  at::Tensor weight_;
};

class Broken : public torch::nn::Module {
 public:
  Broken() { throw std::invalid_argument("no module after all"); }
  at::Tensor forward(const at::Tensor& tensor) { return tensor; }
};

int64_t no_module() { return 1; }
static_assert(!ModuleFactory<decltype(&no_module)>);

Reversed run_at(CallContext&, const RemoteModule<Reverser>& module, const at::Tensor& tensor,
                int64_t number) {
  const Reversed result = module.forward(tensor, number, std::string("3"));
  if (std::get<1>(module.forward_async(tensor, number, std::string("3")).wait()) != number)
    throw std::logic_error("the asynchronous form gives something else");
  return result;
}

bool training_of(const RemoteModule<Reverser>& module) { return module.is_training(); }

FunctionRegistry functions() {
  FunctionRegistry registry;
  register_module<Reverser>(registry, "Reverser").constructor<>();
  register_module<Broken>(registry, "Broken").constructor<>();
  registry.function("run_at", &run_at).function("training_of", &training_of);
  return registry;
}

void expect_reversed(const Reversed& result) {
  EXPECT_EQ(std::get<0>(result), "3");
  EXPECT_EQ(std::get<1>(result), 2);
  EXPECT_TRUE(at::equal(std::get<2>(result), at::ones({1})));
}

// Rows: remote_module_test::RemoteModuleTest.{test_forward_async, test_forward_sync,
// Rows: test_forward_with_kwargs}
TEST(ReferenceRemoteModules, ForwardGivesWhatTheModuleGivesInEveryMode) {
  in_both_worlds(one_caller(functions(), [](Worker& worker) {
    const RemoteModule<Reverser> module(worker, "worker1/cpu");
    const std::string word = "3";
    expect_reversed(module.forward(at::ones({1}), 2, word));
    expect_reversed(module.forward_async(at::ones({1}), 2, word).wait());
    expect_reversed(module.forward_remote(at::ones({1}), 2, word).to_here());
  }));
}

// Rows: remote_module_test::RemoteModuleTest.test_bad_module
TEST(ReferenceRemoteModules, AModuleThatCannotBeMadeSaysWhy) {
  in_both_worlds(one_caller(functions(), [](Worker& worker) {
    const RemoteModule<Broken> module(worker, "worker1");
    const Error error = error_of([&] { (void)module.forward(at::ones({1})); });
    EXPECT_TRUE(contains(error.text, "no module after all")) << to_string(error);
  }));
}

// Rows: remote_module_test::RemoteModuleTest.{test_remote_parameters, test_get_module_rref,
// Rows: test_train_eval}
TEST(ReferenceRemoteModules, ItsParametersItsReferenceAndItsMode) {
  in_both_worlds(one_caller(functions(), [](Worker& worker) {
    const RemoteModule<Reverser> module(worker, "worker1");
    const auto parameters = module.remote_parameters();
    ASSERT_EQ(parameters.size(), 1u);
    EXPECT_TRUE(at::equal(parameters[0].to_here(), at::ones({1})));
    EXPECT_EQ(parameters[0].owner_name(), "worker1");
    EXPECT_EQ(module.remote_parameters(), parameters);
    EXPECT_EQ(module.module_rref(), module.module_rref());
    for (const bool on : {true, false, true}) {
      module.train(on);
      EXPECT_EQ(worker.rpc_sync("worker1", &training_of, module), on);
    }
  }));
}

// Rows: remote_module_test::ThreeWorkersRemoteModuleTest.test_send_remote_module_over_the_wire
TEST(ReferenceRemoteModules, AModuleIsSentToAThirdWorkerWhichCallsItsOwner) {
  in_both_worlds(one_caller(
      functions(),
      [](Worker& worker) {
        const RemoteModule<Reverser> module(worker, "worker1/cpu");
        expect_reversed(worker.rpc_sync("worker2", &run_at, module, at::ones({1}), 2));
        EXPECT_EQ(module.owner().name, "worker1");
        EXPECT_EQ(module.device(), c10::Device(c10::kCPU));
      },
      2));
}

}  // namespace
}  // namespace rehearsal::reference::remote_modules_test
