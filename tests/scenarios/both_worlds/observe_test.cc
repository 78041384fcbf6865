#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "observe/spans.h"
#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

// A user's view of real workers, asked for as a user types it.
namespace rehearsal::command_line {
namespace {

class Observed : public testing::Test {
 protected:
  // The spans of all workers, in one.
  [[nodiscard]] static observe::SpanFile spans_in(const std::string& folder) {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      paths.push_back(entry.path().string());
    std::sort(paths.begin(), paths.end());
    std::vector<observe::SpanFile> files;
    for (const std::string& path : paths)
      files.push_back(observe::read_spans(read_whole_file(path)).or_throw());
    EXPECT_EQ(files.size(), files.at(0).names.size());
    return observe::merge(files).or_throw();
  }

  const TemporaryFolder folder_;
};

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_F(Observed, VariablesReachEveryWorkerOfARun) {
  // Goal: what the root README shows. Method: one run over TCP; every call of a function has both
  // its spans.
  const std::string folder = folder_.file("spans");
  const ToolRun done = run_tool("run quickstart --set size=tiny --net tcp",
                                "REHEARSAL_METRICS=0 REHEARSAL_LOG=warn REHEARSAL_SPANS=" + folder);
  ASSERT_EQ(done.status, 0) << done.err << done.out;
  const observe::SpanFile all = spans_in(folder);
  EXPECT_EQ(count(done.err, "rehearsal: metrics are at http://127.0.0.1:"), all.names.size())
      << done.err;
  EXPECT_EQ(count(done.err, "level="), 0u) << done.err;  // Nothing went wrong.
  // To fetch a value, its owner runs no function.
  const auto made = std::ranges::count_if(
      all.spans, [](const auto& span) { return !span.served && span.function != "to_here"; });
  const auto served = std::ranges::count_if(all.spans, &observe::Span::served);
  EXPECT_GT(made, 0);
  EXPECT_EQ(made, served);
}

TEST_F(Observed, TheSpansOfARunAreOneFileInBothWorlds) {
  // Goal: `run --spans` gives the same calls, whatever they run on. Method: the names in both
  // files.
  std::vector<std::vector<std::string>> names;
  for (const std::string net : {"sim", "tcp"}) {
    const std::string file = folder_.file(net + ".json");
    const ToolRun done =
        run_tool("run quickstart --set size=tiny --net " + net + " --spans " + file);
    ASSERT_EQ(done.status, 0) << done.err << done.out;
    const observe::SpanFile spans = observe::read_spans(read_whole_file(file)).or_throw();
    names.emplace_back();
    for (const observe::Span& span : spans.spans)
      names.back().push_back(observe::span_name(span, spans.names));
    std::sort(names.back().begin(), names.back().end());
  }
  EXPECT_GT(names[0].size(), 3u);
  EXPECT_EQ(names[0], names[1]);
  EXPECT_EQ(run_tool("run quickstart --spans /no/such/file").status, 2);
}

TEST_F(Observed, OnAFullDiskTheResultIsToldAndNothingIsLeft) {
  // Goal: the run's result, status 1 and the cause; no half of a file. Method: a device that is
  // full, and a file whose size is limited.
  const ToolRun full = run_tool("run quickstart --set size=tiny --json --spans /dev/full");
  EXPECT_EQ(full.status, 1);
  EXPECT_EQ(full.json()["failure"]["oracle"], "spans");
  const Json whole = run_tool("run quickstart --set size=tiny --json").json();
  for (const char* told : {"results", "tensors"}) EXPECT_EQ(full.json()[told], whole[told]);
  EXPECT_NE(full.err.find("spans: /dev/full: cannot be written: No space left on device"),
            std::string::npos)
      << full.err;
  EXPECT_TRUE(std::filesystem::exists("/dev/full"));
  const std::string small = "sh -c 'trap \"\" XFSZ; ulimit -f 1; exec \"$0\" \"$@\"'";
  const std::string file = folder_.file("spans.json");
  const ToolRun cut = run_tool("run quickstart --set size=tiny --spans " + file, small);
  EXPECT_EQ(cut.status, 1) << cut.err;
  EXPECT_NE(cut.out.find(" spans: " + file + ": cannot be written: File too large"),
            std::string::npos)
      << cut.out << cut.err;
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(Observed, ATraceOrAHistoryThatIsCutOffIsNotTakenForAWholeOne) {
  // Goal: status 1 and the cause; the run's result is told. Method: a device that is full for the
  // trace, a limit of the size of a file for the history, which `report` writes for itself.
  const ToolRun traced = run_tool("run quickstart --set size=tiny --json --trace /dev/full");
  EXPECT_EQ(traced.status, 1);
  EXPECT_EQ(traced.json()["ok"], true);
  EXPECT_NE(traced.err.find("rehearsal run: /dev/full: cannot be written: No space left on device"),
            std::string::npos)
      << traced.err;
  const std::string file = folder_.file("some.run");
  std::ofstream(file) << "run quickstart\n--seed 1\n--set size=tiny\nend\n";
  const ToolRun told =
      run_tool("report " + file, "sh -c 'trap \"\" XFSZ; ulimit -f 1; exec \"$0\" \"$@\"'");
  EXPECT_EQ(told.status, 1);
  EXPECT_EQ(told.out, "");
  EXPECT_NE(told.err.find("/history: cannot be written: File too large"), std::string::npos)
      << told.err;
}

TEST_F(Observed, FlagsOfAWorkerSayTheSame) {
  // Goal: --metrics-port, --spans and --log. Method: two workers; the first one has the flags.
  const std::string binary = std::filesystem::read_symlink("/proc/self/exe");
  const std::string place = " --world-size 2 --rendezvous file://" + folder_.file("store");
  const std::string worker = "worker quickstart --set size=tiny" + place;
  const ToolRun done =
      run_tool(worker + " --rank 1 >/dev/null 2>&1 & " + kToolVariable + "=1 '" + binary + "' " +
               worker + " --rank 0 --metrics-port 0 --log info --spans " + folder_.file("spans"));
  ASSERT_EQ(done.status, 0) << done.err << done.out;
  EXPECT_EQ(count(done.err, "rehearsal: metrics are at http://127.0.0.1:"), 1u) << done.err;
  EXPECT_EQ(count(done.err, "event=link_up"), 1u) << done.err;
  EXPECT_EQ(count(done.err, "event=stopped"), 1u) << done.err;
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.file("spans"))) {
    EXPECT_TRUE(observe::read_spans(read_whole_file(entry.path())).ok()) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 1u);
}

}  // namespace
}  // namespace rehearsal::command_line
