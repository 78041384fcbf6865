#include "coverage/marks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rehearsal::coverage {
namespace {

Event mark(std::string_view name) { return {.kind = EventKind::mark, .text = name}; }

class Recorder final : public Trace {
 public:
  void on_event(const Event& event) override { kinds.push_back(event.kind); }

  std::vector<EventKind> kinds;
};

TEST(Marks, NothingIsReachedBeforeTheFirstEvent) {
  // Goal: an unknown name is no error, and is not reached. Method: ask a new object.
  const Marks marks;
  EXPECT_FALSE(marks.reached("response too late"));
  EXPECT_EQ(marks.count("response too late"), 0U);
  EXPECT_TRUE(marks.counts().empty());
}

TEST(Marks, EachMarkIsCountedUnderItsOwnName) {
  // Goal: counts are exact and apart. Method: one mark twice, another once.
  Marks marks;
  marks.on_event(mark("response too late"));
  marks.on_event(mark("duplicate dropped"));
  marks.on_event(mark("response too late"));
  EXPECT_EQ(marks.count("response too late"), 2U);
  EXPECT_EQ(marks.count("duplicate dropped"), 1U);
  EXPECT_FALSE(marks.reached("response"));
  EXPECT_EQ(marks.text(), "duplicate dropped 1\nresponse too late 2\n");
}

TEST(Marks, TheNameIsKeptAfterTheEventIsGone) {
  // Goal: an event's text lives only as long as the call. Method: destroy it before asking.
  Marks marks;
  {
    const std::string name = "a name too long to be stored inside the string object itself";
    marks.on_event(mark(name));
  }
  EXPECT_TRUE(marks.reached("a name too long to be stored inside the string object itself"));
}

TEST(Marks, OtherEventsAreNoMarksButArePassedOn) {
  // Goal: it can stand in front of any other trace. Method: three events, a recorder behind.
  Recorder recorder;
  Marks marks(&recorder);
  marks.on_event({.kind = EventKind::timer, .text = "heartbeat"});
  marks.on_event(mark("duplicate dropped"));
  marks.on_event({.kind = EventKind::frame});
  EXPECT_EQ(marks.text(), "duplicate dropped 1\n");
  EXPECT_EQ(recorder.kinds,
            (std::vector<EventKind>{EventKind::timer, EventKind::mark, EventKind::frame}));
}

TEST(Marks, RunsAddUp) {
  // Goal: what many seeds reached together. Method: two runs with one mark in common.
  Marks total;
  total.on_event(mark("duplicate dropped"));
  Marks run;
  run.on_event(mark("duplicate dropped"));
  run.on_event(mark("response too late"));
  total.add(run);
  EXPECT_EQ(total.text(), "duplicate dropped 2\nresponse too late 1\n");
  EXPECT_EQ(run.text(), "duplicate dropped 1\nresponse too late 1\n");
}

}  // namespace
}  // namespace rehearsal::coverage
