// Goal: a creation whose message does not get through leaves a reference that says so on every use,
// and nothing behind. Method: the reference's tests with injected faults, by a link that stands
// still for a while.
#include <ATen/ATen.h>

#include <memory>

#include "tests/reference/row.h"

namespace rehearsal::reference::faults_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

at::Tensor square(double value) { return at::full({2, 2}, value); }

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return a + b; }

at::Tensor use(const RRef<at::Tensor>& rref) { return rref.to_here(); }

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add).function("use", &use);
  return registry;
}

// Between worker0 and worker1 nothing passes from `begin` to `end`, which the caller calls.
struct Standstill {
  std::function<void(Worker&)> begin;
  std::function<void(Worker&)> end;
};

// A reference that was created with a short time limit while nothing passed.
RRef<at::Tensor> created_in_vain(Worker& worker, const Standstill& standstill) {
  EXPECT_TRUE(at::equal(worker.rpc_sync("worker1", &add, square(1), square(1)), square(2)));
  standstill.begin(worker);
  const Calls hurried = worker.with_timeout(milliseconds(50));
  const RRef<at::Tensor> by_function = hurried.remote("worker1", &add, square(1), square(1));
  EXPECT_EQ(kind_of([&] { by_function.created(milliseconds(200)).wait(); }), ErrorKind::timeout);
  standstill.end(worker);
  return by_function;
}

void expect_creation_error(Worker& worker, const RRef<at::Tensor>& rref) {
  const auto expect_error = [](auto use) {
    const Error error = error_of(use);
    EXPECT_EQ(error.kind, ErrorKind::timeout);
    EXPECT_TRUE(contains(error.text, "the owner has not answered the creation in time"))
        << to_string(error);
  };
  for (int again = 0; again < 2; ++again) expect_error([&] { (void)rref.to_here(); });
  for (const std::string to : {"worker1", "worker2", "worker0"})
    expect_error([&] { (void)worker.rpc_sync(to, &use, rref); });
}

Program program(const std::shared_ptr<Standstill>& standstill) {
  return one_caller(
      functions(),
      [standstill](Worker& worker) {
        expect_creation_error(worker, created_in_vain(worker, *standstill));
        EXPECT_TRUE(at::equal(worker.rpc_sync("worker1", &add, square(1), square(1)), square(2)));
      },
      2);
}

// Rows: faulty_agent_rpc_test::FaultyAgentRpcTest.{test_remote_message_dropped_pickle,
// Rows: test_remote_message_dropped_pickle_to_self, test_builtin_remote_message_dropped_timeout,
// Rows: test_builtin_remote_message_dropped_timeout_to_self,
// Rows: test_udf_remote_message_dropped_timeout, test_udf_remote_message_dropped_timeout_to_self}
// Rows: jit/rpc_test_faulty::JitFaultyAgentRpcTest.{test_rref_timeout_pickle_in_jit,
// Rows: test_rref_timeout_pickle_script_func}
TEST(ReferenceFaults, ACreationThatDoesNotGetThroughFailsEveryUseOfItsReference) {
  // In the simulator the link stands still at a time that the main waits for.
  const auto planned = std::make_shared<Standstill>();
  planned->begin = [](Worker& worker) { worker.sleep(seconds(22)); };
  planned->end = [](Worker& worker) { worker.sleep(seconds(20)); };
  on_simulated_clusters(program(planned), {.adjust_cluster = [](sim::Cluster& cluster) {
                          cluster.at(seconds(20),
                                     [&] { cluster.network().split({"worker0"}, {"worker1"}); });
                          cluster.at(seconds(40), [&] { cluster.network().heal(); });
                        }});
  const auto at_once = std::make_shared<Standstill>();
  const Program over_tcp = program(at_once);
  real::LoopbackGroup group(over_tcp, {.through_proxies = true});
  const auto set_stalled = [&group](bool stalled) {
    return [&group, stalled](Worker&) {
      group.proxy(0).set_stalled(stalled);
      group.proxy(1).set_stalled(stalled);
    };
  };
  *at_once = {.begin = set_stalled(true), .end = set_stalled(false)};
  for (const Status& ended : group.run()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
}

// Rows: faulty_agent_rpc_test::FaultyAgentRpcTest.{test_verify_backend_options,
// Rows: test_custom_faulty_messages, test_no_faulty_messages, test_custom_messages_to_delay}
TEST(ReferenceFaults, ARuleOfTheNetworkMeetsTheMessagesItIsMadeFor) {
  // Every creation, each frame with a call that creates, is lost with its link three times, and
  // every other message is not: the call succeeds all the same.
  const Program program = one_caller(functions(), [](Worker& worker) {
    EXPECT_TRUE(
        at::equal(worker.remote("worker1", &add, square(1), square(1)).to_here(), square(2)));
  });
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    sim::Cluster cluster(Seed{seed}, program, {.faults = sim::FaultLevel::none});
    int cuts = 0;
    const auto guard = cluster.network().rule([&cuts](const net_fake::FrameView& frame) {
      if (frame.from != WorkerId{0} || frame.number < 2 || cuts == 3)
        return net_fake::Action::pass();
      ++cuts;
      return net_fake::Action::cut();
    });
    cluster.run();
    EXPECT_EQ(cuts, 3);
  }
}

}  // namespace
}  // namespace rehearsal::reference::faults_test
