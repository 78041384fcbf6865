#include <gtest/gtest.h>

#include <array>
#include <set>
#include <sstream>

#include "sim/oracles/quiet_oracle.h"
#include "sim/world/event_collector.h"
#include "sim/world/event_lines.h"
#include "sim/world/fingerprint.h"

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
    EventCollector recorder(queue, decisions);
    for (const Event& event : events) recorder.on_event(event, kLife, Incarnation{7});
    return to_hex(recorder.fingerprint().value());
  }
  EventQueue queue;
  KeyedDecisions decisions{Seed{1}, {}};
};

TEST(Fingerprint, KeepsACheckpointEvery1024Events) {
  Fingerprint fingerprint;
  for (uint64_t i = 0; i < 3000; ++i) fingerprint.fold(std::array<uint64_t, 2>{i, 0});
  EXPECT_EQ(fingerprint.checkpoints().size(), 2u);
  EXPECT_EQ(fingerprint.events(), 3000u);
  EXPECT_EQ(to_hex({0x0123456789abcdef, 0xfedcba9876543210}), "0123456789abcdeffedcba9876543210");
}

TEST(Fingerprint, EveryWordAndEachBitOfItCounts) {
  // Fold two events; change one bit of one word of the first: every print is another one. Where a
  // factor becomes zero, each differs at least from that of the words unchanged.
  const auto print_of = [](const std::array<uint64_t, 4>& words) {
    Fingerprint fingerprint;
    fingerprint.fold(words);
    fingerprint.fold(std::array<uint64_t, 2>{1, 2});
    return fingerprint.value();
  };
  const auto with_bit = [](std::array<uint64_t, 4> words, size_t bit) {
    words[bit / 64] ^= uint64_t{1} << (bit % 64);
    return words;
  };
  std::set<Hash128> prints{print_of({})};
  for (size_t bit = 0; bit < 256; ++bit) prints.insert(print_of(with_bit({}, bit)));
  EXPECT_EQ(prints.size(), 257u);
  for (const std::array<uint64_t, 4>& words :
       {std::array<uint64_t, 4>{0x9e3779b97f4a7c15ULL, 0, 3, 4},
        std::array<uint64_t, 4>{5, 0xd1b54a32d192ed03ULL, 6, 7}})
    for (size_t bit = 0; bit < 256; ++bit)
      EXPECT_NE(print_of(with_bit(words, bit)), print_of(words)) << bit;
}

// Goal: nothing of an event is left out of the fingerprint.
TEST_F(RecorderTest, EveryPartOfAnEventAndItsOrderChangeTheFingerprint) {
  const Event event = call(1, "add");
  std::vector<Event> changed(8, event);
  std::vector<std::string> texts;
  changed[0].kind = EventKind::mark;
  changed[1].peer = WorkerId{2};
  changed[2].id.ordinal = 2;
  changed[3].id.path.low = 3;
  changed[4].message_type = 1;
  changed[5].number = 1;
  changed[6].digest = 1;
  changed[7].text = "adds";
  // Texts of every length, and each letter of them.
  for (size_t size = 1; size < 20; ++size) {
    const std::string text(size, 'x');
    for (size_t at = 0; at < size; ++at) {
      texts.push_back(text);
      texts.back()[at] = 'y';
    }
    texts.push_back(text);
  }
  for (const std::string& text : texts) changed.push_back(call(1, text));
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
  EventCollector recorder(queue, decisions);
  Heard heard;
  recorder.add(heard);
  recorder.on_event(call(1, "one"), kLife, Incarnation{7});
  recorder.on_event({.kind = EventKind::call_executed, .worker = WorkerId{1}, .text = "two"}, kLife,
                    Incarnation{7});
  EXPECT_EQ(heard.texts, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(recorder.calls(), 1u);
}

class Watcher final : public QuietOracle {
 public:
  Watcher(EventKinds kinds, std::string& heard) : kinds_(kinds), heard_(heard) {}
  std::string_view name() const override { return "watcher"; }
  EventKinds watched() const override { return kinds_; }
  void on_event(const Observation& seen, Findings&) override {
    heard_ += std::to_string(static_cast<int>(seen.event.kind)) + letter + " ";
  }
  char letter = 'a';

 private:
  const EventKinds kinds_;
  std::string& heard_;
};

// Goal: an oracle is told of the kinds that it watches, all of them and no other; of one event the
// oracles hear in the order in which they were added. Method: every kind once, three oracles.
TEST_F(RecorderTest, AnOracleHearsOfTheKindsThatItWatches) {
  std::string heard;
  Watcher some({EventKind::frame, EventKind::mark}, heard);
  Watcher none({}, heard);
  Watcher all(EventKinds::all(), heard);
  all.letter = 'b';
  EventCollector recorder(queue, decisions);
  for (Watcher* watcher : {&some, &none, &all}) recorder.add(*watcher);
  std::string expected;
  for (size_t kind = 0; kind < kEventKinds; ++kind) {
    const Event event{.kind = static_cast<EventKind>(kind), .worker = WorkerId{1}};
    recorder.on_event(event, kLife, Incarnation{7});
    if (event.kind == EventKind::frame || event.kind == EventKind::mark)
      expected += std::to_string(kind) + "a ";
    expected += std::to_string(kind) + "b ";
  }
  EXPECT_EQ(heard, expected);
}

TEST_F(RecorderTest, AnEventLineNamesWhoWhatAndWhen) {
  std::ostringstream out;
  EventLines lines(out, {"ps", "trainer0"});
  EventCollector recorder(queue, decisions);
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
