// Notes of a program, wherever a run is told.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/explain/chronicle.h"
#include "sim/explain/history.h"

namespace rehearsal::sim {
namespace {

int64_t twice(CallContext& context, int64_t number) {
  context.note("given", number);
  return 2 * number;
}

// "trainer" notes a word, and "ps" what it is given.
Program noting(const std::string& word) {
  FunctionRegistry registry;
  registry.function("twice", &twice);
  Program program(std::move(registry));
  program.worker("ps", [](Worker&) {}).worker("trainer", [word](Worker& worker) {
    worker.note("phase", word);
    static_cast<void>(worker.rpc_sync("ps", &twice, int64_t{21}));
  });
  return program;
}

std::string fingerprint_of(const Program& program) {
  Cluster cluster(Seed{1}, program);
  return cluster.run().fingerprint;
}

TEST(Note, IsALineAmongTheEvents) {
  // Goal: worker, name and value are there. Method: the event lines of one run.
  const Program program = noting("warm-up");
  std::ostringstream lines;
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none, .event_lines = &lines});
  cluster.run();
  const auto line_with = [text = lines.str()](const std::string& words) {
    const size_t at = text.find(words);
    if (at == std::string::npos) return std::string("nothing");
    const size_t from = text.rfind('\n', at) + 1;
    return text.substr(from, text.find('\n', from) - from);
  };
  EXPECT_NE(line_with("\"phase\" \"warm-up\"").find(" trainer.0 note id="), std::string::npos)
      << line_with("\"phase\"");
  EXPECT_NE(line_with("\"given\" \"21\"").find(" ps.0 note id="), std::string::npos)
      << line_with("\"given\"");
  EXPECT_NE(line_with("\"given\" \"21\"").find(" number=1 "), std::string::npos);
}

TEST(Note, IsTold) {
  // Goal: a reader of the diagram or the page sees it. Method: the sentences of the chronicle.
  const Program program = noting("warm-up");
  History history;
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none, .history = &history});
  cluster.run();
  const Chronicle chronicle = chronicle_of(history);
  std::vector<std::string> notes;
  for (const Moment& moment : chronicle.moments)
    if (name_of(moment) == "note")
      notes.push_back(place_of(chronicle, moment) + " " + text_of(chronicle, moment));
  EXPECT_EQ(notes,
            (std::vector<std::string>{"trainer notes phase = warm-up", "ps notes given = 21"}));
}

TEST(Note, IsPartOfTheFingerprint) {
  // Goal: `verify` finds a note that differs from run to run. Method: runs that differ in one word.
  EXPECT_EQ(fingerprint_of(noting("warm-up")), fingerprint_of(noting("warm-up")));
  EXPECT_NE(fingerprint_of(noting("warm-up")), fingerprint_of(noting("warm-uq")));
}

}  // namespace
}  // namespace rehearsal::sim
