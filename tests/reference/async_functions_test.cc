// Goal: a function that returns a future answers when it is complete, and holds no stack meanwhile.
// Method: the reference's tests of asynchronous execution, in all modes, also with one thread.
#include <ATen/ATen.h>

#include <stdexcept>

#include "tests/reference/row.h"

namespace rehearsal::reference::async_functions_test {
namespace {

using Tensors = Future<at::Tensor>;

at::Tensor square(double value) { return at::full({2, 2}, value); }

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return a + b; }

Tensors raises(CallContext&) { throw std::runtime_error("Expected error"); }

Tensors empty(CallContext&) { return {}; }

Tensors simple(CallContext& context, const std::string& to, const at::Tensor& x) {
  return context.rpc_async(to, &add, x, square(1));
}

Tensors by_promise(CallContext& context, const std::string& to, const at::Tensor& x) {
  const Promise<at::Tensor> promise = context.promise<at::Tensor>();
  (void)context.rpc_async(to, &add, x, square(1)).then([promise](const at::Tensor& sum) {
    promise.complete(sum + 2);
  });
  return promise.future();
}

Tensors chained(CallContext& context, const std::string& to, const at::Tensor& x) {
  return context.rpc_async(to, &add, x, square(1)).then([](const at::Tensor& sum) {
    return sum + 2;
  });
}

Tensors nested(CallContext& context, const std::string& to, const at::Tensor& x) {
  return context.rpc_async(to, &simple, to, x).then([](const at::Tensor& sum) { return sum + 2; });
}

Tensors multi_chained(CallContext& context, const std::string& to, const at::Tensor& x) {
  Tensors sum = context.rpc_async(to, &add, x, square(0));
  for (int i = 0; i < 20; ++i) sum = sum.then([](const at::Tensor& value) { return value + 3; });
  return sum;
}

struct Relay {
  static Tensors of_type(CallContext& context, const std::string& to, const at::Tensor& x) {
    return chained(context, to, x);
  }
  Tensors of_object(CallContext& context, const std::string& to, const at::Tensor& x) {
    return chained(context, to, x);
  }
};

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add)
      .function("raises", &raises)
      .function("empty", &empty)
      .function("simple", &simple)
      .function("by_promise", &by_promise)
      .function("chained", &chained)
      .function("nested", &nested)
      .function("multi_chained", &multi_chained)
      .function("Relay.of_type", &Relay::of_type);
  registry.type<Relay>("Relay").constructor<>().method("of_object", &Relay::of_object);
  return registry;
}

// The error of a call in each mode.
template <class F>
void expect_error_in_every_mode(Worker& worker, F function, const std::string& text) {
  const std::string to = after(worker);
  const Error sync = error_of([&] { worker.rpc_sync(to, function); });
  const Error async = error_of([&] { worker.rpc_async(to, function).wait(); });
  const Error remote = error_of([&] { (void)worker.remote(to, function).to_here(); });
  for (const Error& error : {sync, async, remote}) {
    EXPECT_TRUE(contains(error.text, text)) << to_string(error);
    EXPECT_EQ(error.worker, to) << to_string(error);
  }
}

// Rows: rpc_test::RpcTest.{test_async_function_raise, test_async_function_raise_async,
// Rows: test_async_function_raise_remote}
TEST(ReferenceAsyncFunctions, WhatIsThrownBeforeThereIsAFutureReachesTheCaller) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    expect_error_in_every_mode(worker, &raises, "Expected error");
  }));
}

// Rows: rpc_test::RpcTest.{test_async_function_wrong_return_type,
// Rows: test_async_function_wrong_return_type_async, test_async_function_wrong_return_type_remote}
TEST(ReferenceAsyncFunctions, AFutureThatIsNoneIsAnErrorOfTheCall) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    expect_error_in_every_mode(worker, &empty, "the function returned an empty future");
  }));
}

// Rows: rpc_test::RpcTest.{test_async_function_simple, test_async_function_with_future_ctor,
// Rows: test_async_function_with_future_ctor_remote, test_async_function_chained,
// Rows: test_async_function_chained_remote, test_async_function_nested,
// Rows: test_async_function_nested_remote, test_async_static_method,
// Rows: test_async_static_method_remote, test_async_class_method, test_async_class_method_remote}
TEST(ReferenceAsyncFunctions, AnAnswerMayComeFromElsewhere) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const std::string to = after(worker);
    const std::string further = after(worker, 2);
    const auto both = [&](auto function) {
      const at::Tensor sync = worker.rpc_sync(to, function, further, square(1));
      const at::Tensor remote = worker.remote(to, function, further, square(1)).to_here();
      EXPECT_TRUE(at::equal(sync, remote));
      return sync;
    };
    EXPECT_TRUE(at::equal(both(&simple), square(2)));
    EXPECT_TRUE(at::equal(both(&by_promise), square(4)));
    EXPECT_TRUE(at::equal(both(&chained), square(4)));
    EXPECT_TRUE(at::equal(both(&nested), square(4)));
    EXPECT_TRUE(at::equal(both(&Relay::of_type), square(4)));
    const auto relay = worker.remote<Relay>(to);
    EXPECT_TRUE(at::equal(relay.rpc_sync(&Relay::of_object, further, square(1)), square(4)));
    EXPECT_TRUE(
        at::equal(relay.remote(&Relay::of_object, further, square(1)).to_here(), square(4)));
  }));
}

// Rows: rpc_test::RpcTest.{test_async_function_multi_chained,
// Rows: test_async_function_multi_chained_async, test_async_function_multi_chained_remote}
TEST(ReferenceAsyncFunctions, TwentyContinuationsOfOneCall) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const std::string to = after(worker);
    const std::string further = after(worker, 2);
    const at::Tensor x = square(1);
    EXPECT_TRUE(at::equal(worker.rpc_sync(to, &multi_chained, further, x), square(61)));
    EXPECT_TRUE(at::equal(worker.rpc_async(to, &multi_chained, further, x).wait(), square(61)));
    EXPECT_TRUE(at::equal(worker.remote(to, &multi_chained, further, x).to_here(), square(61)));
  }));
}

}  // namespace
}  // namespace rehearsal::reference::async_functions_test
