#include "sim/replay/recorded_run.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "core/api/worker.h"
#include "core/session/mutants.h"
#include "sim/replay/merged_events.h"
#include "tests/sim/replay/recorded_group.h"

// A run over TCP, judged from what its workers recorded.
namespace rehearsal::sim {
namespace {

int64_t add(int64_t a, int64_t b) { return a + b; }

class Counter {
 public:
  explicit Counter(int64_t start) : count_(start) {}
  int64_t add(int64_t by) { return count_ += by; }

 private:
  int64_t count_;
};

void train(Worker& worker, const std::function<void()>& in_the_middle) {
  const RRef<Counter> counter = worker.remote<Counter>("ps", int64_t{0});
  for (int64_t i = 1; i <= 60; ++i) {
    if (i == 30 && in_the_middle) in_the_middle();
    EXPECT_EQ(worker.rpc_sync("ps", &add, i, i), 2 * i);
    EXPECT_EQ(worker.rpc_sync(counter, &Counter::add, int64_t{1}), i);
  }
}

Program program_with(const std::function<void()>& in_the_middle) {
  FunctionRegistry registry;
  registry.function("add", &add);
  registry.type<Counter>("Counter").constructor<int64_t>().method("add", &Counter::add);
  Program program(std::move(registry));
  return std::move(program.worker("ps").worker(
      "trainer", [in_the_middle](Worker& worker) { train(worker, in_the_middle); }));
}

// Runs the group over TCP; the records of these ranks are judged.
RecordedRunReport judged(real::GroupOptions options, const std::vector<uint32_t>& ranks,
                         const std::function<void(RecordedGroup&)>& in_the_middle = {}) {
  RecordedGroup* running = nullptr;
  const Program program = program_with([&] {
    if (in_the_middle && running != nullptr) in_the_middle(*running);
  });
  RecordedGroup recorded(program, std::move(options));
  running = &recorded;
  for (const Status& end : recorded.run()) EXPECT_TRUE(end.ok()) << to_string(Status(end).error());
  running = nullptr;
  std::vector<RecordedLife> lives;
  for (const uint32_t rank : ranks)
    lives.push_back({recorded.file(rank), record::read_record(recorded.file(rank)).or_throw()});
  return judge(lives, [] { return program_with({}); });
}

TEST(RecordedRun, HoldsIfItWasGood) {
  const RecordedRunReport report = judged({}, {0, 1});
  EXPECT_FALSE(report.finding) << report.finding->object << ": " << report.finding->message;
  EXPECT_EQ(report.lives, 2u);
  EXPECT_GT(report.events, 500u);
  EXPECT_TRUE(report.unrecorded.empty());
}

TEST(RecordedRun, NamesWorkersWithoutARecordAndJudgesTheRest) {
  const RecordedRunReport report = judged({}, {1});
  EXPECT_FALSE(report.finding) << report.finding->object << ": " << report.finding->message;
  EXPECT_EQ(report.unrecorded, std::vector<std::string>{"worker 'ps'"});
}

TEST(RecordedRun, FindsWhatATableKeeps) {
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants, and so no failure";
  real::GroupOptions options;
  options.node.mutants = {"answered_call_keeps_its_deadline"};
  const RecordedRunReport report = judged(options, {0, 1});
  ASSERT_TRUE(report.finding);
  EXPECT_EQ(report.finding->oracle, "no leak");
  EXPECT_NE(report.finding->message.find("timers"), std::string::npos) << report.finding->message;
}

TEST(RecordedRun, FindsAFrameThatIsHandledTwice) {
  // The link breaks in the middle, and what has arrived is sent again.
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants, and so no failure";
  real::GroupOptions options;
  options.through_proxies = true;
  options.node.mutants = {"no_deduplication"};
  const RecordedRunReport report = judged(options, {0, 1}, [](RecordedGroup& recorded) {
    recorded.group().proxy(0).reset_all();
    recorded.group().proxy(1).reset_all();
  });
  ASSERT_TRUE(report.finding);
  EXPECT_EQ(report.finding->oracle, "at-most-once");
  EXPECT_NE(report.finding->message.find("twice"), std::string::npos) << report.finding->message;
}

TEST(MergedEvents, AFrameIsHandledAfterItWasSentWhateverTheClocksShow) {
  const auto event = [](EventKind kind, uint32_t worker, uint32_t peer, uint64_t number,
                        int64_t when) {
    return KeptEvent({.kind = kind,
                      .worker = {worker},
                      .peer = {peer},
                      .number = number,
                      .when = Instant(Duration(when))},
                     true);
  };
  const std::vector<EventList> lives = {
      {WorkerId{0},
       Incarnation{70},
       {event(EventKind::peer_up, 0, 1, 71, 1), event(EventKind::frame, 0, 1, 1, 2),
        event(EventKind::frame_sent, 0, 1, 1, 3)}},
      {WorkerId{1},
       Incarnation{71},
       {event(EventKind::peer_up, 1, 2, 72, 100), event(EventKind::frame, 1, 2, 5, 101),
        event(EventKind::frame_sent, 1, 0, 1, 102), event(EventKind::peer_up, 1, 0, 70, 103)}}};
  MergedEvents merged(lives);
  std::vector<std::pair<size_t, size_t>> order;
  while (const auto next = merged.next()) order.emplace_back(next->life, next->event);
  EXPECT_EQ(order, (std::vector<std::pair<size_t, size_t>>{
                       {0, 0}, {1, 0}, {1, 1}, {1, 2}, {0, 1}, {0, 2}, {1, 3}}));
  EXPECT_EQ(merged.unknown().size(), 1u);
}

}  // namespace
}  // namespace rehearsal::sim
