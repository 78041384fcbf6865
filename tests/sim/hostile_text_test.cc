// Texts of a worker, about itself or an error, may hold anything.
#include "tests/hostile_text.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/run_failure.h"
#include "sim/world/event_lines.h"

namespace rehearsal::sim {
namespace {

void lie(const std::string& text) { throw std::runtime_error(text); }

Program hostile_program(bool caught) {
  FunctionRegistry registry;
  registry.function("lie", &lie);
  Program program(registry);
  program.worker("server").worker("client", [caught](Worker& worker) {
    worker.note(kHostileText, kHostileText);
    try {
      worker.rpc_sync("server", &lie, kHostileText);
    } catch (const RpcError& error) {
      EXPECT_TRUE(is_plain(error.what())) << error.what();
      EXPECT_NE(std::string(error.what()).find(kHostileTextShown), std::string::npos);
      EXPECT_NE(error.error().text.find(kHostileText), std::string::npos) << "the text itself";
      if (!caught) throw;
    }
  });
  return program;
}

TEST(HostileText, ReachesNoLineOfARunAsItIs) {
  // Goal: error texts, notes and names of events are plain in what a person reads of a run. Method:
  // a function that throws all there is, once caught and once not.
  for (const bool caught : {true, false}) {
    const Program program = hostile_program(caught);
    std::ostringstream events;
    Cluster cluster(Seed{3}, program, {.event_lines = &events});
    const RunReport report = cluster.try_run();
    EXPECT_EQ(report.ok, caught);
    EXPECT_TRUE(is_plain(events.str())) << events.str();
    EXPECT_NE(events.str().find("\\x1b[2J"), std::string::npos) << "it is there";
    EXPECT_TRUE(is_plain(describe_failure(report))) << describe_failure(report);
    if (caught) continue;
    ASSERT_TRUE(report.failure);
    EXPECT_TRUE(is_plain(to_text(*report.failure))) << to_text(*report.failure);
    EXPECT_NE(to_text(*report.failure).find("\\x1b[2J"), std::string::npos);
  }
}

}  // namespace
}  // namespace rehearsal::sim
