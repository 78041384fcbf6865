#include "sim/explain/futile_tries.h"

#include <gtest/gtest.h>

#include "core/api/worker.h"
#include "sim/cluster.h"

namespace rehearsal::sim {
namespace {

constexpr uint64_t kTold = FutileTries::kTold;

class FutileTriesTest : public testing::Test {
 protected:
  uint64_t see(Event event) {
    const std::vector<Entry> entries =
        tries_.take({event, {WorkerId{1}, 0}, {}, now_}, {.event = event.kind});
    for (const Entry& entry : entries) told_.push_back(entry.event);
    return entries.size();
  }
  // A call in a wait of its own: it fails at once, or is sent.
  void call(bool fails) {
    const CausalId id{{1}, {}, next_++};
    see({.kind = EventKind::execution_parked});
    see({.kind = EventKind::api_call, .peer = WorkerId{0}, .id = id, .text = "one"});
    if (!fails) {
      see({.kind = EventKind::frame_sent, .id = id});
      now_ += std::chrono::milliseconds(1);
    }
    see({.kind = EventKind::call_completed,
         .peer = WorkerId{0},
         .id = id,
         .number = fails ? uint64_t{2} : uint64_t{0}});
    see({.kind = EventKind::execution_resumed});
  }

  FutileTries tries_;
  std::vector<EventKind> told_;
  Instant now_{};
  uint64_t next_ = 0;
};

TEST_F(FutileTriesTest, AreToldAThousandTimesAndThenNotAnyMore) {
  for (uint64_t i = 0; i < 10 * kTold; ++i) call(true);
  EXPECT_GE(told_.size(), 4 * kTold);
  EXPECT_LE(told_.size(), 4 * kTold + 3);
  EXPECT_TRUE(tries_.is_futile({WorkerId{1}, 0}));
  EXPECT_FALSE(tries_.is_futile({WorkerId{2}, 0}));
}

TEST_F(FutileTriesTest, TheOneThatSucceedsIsToldWhole) {
  // Goal: nothing of it is lost, although nobody knew at its beginning.
  for (uint64_t i = 0; i < 2 * kTold; ++i) call(true);
  told_.clear();
  call(false);
  EXPECT_EQ(told_, (std::vector<EventKind>{EventKind::execution_parked, EventKind::api_call,
                                           EventKind::frame_sent, EventKind::call_completed,
                                           EventKind::execution_resumed}));
  EXPECT_FALSE(tries_.is_futile({WorkerId{1}, 0}));
}

TEST_F(FutileTriesTest, WaitsThatAreOverAtOnceAreLeftOutToo) {
  // Method: a poll without a pause; then a wait that lasts.
  for (uint64_t i = 0; i < 10 * kTold; ++i) {
    see({.kind = EventKind::execution_parked});
    see({.kind = EventKind::execution_resumed});
  }
  EXPECT_LE(told_.size(), 2 * kTold + 3);
  told_.clear();
  see({.kind = EventKind::execution_parked});
  see({.kind = EventKind::timer});
  now_ += std::chrono::milliseconds(1);
  see({.kind = EventKind::execution_resumed});
  EXPECT_EQ(told_, (std::vector<EventKind>{EventKind::execution_parked, EventKind::timer,
                                           EventKind::execution_resumed}));
}

int64_t answer() { return 1; }

TEST(FutileTries, OfARunDoNotFillItsHistory) {
  // Goal: a failure can be told though it takes a hundred thousand calls. Method: a server that is
  // gone, and a main that tries again without a pause.
  FunctionRegistry registry;
  registry.function("answer", &answer);
  Program program(registry);
  program.worker("ps", [](Worker&) {}).worker("trainer", [](Worker& worker) {
    worker.sleep(std::chrono::seconds(10));
    for (;;) {
      try {
        worker.rpc_sync("ps", &answer);
      } catch (const RpcError&) {
      }
    }
  });
  History history;
  Cluster cluster(Seed{1}, program,
                  {.faults = FaultLevel::none,
                   .storm = std::chrono::seconds(5),
                   .progress_bound = std::chrono::seconds(100),
                   .history = &history});
  cluster.at(std::chrono::seconds(3), [&cluster] { cluster.crash("ps"); });
  const RunReport& report = cluster.try_run();
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->oracle, "progress");
  EXPECT_LT(history.entries().size(), 100'000u);
  EXPECT_EQ(history.entries().back().kind, EntryKind::failed);
}

}  // namespace
}  // namespace rehearsal::sim
