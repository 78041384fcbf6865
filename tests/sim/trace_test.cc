#include <gtest/gtest.h>

#include <sstream>

#include "sim/event_lines.h"
#include "sim/fingerprint.h"
#include "sim/recorder.h"

namespace rehearsal::sim {
namespace {

constexpr LifeId kLife{WorkerId{1}, 0};

class Heard final : public Trace {
 public:
  void on_event(const Event& event) override { texts.emplace_back(event.text); }
  std::vector<std::string> texts;
};

Event call(uint64_t ordinal, std::string_view text) {
  return {.kind = EventKind::api_call,
          .worker = WorkerId{1},
          .peer = WorkerId{0},
          .id = {{7}, {0x123456789abcdef0, 2}, ordinal},
          .text = text};
}

class RecorderTest : public testing::Test {
 protected:
  std::string fingerprint_of(const std::vector<Event>& events) {
    Recorder recorder(queue, decisions);
    for (const Event& event : events) recorder.on_event(event, kLife, Incarnation{7});
    return to_hex(recorder.fingerprint().value());
  }
  EventQueue queue;
  KeyedDecisions decisions{Seed{1}, {}};
};

TEST(Fingerprint, KeepsACheckpointEvery1024Events) {
  Fingerprint fingerprint;
  for (uint64_t i = 0; i < 3000; ++i) fingerprint.fold(&i, sizeof i);
  EXPECT_EQ(fingerprint.checkpoints().size(), 2u);
  EXPECT_EQ(fingerprint.events(), 3000u);
  EXPECT_EQ(to_hex({0x0123456789abcdef, 0xfedcba9876543210}), "0123456789abcdeffedcba9876543210");
}

// Goal: nothing of an event is left out of the fingerprint.
TEST_F(RecorderTest, EveryPartOfAnEventAndItsOrderChangeTheFingerprint) {
  const Event event = call(1, "add");
  std::vector<Event> changed(8, event);
  changed[0].kind = EventKind::mark;
  changed[1].peer = WorkerId{2};
  changed[2].id.ordinal = 2;
  changed[3].id.path.low = 3;
  changed[4].message_type = 1;
  changed[5].number = 1;
  changed[6].digest = 1;
  changed[7].text = "adds";
  std::vector<std::string> prints{fingerprint_of({event}), fingerprint_of({event, changed[2]}),
                                  fingerprint_of({changed[2], event})};
  for (const Event& other : changed) prints.push_back(fingerprint_of({other}));
  queue.move_to(Instant{Duration{1}});
  prints.push_back(fingerprint_of({event}));
  (void)decisions.choose({}, 2);
  prints.push_back(fingerprint_of({event}));
  std::sort(prints.begin(), prints.end());
  EXPECT_EQ(std::unique(prints.begin(), prints.end()), prints.end());
}

TEST_F(RecorderTest, TracesHearEveryEvent) {
  Recorder recorder(queue, decisions);
  Heard heard;
  recorder.add(heard);
  recorder.on_event(call(1, "one"), kLife, Incarnation{7});
  recorder.on_event({.kind = EventKind::call_executed, .worker = WorkerId{1}, .text = "two"}, kLife,
                    Incarnation{7});
  EXPECT_EQ(heard.texts, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(recorder.calls(), 1u);
}

TEST_F(RecorderTest, AnEventLineNamesWhoWhatAndWhen) {
  std::ostringstream out;
  EventLines lines(out, {"ps", "trainer0"});
  Recorder recorder(queue, decisions);
  recorder.set_lines(&lines);
  queue.move_to(Instant{std::chrono::microseconds(1'500'007)});
  recorder.on_event(call(3, "add\nmore"), kLife, Incarnation{7});
  const std::string print = to_hex(recorder.fingerprint().value());
  EXPECT_EQ(out.str(), "1 1.500007000 trainer0.0 api_call peer=ps id=12345678#3 \"add more\" " +
                           print.substr(24) + "\n");
}

TEST(EventLines, TheFirstDifferenceIsFound) {
  const auto compare = [](const char* one, const char* other) {
    std::istringstream first(one);
    std::istringstream second(other);
    return first_difference(first, second);
  };
  EXPECT_FALSE(compare("a\nb\n", "a\nb\n"));
  const auto changed = compare("a\nb\nc\n", "a\nx\nc\n");
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->line, 2u);
  EXPECT_EQ(changed->first, "b");
  EXPECT_EQ(changed->second, "x");
  const auto shorter = compare("a\n", "a\nb\n");
  ASSERT_TRUE(shorter);
  EXPECT_EQ(shorter->first, "");
  EXPECT_EQ(shorter->second, "b");
}

}  // namespace
}  // namespace rehearsal::sim
