#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/call_node.h"

namespace rehearsal {

// Three workers, a, b and c, all linked. While the test waits, messages are delivered in the order
// in which they were sent.
class CallFixture : public ::testing::Test {
 protected:
  // The functions that all three may call. A test makes its own before `begin`.
  FunctionRegistry registry;

  void begin(ServedCallsOptions served = {.execution_limit = 100, .queue_limit = 100}) {
    const std::vector<std::string> names = {"a", "b", "c"};
    for (uint32_t self = 0; self < names.size(); ++self) {
      nodes.push_back(std::make_unique<doubles::CallNode>(
          world, network,
          doubles::CallNodeOptions{.session = {.self = {self},
                                               .incarnation = {100 + self},
                                               .names = names,
                                               .peer_timeout = std::chrono::seconds(30),
                                               .heartbeat = std::chrono::seconds(5),
                                               .window_bytes = window_bytes,
                                               .window_frames = window_frames,
                                               .limits = limits,
                                               .mutants = {}},
                                   .served = served,
                                   .exception_traces = exception_traces},
          registry));
    }
    network.connect_all();
    world.set_idle([this] { return network.deliver_first(); });
  }
  void TearDown() override {
    settle();
    for (const auto& node : nodes) {
      EXPECT_EQ(node->pending.size(), 0u);
      EXPECT_EQ(node->pending.cancelled_maker_count(), 0u);
      EXPECT_EQ(node->rrefs.check_invariants(), "");
    }
  }

  doubles::CallNode& a() { return *nodes[0]; }
  doubles::CallNode& b() { return *nodes[1]; }
  doubles::CallNode& c() { return *nodes[2]; }

  // Runs and delivers everything; only short timers pass.
  void settle() { world.advance(std::chrono::milliseconds(20)); }

  // The error of what `body` throws.
  template <class F>
  static Error error_of(F body) {
    try {
      (void)body();
    } catch (const RpcError& thrown) {
      return thrown.error();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
  }

  bool exception_traces = false;
  uint64_t window_bytes = 1 << 24;
  uint64_t window_frames = 1000;
  PeerLimits limits;
  doubles::TestWorld world;
  doubles::ScriptedNetwork network{3};
  std::vector<std::unique_ptr<doubles::CallNode>> nodes;
};

}  // namespace rehearsal
