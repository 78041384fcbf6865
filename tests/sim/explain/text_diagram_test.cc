#include "sim/explain/text_diagram.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/sim/explain/entries.h"

namespace rehearsal::sim {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

size_t letters_of(const std::string& line) {
  size_t letters = 0;
  for (const char byte : line) letters += (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
  return letters;
}

TEST(Ids, AreFoundInTheTextOfAFailure) {
  EXPECT_EQ(ids_in("frame 10 of worker 0 with 5f19dbb7#2, and 50de200c#10; no #5 nor 12#3"),
            (std::vector<std::string>{"50de200c#10", "5f19dbb7#2"}));
  EXPECT_TRUE(ids_in("").empty());
  EXPECT_TRUE(ids_in("5f19dbb7#").empty());
}

TEST(TextDiagram, ShowsMessagesBreaksCrashesAndWhereItFails) {
  // Goal: every sign of the picture, exactly. Method: a run made by hand.
  HandMade made({"ps", "trainer0", "trainer1"});
  made.at(100).send(1, 0, 1, "0000000a#1").at(200).take(0, 1, 1, "0000000a#1");
  made.at(300).send(2, 0, 1, "0000000a#2");
  made.add({.kind = EntryKind::decision, .text = "cut:2.0>0.0#1.0=9"});
  made.add({.kind = EntryKind::broken, .worker = 0, .peer = 2, .text = "reset"});
  made.at(400).travel(2, 0, 1, 1);
  made.at(450).add({.kind = EntryKind::crash, .worker = 1});
  made.at(500).take(0, 2, 1, "0000000a#2");
  made.at(600).add({.kind = EntryKind::restart, .worker = 1, .life = 1});
  made.at(700).event(EventKind::owner_dropped, 0, "0000000a#2");
  made.add({.kind = EntryKind::failed, .text = "rref conservation"});
  const Chronicle chronicle = chronicle_of(made.history);
  const Subject subject{.title = "toy, seed 7", .failure = "rref: 0000000a#2 is gone"};
  EXPECT_EQ(text_diagram(chronicle, subject),
            "toy, seed 7\n"
            "    seconds  ps        trainer0  trainer1\n"
            "   0.000200  ◀─────────●         │         Call 1 add(3) [0000000a#1]\n"
            "   0.000300  │ ×───────┼─────────●         sends Call 1 add(3) to ps [0000000a#2], "
            "lost\n"
            "   0.000300  │         │         │         decision cut:2.0>0.0#1.0=9\n"
            "   0.000300  ×╌╌╌╌╌╌╌╌╌┼╌╌╌╌╌╌╌╌╌×         ps and trainer1 lose their connection: "
            "reset\n"
            "   0.000450  │         #         │         crashes\n"
            "   0.000500  ◀───────────────────●         Call 1 add(3) again [0000000a#2]\n"
            "   0.000600  │         ^         │         starts again\n"
            "   0.000700  !         │         │         fails here: drops its value "
            "[0000000a#2]\n");
}

TEST(TextDiagram, MarksTheCriticalPairAndSplitsAMessageThatIsOvertaken) {
  HandMade made({"a", "b"});
  made.at(1).send(0, 1, 1, "0000000a#1").at(2).send(1, 0, 1, "0000000a#2");
  made.at(3).take(0, 1, 1, "0000000a#2").at(4).take(1, 0, 1, "0000000a#1");
  const Chronicle chronicle = chronicle_of(made.history);
  const Subject subject{.title = "t",
                        .failure = "x: 0000000a#1",
                        .critical = CriticalPair{.first = 2, .second = 3, .verdict = "it decides"}};
  EXPECT_EQ(text_diagram(chronicle, subject),
            "t\n"
            "    seconds  a       b\n"
            "   0.000001  ●╌╌▷    │       sends Call 1 add(3) to b [0000000a#1]\n"
            "   0.000003  A───────●       Call 1 add(3) [0000000a#2]\n"
            "   0.000004  │    ╌╌▶B       takes Call 1 add(3) from a [0000000a#1]\n"
            "it decides\n"
            "  A: it takes Call 1 add(3) from b [0000000a#2]\n"
            "  B: it takes Call 1 add(3) from a [0000000a#1]\n");
}

TEST(TextDiagram, TheShutdownIsOneLineAndIdsAreShownIfTheFailureNamesOne) {
  HandMade made({"ps", "trainer"});
  made.at(100).event(EventKind::execution_started, 1, "0000000a#0", "trainer");
  made.at(200).send(1, 0, 1, "0000000a#1").take(0, 1, 1, "0000000a#1");
  made.at(300).event(EventKind::call_executed, 0, "0000000a#1", "add");
  made.at(400).add({.kind = EntryKind::thrown,
                    .worker = 1,
                    .id = "0000000a#0",
                    .text = "no",
                    .detail = "trainer"});
  made.at(500).event(EventKind::execution_ended, 1, "0000000a#0", "trainer");
  made.at(600).send(1, 0, 2, "", kResponse).take(0, 1, 2, "", kResponse).send(0, 1, 1);
  made.add({.kind = EntryKind::failed, .worker = 1, .text = "main"});
  const Chronicle chronicle = chronicle_of(made.history);
  EXPECT_EQ(text_diagram(chronicle, {.title = "t", .failure = "main: worker 'trainer': no"}),
            "t\n"
            "    seconds  ps       trainer\n"
            "   0.000200  ◀────────●        Call 1 add(3)\n"
            "   0.000400  │        !        fails here: throws no\n"
            "         …  │        │        … shutdown, 2 messages\n"
            "thrown at trainer: no\n"
            "(6 events are left out)\n");
}

TEST(TextDiagram, TheMessagesOfABackwardPassHaveArrowsOfTheirOwn) {
  // Goal: gradients, marks and waves differ from calls and from each other. Method: a pass made by
  // hand, whose arrows cross a worker, are split, and are lost.
  HandMade made({"ps", "relay", "trainer"});
  made.at(100).send(2, 0, 1).at(150).take(0, 2, 1);
  made.at(200).send(2, 0, 2, "", kMarks).at(250).take(0, 2, 2, "", kMarks);
  made.at(300).send(0, 2, 1, "", kMarksAnswered).at(350).take(2, 0, 1, "", kMarksAnswered);
  made.at(400).send(2, 0, 3, "", kGradients).at(450).send(0, 2, 2, "", kGradientsAnswered);
  made.at(500).take(0, 2, 3, "", kGradients).at(550).take(2, 0, 2, "", kGradientsAnswered);
  made.at(600).send(2, 0, 4, "", kPassFinish).at(650).take(0, 2, 4, "", kPassFinish);
  made.at(700).send(0, 2, 3, "", kPassFinished);
  made.add({.kind = EntryKind::broken, .worker = 0, .peer = 2, .text = "reset"});
  made.add({.kind = EntryKind::failed, .text = "completion"});
  EXPECT_EQ(
      text_diagram(chronicle_of(made.history), {.title = "t", .failure = "completion"}),
      "t\n"
      "    seconds  ps       relay    trainer\n"
      "   0.000150  ◀────────┼────────●        Call 1 add(3)\n"
      "   0.000250  ◀········┼········●        Marks 2\n"
      "   0.000350  ●········┼········▶        MarksAnswered 1\n"
      "   0.000450  ●══▷     │        │        sends GradientsAnswered 2 to trainer\n"
      "   0.000500  ◀════════╪════════●        Gradients 3\n"
      "   0.000550  │        │     ══▶●        takes GradientsAnswered 2 from ps\n"
      "   0.000650  ◀~~~~~~~~┼~~~~~~~~●        PassFinish 4\n"
      "   0.000700  ●~~~~~~~~┼~~~~~~× │        sends PassFinished 3 to trainer, lost\n"
      "   0.000700  !╌╌╌╌╌╌╌╌┼╌╌╌╌╌╌╌╌×        fails here: ps and trainer lose their connection: "
      "reset\n"
      "(in a backward pass: ═ gradients, · marks, ~ waves over workers)\n");
}

TEST(TextDiagram, IsNeverLargerThanItsSize) {
  // Goal: a long run with many workers still fits. Method: 12 workers, thousands of messages, long
  // names and ids that the failure names.
  std::vector<std::string> names;
  for (int i = 0; i < 12; ++i) names.push_back("observer_with_a_long_name" + std::to_string(i));
  HandMade made(names);
  for (uint32_t i = 0; i < 4000; ++i) {
    made.at(i).send(i % 12, (i * 5 + 1) % 12, i + 1, "0000000a#" + std::to_string(i % 7));
    if (i % 3 == 0) made.take((i * 5 + 1) % 12, i % 12, i + 1);
    if (i % 500 == 0) made.add({.kind = EntryKind::broken, .worker = 0, .peer = 3, .text = "x"});
  }
  made.add({.kind = EntryKind::failed, .text = "completion"});
  const Chronicle chronicle = chronicle_of(made.history);
  const Subject subject{
      .title = std::string(300, 't'),
      .failure = "call 0000000a#3, 0000000a#4",
      .critical = CriticalPair{.first = 5, .second = {}, .second_text = std::string(200, 'x')}};
  const std::vector<std::string> lines = lines_of(text_diagram(chronicle, subject));
  EXPECT_LE(lines.size(), 40u);
  EXPECT_GT(lines.size(), 30u);
  for (const std::string& line : lines) EXPECT_LE(letters_of(line), 100u) << line;
  EXPECT_NE(lines.back().find("events are left out, and 4 workers"), std::string::npos);
  EXPECT_LE(lines_of(text_diagram(chronicle, subject, {.lines = 12, .columns = 90})).size(), 12u);
}

TEST(TextDiagram, ARunWithoutEventsIsOnlyAHead) {
  EXPECT_EQ(
      text_diagram(chronicle_of(HandMade({"a"}).history), {.title = "t", .notes = {"n", "  m"}}),
      "t\n    seconds  a\nn\n  m\n");
}

}  // namespace
}  // namespace rehearsal::sim
