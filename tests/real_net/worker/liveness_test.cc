#include "real_net/worker/liveness.h"

#include <gtest/gtest.h>

#include <map>

namespace rehearsal::real {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

std::string complaint(const LivenessOptions& options,
                      std::map<std::string, std::string> variables = {}) {
  Result<NodeOptions> made = with_liveness({}, options, environment_of(std::move(variables)));
  if (made.ok()) return "";
  EXPECT_EQ(made.error().kind, ErrorKind::bad_arguments);
  EXPECT_TRUE(made.error().worker.empty());
  return made.error().text;
}

TEST(Liveness, ATimeIsANumberWithItsUnit) {
  EXPECT_EQ(parse_duration("60us"), std::chrono::microseconds(60));
  EXPECT_EQ(parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(parse_duration("10s"), seconds(10));
  EXPECT_EQ(parse_duration("2m"), minutes(2));
  EXPECT_EQ(parse_duration("24h"), hours(24));
  EXPECT_EQ(parse_duration("0"), Duration::zero());
  for (const char* wrong : {"", "10", "s", "-1s", "1.5s", "10 s", "10sec", "25h", "9999999999999h"})
    EXPECT_FALSE(parse_duration(wrong)) << wrong;
}

TEST(Liveness, FlagsWinOverVariablesAndVariablesOverTheDefaults) {
  const Environment environment = environment_of({{"REHEARSAL_PEER_TIMEOUT", "20s"},
                                                  {"REHEARSAL_HEARTBEAT", "1s"},
                                                  {"REHEARSAL_REFUSAL_LIMIT", "0"}});
  NodeOptions node = with_liveness({}, {.heartbeat = "2s"}, environment).or_throw();
  EXPECT_EQ(node.peer_timeout, seconds(20));
  EXPECT_EQ(node.heartbeat, seconds(2));
  EXPECT_EQ(node.refusal_limit, Duration::zero());
  node = with_liveness({}, {}, environment_of({})).or_throw();
  EXPECT_EQ(node.peer_timeout, NodeOptions{}.peer_timeout);
  EXPECT_EQ(node.refusal_limit, milliseconds(1500));
}

TEST(Liveness, AShorterSilenceAloneMakesTheHeartbeatFit) {
  const NodeOptions node = with_liveness({}, {.peer_timeout = "6s"}, environment_of({})).or_throw();
  EXPECT_EQ(node.peer_timeout, seconds(6));
  EXPECT_EQ(node.heartbeat, seconds(1));
}

TEST(Liveness, AHeartbeatThatNobodyAskedForHereIsNoMistake) {
  // Goal: a program that makes the silence alone shorter starts; its heartbeats follow by
  // themselves.
  const NodeOptions of_program{.peer_timeout = seconds(4)};
  const NodeOptions node = with_liveness(of_program, {}, environment_of({})).or_throw();
  EXPECT_EQ(node.peer_timeout, seconds(4));
  EXPECT_EQ(node.heartbeat, seconds(5));
}

TEST(Liveness, WhatCannotBeIsSaidInOneLine) {
  EXPECT_EQ(complaint({.peer_timeout = "soon"}),
            "--peer-timeout soon: type a time, for example 500ms, 10s or 2m");
  EXPECT_EQ(complaint({}, {{"REHEARSAL_HEARTBEAT", "5"}}),
            "REHEARSAL_HEARTBEAT=5: type a time, for example 500ms, 10s or 2m");
  EXPECT_EQ(complaint({.heartbeat = "0"}), "--heartbeat 0: it must be at least 1ms");
  EXPECT_EQ(complaint({.peer_timeout = "4s", .heartbeat = "3s"}),
            "a heartbeat every 3000ms and a peer time-out of 4000ms: a worker that is well would "
            "be taken for dead; the heartbeat is at most half of the time-out");
}

}  // namespace
}  // namespace rehearsal::real
