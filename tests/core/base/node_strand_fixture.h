#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/node_strand.h"
#include "tests/core/recording_trace.h"
#include "tests/core/test_runtime.h"

namespace rehearsal {

// One strand, and the test's code as the main execution of its node.
class NodeStrandFixture : public ::testing::Test {
 protected:
  NodeStrandFixture() { runtime_->run_as(main_.get()); }

  void on_strand(Task task) { runtime_->post(std::move(task)); }
  static Error stopped() {
    return {.kind = ErrorKind::node_stopped, .text = "gone", .worker = "w"};
  }

  doubles::TestWorld world_;
  doubles::RecordingTrace trace_;
  const std::shared_ptr<doubles::TestRuntime> runtime_ =
      std::make_shared<doubles::TestRuntime>(world_);
  const std::shared_ptr<NodeStrand> strand_ =
      std::make_shared<NodeStrand>(runtime_, runtime_.get(), &trace_, WorkerId{0}, "w", Seed{1});
  const std::shared_ptr<Execution> main_ =
      strand_->make_execution(CausalId{{9}, {1, 2}, 0}, "main");
};

}  // namespace rehearsal
