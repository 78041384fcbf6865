#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/future_groups.h"
#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

struct Opaque {
  int hidden = 0;
};
struct Demanding {
  int64_t number = 0;
  friend void describe(Demanding& value, auto&& fields) {
    fields(value.number);
    if (value.number == 13) throw std::runtime_error("13 is not a number");
  }
};

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return a + b; }
int64_t doubled(int64_t number) { return 2 * number; }
void fill(const at::Tensor& tensor) { tensor.fill_(7); }
int64_t fails(int64_t number) { throw std::out_of_range("no " + std::to_string(number)); }
int64_t through(CallContext& context, const std::string& worker, int64_t number) {
  return context.rpc_sync(worker, &fails, number);
}
std::string who_called(CallContext& context) {
  return context.caller_info().name + " calls " + context.worker_info().name;
}
int64_t sum_to(CallContext& context, int64_t number) {
  if (number == 0) return 0;
  const std::string next = context.worker_info().name == "b" ? "c" : "b";
  return number + context.rpc_sync(next, &sum_to, number - 1);
}
int64_t waits_inline(CallContext& context) { return context.rpc_sync("c", &doubled, 1); }
at::Tensor on_no_device() { return at::empty({2}, at::TensorOptions().device(at::kMeta)); }
Opaque opaque() { return {}; }
Demanding demanding(int64_t number) { return {number}; }
Future<int64_t> chained(CallContext& context, int64_t number) {
  return context.rpc_async("c", &doubled, number).then([](int64_t given) { return given + 1; });
}
Future<int64_t> chained_failure(CallContext& context) {
  return context.rpc_async("c", &doubled, 1).then([](int64_t) -> int64_t {
    throw std::logic_error("in the continuation");
  });
}
Future<int64_t> dropped(CallContext& context) { return context.promise<int64_t>().future(); }

class CallTest : public CallFixture {
 protected:
  void SetUp() override {
    registry.function("add", &add).function("doubled", &doubled).function("fill", &fill);
    registry.function("fails", &fails).function("through", &through);
    registry.function("who_called", &who_called).function("sum_to", &sum_to);
    registry.function("waits_inline", &waits_inline).runs_inline();
    registry.function("on_no_device", &on_no_device).function("opaque", &opaque);
    registry.function("demanding", &demanding);
    registry.function("chained", &chained).function("chained_failure", &chained_failure);
    registry.function("dropped", &dropped);
    begin();
  }
};

TEST_F(CallTest, ReturnsTheValue) {
  const at::Tensor sum = a().calls.rpc_sync("b", &add, at::ones(2), at::ones(2));
  EXPECT_TRUE(at::equal(sum, at::full({2}, 2.0)));
  EXPECT_EQ(a().calls.rpc_sync(WorkerId{1}, &doubled, 4), 8);
  EXPECT_EQ(a().calls.rpc_sync(WorkerInfo{"b", {1}}, &doubled, 5), 10);
  EXPECT_EQ(b().trace.count(EventKind::call_executed), 3u);
  EXPECT_EQ(b().served.size(), 0u);
}

TEST_F(CallTest, ManyAreUnderwayAtOnce) {
  std::vector<Future<int64_t>> futures;
  for (int64_t number = 0; number < 50; ++number)
    futures.push_back(a().calls.rpc_async(number % 2 == 0 ? "b" : "c", &doubled, number));
  EXPECT_EQ(a().pending.size(), 50u);
  const std::vector<int64_t> values = when_all(futures).wait();
  for (int64_t number = 0; number < 50; ++number) EXPECT_EQ(values.at(number), 2 * number);
}

TEST_F(CallTest, CallsToOneselfAreEncodedToo) {
  // The callee changes its copy, not the caller's tensor.
  const at::Tensor tensor = at::zeros({3});
  a().calls.rpc_sync("a", &fill, tensor);
  EXPECT_EQ(tensor.sum().item<float>(), 0);
  EXPECT_EQ(a().calls.rpc_sync("a", &who_called), "a calls a");
  EXPECT_TRUE(network.in_flight().empty());
}

TEST_F(CallTest, AFunctionKnowsWhoCallsAndCallsOn) {
  EXPECT_EQ(a().calls.rpc_sync("b", &who_called), "a calls b");
  EXPECT_EQ(a().calls.rpc_sync("b", &sum_to, 100), 5050);
}

TEST_F(CallTest, FunctionsAndOperatorsAreCalledByName) {
  EXPECT_EQ(a().calls.rpc_sync<int64_t>("b", "doubled", 21), 42);
  EXPECT_EQ(a().calls.rpc_async<int64_t>("b", "doubled", 22).wait(), 44);
  const auto sum =
      a().calls.rpc_sync<at::Tensor>("b", "aten::add.Tensor", at::ones(2), at::ones(2));
  EXPECT_EQ(sum.sum().item<float>(), 4);
  EXPECT_TRUE(a().calls.rpc_async<at::Tensor>("b", "aten::relu", -at::ones(1)).wait().defined());
}

TEST_F(CallTest, AWrongNameOrSignatureIsRefusedAtTheCaller) {
  const Error unknown = error_of([&] { return a().calls.rpc_sync<int64_t>("b", "nope", 1); });
  EXPECT_EQ(unknown.kind, ErrorKind::unknown_function);
  const Error wrong =
      error_of([&] { return a().calls.rpc_sync<int64_t>("b", "doubled", std::string("x")); });
  EXPECT_EQ(wrong.kind, ErrorKind::bad_arguments);
  EXPECT_EQ(wrong.function, "doubled");
  EXPECT_EQ(wrong.text, "it is registered as (int64,) -> int64, not (bytes,) -> int64");
  EXPECT_EQ(error_of([&] { return a().calls.rpc_sync<double>("b", "doubled", 1); }).text,
            "it is registered as (int64,) -> int64, not (int32,) -> float64");
  EXPECT_TRUE(network.in_flight().empty());
}

TEST_F(CallTest, AWorkerThatDoesNotExistIsRefusedAtTheCaller) {
  const Error name = error_of([&] { return a().calls.rpc_sync("d", &doubled, 1); });
  EXPECT_EQ(name.kind, ErrorKind::bad_arguments);
  EXPECT_EQ(name.text, "there is no worker named 'd'; there are: a b c");
  EXPECT_EQ(error_of([&] { return a().calls.rpc_sync(WorkerId{3}, &doubled, 1); }).text,
            "there is no worker of that rank: ranks go from 0 to 2");
}

TEST_F(CallTest, WhatCannotBeSentFailsAtTheCallerBeforeAnythingIsSent) {
  const Error error =
      error_of([&] { return a().calls.rpc_sync("b", &add, on_no_device(), at::ones(1)); });
  EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
  EXPECT_TRUE(network.in_flight().empty());
  EXPECT_EQ(a().pending.size(), 0u);
}

TEST_F(CallTest, AResultThatCannotBeSentIsAnErrorOfTheCallee) {
  const Error tensor_error = error_of([&] { return a().calls.rpc_sync("b", &on_no_device); });
  EXPECT_EQ(tensor_error.kind, ErrorKind::bad_arguments);
  EXPECT_EQ(tensor_error.worker, "b");
  EXPECT_EQ(tensor_error.function, "on_no_device");
  Draft draft = function_draft(*a().caller, "b", &opaque);
  const Result<Answer> answer = a().answer_to(std::move(draft));
  EXPECT_EQ(answer.error().kind, ErrorKind::bad_arguments);
  EXPECT_NE(answer.error().text.find("use `remote`"), std::string::npos);
}

TEST_F(CallTest, AnExceptionCarriesWorkerFunctionAndText) {
  const Error error = error_of([&] { return a().calls.rpc_sync("b", &fails, 3); });
  EXPECT_EQ(error, (Error{.kind = ErrorKind::remote_exception,
                          .text = "std::out_of_range: no 3",
                          .worker = "b",
                          .function = "fails",
                          .chain = {},
                          .type = "std::out_of_range"}));
}

TEST_F(CallTest, AnErrorKeepsTheChainOfWorkersItPassedThrough) {
  // a calls b, which calls c, which throws.
  const Error error =
      error_of([&] { return a().calls.rpc_sync("b", &through, std::string("c"), 4); });
  EXPECT_EQ(error.kind, ErrorKind::remote_exception);
  EXPECT_EQ(error.worker, "c");
  EXPECT_EQ(error.function, "fails");
  EXPECT_EQ(error.chain, (std::vector<std::string>{"b"}));
}

TEST_F(CallTest, AWrongOperatorCallIsAnErrorOfTheCallee) {
  EXPECT_EQ(error_of([&] { return a().calls.rpc_sync<at::Tensor>("b", "aten::nope"); }).kind,
            ErrorKind::unknown_function);
  const Error missing = error_of([&] { return a().calls.rpc_sync<at::Tensor>("b", "aten::relu"); });
  EXPECT_EQ(missing.kind, ErrorKind::bad_arguments);
  EXPECT_EQ(missing.function, "aten::relu");
  const Error type =
      error_of([&] { return a().calls.rpc_sync<int64_t>("b", "aten::relu", at::ones(1)); });
  EXPECT_EQ(type.kind, ErrorKind::bad_arguments);
  const Error thrown = error_of(
      [&] { return a().calls.rpc_sync<at::Tensor>("b", "aten::mm", at::ones(1), at::ones(1)); });
  EXPECT_EQ(thrown.kind, ErrorKind::remote_exception);
}

TEST_F(CallTest, WaitingInAnInlineFunctionIsAnError) {
  const Error error = error_of([&] { return a().calls.rpc_sync("b", &waits_inline); });
  EXPECT_EQ(error.kind, ErrorKind::would_park);
  EXPECT_EQ(error.worker, "b");
}

TEST_F(CallTest, AFunctionNumberThatDoesNotExistIsRefusedByTheCallee) {
  Draft draft = function_draft(*a().caller, "b", &doubled, 1);
  draft.call.function = 9999;
  const Result<Answer> answer = a().answer_to(std::move(draft));
  EXPECT_EQ(answer.error().kind, ErrorKind::unknown_function);
  EXPECT_EQ(answer.error().worker, "b");
}

TEST_F(CallTest, ACallThatContradictsItselfIsRefusedByTheCallee) {
  // A target for a function or an operator, and a fetch of nothing.
  const RRef<int64_t> mine = b().own<int64_t>(5);
  for (const CallKind kind : {CallKind::function, CallKind::operator_, CallKind::fetch}) {
    Draft draft = function_draft(*a().caller, "b", &doubled, 1);
    draft.call.kind = kind;
    draft.call.name = "aten::relu";
    draft.call.function = 4000000000;
    if (kind == CallKind::function) draft.call.function = 1;
    if (kind != CallKind::fetch) draft.call.target = mine.shared_handle()->id();
    const Error error = a().answer_to(std::move(draft)).error();
    EXPECT_EQ(error.kind, kind == CallKind::fetch ? ErrorKind::protocol : ErrorKind::bad_arguments);
  }
}

TEST_F(CallTest, AResultThatItsCallerCannotReadIsAnErrorThere) {
  // The caller's own code throws while it reads: it must not leave the strand.
  const Error sync = error_of([&] {
    return a().calls.rpc_sync("b", &demanding, 12).number == 12
               ? a().calls.rpc_sync("b", &demanding, 13)
               : Demanding{};
  });
  EXPECT_EQ(sync.kind, ErrorKind::remote_exception);
  Draft draft = function_draft(*a().caller, "b", &doubled, 13);
  const Future<std::vector<std::string>> wrong =
      a().caller->start_typed<std::vector<std::string>>(std::move(draft));
  EXPECT_EQ(wrong.result().error().kind, ErrorKind::bad_arguments);
  EXPECT_EQ(wrong.result().error().worker, "a");
}

// ---- asynchronous execution ----

TEST_F(CallTest, AFunctionsFutureIsItsAnswer) {
  EXPECT_EQ(a().calls.rpc_sync("b", &chained, 5), 11);
  EXPECT_EQ(b().served.size(), 0u);
}

TEST_F(CallTest, WhileAFunctionsFutureIsPendingNothingRuns) {
  // The answer of c is held back: b has no execution, but still the call.
  world.set_idle(nullptr);
  const Future<int64_t> answer = a().calls.rpc_async("b", &chained, 5);
  network.deliver(0);
  world.settle();
  EXPECT_EQ(b().trace.count(EventKind::execution_ended), 1u);
  EXPECT_EQ(b().served.size(), 1u);
  EXPECT_EQ(network.in_flight().size(), 1u);
  world.set_idle([this] { return network.deliver_first(); });
  EXPECT_EQ(answer.wait(), 11);
}

TEST_F(CallTest, AnErrorInAContinuationReachesTheCaller) {
  const Error error = error_of([&] { return a().calls.rpc_sync("b", &chained_failure); });
  EXPECT_EQ(error.kind, ErrorKind::remote_exception);
  EXPECT_EQ(error.text, "std::logic_error: in the continuation");
  EXPECT_EQ(error.worker, "b");
}

TEST_F(CallTest, AFunctionThatDropsItsPromiseFailsTheCall) {
  const Error error = error_of([&] { return a().calls.rpc_sync("b", &dropped); });
  EXPECT_EQ(error.kind, ErrorKind::cancelled);
  EXPECT_EQ(error.worker, "b");
}

// ---- the end ----

TEST_F(CallTest, CallsToALostWorkerFailNowAndLater) {
  world.set_idle(nullptr);
  const Future<int64_t> pending = a().calls.rpc_async("b", &doubled, 1);
  const Future<int64_t> other = a().calls.rpc_async("c", &doubled, 1);
  a().fence(1, "silent");
  const Error error = pending.result().error();
  EXPECT_EQ(error.kind, ErrorKind::peer_lost);
  EXPECT_EQ(error.worker, "b");
  EXPECT_EQ(error.function, "doubled");
  EXPECT_EQ(error_of([&] { return a().calls.rpc_sync("b", &doubled, 1); }).kind,
            ErrorKind::peer_lost);
  world.set_idle([this] { return network.deliver_first(); });
  EXPECT_EQ(other.wait(), 2);
}

TEST_F(CallTest, TheEndOfTheNodeFailsItsCalls) {
  world.set_idle(nullptr);
  const Future<int64_t> pending = a().calls.rpc_async("b", &doubled, 1);
  a().end();
  EXPECT_EQ(pending.result().error().kind, ErrorKind::node_stopped);
  EXPECT_EQ(error_of([&] { return a().calls.rpc_sync("b", &doubled, 1); }).kind,
            ErrorKind::node_stopped);
  EXPECT_EQ(world.timers(), 2u * 1u);  // The ticks of b and c.
  world.set_idle([this] { return network.deliver_first(); });
}

TEST_F(CallTest, CallsOfAStrangersThreadAreRefused) {
  a().runtime->run_as(nullptr);
  EXPECT_THROW((void)a().calls.rpc_sync("b", &doubled, 1), std::logic_error);
  a().runtime->run_as(a().main.get());
}

}  // namespace
}  // namespace rehearsal
