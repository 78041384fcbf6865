// The history of real runs, and how it is kept in a file.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "sim/cluster.h"
#include "sim/explain/chronicle.h"
#include "sim/explain/history_file.h"
#include "tests/sim/adding_program.h"
#include "tests/sim/explain/entries.h"

namespace rehearsal::sim {
namespace {

size_t count(const History& history, EntryKind kind) {
  return static_cast<size_t>(
      std::count_if(history.entries().begin(), history.entries().end(),
                    [kind](const Entry& entry) { return entry.kind == kind; }));
}

RunReport run(Seed seed, ClusterOptions options, HistorySink* history) {
  const Program program = adding_program();
  options.history = history;
  return Cluster(seed, program, options).try_run();
}

TEST(History, TheRunIsTheSameWithItAndWithout) {
  // Goal: explaining changes nothing. Method: fingerprints of runs with every kind of fault.
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const ClusterOptions options{
        .faults = FaultLevel::hostile, .crashes = 1, .restart = Restart::amnesia};
    History history;
    EXPECT_EQ(run(Seed{seed}, options, &history).fingerprint,
              run(Seed{seed}, options, nullptr).fingerprint);
    EXPECT_EQ(history.workers(), (std::vector<std::string>{"server", "client0", "client1"}));
  }
}

TEST(History, EveryMessageOfACalmRunArrivesAndSaysWhatItIs) {
  History history;
  ASSERT_TRUE(run(Seed{3}, {.faults = FaultLevel::none}, &history).ok);
  const Chronicle chronicle = chronicle_of(history);
  size_t calls = 0;
  for (const MessageTrip& trip : chronicle.messages) {
    const Entry& sending = chronicle.moments[trip.sent].entry;
    if (!sending.detail.starts_with("add(")) continue;
    ++calls;
    ASSERT_TRUE(trip.arrived);
    const Entry& taking = chronicle.moments[*trip.arrived].entry;
    EXPECT_EQ(taking.worker, sending.peer);
    EXPECT_EQ(taking.id, sending.id);
    EXPECT_EQ(taking.number, sending.number);
    EXPECT_GT(taking.when, sending.when);
    EXPECT_GT(sending.bytes, 0u);
  }
  EXPECT_EQ(calls, 40u);
  EXPECT_GT(count(history, EntryKind::tables), 40u);
  EXPECT_EQ(count(history, EntryKind::failed), 0u);
}

TEST(History, ACutIsABreakThatTakesTheFrameAndTheFrameIsResent) {
  // Goal: the whole story of a lost frame. Method: a rule cuts at the fifth frame of client0.
  const Program program = adding_program();
  History history;
  ClusterOptions options{.faults = FaultLevel::none};
  options.history = &history;
  Cluster cluster(Seed{1}, program, options);
  const auto rule = cluster.network().rule([](const net_fake::FrameView& frame) {
    const bool now = frame.from == WorkerId{1} && frame.number == 5 && frame.attempt == 0;
    return now ? net_fake::Action::cut() : net_fake::Action::pass();
  });
  ASSERT_TRUE(cluster.try_run().ok);
  const Chronicle chronicle = chronicle_of(history);
  const auto is_it = [&](const MessageTrip& trip, uint64_t attempt) {
    const Entry& entry = chronicle.moments[trip.sent].entry;
    return entry.worker == 1 && entry.number == 5 && entry.attempt == attempt;
  };
  const auto lost = std::find_if(chronicle.messages.begin(), chronicle.messages.end(),
                                 [&](const MessageTrip& trip) { return is_it(trip, 0); });
  ASSERT_NE(lost, chronicle.messages.end());
  ASSERT_TRUE(lost->lost_at);
  EXPECT_EQ(name_of(chronicle.moments[*lost->lost_at]), "connection_broken");
  const auto resent = std::find_if(chronicle.messages.begin(), chronicle.messages.end(),
                                   [&](const MessageTrip& trip) { return is_it(trip, 1); });
  ASSERT_NE(resent, chronicle.messages.end());
  EXPECT_TRUE(resent->arrived);
  EXPECT_EQ(count(history, EntryKind::broken), 1u);
}

TEST(History, CrashesRestartsPartitionsAndGivenDecisionsAreInIt) {
  const Program program = adding_program();
  History history;
  ClusterOptions options{.faults = FaultLevel::mild,
                         .restart = Restart::amnesia,
                         .crash_points = {{WorkerId{1}, 30}},
                         .overrides = {parse_override("swarm:#4.0=1")},
                         .otherwise = Otherwise::benign};
  options.history = &history;
  Cluster cluster(Seed{1}, program, options);
  cluster.at(std::chrono::microseconds(200),
             [&] { cluster.network().block_one_way("server", "client1"); });
  cluster.at(std::chrono::microseconds(400), [&] { cluster.network().heal(); });
  static_cast<void>(cluster.try_run());
  EXPECT_EQ(count(history, EntryKind::crash), 1u);
  EXPECT_EQ(count(history, EntryKind::partition), 1u);
  EXPECT_EQ(count(history, EntryKind::healed), 1u);
  EXPECT_EQ(count(history, EntryKind::calm), 1u);
  ASSERT_EQ(count(history, EntryKind::decision), 1u);
  for (const Entry& entry : history.entries()) {
    if (entry.kind == EntryKind::decision) {
      EXPECT_EQ(entry.text, "swarm:#4.0=1");
    }
    if (entry.kind == EntryKind::partition) {
      EXPECT_EQ(entry.text, "server cannot reach client1");
    }
  }
}

TEST(History, APauseIsANoteOfItsWorker) {
  // Goal: what a test does to a worker by hand is told, too. Method: a pause while it is recorded.
  const Program program = adding_program();
  History history;
  ClusterOptions options{.faults = FaultLevel::none};
  options.history = &history;
  Cluster cluster(Seed{1}, program, options);
  cluster.at(std::chrono::microseconds(300),
             [&] { cluster.pause("client1", std::chrono::milliseconds(1)); });
  ASSERT_TRUE(cluster.try_run().ok);
  const auto told =
      std::find_if(history.entries().begin(), history.entries().end(), [](const Entry& entry) {
        return entry.kind == EntryKind::event && entry.event == EventKind::mark &&
               entry.text == "pause";
      });
  ASSERT_NE(told, history.entries().end());
  EXPECT_EQ(told->worker, 2u);
}

TEST(HistoryFile, GivesBackWhatWasWritten) {
  // Goal: nothing is lost between processes. Method: a run with faults, written and kept at once.
  std::stringstream file;
  HistoryWriter writer(file);
  History kept;
  const ClusterOptions options{.faults = FaultLevel::hostile};
  static_cast<void>(run(Seed{4}, options, &writer));
  static_cast<void>(run(Seed{4}, options, &kept));
  const History read = read_history(file);
  EXPECT_EQ(read.workers(), kept.workers());
  EXPECT_EQ(read.entries(), kept.entries());
  EXPECT_GT(kept.entries().size(), 300u);
}

TEST(HistoryFile, AnEntryThatIsNotWholeIsLeftOutAndTextIsAnything) {
  std::stringstream file;
  HistoryWriter writer(file);
  writer.begin({"a"});
  writer.add({.worker = 0, .text = "line\nand \"quote\""});
  writer.add({.worker = 0, .text = "\xff no UTF-8"});
  const std::string whole = file.str();
  for (size_t cut = 1; cut < 10; ++cut) {
    std::istringstream shorter(whole.substr(0, whole.size() - cut));
    const History read = read_history(shorter);
    ASSERT_EQ(read.entries().size(), 1u);
    EXPECT_EQ(read.entries()[0].text, "line\nand \"quote\"");
  }
  EXPECT_EQ(read_history(file).entries()[1].text, "\xef\xbf\xbd no UTF-8");
}

TEST(HistoryFile, SomethingElseIsRefusedWithItsLine) {
  const auto refusal = [](const std::string& text) {
    std::istringstream file(text);
    try {
      static_cast<void>(read_history(file));
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  const std::string head = "{\"format\":\"rehearsal history 4\",\"workers\":[\"a\"]}\n";
  EXPECT_EQ(refusal(""), "it is empty, and no history");
  EXPECT_EQ(refusal("run storm --seed 1\n"), "line 1 is not of a history");
  EXPECT_EQ(refusal("{\"format\":\"another\"}\n"), "line 1 is not of a history");
  EXPECT_EQ(refusal(head + "[]\n"), "line 2 is not of a history");
  const auto with_kind = [&](const std::string& kind, const std::string& stream) {
    return refusal(head + "[" + kind + ",0,0,0,0,0,0,\"\",0,0,0,0,\"\",\"\",\"\",\"\",null," +
                   stream + "]\n");
  };
  const std::string device = std::to_string(static_cast<int>(EntryKind::device));
  EXPECT_EQ(with_kind("0", "null"), "taken");
  EXPECT_EQ(with_kind(device, "[3,1,33]"), "taken");
  EXPECT_EQ(with_kind("99", "null"), "line 2 is not of a history");
  EXPECT_EQ(with_kind(device, "null"), "line 2 is not of a history");
  EXPECT_EQ(with_kind(device, "[4,1,33]"), "line 2 is not of a history");
  EXPECT_EQ(with_kind(device, "[3,1]"), "line 2 is not of a history");
  EXPECT_EQ(with_kind("0", "[3,1,33]"), "line 2 is not of a history");
  EXPECT_EQ(refusal(head), "taken");
}

}  // namespace
}  // namespace rehearsal::sim
