#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "core/node/node.h"
#include "tests/core/recording_trace.h"
#include "tests/core/scripted_network.h"
#include "tests/core/test_runtime.h"

namespace rehearsal {

inline int64_t doubled(int64_t number) { return 2 * number; }

inline FunctionRegistry node_functions() {
  FunctionRegistry registry;
  registry.function("doubled", &doubled);
  return registry;
}

// One worker alone, on the test's own stack.
class NodeTest : public ::testing::Test {
 protected:
  void begin(Program::Main main, std::vector<std::string> mutants = {}) {
    Program alone(node_functions());
    alone.worker("solo", std::move(main));
    begin(std::move(alone), std::move(mutants));
  }
  // With one worker.
  void begin(Program given, std::vector<std::string> mutants = {}) {
    program.emplace(std::move(given));
    make(std::move(mutants), 77);
  }
  void make(std::vector<std::string> mutants, uint64_t incarnation) {
    runtime = std::make_shared<doubles::TestRuntime>(world);
    node = std::make_unique<Node>(NodeOptions{.id = {0},
                                              .incarnation = incarnation_of({0}, incarnation),
                                              .seed = {1},
                                              .names = program->names(),
                                              .mutants = std::move(mutants)},
                                  *program,
                                  Node::Environment{.runtime = runtime,
                                                    .executions = runtime.get(),
                                                    .transport = &network.end(0),
                                                    .trace = &trace});
    network.attach(0, *runtime, node->sink(), node->hello());
    runtime->run_as(&node->main_execution());
  }
  void expect_empty() const {
    const NodeCensus census = node->census();
    EXPECT_EQ(census.pending_calls + census.executions + census.owners + census.owner_forks +
                  census.owner_handles + census.users + census.pending_users +
                  census.pending_children + census.contexts + census.passes +
                  census.unacknowledged + census.timers,
              0u);
    EXPECT_EQ(node->check_invariants(), "");
  }

  doubles::TestWorld world;
  doubles::ScriptedNetwork network{1};
  doubles::RecordingTrace trace;
  std::optional<Program> program;
  std::shared_ptr<doubles::TestRuntime> runtime;
  std::unique_ptr<Node> node;
};

}  // namespace rehearsal
