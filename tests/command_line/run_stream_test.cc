// Files that a run writes as it goes.
#include "command_line/run_stream.h"

#include <gtest/gtest.h>

#include <string>

#include "command_line/wrong_use.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

TEST(RunStream, HoldsAllThatWasWrittenWhenItIsClosed) {
  const TemporaryFolder folder;
  const std::string file = folder.file("trace");
  RunStream trace(file);
  trace.require("--trace");
  ASSERT_NE(trace.stream(), nullptr);
  *trace.stream() << "event " << 1 << ' ' << 0.5 << "\n" << std::string(100'000, 'x');
  EXPECT_EQ(trace.close(), "");
  EXPECT_EQ(read_whole_file(file), "event 1 0.5\n" + std::string(100'000, 'x'));
}

TEST(RunStream, KnowsAtTheEndWhyItIsNotWhole) {
  // Goal: the cause, whether the first bytes or the last did not fit. Method: a device that is
  // full, with less and with more than a buffer.
  for (const size_t size : {10, 1'000'000}) {
    RunStream trace("/dev/full");
    trace.require("--trace");
    *trace.stream() << std::string(size, 'x');
    EXPECT_EQ(trace.close(), "/dev/full: cannot be written: No space left on device");
  }
}

TEST(RunStream, ThatCannotBeOpenedIsRefusedWithTheCause) {
  RunStream trace("/no/such/trace");
  try {
    trace.require("--trace");
    FAIL() << "it is refused";
  } catch (const WrongUse& wrong) {
    EXPECT_STREQ(wrong.what(),
                 "--trace /no/such/trace: cannot be written: No such file or directory; name "
                 "another file");
  }
  EXPECT_EQ(trace.close(), "/no/such/trace: cannot be written: No such file or directory");
}

TEST(RunFiles, NoteInTheOutcomeWhichIsNotWhole) {
  const TemporaryFolder folder;
  RunSettings settings;
  settings.trace_file = folder.file("trace");
  settings.history_file = "/dev/full";
  RunFiles files(settings);
  ASSERT_NE(files.history(), nullptr);
  EXPECT_EQ(files.choices(), nullptr);
  files.history()->begin({"leader"});
  RunOutcome outcome;
  files.close(outcome);
  EXPECT_EQ(outcome.unwritten, "/dev/full: cannot be written: No space left on device");
  EXPECT_EQ(outcome_from_json(to_json(outcome)).unwritten, outcome.unwritten);
}

}  // namespace
}  // namespace rehearsal::command_line
