// Goal: a call ends at its own time limit, the worker's default, or never, as the caller says.
// Method: the reference's tests of time-outs, with a function that takes longer than some limits.
#include <ATen/ATen.h>

#include "tests/reference/row.h"

namespace rehearsal::reference::timeouts_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kShort = milliseconds(5);
constexpr auto kLong = seconds(60);

using GateRRef = RRef<Gate>;

struct Slow {
  int64_t number() { return 7; }
  Future<int64_t> slow_number(CallContext& context, const GateRRef& gate) {
    return context.rpc_async(gate, &Gate::pass);
  }
};

Future<Slow> make_slow(CallContext& context, const GateRRef& gate) {
  return context.rpc_async(gate, &Gate::pass).then([](int64_t) { return Slow(); });
}

Future<int64_t> make_number(CallContext& context, const GateRRef& gate) {
  return context.rpc_async(gate, &Gate::pass);
}

int64_t sleeps_for(CallContext& context, int64_t time) {
  context.sleep(milliseconds(time));
  return time;
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  register_gate(registry);
  registry.function("sleeps_for", &sleeps_for);
  registry.function("make_slow", &make_slow).function("make_number", &make_number);
  registry.type<Slow>("Slow")
      .method("number", &Slow::number)
      .method("slow_number", &Slow::slow_number);
  return registry;
}

RowOptions with_default(Duration timeout) {
  return {.adjust_node = [timeout](NodeOptions& options) { options.rpc_timeout = timeout; }};
}

// Rows: rpc_test::RpcTest.test_set_and_get_default_rpc_timeout
// Rows: rpc_test::TensorPipeAgentRpcTest.{test_tensorpipe_set_default_timeout,
// Rows: test_tensorpipe_options_throw_on_timedelta_timeout}
// Rows: rpc_test_2020::ProcessGroupAgentRpcTest.{test_set_and_get_num_send_recv_threads,
// Rows: test_process_group_set_default_timeout,
// Rows: test_process_group_options_throw_on_timedelta_timeout}
TEST(ReferenceTimeouts, TheDefaultIsWhatWasAskedFor) {
  for (const Duration timeout : {Duration(milliseconds(500)), Duration(seconds(100))})
    in_both_worlds(
        one_caller(functions(),
                   [timeout](Worker& worker) { EXPECT_EQ(worker.rpc_timeout(), timeout); }),
        with_default(timeout));
  EXPECT_THROW(Timeout(milliseconds(-1)), std::invalid_argument);
  EXPECT_EQ(Timeout(std::chrono::duration<double, std::pico>(1)).or_default(kLong), Duration(1));
}

// Rows: rpc_test::RpcTest.test_rpc_timeouts
TEST(ReferenceTimeouts, TheTimeOfACallIsItsOwnOrTheDefault) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const GateRRef gate = worker.remote<Gate>(after(worker));
    const Calls hurried = worker.with_timeout(kShort);
    EXPECT_EQ(kind_of([&] { hurried.rpc_sync(gate, &Gate::pass); }), ErrorKind::timeout);
    const auto later = hurried.rpc_async(gate, &Gate::pass);
    const Error error = error_of([&] { later.wait(); });
    EXPECT_EQ(error.kind, ErrorKind::timeout);
    EXPECT_EQ(error.worker, after(worker));
    EXPECT_EQ(error.function, "Gate.pass");
    const auto patient = worker.rpc_async(gate, &Gate::pass);
    gate.rpc_sync(&Gate::open);
    EXPECT_EQ(patient.wait(), 1);
  }));
  in_both_worlds(everywhere(functions(),
                            [](Worker& worker) {
                              const Calls patient = worker.with_timeout(kLong);
                              const Calls endless = worker.with_timeout(Timeout::never());
                              const GateRRef gate = endless.remote<Gate>(after(worker));
                              EXPECT_EQ(kind_of([&] { worker.rpc_sync(gate, &Gate::pass); }),
                                        ErrorKind::timeout);
                              EXPECT_EQ(
                                  kind_of([&] { worker.rpc_async(gate, &Gate::pass).wait(); }),
                                  ErrorKind::timeout);
                              const auto one = patient.rpc_async(gate, &Gate::pass);
                              const auto other = endless.rpc_async(gate, &Gate::pass);
                              endless.rpc_sync(gate, &Gate::open);
                              EXPECT_EQ(one.wait(), 1);
                              EXPECT_EQ(other.wait(), 1);
                            }),
                 with_default(kShort));
}

// Calls from worker0 to worker1 are slow on their way; in the simulator only, where the network
// does what it is told.
RowOptions with_slow_requests() {
  return {.adjust_cluster = [](sim::Cluster& cluster) {
    cluster.network().between("worker0", "worker1").delay(milliseconds(1500), milliseconds(1500));
  }};
}

// Rows: faulty_agent_rpc_test::FaultyAgentRpcTest.{test_rpc_builtin_timeout,
// Rows: test_rpc_script_timeout}
// Rows: jit/rpc_test_faulty::JitFaultyAgentRpcTest.{test_timeout_in_torchscript_function,
// Rows: test_timeout_in_python}
TEST(ReferenceTimeouts, ARequestThatIsLateOnItsWayTimesOut) {
  const auto main = [](Worker& worker) {
    const auto call = [&](Timeout timeout) {
      return worker.with_timeout(timeout).rpc_async<at::Tensor>("worker1", "aten::add.Scalar",
                                                                at::ones({2}), 1);
    };
    EXPECT_EQ(kind_of([&] { call(seconds(1)).wait(); }), ErrorKind::timeout);
    EXPECT_TRUE(at::equal(call(kLong).wait(), at::full({2}, 2.0)));
    EXPECT_TRUE(at::equal(call(Timeout::never()).wait(), at::full({2}, 2.0)));
  };
  on_simulated_clusters(one_caller(functions(), main), with_slow_requests());
  // Over loopback nothing is slow but a function.
  over_loopback(one_caller(functions(), [](Worker& worker) {
    const GateRRef gate = worker.remote<Gate>("worker1");
    EXPECT_EQ(kind_of([&] { worker.with_timeout(kShort).rpc_sync(gate, &Gate::pass); }),
              ErrorKind::timeout);
    gate.rpc_sync(&Gate::open);
    EXPECT_EQ(worker.with_timeout(Timeout::never()).rpc_sync(gate, &Gate::pass), 1);
  }));
}

// Rows: rpc_test::TensorPipeAgentRpcTest.test_rref_proxy_timeout
TEST(ReferenceTimeouts, ACallOnAReferenceTimesOutInEveryModeAndHarmsNothing) {
  in_both_worlds(one_caller(functions(), [](Worker& worker) {
    const GateRRef made = worker.remote<Gate>("worker1");
    const RRef<Slow> slow = worker.remote("worker1", &make_slow, made);
    const RRef<Slow> hurried = slow.with_timeout(kShort);
    EXPECT_EQ(kind_of([&] { hurried.rpc_sync(&Slow::number); }), ErrorKind::timeout);
    EXPECT_EQ(kind_of([&] { hurried.rpc_async(&Slow::number).wait(); }), ErrorKind::timeout);
    made.rpc_sync(&Gate::open);
    slow.created().wait();
    const GateRRef gate = worker.remote<Gate>("worker1");
    EXPECT_EQ(kind_of([&] { hurried.rpc_sync(&Slow::slow_number, gate); }), ErrorKind::timeout);
    EXPECT_EQ(kind_of([&] { hurried.rpc_async(&Slow::slow_number, gate).wait(); }),
              ErrorKind::timeout);
    gate.rpc_sync(&Gate::open);
    EXPECT_EQ(slow.remote(&Slow::slow_number, gate).to_here(), 1);
    EXPECT_EQ(slow.rpc_sync(&Slow::number), 7);
  }));
}

// Rows: faulty_agent_rpc_test::FaultyAgentRpcTest.test_rref_to_here_timeout
// Rows: jit/rpc_test_faulty::JitFaultyAgentRpcTest.{test_remote_timeout_to_here_in_jit,
// Rows: test_rref_to_here_timeout_in_jit}
TEST(ReferenceTimeouts, AFetchThatTimedOutDoesNotSpoilTheReference) {
  in_both_worlds(one_caller(functions(), [](Worker& worker) {
    const GateRRef gate = worker.remote<Gate>("worker1");
    const RRef<int64_t> slow_value = worker.remote("worker1", &make_number, gate);
    EXPECT_EQ(kind_of([&] { (void)slow_value.to_here(kShort); }), ErrorKind::timeout);
    gate.rpc_sync(&Gate::open);
    EXPECT_EQ(slow_value.to_here(), 1);
  }));
}

// The limit is above what faults take, and the function sleeps for longer.
Program creations_with_limits(milliseconds limit) {
  return one_caller(functions(), [limit](Worker& worker) {
    const Calls hurried = worker.with_timeout(limit);
    const GateRRef gate = worker.remote<Gate>("worker1");
    for (const std::string to : {"worker0", "worker1"}) {
      const int64_t time = limit.count() * 3 / 2;
      const RRef<int64_t> slow = hurried.remote(to, &sleeps_for, time);
      EXPECT_EQ(kind_of([&] { (void)slow.to_here(milliseconds(1)); }), ErrorKind::timeout);
      EXPECT_EQ(slow.to_here(Timeout::never()), time);
      // The calls of the function have no more time than the creation.
      const RRef<int64_t> waiting = hurried.remote(to, &make_number, gate);
      const Error error = error_of([&] { (void)waiting.to_here(Timeout::never()); });
      EXPECT_EQ(error.kind, ErrorKind::timeout) << to;
      EXPECT_EQ(error.function, "Gate.pass") << to;
    }
    gate.rpc_sync(&Gate::open);
  });
}

// Not a row: PyTorch bounds the function, too.
TEST(ReferenceTimeouts, ATimeOfRemoteIsThatOfTheCreationAtOneselfAsElsewhere) {
  on_simulated_clusters(creations_with_limits(seconds(60)));
  over_loopback(creations_with_limits(milliseconds(300)));
}

}  // namespace
}  // namespace rehearsal::reference::timeouts_test
