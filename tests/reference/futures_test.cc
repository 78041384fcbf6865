// Goal: a future is complete once, for all who wait, and continuations run in their order. Method:
// the reference's tests of futures, those of calls and those that user code completes.
#include <ATen/ATen.h>

#include <stdexcept>
#include <vector>

#include "core/api/wait_all.h"
#include "tests/reference/row.h"

namespace rehearsal::reference::futures_test {
namespace {

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return a + b; }

int64_t fails(const std::string& text) { throw std::runtime_error(text); }

int64_t same(int64_t number) { return number; }

int64_t slow(CallContext& context, int64_t milliseconds) {
  context.sleep(std::chrono::milliseconds(milliseconds));
  return milliseconds;
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add)
      .function("fails", &fails)
      .function("same", &same)
      .function("slow", &slow);
  register_gate(registry);
  return registry;
}

at::Tensor square(double value) { return at::full({2, 2}, value); }

// Rows: rpc_test::RpcTest.{test_future_wait_twice, test_future_done, test_future_done_exception}
TEST(ReferenceFutures, EveryWaitForAFailedFutureGivesItsErrorAgain) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    std::vector<Future<int64_t>> all;
    for (int i = 0; i < 20; ++i)
      all.push_back(worker.rpc_async(after(worker), &fails, std::string("expected")));
    EXPECT_TRUE(contains(error_of([&] { worker.when_all(all).wait(); }).text, "expected"));
    for (int again = 0; again < 2; ++again)
      for (const auto& one : all)
        EXPECT_TRUE(contains(error_of([&] { one.wait(); }).text, "expected"));
    for (const auto& one : all) EXPECT_TRUE(one.ready());
    const auto good = worker.rpc_async(after(worker), &same, 1);
    EXPECT_EQ(good.wait(), 1);
    EXPECT_TRUE(good.ready());
  }));
}

// That a future cannot be sent, nor returned by what is called, is a matter of types here.
static_assert(!Sendable<Future<int64_t>>);
static_assert(std::is_same_v<ResultOf<Future<int64_t> (*)()>, int64_t>);

// Rows: rpc_test::RpcTest.{test_mark_future_twice, test_pickle_future, test_return_future,
// Rows: test_return_future_async, test_return_future_remote}
// Rows: test_futures::TestFuture.test_mark_future_twice
TEST(ReferenceFutures, AFutureIsCompletedOnce) {
  in_both_worlds(one_caller(functions(), [](Worker& worker) {
    const Promise<int64_t> promise = worker.promise<int64_t>();
    promise.complete(1);
    promise.complete(2);
    promise.complete(Error{.kind = ErrorKind::cancelled, .text = "too late"});
    EXPECT_EQ(promise.future().wait(), 1);
    EXPECT_EQ(promise.future().wait(), 1);
  }));
}

TEST(ReferenceFutures, WhatWouldCompleteACancelledFutureComesTooLate) {
  in_both_worlds(one_caller(functions(), [](Worker& worker) {
    const auto gate = worker.remote<Gate>("worker1");
    const auto passed = worker.rpc_async(gate, &Gate::pass);
    const auto all = worker.collect_all(std::vector{passed});
    const auto soon = worker.after(std::chrono::milliseconds(20));
    const RRef<int64_t> behind_it = gate.remote(&Gate::pass);
    const auto there = behind_it.created();
    all.cancel();
    soon.cancel();
    there.cancel();
    EXPECT_EQ(kind_of([&] { all.wait(); }), ErrorKind::cancelled);
    EXPECT_EQ(kind_of([&] { soon.wait(); }), ErrorKind::cancelled);
    EXPECT_EQ(kind_of([&] { there.wait(); }), ErrorKind::cancelled);
    gate.rpc_sync(&Gate::open);
    EXPECT_EQ(passed.wait(), 1);
    worker.sleep(std::chrono::milliseconds(40));
    EXPECT_EQ(behind_it.to_here(), 1);
    behind_it.created().wait();
  }));
}

// Rows: rpc_test::RpcTest.{test_callback_simple, test_callback_multi, test_callback_chain,
// Rows: test_add_done_callback}
TEST(ReferenceFutures, ContinuationsRunSideBySideAndOneAfterTheOther) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const auto sum = worker.rpc_async(after(worker), &add, square(1), square(1));
    std::vector<Future<at::Tensor>> side_by_side;
    for (int64_t k = 0; k < 10; ++k)
      side_by_side.push_back(sum.then([k](const at::Tensor& value) { return value + k; }));
    Future<at::Tensor> chain = sum;
    for (int i = 0; i < 20; ++i)
      chain = chain.then([](const at::Tensor& value) { return value + 1; });
    for (int64_t k = 0; k < 10; ++k)
      EXPECT_TRUE(at::equal(side_by_side[k].wait(), square(2.0 + static_cast<double>(k))));
    EXPECT_TRUE(at::equal(chain.wait(), square(22)));
    EXPECT_TRUE(at::equal(sum.wait(), square(2)));
    // One that comes when the future is complete runs all the same.
    EXPECT_EQ(sum.then([](const at::Tensor& value) { return value.numel(); }).wait(), 4);
  }));
}

// Rows: rpc_test::RpcTest.{test_callback_wrong_arg_num, test_callback_wrong_arg_type,
// Rows: test_callback_none, test_callback_with_error}
TEST(ReferenceFutures, AContinuationThatThrowsFailsItsOwnFutureOnly) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const auto good = worker.rpc_async(after(worker), &same, 7);
    const auto child = good.then([](int64_t) -> int64_t { throw std::runtime_error("mine"); });
    EXPECT_TRUE(contains(error_of([&] { child.wait(); }).text, "mine"));
    EXPECT_EQ(good.wait(), 7);
    const auto bad = worker.rpc_async(after(worker), &fails, std::string("the first"));
    const auto second = bad.then([](const Result<int64_t>& result) -> int64_t {
      EXPECT_TRUE(contains(result.error().text, "the first"));
      throw std::runtime_error("the second");
    });
    const std::string text = error_of([&] { second.wait(); }).text;
    EXPECT_TRUE(contains(text, "the second")) << text;
    EXPECT_FALSE(contains(text, "the first")) << text;
  }));
}

at::Tensor two_more(CallContext& context, const std::string& to, const at::Tensor& x) {
  return context.rpc_async(to, &add, x, square(1))
      .then([](const at::Tensor& sum) { return sum + 2; })
      .wait();
}

at::Tensor two_more_by_promise(CallContext& context, const std::string& to, const at::Tensor& x) {
  const Promise<at::Tensor> promise = context.promise<at::Tensor>();
  const auto call =
      context.rpc_async(to, &add, x, square(1)).then([promise](const at::Tensor& sum) {
        promise.complete(sum + 2);
      });
  return promise.future().wait();
}

at::Tensor two_more_by_a_call(CallContext& context, const std::string& to, const at::Tensor& x) {
  const Calls calls = context;
  return context.rpc_async(to, &add, x, square(1))
      .then(
          [calls, to](const at::Tensor& sum) { return calls.rpc_async(to, &add, sum, square(2)); })
      .wait();
}

// Rows: rpc_test::RpcTest.{test_callback_in_rpc, test_future_in_rpc, test_future_nested_callback}
TEST(ReferenceFutures, AServedFunctionMayWaitForWhatItsContinuationsMake) {
  FunctionRegistry registry = functions();
  registry.function("two_more", &two_more)
      .function("two_more_by_promise", &two_more_by_promise)
      .function("two_more_by_a_call", &two_more_by_a_call);
  in_both_worlds(everywhere(std::move(registry), [](Worker& worker) {
    const std::string to = after(worker);
    const std::string further = after(worker, 2);
    for (const auto function : {&two_more, &two_more_by_promise, &two_more_by_a_call})
      EXPECT_TRUE(at::equal(worker.rpc_sync(to, function, further, square(1)), square(4)));
  }));
}

// Rows: rpc_test::RpcTest.{test_wait_all_with_exception, test_wait_all_with_partial_exception}
TEST(ReferenceFutures, OneErrorAmongManyIsTheErrorOfAll) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    std::vector<Future<int64_t>> bad;
    std::vector<Future<int64_t>> mixed;
    for (int64_t i = 0; i < 10; ++i) {
      bad.push_back(worker.rpc_async(after(worker), &fails, std::string("all fail")));
      mixed.push_back(worker.rpc_async(after(worker), &same, i));
    }
    mixed.push_back(worker.rpc_async(after(worker), &fails, std::string("one fails")));
    EXPECT_TRUE(contains(error_of([&] { worker.when_all(bad).wait(); }).text, "all fail"));
    EXPECT_TRUE(contains(error_of([&] { worker.when_all(mixed).wait(); }).text, "one fails"));
    const auto each = worker.collect_all(mixed).wait();
    for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(each[i].value(), i);
    EXPECT_EQ(each[10].error().kind, ErrorKind::remote_exception);
  }));
}

// Rows: rpc_test::RpcTest.{test_wait_all, test_wait_all_multiple_call, test_wait_all_timeout,
// Rows: test_wait_all_raise_in_user_func, test_wait_all_raise_in_body}
TEST(ReferenceFutures, AScopeWaitsForAllCallsStartedInIt) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const std::string next = after(worker);
    Future<int64_t> started;
    {
      WaitAll scope(worker);
      EXPECT_EQ(scope.size(), 0u);
      for (int64_t i = 0; i < 20; ++i) {
        started = scope.rpc_async(next, &same, i);
        EXPECT_EQ(scope.rpc_sync(next, &same, i), i);
      }
      EXPECT_EQ(scope.size(), 20u);
      scope.finish();
      EXPECT_EQ(scope.size(), 0u);
      EXPECT_TRUE(started.ready());
    }
    WaitAll late(worker);
    const RRef<Gate> gate = worker.remote<Gate>(next);
    started = late.with_timeout(std::chrono::milliseconds(10)).rpc_async(gate, &Gate::pass);
    EXPECT_EQ(kind_of([&] { late.finish(); }), ErrorKind::timeout);
    started = late.rpc_async(next, &fails, std::string("remote"));
    EXPECT_EQ(kind_of([&] { late.finish(); }), ErrorKind::remote_exception);
    try {
      WaitAll scope(worker);
      started = scope.rpc_async(next, &slow, 20);
      throw std::logic_error("the body's own");
    } catch (const std::logic_error& thrown) {
      EXPECT_EQ(std::string(thrown.what()), "the body's own");
    }
    EXPECT_TRUE(started.ready());
  }));
}

// Rows: test_futures::TestFuture.{test_set_exception, test_set_exception_multithreading, test_done,
// Rows: test_done_exception, test_wait, test_wait_multi_thread, test_then, test_chained_then,
// Rows: test_then_raise, test_wait_all, test_wait_none, test_collect_all}
TEST(ReferenceFutures, FuturesThatUserCodeCompletes) {
  in_both_worlds(one_caller(functions(), [](Worker& worker) {
    const auto promise = worker.promise<int64_t>();
    const Future<int64_t> future = promise.future();
    EXPECT_FALSE(future.ready());
    Future<int64_t> chain = future;
    for (int i = 0; i < 20; ++i) chain = chain.then([](int64_t value) { return value + 1; });
    // Another execution completes it while this one waits.
    const auto completing =
        worker.rpc_async("worker1", &slow, 1).then([promise](int64_t) { promise.complete(22); });
    EXPECT_EQ(future.wait(), 22);
    EXPECT_TRUE(future.ready());
    EXPECT_EQ(chain.wait(), 42);
    const auto failing = worker.promise<int64_t>();
    failing.complete(Error{.kind = ErrorKind::remote_exception, .text = "set by hand"});
    EXPECT_EQ(error_of([&] { failing.future().wait(); }).text, "set by hand");
    EXPECT_TRUE(failing.future().ready());
    const auto both = worker.collect_all(std::vector{failing.future(), future}).wait();
    EXPECT_FALSE(both[0].ok());
    EXPECT_EQ(both[1].value(), 22);
    EXPECT_EQ(worker.when_all(std::vector{future, chain}).wait(), (std::vector<int64_t>{22, 42}));
    EXPECT_EQ(when_any(std::vector{worker.promise<int64_t>().future(), future}).wait() < 2, true);
    EXPECT_FALSE(Future<int64_t>().valid());
  }));
}

// Rows: test_futures::TestFuture.{test_add_done_callback_simple,
// Rows: test_add_done_callback_maintains_callback_order, test_add_done_callback_error_is_ignored,
// Rows: test_interleaving_then_and_add_done_callback_maintains_callback_order,
// Rows: test_interleaving_then_and_add_done_callback_propagates_error}
TEST(ReferenceFutures, ContinuationsRunInTheOrderTheyWereGiven) {
  in_both_worlds(one_caller(functions(), [](Worker& worker) {
    const auto promise = worker.promise<int64_t>();
    const Future<int64_t> future = promise.future();
    auto order = std::make_shared<std::vector<int>>();
    const auto first = future.then([order](int64_t) { order->push_back(1); });
    const auto second = future.then([order](int64_t value) {
      order->push_back(2);
      return value + static_cast<int64_t>(order->size());
    });
    const auto failing = future.then([order](int64_t) {
      order->push_back(3);
      throw std::runtime_error("dropped");
    });
    const auto last = future.then([order](int64_t) { order->push_back(4); });
    promise.complete(10);
    first.wait();
    last.wait();
    EXPECT_EQ(second.wait(), 12);
    EXPECT_TRUE(contains(error_of([&] { failing.wait(); }).text, "dropped"));
    EXPECT_EQ(*order, (std::vector<int>{1, 2, 3, 4}));
    EXPECT_EQ(future.wait(), 10);
  }));
}

}  // namespace
}  // namespace rehearsal::reference::futures_test
