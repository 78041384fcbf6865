// Goal: a context is known by its name to all workers that it reaches, and to none when it has
// ended. Method: the reference's tests of contexts: their names, whom they meet, what an error in
// them leaves, and that nothing of them stays.
#include <ATen/ATen.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/reference/autograd.h"

namespace rehearsal::reference::autograd_lifetimes_test {
namespace {

at::Tensor add(const at::Tensor& x, const at::Tensor& y) { return x + y; }

int64_t add_numbers(int64_t x, int64_t y) { return x + y; }

at::Tensor add_at(CallContext& call, const std::string& to, const at::Tensor& x) {
  return call.rpc_sync(to, &add, x, x);
}

// Whether the worker that serves the call holds the call's context.
bool is_here(CallContext& call) {
  return call.autograd_context() && recorded_of(call, call.autograd_context()->id).has_value();
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add)
      .function("add_numbers", &add_numbers)
      .function("add_at", &add_at)
      .function("is_here", &is_here);
  return registry;
}

// Rows: dist_autograd_test::DistAutogradTest.test_autograd_context
TEST(ReferenceAutogradLifetimes, TwoHundredContextsOneAfterTheOtherHaveTwoHundredNames) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    std::set<std::string> names;
    std::optional<AutogradContextId> last;
    for (int i = 0; i < 200; ++i) {
      const AutogradContext context = worker.autograd_context();
      EXPECT_TRUE(names.insert(to_string(context.id())).second);
      // One worker's names are of its life, and count up.
      if (last) {
        EXPECT_EQ(context.id().incarnation, last->incarnation);
        EXPECT_GT(context.id().ordinal, last->ordinal);
      }
      last = context.id();
      EXPECT_TRUE(context.get_gradients().empty());
      EXPECT_EQ(worker.debug_info().at("autograd.contexts"), "1");
    }
    EXPECT_EQ(worker.debug_info().at("autograd.contexts"), "0");
    const auto lives = worker.all_gather<uint64_t>(last->incarnation.value);
    std::set<uint64_t> different;
    for (const auto& [name, life] : lives) different.insert(life);
    EXPECT_EQ(different.size(), 4u);
    // A call in one that has ended is refused, with its name.
    const Promise<int64_t> later = worker.promise<int64_t>();
    Future<int64_t> called;
    {
      const AutogradContext context = worker.autograd_context();
      last = context.id();
      const auto recording = context.record();
      called = later.future().then([&worker, to = after(worker)](int64_t) {
        return worker.rpc_async(to, &add_numbers, 1, 2);
      });
    }
    later.complete(1);
    const Error ended = error_of([&] { (void)called.wait(); });
    EXPECT_EQ(ended.kind, ErrorKind::autograd);
    EXPECT_TRUE(contains(ended.text, "the autograd context " + to_string(*last) + " has ended"))
        << ended.text;
  }));
}

using Touch = std::function<void(Worker&, const std::string&)>;

// Every worker touches all others in a context of its own, which then ends everywhere.
void expect_cleanup(const Touch& touch) {
  in_both_worlds(everywhere(functions(), [touch](Worker& worker) {
    std::optional<AutogradContextId> id;
    {
      const AutogradContext context = worker.autograd_context();
      id = context.id();
      const auto recording = context.record();
      for (uint32_t steps = 1; steps < 4; ++steps) {
        touch(worker, after(worker, steps));
        EXPECT_TRUE(worker.rpc_sync(after(worker, steps), &is_here));
      }
      EXPECT_TRUE(recorded_of(worker, *id));
    }
    EXPECT_FALSE(recorded_of(worker, *id));
    expect_all_contexts_end(worker);
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.{test_context_cleanup_tensor_with_grad,
// Rows: test_context_cleanup_tensor_no_grad, test_context_cleanup_no_tensors}
TEST(ReferenceAutogradLifetimes, AContextThatEndsIsGoneHereAtOnceAndSoonEverywhere) {
  expect_cleanup([](Worker& worker, const std::string& to) {
    const at::Tensor x = square_leaf(1);
    EXPECT_TRUE(worker.rpc_sync(to, &add, x, x).requires_grad());
  });
  expect_cleanup([](Worker& worker, const std::string& to) {
    const at::Tensor x = at::ones({3, 3});
    EXPECT_FALSE(worker.rpc_sync(to, &add, x, x).requires_grad());
  });
  expect_cleanup([](Worker& worker, const std::string& to) {
    EXPECT_EQ(worker.rpc_sync(to, &add_numbers, 1, 2), 3);
  });
}

// Rows: dist_autograd_test::TensorPipeAgentDistAutogradTest.{
// Rows: test_context_cleanup_tensor_with_grad_sparse,
// Rows: test_context_cleanup_tensor_no_grad_sparse, test_context_cleanup_nested_rpc_sparse}
TEST(ReferenceAutogradLifetimes, AContextOfSparseTensorsAndOfNestedCallsEndsEverywhere) {
  expect_cleanup([](Worker& worker, const std::string& to) {
    for (const bool with_gradients : {false, true}) {
      const at::Tensor x = sparse_square().set_requires_grad(with_gradients);
      EXPECT_EQ(worker.rpc_sync(to, &add, x, x).requires_grad(), with_gradients);
    }
  });
  // The last worker of the chain is met by another than the context's maker.
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const at::Tensor x = sparse_square().requires_grad_();
    {
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      EXPECT_TRUE(worker.rpc_sync(after(worker), &add_at, after(worker, 2), x).requires_grad());
      EXPECT_EQ(recorded_of(worker, context.id()), (Recorded{.sends = 1, .peers = 1}));
    }
    expect_all_contexts_end(worker);
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.test_worker_ids_recorded
TEST(ReferenceAutogradLifetimes, AContextKnowsAllWorkersThatItHasCalled) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    const at::Tensor plain = at::ones({3, 3});
    const at::Tensor leaf = square_leaf(1);
    for (uint32_t steps = 1; steps < 4; ++steps) {
      (void)worker.rpc_sync(after(worker, steps), &add, plain, plain);
      EXPECT_EQ(recorded_of(worker, context.id()), (Recorded{.sends = 0, .peers = steps}));
    }
    for (uint32_t steps = 1; steps < 4; ++steps) {
      (void)worker.rpc_sync(after(worker, steps), &add, leaf, leaf);
      EXPECT_EQ(recorded_of(worker, context.id()), (Recorded{.sends = steps, .peers = 3}));
    }
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.test_error_in_context
TEST(ReferenceAutogradLifetimes, AnErrorOfACallDoesNotHarmItsContext) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const std::string next = after(worker);
    {
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      const at::Tensor x = square_leaf(1);
      const at::Tensor wrong = at::ones({6, 6}).requires_grad_();
      const Error error =
          error_of([&] { worker.rpc_sync<at::Tensor>(next, "aten::matmul", x, wrong); });
      EXPECT_EQ(error.kind, ErrorKind::remote_exception);
      EXPECT_EQ(error.worker, next);
      EXPECT_TRUE(contains(error.text, "mat1 and mat2 shapes cannot be multiplied (3x3 and 6x6)"))
          << error.text;
      context.backward({worker.rpc_sync(next, &add, x, x).sum()});
      expect_gradients(context, {x}, {at::full({3, 3}, 2.0)});
    }
    expect_all_contexts_end(worker);
  }));
}

// Rows: cpp/test_dist_autograd::DistAutogradTest.{TestInitializedContextCleanup,
// Rows: TestInitializedContextCleanupSendFunction}
TEST(ReferenceAutogradLifetimes, NoPassIsCountedBeforeAndAfterOne) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const auto passes = [&] { return worker.debug_info().at("autograd.passes"); };
    worker.barrier();
    EXPECT_EQ(passes(), "0");
    worker.barrier();
    const at::Tensor x = square_leaf(2);
    {
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      context.backward({(x * x).sum()});
      expect_gradients(context, {x}, {at::full({3, 3}, 4.0)});
      // With a send function alone, whose result nobody needs.
      (void)worker.rpc_sync(after(worker), &add, x, x);
      context.backward({(x * x).sum()});
      expect_gradients(context, {x}, {at::full({3, 3}, 8.0)});
    }
    expect_all_contexts_end(worker);
    EXPECT_EQ(passes(), "0");
  }));
}

}  // namespace
}  // namespace rehearsal::reference::autograd_lifetimes_test
