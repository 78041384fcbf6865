// Goal: a worker that is killed and started again while its group comes together, at any step, is
// met by all soon after. Method: three workers; the run is stopped after so many events, one worker
// crashes there and comes again, before the others have noticed or later; then all call all.
#include <gtest/gtest.h>

#include <string>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/run_report.h"
#include "tests/effort.h"

namespace rehearsal::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kThree = 3;
constexpr Duration kAllAreThere = seconds(12);  // after the start
constexpr Duration kAllHaveCalled = seconds(15);

int64_t answer() { return 42; }

void sleep_until(Worker& worker, Duration since_start) {
  while (worker.now() < Instant{} + since_start) worker.sleep(milliseconds(200));
}

Program calling_program(bool dynamic) {
  FunctionRegistry registry;
  registry.function("answer", &answer);
  Program program(std::move(registry));
  program.worker(
      "w",
      [](Worker& worker) {
        sleep_until(worker, kAllAreThere);
        for (const WorkerInfo& other : worker.workers())
          if (worker.rpc_sync(other.id, &answer) != 42) throw std::logic_error("another answer");
        sleep_until(worker, kAllHaveCalled);
      },
      Count{kThree});
  if (dynamic) program.dynamic();
  return program;
}

// Mains that have begun: they have the names of their workers.
class Starts final : public Trace {
 public:
  void on_event(const Event& event) override {
    const bool is_main = event.kind == EventKind::execution_started && event.text.starts_with("w");
    count += is_main ? 1 : 0;
  }
  uint32_t count = 0;
};

// So many events of a run pass until all have joined.
int64_t events_of_joining(const Program& program) {
  Starts starts;
  ClusterOptions options{.faults = FaultLevel::none};
  options.traces.push_back(&starts);
  Cluster cluster(Seed{1}, program, options);
  int64_t events = 0;
  EXPECT_TRUE(cluster.run_until([&] {
    ++events;
    return starts.count == kThree;
  }));
  return events;
}

struct Death {
  uint32_t rank = 0;
  int64_t event = 0;
  Duration away{};
  uint32_t times = 1;
};

void expect_that_all_meet(const Program& program, const Death& death) {
  const std::string name = "w" + std::to_string(death.rank);
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  for (uint32_t life = 1; life <= death.times; ++life) {
    int64_t events = 0;
    ASSERT_TRUE(cluster.run_until([&] { return events++ == death.event; }));
    cluster.crash(name);
    cluster.advance(death.away);
    cluster.restart(name);
  }
  const RunReport& report = cluster.try_run();
  EXPECT_TRUE(report.ok) << describe_failure(report);
  EXPECT_LT(report.virtual_time, seconds(60));
}

void expect_that_all_meet_after_any(Duration away, uint32_t times) {
  for (const bool dynamic : {false, true}) {
    const Program program = calling_program(dynamic);
    const int64_t events = events_of_joining(program);
    const auto stride = static_cast<int64_t>(every(5));
    for (uint32_t rank = 0; rank < kThree; ++rank) {
      for (int64_t event = 0; event < events; event += stride) {
        SCOPED_TRACE((dynamic ? "dynamic, w" : "static, w") + std::to_string(rank) + " after " +
                     std::to_string(event));
        expect_that_all_meet(program, {.rank = rank, .event = event, .away = away, .times = times});
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(RestartsWhileJoining, BeforeTheOthersHaveNoticed) {
  // Goal: the life that comes takes the place of the one that nobody misses yet. Method: it is away
  // for a moment.
  expect_that_all_meet_after_any(milliseconds(50), 1);
}

TEST(RestartsWhileJoining, WhenTheOthersHaveNoticed) {
  // Goal: those that have given it up wait for its next life. Method: it is away for longer than a
  // port that refuses takes to tell.
  expect_that_all_meet_after_any(seconds(4), 1);
}

TEST(RestartsWhileJoining, Twice) {
  // Goal: a process that needs three starts. Method: both times after as many events.
  expect_that_all_meet_after_any(milliseconds(300), 2);
}

TEST(RestartsWhileJoining, TheFounderThatComesAgainFoundsTheGroupOnce) {
  // Goal: newcomers that have met no member, since the founder died before they could join, are not
  // left to themselves; and where one has joined, it is that one's group. Method: the founder's
  // links are blocked, to all others or to all but one, until it has died.
  for (const bool one_joins : {false, true}) {
    const Program program = calling_program(/*dynamic=*/true);
    Starts starts;
    ClusterOptions options{.faults = FaultLevel::none};
    options.traces.push_back(&starts);
    Cluster cluster(Seed{1}, program, options);
    const auto cut = one_joins ? cluster.network().split({"w0"}, {"w2"})
                               : cluster.network().split({"w0"}, {"w1", "w2"});
    cluster.advance(milliseconds(500));
    cluster.crash("w0");
    cluster.network().heal(cut);
    cluster.advance(milliseconds(500));
    cluster.restart("w0");
    const RunReport& report = cluster.try_run();
    EXPECT_TRUE(report.ok) << describe_failure(report);
    EXPECT_EQ(starts.count, kThree + 1);  // The founder's main has begun twice.
  }
}

}  // namespace
}  // namespace rehearsal::sim
