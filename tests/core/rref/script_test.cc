#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <fstream>
#include <stdexcept>
#include <string>

#include "core/functions/script_library.h"
#include "tests/core/calls/call_fixture.h"
#include "tests/temporary_folder.h"

namespace rehearsal {
namespace {

constexpr const char* kSource = R"(
def scaled(x, y: int = 2):
    return x * y

def both(x, names: List[str], at: Dict[str, int]) -> Tuple[Tensor, int]:
    return scaled(x, 3), at[names[0]]

def steps(x, n: int):
    total = x
    for i in range(n):
        if i % 2 == 0:
            total = total + x
    return total

def fails(x):
    assert x.dim() == 7, "seven dimensions"
    return x
)";

// A module whose one parameter grows by a method.
torch::jit::Module growing() {
  torch::jit::Module module("Growing");
  module.register_parameter("weight", at::full({2}, 3.0), /*is_buffer=*/false);
  module.define(R"(
    def forward(self, x, scale: int = 1):
        return self.weight * x * scale
    def grow(self, by: float) -> int:
        self.weight = self.weight + by
        return 1
  )");
  return module;
}

ScriptModule own_module() { return ScriptModule(growing()); }
double weight_here(CallContext&, const RRef<ScriptModule>& rref) {
  return rref.with_local(
      [](ScriptModule& module) { return module.parameters().at(0).second.sum().item<double>(); });
}

class ScriptTest : public CallFixture {
 protected:
  void SetUp() override {
    growing().save(path_);
    registry.script("lib", kSource).script_file("growing", path_);
    registry.function("own_module", &own_module).function("weight_here", &weight_here);
    begin();
  }
  const TemporaryFolder folder_;
  const std::string path_ = folder_.file("growing.pt");
};

TEST_F(ScriptTest, FunctionsAreCalledByNameWithDefaultsAndKeywords) {
  const at::Tensor x = at::ones(2);
  const auto scaled = [&](const auto&... arguments) {
    return a().calls.rpc_sync<at::Tensor>("b", "script::lib.scaled", x, arguments...);
  };
  EXPECT_TRUE(at::equal(scaled(), 2 * x));
  EXPECT_TRUE(at::equal(scaled(5), 5 * x));
  EXPECT_TRUE(at::equal(scaled(kwarg("y", 7)), 7 * x));
  EXPECT_TRUE(at::equal(
      a().calls.rpc_async<at::Tensor>("b", "script::lib.steps", kwarg("n", 4), kwarg("x", x))
          .wait(),
      3 * x));
  const RRef<c10::IValue> rref =
      a().calls.remote_by_name<c10::IValue>("b", "script::lib.scaled", x);
  EXPECT_TRUE(at::equal(rref.to_here().toTensor(), 2 * x));
}

TEST_F(ScriptTest, ListsDictionariesAndSeveralResultsTravel) {
  c10::Dict<std::string, int64_t> places;
  places.insert("here", 41);
  const auto both = a().calls.rpc_sync<c10::IValue>("b", "script::lib.both", at::ones(2),
                                                    c10::List<std::string>({"here"}), places);
  EXPECT_TRUE(at::equal(both.toTupleRef().elements()[0].toTensor(), at::full({2}, 3.0)));
  EXPECT_EQ(both.toTupleRef().elements()[1].toInt(), 41);
}

TEST_F(ScriptTest, RepeatedRunsComputeTheSameBits) {
  // Goal: nothing depends on earlier runs. Method: more of them than a profile would take.
  const at::Tensor x = at::linspace(0, 1, 64);
  const at::Tensor first = a().calls.rpc_sync<at::Tensor>("b", "script::lib.steps", x, 9);
  for (int run = 0; run < 30; ++run)
    EXPECT_TRUE(at::equal(a().calls.rpc_sync<at::Tensor>("b", "script::lib.steps", x, 9), first));
}

TEST_F(ScriptTest, WhatDoesNotFitIsRefusedWithTheSchema) {
  const auto refusal = [&](const auto&... arguments) {
    return error_of(
        [&] { (void)a().calls.rpc_sync<at::Tensor>("b", "script::lib.scaled", arguments...); });
  };
  const std::string schema = "; its schema is scaled(Tensor x, int y=2) -> Tensor";
  EXPECT_EQ(refusal().kind, ErrorKind::bad_arguments);
  EXPECT_EQ(refusal().text, "the argument 'x' is missing" + schema);
  EXPECT_EQ(refusal(at::ones(1), kwarg("z", 1)).text, "it has no argument named 'z'" + schema);
  EXPECT_EQ(refusal(at::ones(1), "two").text, "the argument 'y' is a int, not a str" + schema);
  const Error unknown =
      error_of([&] { (void)a().calls.rpc_sync<at::Tensor>("b", "script::lib.nope", at::ones(1)); });
  EXPECT_EQ(unknown.kind, ErrorKind::unknown_function);
  EXPECT_EQ(unknown.text, "no function named 'script::lib.nope' is registered");
  EXPECT_EQ(
      error_of([&] { (void)a().calls.rpc_sync<double>("b", "weight_here", kwarg("x", 1)); }).text,
      "a registered C++ function takes values, by position only");
}

TEST_F(ScriptTest, WhatAScriptRaisesIsARemoteExceptionWithItsLines) {
  const Error error = error_of(
      [&] { (void)a().calls.rpc_sync<at::Tensor>("b", "script::lib.fails", at::ones(1)); });
  EXPECT_EQ(error.kind, ErrorKind::remote_exception);
  EXPECT_EQ(error.worker, "b");
  EXPECT_NE(error.text.find("seven dimensions"), std::string::npos) << error.text;
  EXPECT_NE(error.text.find("assert x.dim() == 7"), std::string::npos) << error.text;
}

TEST_F(ScriptTest, AModuleFromAFileIsMadeAtTheTargetAndItsMethodsAreCalled) {
  // Goal: each instance has its own state, at its owner. Method: one grows, the other does not.
  const auto made = [&] { return a().calls.remote_by_name<ScriptModule>("b", "script::growing"); };
  const RRef<ScriptModule> one = made();
  const RRef<ScriptModule> other = made();
  const at::Tensor x = at::ones(2);
  const auto forward = [&](const RRef<ScriptModule>& module, const auto&... arguments) {
    return module.rpc_sync(&ScriptModule::call, "forward", schema_arguments(arguments...))
        .toTensor();
  };
  EXPECT_EQ(one.rpc_sync(&ScriptModule::call, "grow", schema_arguments(2)).toInt(), 1);
  EXPECT_TRUE(at::equal(forward(one, x), at::full({2}, 5.0)));
  EXPECT_TRUE(at::equal(forward(other, x, kwarg("scale", 2)), at::full({2}, 6.0)));
  EXPECT_EQ(a().calls.rpc_sync("b", &weight_here, one), 10);
  const auto parameters = one.rpc_sync(&ScriptModule::parameters);
  ASSERT_EQ(parameters.size(), 1u);
  EXPECT_EQ(parameters.front().first, "weight");
  one.rpc_sync(&ScriptModule::train, false);
}

TEST_F(ScriptTest, AFunctionMayMakeAModule) {
  const RRef<ScriptModule> module = a().calls.remote("b", &own_module);
  const auto call = [&](const std::string& method, const auto&... arguments) {
    return a().calls.rpc_sync(module, &ScriptModule::call, method, schema_arguments(arguments...));
  };
  EXPECT_TRUE(at::equal(call("forward", at::ones(2)).toTensor(), at::full({2}, 3.0)));
  const Error unknown = error_of([&] { (void)call("backward", at::ones(2)); });
  EXPECT_EQ(unknown.kind, ErrorKind::bad_arguments);
  EXPECT_EQ(unknown.text, "the script module has no such method; there are: forward grow");
  EXPECT_NE(error_of([&] {
              (void)call("grow", "much");
            }).text.find("the argument 'by' is a float, not a str; its schema is grow("),
            std::string::npos);
}

std::string refusal_of(const std::string& source) {
  try {
    FunctionRegistry registry;
    registry.script("wrong", source);
    return "accepted";
  } catch (const std::invalid_argument& thrown) {
    return thrown.what();
  }
}

TEST(ScriptRegistration, ASourceThatDoesNotCompileIsRefusedWithTheCompilersText) {
  const std::string unknown = refusal_of("def f(x):\n    return y\n");
  EXPECT_TRUE(unknown.starts_with("the script 'wrong' does not compile: ")) << unknown;
  EXPECT_NE(unknown.find("undefined value y"), std::string::npos) << unknown;
  EXPECT_NE(refusal_of("def f(x:\n").find("does not compile"), std::string::npos);
  EXPECT_EQ(refusal_of(""), "the script 'wrong' defines no function");
}

TEST(ScriptRegistration, AScriptThatWaitsForTasksIsRefused) {
  EXPECT_EQ(
      refusal_of("def f(x: Future[Tensor]):\n    if True:\n        x = x\n"
                 "    return torch.wait(x)\n"),
      "the script 'wrong' forks or waits in 'f': a script runs on the stack of its call alone");
}

TEST(ScriptRegistration, AnotherVersionIsDescribedOtherwise) {
  // Goal: the greeting differs, and names the script, even where no signature does.
  const auto described = [](const std::string& source) {
    FunctionRegistry registry;
    registry.script("lib", source);
    return registry.describe();
  };
  const std::string one = described("def f(x):\n    return x + 1\n");
  const std::string two = described("def f(x):\n    return x + 2\n");
  EXPECT_EQ(one, described("def f(x):\n    return x + 1\n"));
  EXPECT_NE(one, two);
  EXPECT_TRUE(one.starts_with("script::lib.f (f(Tensor x) -> Tensor) -> IValue\nscript lib "))
      << one;
}

TEST(ScriptRegistration, NamesAreTakenOnceAndFilesMustBeReadable) {
  FunctionRegistry registry;
  registry.script("lib", kSource);
  EXPECT_THROW(registry.script("lib", "def g(x):\n    return x\n"), std::invalid_argument);
  EXPECT_THROW(registry.script_file("lost", "/nowhere/lost.pt"), std::invalid_argument);
  const TemporaryFolder folder;
  const std::string path = folder.file("broken.pt");
  std::ofstream(path) << "not a module";
  EXPECT_THROW(registry.script_file("broken", path), std::invalid_argument);
  registry.script_modules().script_modules();
}

}  // namespace
}  // namespace rehearsal
