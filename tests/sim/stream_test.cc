// Streams and cancellation over simulated workers.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "core/base/mutants.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/effort.h"

namespace rehearsal::sim {
namespace {

using std::chrono::seconds;

// Large and small in turn: they travel on two lanes.
void count_up(StreamWriter<at::Tensor>& out, int64_t end) {
  for (int64_t number = 0; number < end; ++number)
    out.write(at::full({number % 3 == 0 ? 20'000 : 1}, static_cast<double>(number)));
}
void count_on(CallContext&, StreamWriter<int64_t>& out) {
  for (int64_t number = 0;; ++number) out.write(number);
}
// Lets wait for what never comes.
class Latch {
 public:
  Latch() = default;
  Future<int64_t> wait(CallContext& context) {
    never_.push_back(context.promise<int64_t>());
    return never_.back().future();
  }

 private:
  std::vector<Promise<int64_t>> never_;
};
int64_t hold(CallContext& context, const RRef<Latch>& latch) {
  return context.with_timeout(Timeout::never()).rpc_sync(latch, &Latch::wait);
}

FunctionRegistry stream_functions() {
  FunctionRegistry registry;
  registry.function("count_up", &count_up).function("count_on", &count_on);
  registry.function("hold", &hold);
  registry.type<Latch>("Latch").constructor<>().method("wait", &Latch::wait);
  return registry;
}

void expect_number(const std::optional<at::Tensor>& value, int64_t number) {
  if (!value) throw std::logic_error("the stream ended before " + std::to_string(number));
  if (value->select(0, 0).item<int64_t>() != number)
    throw std::logic_error("a value came in place of " + std::to_string(number));
}

// Reads one stream to its end, one to its middle, and cancels what would never end.
void read_streams(Worker& worker) {
  const Calls calls = worker.with_timeout(Timeout::never());
  Stream<at::Tensor> whole = calls.with_credit(4).rpc_stream("server", &count_up, int64_t{30});
  for (int64_t number = 0; number < 30; ++number) expect_number(whole.next(), number);
  if (whole.next()) throw std::logic_error("the stream went on behind its end");
  {
    Stream<at::Tensor> half = calls.with_credit(3).rpc_stream("server", &count_up, int64_t{1000});
    for (int64_t number = 0; number < 7; ++number) expect_number(half.next(), number);
  }
  const auto latch = worker.remote<Latch>("server");
  const Future<int64_t> held = calls.rpc_async("relay", &hold, latch);
  // By now it waits.
  (void)calls.with_credit(1).rpc_stream("server", &count_on).next();
  held.cancel();
  if (held.result().error().kind != ErrorKind::cancelled)
    throw std::logic_error("a cancelled call did not end with it");
}

Program stream_program() {
  Program program(stream_functions());
  program.worker("server", [](Worker&) {}).worker("relay", [](Worker&) {});
  program.worker("reader", read_streams, Count{2});
  return program;
}

TEST(Streams, HoldWhateverTheNetworkDoes) {
  const Program program = stream_program();
  EXPECT_TRUE(holds_for_seeds(tries(15), [&](Seed seed) {
    Cluster(seed, program, {.faults = FaultLevel::hostile}).run();
  }));
}

TEST(Streams, EndWhoeverCrashes) {
  // Goal: the loss of a reader ends its functions, that of a function its readers. Method: crashes
  // drawn by the seed; the oracles look for what is left.
  const Program program = stream_program();
  EXPECT_TRUE(holds_for_seeds(tries(20), [&](Seed seed) {
    Cluster(seed, program, {.faults = FaultLevel::mild, .crashes = 1}).run();
  }));
}

TEST(Streams, AnOpenStreamIsSeenFromOutside) {
  // Goal: it counts as a call at both ends. Method: look while the function waits for its reader.
  Program program(stream_functions());
  program.worker("server", [](Worker&) {});
  program.worker("reader", [](Worker& worker) {
    Stream<int64_t> stream =
        worker.with_timeout(Timeout::never()).with_credit(2).rpc_stream("server", &count_on);
    const auto latch = worker.remote<Latch>("server");
    (void)worker.with_timeout(seconds(1)).rpc_async(latch, &Latch::wait).result();
  });
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  ASSERT_TRUE(cluster.run_until([&] {
    for (const auto& stack : cluster.node("server").waits().stacks)
      if (stack.what == "its caller to take values") return true;
    return false;
  }));
  EXPECT_GE(cluster.node("reader").census().pending_calls, 1u);
  EXPECT_GE(cluster.node("server").census().executions, 1u);
  cluster.run();
}

class StreamsFind : public testing::TestWithParam<const char*> {};

TEST_P(StreamsFind, WhatIsLeftOut) {
  // Goal: the rules of streams are needed. Method: the program above without one of them.
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  const Program program = stream_program();
  ClusterOptions options{.faults = FaultLevel::mild};
  options.adjust_node = [](NodeOptions& node) { node.mutants = {GetParam()}; };
  bool found = false;
  for (uint64_t seed = 1; seed <= 20 && !found; ++seed)
    found = !Cluster(Seed{seed}, program, options).try_run().ok;
  EXPECT_TRUE(found);
}

INSTANTIATE_TEST_SUITE_P(Rules, StreamsFind,
                         testing::Values("stream_without_credit", "stream_ignores_order",
                                         "stream_cancel_lost", "cancel_not_nested"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace rehearsal::sim
