#include "observe/log/slow_executions.h"

#include <gtest/gtest.h>

#include <sstream>

namespace rehearsal::observe {
namespace {

using namespace std::chrono_literals;

class SlowExecutionsTest : public testing::Test {
 protected:
  void see(EventKind kind, uint64_t ordinal, const char* label) {
    slow_.on_event({.kind = kind,
                    .worker = WorkerId{0},
                    .id = {.incarnation = Incarnation{1}, .path = {}, .ordinal = ordinal},
                    .text = label});
  }
  void start(uint64_t ordinal, const char* label) {
    see(EventKind::execution_started, ordinal, label);
  }
  void park_with(uint64_t ordinal, const char* label, const char* object) {
    slow_.on_event({.kind = EventKind::execution_parked,
                    .worker = WorkerId{0},
                    .id = {.incarnation = Incarnation{1}, .path = {}, .ordinal = ordinal},
                    .number = 1,
                    .text = label,
                    .value = object});
  }
  void look_at(Duration seconds) { slow_.look(Instant{} + seconds); }
  // The lines written since the last call, without the time.
  std::vector<std::string> lines() {
    std::vector<std::string> found;
    std::istringstream stream(text_.str());
    text_.str("");
    for (std::string line; std::getline(stream, line);)
      found.push_back(line.substr(line.find(" event=") + 7));
    return found;
  }

  std::ostringstream text_;
  Log log_{LogLevel::warn, "ps", text_};
  SlowExecutions slow_{log_, "ps", 5s};
};

constexpr const char* kHint =
    " hint=\"it has not waited for anything: it computes, loops, or waits for a lock that another "
    "function holds across a call\"";

TEST_F(SlowExecutionsTest, AFunctionThatRunsForLongIsToldOfOnceAndAgainWhenItEnds) {
  // Goal: two lines, however long it takes. Method: looks each second, past the limit.
  start(1, "read");
  for (int second = 1; second <= 5; ++second) look_at(std::chrono::seconds(second));
  EXPECT_EQ(lines(), std::vector<std::string>{});
  EXPECT_EQ(slow_.count(), 0u);
  look_at(6s);
  EXPECT_EQ(lines(),
            std::vector<std::string>{"runs_long what=read for_seconds=5" + std::string(kHint)});
  EXPECT_EQ(slow_.count(), 1u);
  look_at(30s);
  EXPECT_EQ(lines(), std::vector<std::string>{});
  see(EventKind::execution_ended, 1, "read");
  EXPECT_EQ(lines(), std::vector<std::string>{"ran_long what=read for_seconds=29"});
  EXPECT_EQ(slow_.count(), 0u);
}

TEST_F(SlowExecutionsTest, AWaitBeginsAnewAndOneThatWaitsIsNotSlow) {
  // Goal: only what keeps its thread is told of. Method: a function that parks before the limit,
  // stays parked for long, and is resumed.
  start(1, "read");
  look_at(1s);
  see(EventKind::execution_parked, 1, "read");
  look_at(60s);
  see(EventKind::execution_resumed, 1, "read");
  look_at(61s);
  look_at(65s);
  EXPECT_EQ(lines(), std::vector<std::string>{});
  look_at(66s);
  EXPECT_EQ(lines().size(), 1u);
  see(EventKind::execution_parked, 1, "read");
  EXPECT_EQ(lines(), std::vector<std::string>{"ran_long what=read for_seconds=5"});
}

TEST_F(SlowExecutionsTest, WhoeverKeepsAMonitorWhileItWaitsIsToldOf) {
  // Goal: others wait for the object, and nothing else would say for whom. Method: a function that
  // parks twice with its monitor, then without; another one keeps none.
  start(1, "move");
  start(2, "read");
  park_with(1, "move", "the worker's state");
  see(EventKind::execution_parked, 2, "read");
  look_at(1s);
  see(EventKind::execution_resumed, 1, "move");
  look_at(3s);
  park_with(1, "move", "the worker's state");
  look_at(5s);
  EXPECT_EQ(lines(), std::vector<std::string>{});
  look_at(6s);
  EXPECT_EQ(lines(), std::vector<std::string>{
                         "holds_long what=move object=\"the worker's state\" for_seconds=5 "
                         "hint=\"it waits while no other function gets at the object\""});
  EXPECT_EQ(slow_.count(), 1u);
  look_at(7s);
  see(EventKind::execution_resumed, 1, "move");
  see(EventKind::execution_parked, 1, "move");
  EXPECT_EQ(lines(), std::vector<std::string>{
                         "held_long what=move object=\"the worker's state\" for_seconds=6"});
  look_at(60s);
  EXPECT_EQ(lines(), std::vector<std::string>{});
  EXPECT_EQ(slow_.count(), 0u);
}

TEST_F(SlowExecutionsTest, OneThatRunsAgainIsNotSaidToKeepAnything) {
  // Goal: between two waits it may have left the monitor. Method: it is looked at while it runs,
  // for less long than what runs for long.
  start(1, "move");
  park_with(1, "move", "the worker's state");
  look_at(1s);
  look_at(4s);
  see(EventKind::execution_resumed, 1, "move");
  look_at(5s);
  look_at(7s);
  EXPECT_EQ(lines(), std::vector<std::string>{});
  see(EventKind::execution_ended, 1, "move");
  EXPECT_EQ(lines(), std::vector<std::string>{});
}

TEST_F(SlowExecutionsTest, AMainMayComputeForAMinute) {
  // Goal: a training loop between two calls is no news. Method: both sides of its limit.
  start(0, "ps");
  look_at(1s);
  look_at(60s);
  EXPECT_EQ(lines(), std::vector<std::string>{});
  look_at(61s);
  EXPECT_EQ(lines(),
            std::vector<std::string>{"runs_long what=ps for_seconds=60" + std::string(kHint)});
}

TEST_F(SlowExecutionsTest, SeveralAreToldOfInTheOrderOfTheirAge) {
  // Goal: the same text whatever the order of a hash table. Method: three, two of one age.
  start(1, "later");
  start(2, "earlier");
  look_at(1s);
  start(3, "young");
  look_at(6s);
  const std::vector<std::string> told = lines();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].substr(0, 22), "runs_long what=earlier");
  EXPECT_EQ(told[1].substr(0, 20), "runs_long what=later");
}

}  // namespace
}  // namespace rehearsal::observe
