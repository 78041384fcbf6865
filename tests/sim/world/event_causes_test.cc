#include "sim/world/event_causes.h"

#include <gtest/gtest.h>

#include <sstream>

#include "sim/cluster.h"
#include "tests/sim/adding_program.h"

namespace rehearsal::sim {
namespace {

using Lines = std::vector<std::string>;

TEST(EventLine, IsReadBack) {
  const auto line = parse_event_line(
      "38 0.007 worker1.2 frame peer=ps id=5f0b8838#2 message=Call number=7 digest=9 \"id=x\" aa");
  ASSERT_TRUE(line);
  EXPECT_EQ(*line, (EventLine{"worker1", "worker1.2", "frame", "ps", "5f0b8838#2", "Call", "7"}));
  EXPECT_EQ(key_of(*line), "frame Call 5f0b8838#2 at worker1.2 from ps");
  EXPECT_EQ(key_of(*parse_event_line("3 0.5 ps.0 peer_up peer=worker1 number=12 aa")),
            "peer_up 12 at ps.0");
  EXPECT_FALSE(parse_event_line("straight"));
  EXPECT_FALSE(parse_event_line("3 0.5 ps.0"));
}

// Goal: the own story of a frame comes first, then what happened last. Method: a call that was made
// long before it arrives at a busy server.
TEST(EventCauses, NameTheCallThatAFrameCameFromAndWhatHappenedLast) {
  EventCauses causes;
  const Lines story = {"1 0.1 client.0 timer \"what the caller did before\" aa",
                       "2 0.2 client.0 api_call peer=server id=c#1 \"add\" aa",
                       "3 0.2 client.0 frame_sent peer=server id=c#1 message=Call number=5 aa"};
  const Lines busy = {"4 0.3 server.0 timer \"1\" aa", "5 0.4 other.0 timer \"of nobody\" aa",
                      "6 0.5 server.0 timer \"2\" aa", "7 0.6 server.0 timer \"3\" aa"};
  for (const Lines* lines : {&story, &busy})
    for (const std::string& line : *lines) causes.add(line);
  const std::string next =
      "8 0.7 server.0 frame peer=client id=c#1 message=Call number=5 digest=7 aa";
  EXPECT_EQ(causes.of(next, 5), (Lines{story[0], story[1], story[2], busy[2], busy[3]}));
  EXPECT_EQ(causes.of(next, 2), (Lines{story[1], story[2]}));
  EXPECT_EQ(causes.of(next, 100).size(), 6u);
  EXPECT_EQ(causes.of("not an event", 5), Lines{});
}

TEST(EventCauses, ADuplicateFollowsFromTheSendingOfItsOwnNumber) {
  EventCauses causes;
  const std::string right = "1 0.1 client.0 frame_sent peer=server message=Ready number=1 aa";
  causes.add(right);
  causes.add("2 0.2 client.0 frame_sent peer=server message=Ready number=2 aa");
  EXPECT_EQ(causes.of("3 0.3 server.0 frame peer=client message=Ready number=1 digest=7 aa", 1),
            Lines{right});
}

// Goal: real traces can be read. Method: the last event of a run has the events of a whole run
// behind it, and every line is understood.
TEST(EventCauses, UnderstandTheLinesOfARun) {
  const Program program = adding_program();
  std::ostringstream out;
  ClusterOptions options;
  options.event_lines = &out;
  Cluster(Seed{3}, program, options).run();
  std::istringstream in(out.str());
  EventCauses causes;
  std::string line;
  size_t count = 0;
  for (; std::getline(in, line); ++count) {
    ASSERT_TRUE(parse_event_line(line)) << line;
    if (parse_event_line(line)->kind == "frame") {
      ASSERT_NE(causes.of(line, 1).at(0).find(" frame_sent "), std::string::npos) << line;
    }
    causes.add(line);
  }
  EXPECT_GT(count, 200u);
}

}  // namespace
}  // namespace rehearsal::sim
