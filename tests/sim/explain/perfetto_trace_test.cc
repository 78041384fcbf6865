#include "sim/explain/perfetto_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/cluster.h"
#include "tests/sim/adding_program.h"
#include "tests/sim/explain/entries.h"

namespace rehearsal::sim {
namespace {

using Json = nlohmann::json;

Json events_of(const History& history) {
  return Json::parse(perfetto_trace(chronicle_of(history), {.title = "toy"})).at("traceEvents");
}

std::vector<Json> all(const Json& events, const char* phase, const char* category) {
  std::vector<Json> found;
  for (const Json& event : events)
    if (event.at("ph") == phase && event.value("cat", "") == category) found.push_back(event);
  return found;
}

TEST(PerfettoTrace, AMessageIsAnArrowBetweenTwoProcesses) {
  HandMade made({"ps", "trainer"});
  made.at(100).send(1, 0, 7, "0000000a#1").at(250).take(0, 1, 7, "0000000a#1");
  const Json events = events_of(made.history);
  const auto starts = all(events, "s", "message");
  const auto ends = all(events, "f", "message");
  ASSERT_EQ(starts.size(), 1u);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(starts[0]["id"], ends[0]["id"]);
  EXPECT_EQ(starts[0]["pid"], 3);
  EXPECT_EQ(ends[0]["pid"], 2);
  EXPECT_EQ(starts[0]["ts"], 100.0);
  EXPECT_EQ(ends[0]["ts"], 250.0);
  const auto slices = all(events, "X", "message");
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0]["name"], "sends Call 7 add(3) to ps [0000000a#1]");
  EXPECT_EQ(slices[0]["args"]["says"], "add(3)");
  EXPECT_EQ(slices[0]["ts"], 100.0);  // an arrow binds to the slice at its end
}

TEST(PerfettoTrace, ExecutionsAreSlicesAndThoseBesideEachOtherHaveThreadsOfTheirOwn) {
  HandMade made({"ps"});
  made.at(10).event(EventKind::execution_started, 0, "0000000a#1", "add");
  made.at(20).event(EventKind::execution_started, 0, "0000000a#2", "mul");
  made.at(30).event(EventKind::execution_ended, 0, "0000000a#1", "add");
  made.at(40).event(EventKind::execution_started, 0, "0000000a#3", "sub");
  made.at(50).event(EventKind::execution_ended, 0, "0000000a#2", "mul");
  made.at(60).add({.kind = EntryKind::crash, .worker = 0});
  const auto slices = all(events_of(made.history), "X", "execution");
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices[0]["name"], "add");
  EXPECT_EQ(slices[0]["tid"], 1);
  EXPECT_EQ(slices[0]["ts"], 10.0);
  EXPECT_EQ(slices[0]["dur"], 20.0);
  EXPECT_EQ(slices[1]["name"], "mul");
  EXPECT_EQ(slices[1]["tid"], 2);
  EXPECT_EQ(slices[2]["name"], "sub");  // ended by the crash
  EXPECT_EQ(slices[2]["tid"], 1);
  EXPECT_EQ(slices[2]["dur"], 20.0);
}

TEST(PerfettoTrace, ANoteOfANumberIsAPointOfACurveAndAnyOtherAnInstant) {
  HandMade made({"ps"});
  made.at(10).add(
      {.event = EventKind::note, .worker = 0, .number = 1, .text = "loss", .detail = "0.5"});
  made.at(20).add({.event = EventKind::note, .worker = 0, .text = "phase", .detail = "0.5"});
  const Json events = events_of(made.history);
  const auto points = all(events, "C", "note");
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0]["name"], "loss");
  EXPECT_EQ(points[0]["pid"], 2);
  EXPECT_EQ(points[0]["ts"], 10.0);
  EXPECT_EQ(points[0]["args"], (Json{{"loss", 0.5}}));
  const auto instants = all(events, "i", "event");
  ASSERT_EQ(instants.size(), 1u);
  EXPECT_EQ(instants[0]["args"]["text"], "notes phase = 0.5");
}

TEST(PerfettoTrace, CallsAreAsyncSlicesFromTheCallToTheAnswer) {
  // Goal: how long a call takes is seen. Method: one with an answer, and one that creates, which
  // has none but is served.
  HandMade made({"ps", "trainer"});
  const auto call = [&made](const char* id, const char* function) {
    made.add({.event = EventKind::api_call,
              .worker = 1,
              .peer = 0,
              .id = id,
              .text = function,
              .stack = "trainer /project/training.cc:62"});
  };
  made.at(10);
  call("0000000a#1", "add");
  made.at(20);
  call("0000000a#2", "Counter");
  made.at(30).event(EventKind::call_completed, 1, "0000000a#1");
  made.at(40).event(EventKind::call_served, 0, "0000000a#2", "Counter");
  made.at(50).event(EventKind::timer, 0);
  const Json events = events_of(made.history);
  const auto starts = all(events, "b", "call");
  const auto ends = all(events, "e", "call");
  ASSERT_EQ(starts.size(), 2u);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(starts[0]["name"], "add on ps");
  EXPECT_EQ(starts[0]["pid"], 3);
  EXPECT_EQ(starts[0]["ts"], 10.0);
  EXPECT_EQ(starts[0]["args"]["from"], "trainer /project/training.cc:62");
  EXPECT_EQ(ends[0]["id"], starts[0]["id"]);
  EXPECT_EQ(ends[0]["name"], "add on ps");
  EXPECT_EQ(ends[0]["ts"], 30.0);
  EXPECT_EQ(ends[0]["args"]["ended"], "with its result");
  EXPECT_EQ(ends[1]["id"], starts[1]["id"]);
  EXPECT_NE(ends[1]["id"], ends[0]["id"]);
  EXPECT_EQ(ends[1]["ts"], 40.0);
}

TEST(PerfettoTrace, WaitsLieOnTheirExecution) {
  HandMade made({"ps"});
  made.at(10).event(EventKind::execution_started, 0, "0000000a#1", "add");
  made.at(20).event(EventKind::execution_parked, 0, "0000000a#1", "add");
  made.at(50).event(EventKind::execution_resumed, 0, "0000000a#1", "add");
  made.at(60).event(EventKind::execution_parked, 0, "0000000a#1", "add");
  made.at(70).event(EventKind::execution_ended, 0, "0000000a#1", "add");
  const auto waits = all(events_of(made.history), "X", "wait");
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0]["ts"], 20.0);
  EXPECT_EQ(waits[0]["dur"], 30.0);
  EXPECT_EQ(waits[0]["tid"], 1);
  EXPECT_EQ(waits[1]["dur"], 10.0);
}

TEST(PerfettoTrace, FaultsAreInstantsAndWorkersAreNamed) {
  HandMade made({"ps", "trainer"});
  made.at(5).add({.kind = EntryKind::crash, .worker = 1});
  made.at(6).add({.kind = EntryKind::partition, .text = "ps and trainer are cut off"});
  const Json events = events_of(made.history);
  const auto faults = all(events, "i", "fault");
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0]["pid"], 3);
  EXPECT_EQ(faults[0]["s"], "p");
  EXPECT_EQ(faults[1]["pid"], 1);
  EXPECT_EQ(faults[1]["s"], "g");
  EXPECT_EQ(faults[1]["args"]["text"], "partition: ps and trainer are cut off");
  std::vector<std::string> names;
  for (const Json& event : events)
    if (event.at("name") == "process_name") names.push_back(event.at("args").at("name"));
  EXPECT_EQ(names, (std::vector<std::string>{"cluster", "ps", "trainer"}));
}

TEST(PerfettoTrace, OfARealRunEveryArrowHasBothEndsAndEverySliceIsInItsTime) {
  History history;
  ClusterOptions options{.faults = FaultLevel::hostile, .crashes = 1};
  options.history = &history;
  const Program program = adding_program();
  static_cast<void>(Cluster(Seed{2}, program, options).try_run());
  const Json events = events_of(history);
  EXPECT_GT(all(events, "s", "message").size(), 10u);
  EXPECT_EQ(all(events, "s", "message").size(), all(events, "f", "message").size());
  for (const Json& event : all(events, "X", "execution")) EXPECT_GE(event["dur"], 0.0);
  EXPECT_GT(all(events, "b", "call").size(), 10u);
  EXPECT_EQ(all(events, "b", "call").size(), all(events, "e", "call").size());
}

}  // namespace
}  // namespace rehearsal::sim
