#include "sim/oracles/wait_graph.h"

#include <gtest/gtest.h>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "sim/cluster.h"

namespace rehearsal::sim {
namespace {

using Stack = WaitViews::Stack;
using UnansweredCall = WaitViews::UnansweredCall;

constexpr WorkerId kFirst{0};
constexpr WorkerId kSecond{1};
constexpr Hash128 kMain{1, 2};

CausalId id(const Hash128& path, uint64_t ordinal) { return {{11}, path, ordinal}; }

// The first worker's main waits for a call that the second serves.
std::vector<NodeWaits> served_call() {
  const CausalId call = id(kMain, 4);
  return {{kFirst, "first", {{{kMain, "first", "add", call}}, {{call, kSecond, "add"}}, ""}},
          {kSecond, "second", {{{call.execution_path(), "add", "a future", {}}}, {}, ""}}};
}

TEST(WaitGraph, LeadsFromAStackThroughItsCallToTheStackThatServesIt) {
  // Goal: who waits for whom. Method: one edge, and its end, which waits for nothing that is known.
  EXPECT_EQ(
      describe_wait_graph(served_call()),
      "  first:\n"
      "    main waits for add 00000000#4: call 00000000#4 of add, which add at second serves\n"
      "  second:\n"
      "    add waits for a future\n");
}

TEST(WaitGraph, NamesACycle) {
  // Goal: nobody in it can go on. Method: what the second serves waits for a call of its own, and
  // that one for the future of the first call.
  std::vector<NodeWaits> nodes = served_call();
  const CausalId first_call = id(kMain, 4);
  const Hash128 add = first_call.execution_path();
  const CausalId second_call = id(add, 0);
  nodes[1].views = {{{add, "add", "ask", second_call}}, {{second_call, kFirst, "ask"}}, ""};
  nodes[0].views.stacks.push_back({second_call.execution_path(), "ask", "a future", first_call});
  const std::string text = describe_wait_graph(nodes);
  EXPECT_NE(text.find("  a cycle: ask at first -> add at second -> ask at first\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("a cycle"), text.rfind("a cycle")) << text;
}

// The first worker's main holds a mutex and waits for a call, which the second serves; that waits
// for a call in turn, whose function waits for the mutex.
std::vector<NodeWaits> locked_across_calls() {
  std::vector<NodeWaits> nodes = served_call();
  const CausalId second_call = id(id(kMain, 4).execution_path(), 0);
  nodes[1].views = {
      {{second_call.path, "add", "ask", second_call}}, {{second_call, kFirst, "ask"}}, ""};
  Stack ask{second_call.execution_path(), "ask", "a mutex", {}};
  ask.holder = kMain;
  nodes[0].views.stacks.push_back(ask);
  return nodes;
}

std::string deadlocked(const std::vector<NodeWaits>& nodes) {
  std::string names;
  for (const Deadlocked& stack : deadlock_in(nodes)) names += stack.who + ", ";
  return names;
}

TEST(WaitGraph, ADeadlockIsACycleOfWhichAllIsKnown) {
  // Goal: no false alarm. Method: one with a mutex in it; then each way in which a stack of it may
  // go on all the same.
  const std::vector<NodeWaits> nodes = locked_across_calls();
  EXPECT_EQ(deadlocked(nodes), "main at first, add at second, ask at first, ");
  std::vector<NodeWaits> timed = nodes;
  timed[0].views.stacks.back().timed = true;
  EXPECT_EQ(deadlocked(timed), "");
  std::vector<NodeWaits> waits_for_several = nodes;
  waits_for_several[1].views.stacks.front().id = {};
  EXPECT_EQ(deadlocked(waits_for_several), "");
  std::vector<NodeWaits> held_by_a_running_one = nodes;
  held_by_a_running_one[0].views.stacks.back().holder = Hash128{9, 9};
  EXPECT_EQ(deadlocked(held_by_a_running_one), "");
  std::vector<NodeWaits> answered = nodes;
  answered[1].views.calls.clear();
  EXPECT_EQ(deadlocked(answered), "");
}

TEST(WaitGraph, SaysWhatNobodyServesAndWhatNobodyIsParkedFor) {
  // Goal: a lost call is seen. Method: a call without a stack at its callee, and one that no stack
  // waits for, at a worker that is gone.
  const CausalId call = id(kMain, 4);
  const CausalId other = id(Hash128{7, 7}, 1);
  const std::vector<NodeWaits> nodes = {{kFirst,
                                         "first",
                                         {{{kMain, "first", "add", call}},
                                          {{call, kSecond, "add"}, {other, WorkerId{2}, "push"}},
                                          "shutdown: it waits for 'second'\n"}},
                                        {kSecond, "second", {}}};
  EXPECT_EQ(describe_wait_graph(nodes),
            "  first:\n"
            "    main waits for add 00000000#4: call 00000000#4 of add, which nothing parked at "
            "second serves\n"
            "    call 00000000#1 of push at a worker that has ended has no answer\n"
            "    shutdown: it waits for 'second'\n"
            "  second:\n");
}

TEST(WaitGraph, AWaitForSeveralFuturesHasTheCallsOfItsExecution) {
  // Goal: no edge is lost where the wait has no name. Method: two calls, no id.
  const CausalId one = id(kMain, 1);
  const CausalId two = id(kMain, 2);
  const std::vector<NodeWaits> nodes = {
      {kFirst,
       "first",
       {{{kMain, "first", "a future", {}}}, {{one, kSecond, "f"}, {two, kSecond, "g"}}, ""}},
      {kSecond, "second", {{{two.execution_path(), "g", "a future", {}}}, {}, ""}}};
  EXPECT_NE(describe_wait_graph(nodes).find(
                "call 00000000#1 of f, which nothing parked at second serves; "
                "call 00000000#2 of g, which g at second serves\n"),
            std::string::npos)
      << describe_wait_graph(nodes);
}

// A desk at the first worker waits for the answer to a question that the second can only answer
// when the desk has spoken.
struct Desk {
  int64_t speak() const { return answer.wait(); }
  Future<int64_t> answer;
};

int64_t ask(const RRef<Desk>& desk) { return desk.rpc_sync(&Desk::speak); }

TEST(WaitGraph, OfAClusterThatIsDeadlockedNamesTheCycle) {
  // Goal: a user's deadlock across two workers is told as one. Method: without timeouts, until
  // nothing will ever happen.
  FunctionRegistry registry;
  registry.function("ask", &ask);
  registry.type<Desk>("Desk").method("speak", &Desk::speak);
  Program program(std::move(registry));
  program.worker("first", [](Worker& worker) {
    const RRef<Desk> desk = worker.rref(Desk{});
    const Future<int64_t> later = worker.rpc_async("second", &ask, desk);
    desk.with_local([&later](Desk& mine) { mine.answer = later; });
    (void)later.wait();
  });
  program.worker("second", [](Worker&) {});
  ClusterOptions options{.faults = FaultLevel::none, .storm = std::chrono::seconds(1)};
  options.adjust_node = [](NodeOptions& node) { node.rpc_timeout = Duration::zero(); };
  Cluster cluster(Seed{1}, program, options);
  const RunReport& report = cluster.try_run();
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->oracle, "progress");
  const std::string& text = report.failure->message;
  EXPECT_NE(text.find("  first:\n    main waits for a future "), std::string::npos) << text;
  EXPECT_NE(text.find("of ask, which ask at second serves"), std::string::npos) << text;
  EXPECT_NE(text.find("of Desk.speak, which Desk.speak at first serves"), std::string::npos)
      << text;
  EXPECT_NE(text.find("a cycle: Desk.speak at first -> ask at second -> Desk.speak at first\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace rehearsal::sim
