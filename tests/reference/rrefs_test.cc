// Goal: a reference is made, passed on, used and dropped anywhere, at any time, and means the same
// value. Method: the reference's tests of remote references, with all workers at once.
#include <ATen/ATen.h>

#include <sstream>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "tests/reference/row.h"

namespace rehearsal::reference::rrefs_test {
namespace {

using TensorRRef = RRef<at::Tensor>;

at::Tensor square(double value) { return at::full({2, 2}, value); }

at::Tensor add_three(const at::Tensor& x, int64_t y, int64_t z) { return x + y + z; }

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return a + b; }

at::Tensor fails(const std::string& text) { throw std::runtime_error(text); }

at::Tensor add_to_reference(const TensorRRef& rref, const at::Tensor& x, int64_t y) {
  return rref.to_here() + x + y;
}

at::Tensor add_references(const TensorRRef& a, const TensorRRef& b) {
  return a.to_here() + b.to_here();
}

at::Tensor add_at_another(CallContext& context, const std::string& to, const at::Tensor& x) {
  return context.remote(to, &add_three, x, 1, 2).to_here();
}

std::vector<TensorRRef> two_at_another(CallContext& context, const std::string& to,
                                       const at::Tensor& x) {
  TensorRRef one = context.remote(to, &add_three, x, 1, 0);
  TensorRRef two = context.remote(to, &add_three, x, 2, 0);
  return {one, two};
}

TensorRRef one_at_another(CallContext& context, const std::string& to) {
  return context.remote(to, &add_three, square(1), 1, 0);
}

bool is_confirmed(const TensorRRef& rref) { return rref.confirmed_by_owner(); }

struct Counter {
  explicit Counter(int64_t start) : total(start) {}
  int64_t read() { return total; }
  void increase(int64_t amount) { total += amount; }
  int64_t plus(int64_t amount) { return total += amount; }
  int64_t total;
};

using CounterRRef = RRef<Counter>;

std::vector<CounterRRef> three_counters(CallContext& context) {
  std::vector<CounterRRef> counters;
  for (int64_t start = 1; start <= 3; ++start) counters.push_back(context.rref(Counter(start)));
  return counters;
}

int64_t add_fifty(const RRef<int64_t>& number) { return number.to_here() + 50; }

at::Tensor slowly(CallContext& context, int64_t number) {
  context.sleep(std::chrono::milliseconds(20));
  return at::zeros({2, 2}) + number;
}

Future<at::Tensor> behind(CallContext& context, const RRef<Gate>& gate) {
  return context.rpc_async(gate, &Gate::pass).then([](int64_t) { return square(1); });
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  register_gate(registry);
  registry.function("behind", &behind);
  registry.function("add_three", &add_three)
      .function("add", &add)
      .function("fails", &fails)
      .function("add_to_reference", &add_to_reference)
      .function("add_references", &add_references)
      .function("add_at_another", &add_at_another)
      .function("two_at_another", &two_at_another)
      .function("one_at_another", &one_at_another)
      .function("is_confirmed", &is_confirmed)
      .function("three_counters", &three_counters)
      .function("add_fifty", &add_fifty)
      .function("slowly", &slowly);
  registry.type<Counter>("Counter")
      .constructor<int64_t>()
      .method("read", &Counter::read)
      .method("increase", &Counter::increase)
      .method("plus", &Counter::plus);
  return registry;
}

// Rows: rpc_test::RpcTest.{test_self_py_udf_remote, test_builtin_remote_self,
// Rows: test_builtin_remote_ret, test_py_udf_remote}
TEST(ReferenceRRefs, AFunctionsResultStaysWhereItRan) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const at::Tensor x = square(1);
    for (const std::string& to : {worker.name(), after(worker)}) {
      EXPECT_TRUE(at::equal(worker.remote(to, &add_three, x, 1, 3).to_here(), square(5)));
      EXPECT_TRUE(
          at::equal(worker.remote_by_name<at::Tensor>(to, "add", x, x).to_here(), square(2)));
    }
    EXPECT_TRUE(at::equal(worker.remote(worker.name(), &add, x, x).local_value(), square(2)));
  }));
}

// Rows: rpc_test::RpcTest.{test_self_remote_rref_as_rpc_arg, test_self_remote_rref_as_self_rpc_arg,
// Rows: test_self_remote_rref_as_remote_arg, test_self_remote_rref_as_self_remote_arg}
TEST(ReferenceRRefs, AnOwnReferenceIsPassedOnBeforeItsValueIsThere) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const at::Tensor x = square(1);
    for (const std::string& to : {after(worker), worker.name()}) {
      const TensorRRef own = worker.remote(worker.name(), &add_three, x, 1, 3);
      const auto later = worker.rpc_async(to, &add_to_reference, own, x, 0);
      EXPECT_TRUE(at::equal(worker.rpc_sync(to, &add_to_reference, own, x, 1), square(7)));
      EXPECT_TRUE(at::equal(later.wait(), square(6)));
      EXPECT_TRUE(at::equal(worker.remote(to, &add_to_reference, own, x, 0).to_here(), square(6)));
    }
  }));
}

// Rows: rpc_test::RpcTest.test_rref_proxy_non_exist
TEST(ReferenceRRefs, AMethodThatIsNotRegisteredIsRefusedInEveryMode) {
  FunctionRegistry registry;
  registry.type<Counter>("Counter").constructor<int64_t>().method("read", &Counter::read);
  in_both_worlds(everywhere(std::move(registry), [](Worker& worker) {
    const CounterRRef counter = worker.remote<Counter>(after(worker), 1);
    const auto kind = [](auto call) { return kind_of(call); };
    EXPECT_EQ(kind([&] { counter.rpc_sync(&Counter::plus, 1); }), ErrorKind::unknown_function);
    EXPECT_EQ(kind([&] { (void)counter.rpc_async(&Counter::plus, 1); }),
              ErrorKind::unknown_function);
    EXPECT_EQ(kind([&] { (void)counter.remote(&Counter::plus, 1); }), ErrorKind::unknown_function);
    EXPECT_EQ(counter.rpc_sync(&Counter::read), 1);
  }));
}

// Rows: rpc_test::RpcTest.{test_rref_proxy_tensor, test_rref_proxy_tensor_self,
// Rows: test_rref_proxy_reuse, test_rref_proxy_class, test_rref_proxy_class_self}
// Rows: rpc_test::RpcTest.{test_call_method_on_rref, test_return_local_rrefs,
// Rows: test_pass_local_rrefs}
TEST(ReferenceRRefs, MethodsRunWhereTheValueIsInEveryMode) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    for (const std::string& to : {after(worker), worker.name()}) {
      const CounterRRef counter = worker.remote<Counter>(to, 7);
      EXPECT_EQ(counter.rpc_sync(&Counter::read), 7);
      EXPECT_EQ(counter.rpc_async(&Counter::read).wait(), 7);
      EXPECT_EQ(counter.remote(&Counter::read).to_here(), 7);
      EXPECT_EQ(counter.rpc_sync(&Counter::increase, 1), Unit{});
      counter.rpc_async(&Counter::increase, 1).wait();
      counter.remote(&Counter::increase, 1).created().wait();
      EXPECT_EQ(counter.rpc_sync(&Counter::plus, 2), 12);
      EXPECT_EQ(counter.rpc_async(&Counter::plus, 3).wait(), 15);
      EXPECT_EQ(counter.remote(&Counter::plus, 4).to_here(), 19);
    }
    std::vector<int64_t> totals;
    for (const CounterRRef& counter : worker.rpc_sync(after(worker), &three_counters))
      totals.push_back(counter.rpc_sync(&Counter::plus, 10));
    EXPECT_EQ(totals, (std::vector<int64_t>{11, 12, 13}));
    const RRef<int64_t> forty = worker.rref<int64_t>(40);
    EXPECT_EQ(worker.rpc_sync(after(worker), &add_fifty, forty), 90);
    EXPECT_EQ(worker.rpc_async(after(worker), &add_fifty, forty).wait(), 90);
    EXPECT_EQ(worker.remote(after(worker), &add_fifty, forty).to_here(), 90);
  }));
}

// Rows: rpc_test::RpcTest.{test_multi_builtin_remote_ret, test_multi_py_udf_remote}
TEST(ReferenceRRefs, ManyAreMadeBeforeTheFirstIsFetched) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    std::vector<TensorRRef> sums;
    for (int64_t n = 0; n < 10; ++n)
      sums.push_back(worker.remote(after(worker), &add, at::ones({n, n}), at::ones({n, n})));
    for (int64_t n = 0; n < 10; ++n)
      EXPECT_TRUE(at::equal(sums[n].to_here(), at::full({n, n}, 2.0)));
  }));
}

// Rows: rpc_test::RpcTest.{test_py_rref_args, test_py_rpc_rref_args, test_remote_same_worker}
TEST(ReferenceRRefs, ArgumentsMayStillBeUnderWayAtTheirOwner) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const std::string to = after(worker);
    const TensorRRef a = worker.remote(to, &add, square(1), square(1));
    const TensorRRef b = worker.remote(to, &add, square(1), square(2));
    EXPECT_TRUE(at::equal(worker.remote(to, &add_references, a, b).to_here(), square(5)));
    EXPECT_TRUE(at::equal(worker.rpc_sync(to, &add_references, a, b), square(5)));
  }));
}

// Rows: rpc_test::RpcTest.test_nested_remote
TEST(ReferenceRRefs, WhatRunsThereMayMakeReferencesElsewhere) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const TensorRRef sum =
        worker.remote(after(worker), &add_at_another, after(worker, 2), square(1));
    EXPECT_TRUE(at::equal(sum.to_here(), square(4)));
  }));
}

// Rows: rpc_test::RpcTest.{test_nested_rref, test_nested_rref_stress, test_rpc_return_rref}
TEST(ReferenceRRefs, ReferencesComeInsideFetchedValuesAndResults) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    std::vector<RRef<std::vector<TensorRRef>>> pairs;
    for (int i = 0; i < 20; ++i)
      pairs.push_back(worker.remote(after(worker), &two_at_another, after(worker, 2), square(1)));
    for (const auto& pair : pairs) {
      const std::vector<TensorRRef> both = pair.to_here();
      ASSERT_EQ(both.size(), 2u);
      EXPECT_EQ(both[0].owner_name(), after(worker, 2));
      EXPECT_TRUE(at::equal(both[0].to_here(), square(2)));
      EXPECT_TRUE(at::equal(both[1].to_here(), square(3)));
    }
    const TensorRRef one = worker.rpc_sync(after(worker), &one_at_another, after(worker, 2));
    EXPECT_TRUE(at::equal(one.to_here(), square(2)));
  }));
}

// Rows: rpc_test::RpcTest.{test_remote_with_exception, test_remote_throw}
TEST(ReferenceRRefs, ACreationThatFailsGivesItsErrorWhenItIsUsed) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    for (const std::string& to : {after(worker), worker.name()}) {
      const TensorRRef broken = worker.remote(to, &fails, std::string("Expected error"));
      for (int again = 0; again < 2; ++again)
        EXPECT_TRUE(contains(error_of([&] { (void)broken.to_here(); }).text, "Expected error"));
      EXPECT_TRUE(contains(error_of([&] { broken.created().wait(); }).text, "Expected error"));
    }
  }));
}

// Rows: rpc_test::RpcTest.{test_local_rref_no_fork, test_local_value_not_on_owner, test_rref_str}
TEST(ReferenceRRefs, TheValueItselfIsAtItsOwnerAndAReferenceSaysWhoThatIs) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const RRef<int64_t> here = worker.rref<int64_t>(40);
    EXPECT_EQ(here.local_value(), 40);
    EXPECT_TRUE(here.is_owner());
    const TensorRRef there = worker.remote(after(worker), &add, square(1), square(1));
    const Error error = error_of([&] { (void)there.local_value(); });
    EXPECT_TRUE(contains(error.text, "it lives at '" + after(worker) + "'")) << error.text;
    std::ostringstream text;
    text << there;
    EXPECT_TRUE(contains(text.str(), "owned by '" + after(worker) + "'")) << text.str();
    EXPECT_TRUE(contains(text.str(), "of '" + worker.name() + "'")) << text.str();
    EXPECT_FALSE(contains(to_string(here), "fork")) << to_string(here);
  }));
}

// Rows: rpc_test::RpcTest.{test_rref_type_blocking, test_rref_type_non_blocking,
// Rows: test_rref_type_with_error_blocking, test_rref_type_with_error_non_blocking,
// Rows: test_rref_type_owner_blocking, test_rref_type_owner_non_blocking, test_rref_type_slow_init,
// Rows: test_rref_get_future}
// Rows: rpc_test::TensorPipeAgentRpcTest.{test_rref_get_type_timeout_blocking,
// Rows: test_rref_get_type_timeout_non_blocking}
TEST(ReferenceRRefs, WhetherAValueIsThereIsAskedOnce) {
  in_both_worlds(one_caller(functions(), [](Worker& worker) {
    const auto calls_so_far = [&] { return worker.debug_info().at("rpc.pending_calls"); };
    const RRef<Gate> gate = worker.remote<Gate>("worker1");
    const TensorRRef slow = worker.remote("worker1", &behind, gate);
    const auto tried = slow.created(std::chrono::milliseconds(1));
    EXPECT_EQ(kind_of([&] { tried.wait(); }), ErrorKind::timeout);
    std::vector<Future<Unit>> asked;
    for (int i = 0; i < 10; ++i) asked.push_back(slow.created());
    EXPECT_EQ(calls_so_far(), "1");
    gate.rpc_sync(&Gate::open);
    for (const auto& one : asked) one.wait();
    // It is known now: nothing is sent, and the answer is there at once.
    const auto known = slow.created();
    EXPECT_EQ(calls_so_far(), "0");
    EXPECT_TRUE(known.ready());
    EXPECT_TRUE(at::equal(slow.to_here(), square(1)));
    worker.rref<int64_t>(1).created().wait();
    const TensorRRef broken = worker.remote("worker1", &fails, std::string("Expected error"));
    for (int again = 0; again < 2; ++again)
      EXPECT_TRUE(contains(error_of([&] { broken.created().wait(); }).text, "Expected error"));
  }));
}

// Rows: rpc_test::RpcTest.test_owner_equality
TEST(ReferenceRRefs, OwnersAndReferencesAreComparedAndUsedAsKeys) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const TensorRRef there = worker.remote(after(worker), &add, square(1), square(1));
    const TensorRRef also_there = worker.remote(after(worker), &add, square(1), square(1));
    const RRef<int64_t> here = worker.rref<int64_t>(1);
    EXPECT_EQ(there.owner(), also_there.owner());
    EXPECT_NE(there.owner(), here.owner());
    EXPECT_EQ(here.owner(), worker.info());
    std::unordered_map<WorkerInfo, int> by_owner;
    by_owner[there.owner()] = 1;
    EXPECT_EQ(by_owner.count(also_there.owner()), 1u);
    EXPECT_EQ(by_owner.count(here.owner()), 0u);
    std::unordered_map<TensorRRef, int> by_reference;
    by_reference[there] = 1;
    EXPECT_EQ(by_reference.count(TensorRRef(there)), 1u);
    EXPECT_EQ(by_reference.count(also_there), 0u);
    EXPECT_NE(there < also_there, also_there < there);
  }));
}

// Rows: rpc_test::RpcTest.test_non_garbage_collected_user_rref_due_to_local_circular_dependency
TEST(ReferenceRRefs, AReferenceInACycleIsReleasedAtTheShutdown) {
  struct Knot {
    TensorRRef rref;
    std::shared_ptr<Knot> self;
  };
  std::vector<std::shared_ptr<Knot>> knots;  // To cut them when the runs are over.
  const Program program = one_caller(functions(), [&knots](Worker& worker) {
    auto knot = std::make_shared<Knot>();
    knot->rref = worker.remote("worker1", &add, square(1), square(1));
    knot->self = knot;
    knots.push_back(knot);
  });
  in_both_worlds(program, {.strict_leaks = false});
  for (const auto& knot : knots) knot->self.reset();
}

// Rows: rpc_test::RpcTest.{test_user_rrefs_confirmed, test_user_rrefs_confirmed_remote}
// Rows: jit/rpc_test::RRefAPITest.{test_user_rrefs_confirmed, test_user_rrefs_confirmed_remote}
TEST(ReferenceRRefs, CodeThatIsGivenAReferenceFindsItConfirmed) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const TensorRRef sum = worker.remote(after(worker, 2), &add, square(1), square(1));
    EXPECT_TRUE(worker.rpc_sync(after(worker), &is_confirmed, sum));
    EXPECT_TRUE(worker.remote(after(worker), &is_confirmed, sum).to_here());
  }));
}

// Rows: rpc_test::RpcTest.test_rref_timeout
TEST(ReferenceRRefs, ACreationThatIsSlowIsWaitedForAndReleasedInTheEnd) {
  in_both_worlds(one_caller(functions(), [](Worker& worker) {
    const TensorRRef slow =
        worker.with_timeout(std::chrono::milliseconds(5)).remote("worker1", &slowly, 3);
    // The creation is answered when the owner exists: that may have been in time, or not. Once that
    // is known, every use says the same.
    (void)slow.created(std::chrono::seconds(60)).result();
    worker.sleep(std::chrono::seconds(1));
    const Result<at::Tensor> one = slow.to_here_async(std::chrono::seconds(60)).result();
    const Result<at::Tensor> other = slow.to_here_async(std::chrono::seconds(60)).result();
    EXPECT_EQ(one.ok(), other.ok());
  }));
}

// Rows: rpc_test_2020::ProcessGroupAgentRpcTest.test_single_threaded_rref_to_here
TEST(ReferenceRRefs, AFetchOfWhatIsNotReadyHoldsNoThread) {
  in_both_worlds(one_caller(functions(), [](Worker& worker) {
    std::vector<TensorRRef> slow;
    for (int64_t i = 0; i < 20; ++i) slow.push_back(worker.remote("worker1", &slowly, i));
    for (int64_t i = 0; i < 20; ++i)
      EXPECT_TRUE(at::equal(slow[i].to_here(), square(static_cast<double>(i))));
    EXPECT_EQ(worker.debug_info().at("rref.users"), "20");
    slow.clear();
  }));
}

}  // namespace
}  // namespace rehearsal::reference::rrefs_test
