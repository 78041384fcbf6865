// The story of an ordinary exception: no fault is needed for it.
#include <gtest/gtest.h>

#include "sim/cluster.h"
#include "sim/explain/call_chain.h"
#include "sim/explain/story.h"
#include "sim/explain/text_diagram.h"
#include "tests/sim/explain/entries.h"
#include "tests/sim/explain/nested_program.h"

namespace rehearsal::sim {
namespace {

Chronicle nested_run() {
  History history;
  ClusterOptions options{.faults = FaultLevel::none};
  options.history = &history;
  const Program program = nested::program();
  static_cast<void>(Cluster(Seed{1}, program, options).try_run());
  return chronicle_of(history);
}

std::string at(int line) { return "nested_program.h:" + std::to_string(line); }

TEST(Thrown, TheDiagramShowsTheCallsThatLeadToTheThrow) {
  // Goal: main, call, nested call, throw and the way back, with values and source lines, and the
  // shutdown in one line. Method: a real run, every letter of it.
  EXPECT_EQ(
      text_diagram(nested_run(), {.title = "nested, seed 1", .failure = "main"}),
      "nested, seed 1\n"
      "    seconds  trainer  ps       store\n"
      "   0.000959  ●────────┼────────▶        Call 2 get(\"w\"), " +
          at(nested::kTrainerCalls - 1) +
          "\n"
          "   0.000959  │        │        ●        executes get\n"
          "   0.001124  ◀────────┼────────●        Response 3 (1)\n"
          "   0.001291  ●────────▶        │        Call 2 update(float[2]{1, 1}, \"bias\"), " +
          at(nested::kTrainerCalls) +
          "\n"
          "   0.001291  │        ●        │        executes update\n"
          "   0.001408  │        ●────────▶        Call 2 get(\"bias\"), " +
          at(nested::kPsCalls) +
          "\n"
          "   0.001408  │        │        ●        executes get\n"
          "   0.001408  │        │        !        throws std::out_of_range: map::at, " +
          at(nested::kThrows) +
          "\n"
          "   0.001474  │        ◀────────●        Response 2 (error: std::out_of_range: map::at)\n"
          "   0.001474  │        ●        │        sees its call fail\n"
          "   0.001474  │        !        │        throws again: std::out_of_range: map::at, "
          "nested_program.h:…\n"
          "   0.001598  ◀────────●        │        Response 3 (error: std::out_of_range: map::at)\n"
          "   0.001598  ●        │        │        sees its call fail\n"
          "   0.001598  !        │        │        fails here: throws again: std::out_of_range: "
          "map::at, neste…\n"
          "         …  │        │        │        … shutdown, 14 messages\n"
          "thrown at store, in get: std::out_of_range: map::at\n"
          "  at look_up, " +
          at(nested::kThrows) + "\n  at get, " + at(nested::kThrows + 5) +
          "\nthen at ps, in update\n  at update, " + at(nested::kPsCalls) +
          "\nthen at trainer\n  at trainer, " + at(nested::kTrainerCalls) +
          "\n(95 events are left out)\n");
}

TEST(Thrown, TheChainGoesFromTheMainToTheThrowAndBack) {
  const Chronicle chronicle = nested_run();
  const CallChain chain = call_chain(chronicle);
  std::vector<std::string> steps;
  for (const size_t moment : chain.moments)
    steps.push_back(place_of(chronicle, chronicle.moments[moment]) + " " +
                    std::string(name_of(chronicle.moments[moment])));
  EXPECT_EQ(steps, (std::vector<std::string>{"trainer frame_sent", "ps frame_sent", "store thrown",
                                             "store frame_sent", "ps thrown", "ps frame_sent",
                                             "trainer thrown"}));
  ASSERT_TRUE(chain.origin);
  EXPECT_EQ(place_of(chronicle, chronicle.moments[*chain.origin]), "store");
  EXPECT_EQ(chronicle.failed_at, chain.moments.back());
}

TEST(Thrown, OfAnotherFailureTheChainIsTheCallsThatLedThere) {
  // Goal: an oracle's finding in a nested call has its callers. Method: a message of a call that a
  // main has made.
  HandMade made({"ps", "trainer"});
  made.event(EventKind::execution_started, 1, "00000001#0", "trainer");
  made.add({.event = EventKind::api_call,
            .worker = 1,
            .peer = 0,
            .id = "00000002#0",
            .text = "add",
            .parent = "00000001#0"});
  made.send(1, 0, 7, "00000002#0").take(0, 1, 7, "00000002#0");
  made.add({.kind = EntryKind::failed, .text = "at-most-once"});
  const CallChain chain = call_chain(chronicle_of(made.history));
  EXPECT_EQ(chain.moments, (std::vector<size_t>{2, 3}));
  EXPECT_FALSE(chain.origin);
  EXPECT_TRUE(thrown_lines(chronicle_of(made.history), 5).empty());
}

TEST(Thrown, ARunThatHoldsHasNoChain) {
  EXPECT_TRUE(call_chain(chronicle_of(HandMade({"a"}).history)).moments.empty());
}

}  // namespace
}  // namespace rehearsal::sim
