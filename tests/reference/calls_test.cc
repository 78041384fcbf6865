// Goal: calls reach the right worker, by every name for it, in all three modes, and give what the
// same code gives locally. Method: the reference's tests, with all workers calling at once.
#include <ATen/ATen.h>

#include <vector>

#include "tests/reference/row.h"

namespace rehearsal::reference::calls_test {
namespace {

at::Tensor ones() { return at::ones({2, 2}); }

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return a + b; }

at::Tensor add_number(const at::Tensor& a, int64_t b) { return a + b; }

WorkerInfo whoami(CallContext& context) { return context.worker_info(); }

WorkerInfo echo_info(const WorkerInfo& info) { return info; }

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add)
      .function("add_number", &add_number)
      .function("whoami", &whoami)
      .function("echo_info", &echo_info);
  return registry;
}

// Rows: rpc_test::RpcTest.{test_worker_id, test_get_worker_infos}
TEST(ReferenceCalls, EveryWorkerKnowsAllOthersByName) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    EXPECT_EQ(worker.worker_info(worker.name()), worker.info());
    EXPECT_EQ(worker.worker_info(after(worker)).name, after(worker));
    const Error unknown = error_of([&] { (void)worker.worker_info("nobody"); });
    EXPECT_TRUE(contains(unknown.text, "there is no worker named 'nobody'")) << unknown.text;
    std::vector<std::string> names;
    for (const WorkerInfo& info : worker.workers()) {
      EXPECT_EQ(info.id.value, names.size());
      names.push_back(info.name);
    }
    EXPECT_EQ(names, (std::vector<std::string>{"worker0", "worker1", "worker2", "worker3"}));
  }));
}

// Rows: rpc_test::RpcTest.test_self_add
TEST(ReferenceCalls, AWorkerCallsItselfWhileAnotherCallOfItsOwnIsUnderWay) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const auto later = worker.rpc_async(worker.info(), &add_number, ones(), 1);
    EXPECT_TRUE(at::equal(worker.rpc_sync(worker.info(), &add_number, ones(), 1), 2 * ones()));
    EXPECT_TRUE(at::equal(later.wait(), 2 * ones()));
  }));
}

// Rows: rpc_test::RpcTest.test_send_to_rank
TEST(ReferenceCalls, ARankNamesAWorkerAndWhatIsNoRankIsRefusedInEveryMode) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const auto next = static_cast<int>(worker.id().value + 1) % 4;
    EXPECT_TRUE(at::equal(worker.rpc_sync(next, &add_number, ones(), 1), 2 * ones()));
    EXPECT_TRUE(at::equal(worker.rpc_async(next, &add_number, ones(), 1).wait(), 2 * ones()));
    EXPECT_TRUE(at::equal(worker.remote(next, &add_number, ones(), 1).to_here(), 2 * ones()));
    for (const int64_t nobody : {int64_t{5}, int64_t{4}, int64_t{-1}, int64_t{1} << 32}) {
      const auto call = [&](auto mode) { return kind_of([&] { mode(); }); };
      EXPECT_EQ(call([&] { worker.rpc_sync(nobody, &add_number, ones(), 1); }),
                ErrorKind::bad_arguments);
      EXPECT_EQ(call([&] { worker.rpc_async(nobody, &add_number, ones(), 1).wait(); }),
                ErrorKind::bad_arguments);
      EXPECT_EQ(call([&] { (void)worker.remote(nobody, &add_number, ones(), 1).to_here(); }),
                ErrorKind::bad_arguments);
    }
    EXPECT_TRUE(at::equal(worker.rpc_sync(next, &add_number, ones(), 1), 2 * ones()));
  }));
}

// Rows: rpc_test::RpcTest.{test_worker_info_pickle, test_int_callee}
TEST(ReferenceCalls, WhoAWorkerIsTravelsAsAnArgumentAndAsAResult) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    EXPECT_EQ(worker.rpc_sync(after(worker), &echo_info, worker.info()), worker.info());
    const auto next = static_cast<int>(worker.id().value + 1) % 4;
    const WorkerInfo callee = worker.rpc_sync(next, &whoami);
    EXPECT_EQ(callee.id.value, static_cast<uint32_t>(next));
    EXPECT_EQ(callee.name, after(worker));
  }));
}

// Rows: rpc_test::RpcTest.{test_add, test_add_with_id, test_scalar_add, test_async_add,
// Rows: test_nonzero}
TEST(ReferenceCalls, OperatorsGiveWhatTheyGiveLocally) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const int64_t n = worker.id().value + 1;
    const std::string next = after(worker);
    const at::Tensor x = at::ones({n, n});
    const auto call = [&](const Target& to, const std::string& name, auto... arguments) {
      return worker.rpc_sync<at::Tensor>(to, name, arguments...);
    };
    EXPECT_TRUE(at::equal(call(next, "aten::add.Tensor", x, x), 2 * x));
    EXPECT_TRUE(at::equal(call(worker.worker_info(next), "aten::add.Tensor", x, x), 2 * x));
    EXPECT_TRUE(at::equal(call(next, "aten::add.Scalar", x, n), x + n));
    EXPECT_TRUE(
        at::equal(worker.rpc_async<at::Tensor>(next, "aten::add.Tensor", x, x).wait(), 2 * x));
    at::Tensor holed = at::ones({n, n});
    holed[n - 1][n - 1] = 0;
    EXPECT_TRUE(at::equal(call(next, "aten::nonzero", holed), at::nonzero(holed)));
  }));
}

// Rows: rpc_test::RpcTest.test_multi_rpc
TEST(ReferenceCalls, OneCallAfterTheOther) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    for (int64_t i = 0; i < 20; ++i) {
      const at::Tensor x = at::ones({i, i});
      EXPECT_TRUE(at::equal(worker.rpc_sync(after(worker), &add, x, x), 2 * x));
    }
  }));
}

// The value that a worker keeps for whoever writes to it.
struct Slot {
  int64_t set(int64_t id) { return value = id; }
  int64_t get() { return value; }
  int64_t value = -1;
};

RRef<Slot> slot_of(CallContext& context) { return context.rref(Slot{}); }

// Rows: rpc_test::RpcTest.test_expected_src
TEST(ReferenceCalls, AMessageReachesOnlyTheWorkerItIsSentTo) {
  FunctionRegistry registry;
  registry.function("slot_of", &slot_of);
  registry.type<Slot>("Slot").constructor<>().method("set", &Slot::set).method("get", &Slot::get);
  in_both_worlds(everywhere(std::move(registry), [](Worker& worker) {
    const auto slots = worker.all_gather(std::string("ready"));
    EXPECT_EQ(slots.size(), 4u);
    const auto slot = worker.rpc_sync(after(worker), &slot_of);
    EXPECT_EQ(slot.owner_name(), after(worker));
    slot.rpc_sync(&Slot::set, worker.id().value);
    EXPECT_EQ(slot.rpc_sync(&Slot::get), worker.id().value);
  }));
}

// The kinds that the reference calls user-defined: a function, a type and its methods.
struct Tally {
  explicit Tally(int64_t start) : total(start) {}
  int64_t add(int64_t amount) { return total += amount; }
  [[nodiscard]] int64_t read() const { return total; }
  void clear() { total = 0; }
  static int64_t twice(int64_t number) { return 2 * number; }
  int64_t total;
};

int64_t weighted(int64_t a, int64_t b, int64_t c) { return a + 10 * b + 100 * c; }

void nothing() {}

FunctionRegistry user_defined() {
  FunctionRegistry registry;
  registry.function("weighted", &weighted)
      .function("nothing", &nothing)
      .function("Tally.twice", &Tally::twice);
  registry.type<Tally>("Tally")
      .constructor<int64_t>()
      .method("add", &Tally::add)
      .method("read", &Tally::read)
      .method("clear", &Tally::clear);
  return registry;
}

// Rows: rpc_test::RpcTest.{test_py_built_in, test_py_user_defined, test_py_class_constructor,
// Rows: test_py_class_instance_method, test_py_class_method, test_py_class_static_method,
// Rows: test_py_multi_async_call, test_py_no_return_result}
TEST(ReferenceCalls, FunctionsConstructorsAndMethodsOfEveryKind) {
  in_both_worlds(everywhere(user_defined(), [](Worker& worker) {
    const std::string next = after(worker);
    EXPECT_EQ(worker.rpc_sync(next, &weighted, 1, 2, 3), 321);
    EXPECT_EQ(worker.rpc_sync(next, &Tally::twice, 21), 42);
    EXPECT_EQ(worker.rpc_sync(next, &nothing), Unit{});
    const auto tally = worker.remote<Tally>(next, 40);
    EXPECT_EQ(tally.rpc_sync(&Tally::add, 2), 42);
    EXPECT_EQ(tally.rpc_sync(&Tally::read), 42);
    EXPECT_EQ(tally.rpc_sync(&Tally::clear), Unit{});
    EXPECT_EQ(tally.rpc_sync(&Tally::read), 0);
    const auto one = worker.rpc_async(next, &weighted, 1, 1, 1);
    const auto other = worker.rpc_async(next, &weighted, 2, 2, 2);
    EXPECT_EQ(other.wait(), 222);
    EXPECT_EQ(one.wait(), 111);
  }));
}

// Rows: rpc_test::RpcTest.{test_py_tensors, test_py_tensors_multi_async_call}
TEST(ReferenceCalls, AHundredCallsAtOnceAnswerInTheOrderTheyWereMade) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    std::vector<Future<at::Tensor>> sums;
    for (int64_t i = 0; i < 100; ++i)
      sums.push_back(worker.rpc_async(after(worker), &add, at::ones({i, i}), at::ones({i, i})));
    const std::vector<at::Tensor> all = worker.when_all(sums).wait();
    ASSERT_EQ(all.size(), 100u);
    for (int64_t i = 0; i < 100; ++i) EXPECT_TRUE(at::equal(all[i], at::full({i, i}, 2.0)));
  }));
}

at::Tensor call_back(CallContext& context, const std::string& caller) {
  return context.rpc_sync(caller, &add_number, ones(), 1);
}

// Rows: rpc_test::RpcTest.test_nested_rpc
TEST(ReferenceCalls, AWorkerServesWhileItsOwnStackWaits) {
  FunctionRegistry registry = functions();
  registry.function("call_back", &call_back);
  in_both_worlds(everywhere(std::move(registry), [](Worker& worker) {
    EXPECT_TRUE(at::equal(worker.rpc_sync(after(worker), &call_back, worker.name()), 2 * ones()));
  }));
}

int64_t light() { return 0; }

int64_t heavy(at::Tensor x) {
  for (int64_t i = 1; i < 100; ++i) {
    x.mul_(i);
    x.div_(i + 1);
  }
  return 0;
}

// Rows: rpc_test::RpcTest.{test_stress_light_rpc, test_stress_heavy_rpc,
// Rows: test_stress_heavy_rpc_torchscript}
TEST(ReferenceCalls, AThousandLightCallsAndTwentyHeavyOnes) {
  FunctionRegistry registry;
  registry.function("light", &light).function("heavy", &heavy);
  // A backlog of two thousand calls may outlast the faults, which last a minute; all must succeed.
  const auto patient = [](NodeOptions& node) { node.rpc_timeout = std::chrono::minutes(5); };
  in_both_worlds(
      everywhere(
          std::move(registry),
          [](Worker& worker) {
            std::vector<Future<int64_t>> all;
            for (int i = 0; i < 1000; ++i) all.push_back(worker.rpc_async(after(worker), &light));
            for (int i = 0; i < 2; ++i)
              all.push_back(worker.rpc_async(after(worker), &heavy, at::ones({100, 100})));
            for (const auto& one : all) EXPECT_EQ(one.wait(), 0);
            EXPECT_EQ(worker.debug_info().at("rpc.pending_calls"), "0");
          },
          2),
      {.adjust_node = patient});
}

}  // namespace
}  // namespace rehearsal::reference::calls_test
