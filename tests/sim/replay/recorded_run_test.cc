#include "sim/replay/recorded_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>

#include "core/api/worker.h"
#include "core/base/mutants.h"
#include "sim/replay/merged_events.h"
#include "tests/sim/replay/recorded_group.h"

// A run over TCP, judged from what its workers recorded.
namespace rehearsal::sim {
namespace {

// How often `counted_add` has run in this process.
std::atomic<int64_t> added{0};
int64_t counted_add(int64_t a, int64_t b) {
  ++added;
  added.notify_all();
  return a + b;
}

class Tally {
 public:
  explicit Tally(int64_t start) : count_(start) {}
  int64_t add(int64_t by) { return count_ += by; }

 private:
  int64_t count_;
};

// A test acts around one call in the middle of the run; a replay does nothing there.
struct Middle {
  std::function<void()> before;
  std::function<void()> while_it_runs;
};

void train_recorded(Worker& worker, const Middle& middle) {
  const RRef<Tally> counter = worker.remote<Tally>("ps", int64_t{0});
  for (int64_t i = 1; i <= 60; ++i) {
    if (i == 30 && middle.before) middle.before();
    const Future<int64_t> sum = worker.rpc_async("ps", &counted_add, i, i);
    if (i == 30 && middle.while_it_runs) middle.while_it_runs();
    EXPECT_EQ(sum.wait(), 2 * i);
    EXPECT_EQ(worker.rpc_sync(counter, &Tally::add, int64_t{1}), i);
  }
}

Program program_with(const Middle& middle) {
  FunctionRegistry registry;
  registry.function("add", &counted_add);
  registry.type<Tally>("Counter").constructor<int64_t>().method("add", &Tally::add);
  Program program(std::move(registry));
  return std::move(program.worker("ps").worker(
      "trainer", [middle](Worker& worker) { train_recorded(worker, middle); }));
}

// The records of these ranks, judged.
RecordedRunReport judged(const RecordedGroup& recorded, const std::vector<uint32_t>& ranks) {
  std::vector<RecordedLife> lives;
  for (const uint32_t rank : ranks)
    lives.push_back({recorded.file(rank), record::read_record(recorded.file(rank)).or_throw()});
  return judge(lives, [] { return program_with({}); });
}

void run_well(RecordedGroup& recorded) {
  for (const Status& end : recorded.run()) EXPECT_TRUE(end.ok()) << to_string(Status(end).error());
}

// Runs the group over TCP; the records of these ranks are judged.
RecordedRunReport judged(const real::GroupOptions& options, const std::vector<uint32_t>& ranks) {
  const Program program = program_with({});
  RecordedGroup recorded(program, options);
  run_well(recorded);
  return judged(recorded, ranks);
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
  // The connections break when a call has run, and nothing that its server says has come through:
  // the call is sent again.
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants, and so no failure";
  using End = real::FaultProxy::End;
  std::unique_ptr<RecordedGroup> recorded;
  int64_t seen = 0;
  const auto hold = [&](End of_ps_as_target, End of_ps_as_dialer) {
    recorded->group().proxy(0).hold_from(of_ps_as_target);
    recorded->group().proxy(1).hold_from(of_ps_as_dialer);
  };
  const auto before = [&] {
    seen = added;
    hold(End::target, End::dialer);
  };
  const auto while_it_runs = [&] {
    added.wait(seen);
    for (const uint32_t rank : {0u, 1u}) recorded->group().proxy(rank).reset_all();
    hold(End::none, End::none);
  };
  const Program program = program_with({.before = before, .while_it_runs = while_it_runs});
  real::GroupOptions options;
  options.through_proxies = true;
  options.node.mutants = {"no_deduplication"};
  recorded = std::make_unique<RecordedGroup>(program, options);
  run_well(*recorded);
  const RecordedRunReport report = judged(*recorded, {0, 1});
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
