// Goal: TorchScript functions are called as others are, with named arguments and defaults. Method:
// the reference's tests of compiled functions.
#include <ATen/ATen.h>

#include <vector>

#include "tests/reference/row.h"

namespace rehearsal::reference::scripts_test {
namespace {

constexpr const char* kSource = R"(
def sums(first, second, third: float = 2.0, fourth: float = 3.0):
    return first + second + third + fourth

def add(x, y):
    return x + y

def mixed(tensor, text: str, number: int, named, text_named: str = "str_kwarg",
          number_named: int = 2):
    return (tensor + named, text + "_" + text_named, number + number_named)

def nothing() -> int:
    return 0

def fails(x):
    assert x.dim() == 7, "Expected error"
    return x
)";

Future<at::Tensor> add_at(CallContext& context, const std::string& to, const at::Tensor& x,
                          const at::Tensor& y) {
  return context.rpc_async<at::Tensor>(to, "script::lib.add", x, y);
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.script("lib", kSource).function("add_at", &add_at);
  return registry;
}

at::Tensor tens(double value) { return at::full({2}, value); }

// Rows: jit/rpc_test::JitRpcOpTest.{test_all_kwargs_are_populated_by_defaults,
// Rows: test_some_kwargs_are_populated_by_defaults, test_no_kwargs_are_populated_by_defaults,
// Rows: test_args_and_kwargs_contain_different_types, test_kwargs_not_passed,
// Rows: test_args_kwargs_are_neither_passed}
TEST(ReferenceScripts, NamedArgumentsAndDefaults) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const std::string to = after(worker);
    const auto sums = [&](auto... more) {
      const at::Tensor sync =
          worker.rpc_sync<at::Tensor>(to, "script::lib.sums", tens(2), tens(3), more...);
      const at::Tensor async =
          worker.rpc_async<at::Tensor>(to, "script::lib.sums", tens(2), tens(3), more...).wait();
      const c10::IValue remote =
          worker.remote_by_name<c10::IValue>(to, "script::lib.sums", tens(2), tens(3), more...)
              .to_here();
      EXPECT_TRUE(at::equal(sync, async));
      EXPECT_TRUE(at::equal(sync, remote.toTensor()));
      return sync;
    };
    EXPECT_TRUE(at::equal(sums(), tens(10)));
    EXPECT_TRUE(at::equal(sums(kwarg("third", 1.0)), tens(9)));
    EXPECT_TRUE(at::equal(sums(kwarg("fourth", 2.0), kwarg("third", 1.0)), tens(8)));
    const auto mixed = worker.rpc_sync<c10::IValue>(
        to, "script::lib.mixed", tens(2), std::string("str_arg"), 2, kwarg("named", tens(2)));
    const auto& parts = mixed.toTupleRef().elements();
    EXPECT_TRUE(at::equal(parts[0].toTensor(), tens(4)));
    EXPECT_EQ(parts[1].toStringRef(), "str_arg_str_kwarg");
    EXPECT_EQ(parts[2].toInt(), 4);
    EXPECT_EQ(worker.rpc_sync<int64_t>(to, "script::lib.nothing"), 0);
    EXPECT_EQ(kind_of([&] { (void)sums(kwarg("unknown", 1.0)); }), ErrorKind::bad_arguments);
  }));
}

// Rows: jit/rpc_test::JitRpcTest.{test_torchscript_function, test_torchscript_function_exception,
// Rows: test_remote_script_throw, test_remote_script_udf, test_async_script_udf,
// Rows: test_async_script_throw, test_callback_simple, test_callback_chain, test_add_done_callback,
// Rows: test_callback_with_exception}
TEST(ReferenceScripts, CompiledFunctionsObeyTheRulesOfOthers) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    for (const std::string& to : {after(worker), worker.name()}) {
      const auto sum = worker.rpc_async<at::Tensor>(to, "script::lib.add", tens(1), tens(1));
      Future<at::Tensor> chain = sum;
      for (int i = 0; i < 20; ++i)
        chain = chain.then([](const at::Tensor& value) { return value + 1; });
      EXPECT_TRUE(at::equal(chain.wait(), tens(22)));
      EXPECT_TRUE(at::equal(sum.wait(), tens(2)));
      EXPECT_EQ(kind_of([&] { worker.rpc_sync<at::Tensor>(to, "script::lib.add", tens(1)); }),
                ErrorKind::bad_arguments);
      const auto failing = worker.rpc_async<at::Tensor>(to, "script::lib.fails", tens(1));
      EXPECT_TRUE(contains(error_of([&] { failing.wait(); }).text, "Expected error"));
      const auto after_failing = failing.then([](const Result<at::Tensor>& result) {
        return static_cast<int64_t>(result.ok() ? 1 : 0);
      });
      EXPECT_EQ(after_failing.wait(), 0);
      const auto broken = worker.remote_by_name<c10::IValue>(to, "script::lib.fails", tens(1));
      EXPECT_TRUE(contains(error_of([&] { (void)broken.to_here(); }).text, "Expected error"));
    }
  }));
}

// Rows: jit/rpc_test::JitRpcTest.{test_async_function_simple, test_async_function_remote,
// Rows: test_async_function_remote_multi, test_async_function_wrong_return_type,
// Rows: test_async_function_wrong_return_type_remote}
TEST(ReferenceScripts, AsynchronousFunctionsMayCallThem) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const std::string to = after(worker);
    const std::string further = after(worker, 2);
    EXPECT_TRUE(at::equal(worker.rpc_sync(to, &add_at, further, tens(1), tens(1)), tens(2)));
    std::vector<RRef<at::Tensor>> many;
    for (int i = 0; i < 20; ++i)
      many.push_back(worker.remote(to, &add_at, further, tens(1), tens(i)));
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(at::equal(many[i].to_here(), tens(1.0 + i)));
    EXPECT_EQ(kind_of([&] { worker.rpc_sync<int64_t>(to, "script::lib.add", tens(1), tens(1)); }),
              ErrorKind::bad_arguments);
  }));
}

// Rows: jit/dist_autograd_test::JitDistAutogradTest.test_jit_fork_within_context
TEST(ReferenceScripts, WhatAContinuationCallsIsRecordedInItsContext) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    const at::Tensor x = at::ones({2}).requires_grad_();
    const at::Tensor y = at::ones({2}).requires_grad_();
    const std::string to = after(worker);
    const at::Tensor sum =
        worker.rpc_async<at::Tensor>(to, "script::lib.add", x, y)
            .then([&worker, to](const at::Tensor& part) {
              return worker.rpc_async<at::Tensor>(to, "script::lib.add", part, at::ones({2}));
            })
            .wait();
    context.backward({sum.sum()});
    const LeafGradients gradients = context.get_gradients();
    EXPECT_EQ(gradients.all().size(), 2u);
    EXPECT_TRUE(at::equal(gradients.find(x), at::ones({2})));
    EXPECT_TRUE(at::equal(gradients.find(y), at::ones({2})));
  }));
}

}  // namespace
}  // namespace rehearsal::reference::scripts_test
