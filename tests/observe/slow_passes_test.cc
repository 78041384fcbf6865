#include "observe/log/slow_passes.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/base/ids.h"

namespace rehearsal::observe {
namespace {

using namespace std::chrono_literals;

constexpr WorkerId kPs{0};
constexpr WorkerId kTrainer{1};

class SlowPassesTest : public testing::Test {
 protected:
  static CausalId context(uint64_t ordinal) { return {Incarnation{1}, {}, ordinal}; }
  void see(EventKind kind, uint64_t ordinal, uint64_t epoch, WorkerId starter = kTrainer) {
    slow_.on_event(
        {.kind = kind, .worker = kPs, .peer = starter, .id = context(ordinal), .number = epoch});
  }
  // A node says this of a pass.
  void waits(uint64_t ordinal, uint64_t epoch, const char* starter, const std::string& text) {
    waits_ += SlowPasses::head(to_string(context(ordinal)), epoch, starter) + text + "\n";
  }
  void look_at(Duration seconds) {
    slow_.look(Instant{} + seconds, [this] {
      ++asked_;
      return waits_;
    });
  }
  // The lines written since the last call, without the time.
  std::vector<std::string> lines() {
    std::vector<std::string> found;
    std::istringstream stream(text_.str());
    text_.str("");
    for (std::string line; std::getline(stream, line);)
      found.push_back(line.substr(line.find("level=")));
    return found;
  }

  std::ostringstream text_;
  Log log_{LogLevel::info, "ps", text_};
  SlowPasses slow_{log_, {"ps", "trainer"}, 5s};
  std::string waits_;
  int asked_ = 0;
};

std::string line_of(const CausalId& context, const std::string& rest) {
  return "level=info worker=ps event=pass_waits context=" + to_string(context) + rest;
}

TEST_F(SlowPassesTest, APassThatTakesLongSaysOncePerLimitWhatItWaitsFor) {
  // Goal: one line after the limit, one after each further one, none after the end. Method: looks
  // each second; the pass waits for something else later.
  see(EventKind::pass_started, 4, 3);
  for (int second = 1; second <= 5; ++second) look_at(std::chrono::seconds(second));
  EXPECT_EQ(lines(), std::vector<std::string>{});
  EXPECT_EQ(asked_, 0);
  waits(4, 2, "trainer", "of another pass");
  waits(4, 3, "trainer", "2 gradient messages unanswered");
  look_at(6s);
  EXPECT_EQ(lines(), std::vector<std::string>{line_of(context(4),
                                                      " epoch=3 starter=trainer for_seconds=5 "
                                                      "waits=\"2 gradient messages unanswered\"")});
  look_at(10s);
  EXPECT_EQ(lines(), std::vector<std::string>{});
  EXPECT_EQ(asked_, 1);
  waits_.clear();
  waits(4, 3, "trainer", "reports of 'trainer'");
  look_at(11s);
  EXPECT_EQ(lines(), std::vector<std::string>{line_of(context(4),
                                                      " epoch=3 starter=trainer for_seconds=10 "
                                                      "waits=\"reports of 'trainer'\"")});
  see(EventKind::pass_ended, 4, 3);
  look_at(60s);
  EXPECT_EQ(lines(), std::vector<std::string>{});
}

TEST_F(SlowPassesTest, PassesAreToldApartByContextEpochAndStarter) {
  // Goal: the end of one is not the end of another. Method: four that differ in one thing each.
  see(EventKind::pass_started, 4, 3);
  see(EventKind::pass_started, 4, 4);
  see(EventKind::pass_started, 5, 3);
  see(EventKind::pass_started, 4, 3, kPs);
  look_at(1s);
  see(EventKind::pass_ended, 4, 3);
  waits(4, 3, "ps", "a");
  waits(4, 4, "trainer", "b");
  waits(5, 3, "trainer", "c");
  look_at(6s);
  EXPECT_EQ(lines(), (std::vector<std::string>{
                         line_of(context(4), " epoch=3 starter=ps for_seconds=5 waits=a"),
                         line_of(context(4), " epoch=4 starter=trainer for_seconds=5 waits=b"),
                         line_of(context(5), " epoch=3 starter=trainer for_seconds=5 waits=c")}));
  EXPECT_EQ(asked_, 1);
  see(EventKind::node_stopped, 0, 0);
  look_at(60s);
  EXPECT_EQ(lines(), std::vector<std::string>{});
}

TEST_F(SlowPassesTest, NobodyIsAskedForWhatIsNotWritten) {
  // Goal: the default level costs nothing, and a limit of zero is none. Method: both.
  Log quiet(LogLevel::warn, "ps", text_);
  SlowPasses at_warn(quiet, {"ps", "trainer"}, 5s);
  SlowPasses never(log_, {"ps", "trainer"}, Duration::zero());
  for (SlowPasses* passes : {&at_warn, &never}) {
    passes->on_event({.kind = EventKind::pass_started,
                      .worker = kPs,
                      .peer = kTrainer,
                      .id = context(1),
                      .number = 1});
    for (const Duration seconds : {1s, 10s, 100s})
      passes->look(Instant{} + seconds, [this] {
        ++asked_;
        return waits_;
      });
  }
  EXPECT_EQ(lines(), std::vector<std::string>{});
  EXPECT_EQ(asked_, 0);
}

}  // namespace
}  // namespace rehearsal::observe
