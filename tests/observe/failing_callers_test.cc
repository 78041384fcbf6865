#include "observe/log/failing_callers.h"

#include <gtest/gtest.h>

#include <sstream>

namespace rehearsal::observe {
namespace {

class FailingCallersTest : public testing::Test {
 protected:
  void call(uint64_t number) {
    const CausalId id{Incarnation{1}, {}, next_++};
    failing_.on_event({.kind = EventKind::api_call, .peer = WorkerId{1}, .id = id, .text = "one"});
    failing_.on_event(
        {.kind = EventKind::call_completed, .peer = WorkerId{1}, .id = id, .number = number});
  }
  void fail(uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) call(1 + static_cast<uint64_t>(ErrorKind::peer_lost));
  }
  // The lines written so far, without what is before the event.
  std::vector<std::string> told() const {
    std::vector<std::string> found;
    std::istringstream stream(text_.str());
    for (std::string line; std::getline(stream, line);)
      found.push_back(line.substr(line.find(" event=") + 7));
    return found;
  }

  std::ostringstream text_;
  Log log_{LogLevel::warn, "trainer", text_};
  FailingCallers failing_{log_, {"trainer", "ps"}};
  uint64_t next_ = 0;
};

TEST_F(FailingCallersTest, WhoeverTriesAgainInVainIsToldOfOnce) {
  // Goal: one line with function, worker, error and cause, however long it goes on. Method: ten
  // times as many failures as are told of.
  failing_.on_event(
      {.kind = EventKind::peer_fenced, .peer = WorkerId{1}, .text = "worker 'ps' was lost"});
  fail(FailingCallers::kTimes - 1);
  EXPECT_TRUE(told().empty());
  fail(9 * FailingCallers::kTimes);
  ASSERT_EQ(told().size(), 1u);
  EXPECT_EQ(told().front().find("calls_fail function=one peer=ps times=1000 error=peer_lost "
                                "why=\"worker 'ps' was lost\" hint="),
            0u)
      << told().front();
}

TEST_F(FailingCallersTest, AValueBeginsANewCount) {
  // Goal: who fails now and then is not told of.
  for (int i = 0; i < 5; ++i) {
    fail(FailingCallers::kTimes - 1);
    call(0);
  }
  EXPECT_TRUE(told().empty());
  fail(FailingCallers::kTimes);
  EXPECT_EQ(told().size(), 1u);
}

}  // namespace
}  // namespace rehearsal::observe
