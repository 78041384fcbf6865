#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/oracles/oracles.h"

namespace rehearsal::sim {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

int64_t sleep_for_seconds(CallContext& call, const int64_t& time) {
  call.sleep(seconds(time));
  return time;
}

Future<int64_t> answer_after_seconds(CallContext& call, const int64_t& time) {
  return call.after(seconds(time)).then([time] { return time; });
}

FunctionRegistry pausing_functions() {
  FunctionRegistry registry;
  registry.function("sleep_for_seconds", &sleep_for_seconds)
      .function("answer_after_seconds", &answer_after_seconds);
  return registry;
}

Program two_workers(Program::Main main) {
  Program program(pausing_functions());
  program.worker("ps", [](Worker&) {}).worker("trainer", std::move(main));
  return program;
}

// Lets so much time pass, each in another place.
using PausingMain = void (*)(Worker& worker, int64_t time);

void pause_in_main(Worker& worker, int64_t time) { worker.sleep(seconds(time)); }

void wait_in_main(Worker& worker, int64_t time) { worker.after(seconds(time)).wait(); }

void pause_in_function(Worker& worker, int64_t time) {
  worker.with_timeout(Timeout::never()).rpc_sync("ps", &sleep_for_seconds, time);
}

void wait_in_function(Worker& worker, int64_t time) {
  worker.with_timeout(Timeout::never()).rpc_sync("ps", &answer_after_seconds, time);
}

void pause_in_continuation(Worker& worker, int64_t time) {
  worker.after(seconds(1)).then([&worker, time] { return worker.after(seconds(time)); }).wait();
}

constexpr std::pair<const char*, PausingMain> kPausingMains[] = {
    {"sleep in a main", pause_in_main},
    {"after in a main", wait_in_main},
    {"sleep in a function", pause_in_function},
    {"after in a function", wait_in_function},
    {"after in a continuation", pause_in_continuation}};

void expect_pauses_to_hold(int64_t time, FaultLevel faults) {
  for (const auto& [name, pausing] : kPausingMains) {
    const Program program = two_workers([pausing, time](Worker& worker) { pausing(worker, time); });
    Cluster cluster(Seed{7}, program, {.faults = faults});
    const RunReport& report = cluster.try_run();
    EXPECT_TRUE(report.ok) << name << " for " << time << " s: " << describe_failure(report);
    // Faulty clocks may shorten it.
    if (faults == FaultLevel::none) EXPECT_GE(report.virtual_time, seconds(time)) << name;
  }
}

TEST(Pauses, OfAProgramAreNoLackOfProgressHoweverLong) {
  // Goal: no false alarm. Method: one second, more than the bound, and a day, in every place where
  // a program can let time pass, at every fault level.
  for (const int64_t time : {int64_t{1}, int64_t{1000}})
    for (const FaultLevel faults : {FaultLevel::none, FaultLevel::mild, FaultLevel::hostile})
      expect_pauses_to_hold(time, faults);
  constexpr int64_t kDay = 24 * 3600;
  expect_pauses_to_hold(kDay, FaultLevel::none);
  expect_pauses_to_hold(kDay, FaultLevel::hostile);
}

TEST(Pauses, FollowedByALegitimateWaitAreNoLackOfProgress) {
  // Goal: time counts from the end of a pause, also of one of several without a call between them,
  // and if the oracles look seldom. Method: a wait of 300 s behind three pauses.
  const Program program = two_workers([](Worker& worker) {
    for (int i = 0; i < 3; ++i) worker.sleep(seconds(1000));
    for (int i = 0; i < 5; ++i) worker.sleep(seconds(60));
    worker.with_timeout(Timeout::never()).rpc_sync("ps", &sleep_for_seconds, int64_t{99});
  });
  for (const bool oracles : {true, false}) {
    Cluster cluster(Seed{7}, program, {.faults = FaultLevel::none, .oracles = oracles});
    const RunReport& report = cluster.try_run();
    EXPECT_TRUE(report.ok) << describe_failure(report);
  }
}

TEST(Pauses, OfALoneWorkerAreSeenAlthoughNothingElseHappens) {
  // Goal: the same where no heartbeat makes the oracles look. Method: a group of one.
  Program program(pausing_functions());
  program.worker("alone", [](Worker& worker) {
    worker.sleep(seconds(1000));
    worker.sleep(seconds(90));
    worker.sleep(hours(24));
  });
  Cluster cluster(Seed{7}, program, {.faults = FaultLevel::none});
  const RunReport& report = cluster.try_run();
  EXPECT_TRUE(report.ok) << describe_failure(report);
  EXPECT_GE(report.virtual_time, hours(24));
}

TEST(Pauses, WhatIsDueByAnActOfTheTestIsNoLackOfProgress) {
  // Goal: quiet time before an act is not judged. Method: a main waits for what the test gives it
  // after 3,000 s; at every fault level.
  for (const FaultLevel faults : {FaultLevel::none, FaultLevel::mild, FaultLevel::hostile}) {
    std::optional<Promise<int64_t>> promise;
    const Program program = two_workers([&promise](Worker& worker) {
      promise.emplace(worker.promise<int64_t>());
      const int64_t given = promise->future().wait();
      worker.rpc_sync("ps", &sleep_for_seconds, given);
    });
    Cluster cluster(Seed{7}, program, {.faults = faults});
    cluster.at(seconds(3000), [&promise] { promise->complete(int64_t{1}); });
    const RunReport& report = cluster.try_run();
    EXPECT_TRUE(report.ok) << describe_failure(report);
    EXPECT_GE(report.virtual_time, seconds(3000));
  }
}

TEST(Pauses, ARestartAfterQuietTimeIsNotJudgedAtOnce) {
  // Goal: the worker that comes back has the whole bound. Method: it crashes, and comes back after
  // 3,000 s; the other one waits for it.
  const Program program = two_workers([](Worker& worker) {
    worker.sleep(seconds(200));
    while (true) {
      try {
        worker.wait_for_worker("ps", Timeout::never());
        worker.rpc_sync("ps", &sleep_for_seconds, int64_t{1});
        return;
      } catch (const RpcError&) {
        worker.sleep(seconds(120));
      }
    }
  });
  for (const FaultLevel faults : {FaultLevel::none, FaultLevel::hostile}) {
    Cluster cluster(Seed{7}, program, {.faults = faults});
    cluster.at(seconds(100), [&cluster] { cluster.crash("ps"); });
    cluster.at(seconds(3000), [&cluster] { cluster.restart("ps"); });
    const RunReport& report = cluster.try_run();
    EXPECT_TRUE(report.ok) << describe_failure(report);
    EXPECT_GE(report.virtual_time, seconds(3000));
  }
}

// Of a run in which nothing moves forward.
RunReport report_of_hang(Program::Main main, const std::function<void(Cluster&)>& acts = nullptr) {
  const Program program = two_workers(std::move(main));
  Cluster cluster(Seed{7}, program, {.faults = FaultLevel::none});
  if (acts) acts(cluster);
  return cluster.try_run();
}

void expect_found_by(const RunReport& report, Duration when, const std::string& what) {
  ASSERT_TRUE(report.failure) << what;
  EXPECT_EQ(report.failure->oracle, "progress") << what;
  EXPECT_LE(report.virtual_time, when) << what;
}

TEST(Pauses, AWaitForNothingIsFoundAsSoonAsBefore) {
  // Goal: the bound holds where nothing is due. Method: the storm of 60 s, the bound of 400 s, and
  // some time until the oracles look.
  expect_found_by(report_of_hang([](Worker& worker) {
                    const Promise<int64_t> never = worker.promise<int64_t>();
                    (void)never.future().wait();
                  }),
                  seconds(520), "a wait for nothing");
}

TEST(Pauses, AMainThatOnlyPollsIsFoundAsSoonAsBefore) {
  // Goal: short pauses are no progress. Method: polls with pauses of ten milliseconds to a minute.
  for (const Duration pause : {Duration(milliseconds(10)), Duration(seconds(1)),
                               Duration(seconds(10)), Duration(seconds(60))})
    expect_found_by(report_of_hang([pause](Worker& worker) {
                      const Promise<int64_t> never = worker.promise<int64_t>();
                      while (!never.future().ready()) worker.sleep(pause);
                    }),
                    seconds(520), std::to_string(pause.count()));
}

TEST(Pauses, OfAWorkerThatHasCrashedHideNothing) {
  // Goal: a pause counts for as long as somebody makes it. Method: a worker that would sleep for a
  // day crashes after 200 s, while the other one waits for nothing.
  Program program(pausing_functions());
  program.worker("ps", [](Worker& worker) { worker.sleep(hours(24)); });
  program.worker("trainer", [](Worker& worker) {
    const Promise<int64_t> never = worker.promise<int64_t>();
    (void)never.future().wait();
  });
  Cluster cluster(Seed{7}, program, {.faults = FaultLevel::none});
  cluster.at(seconds(200), [&cluster] { cluster.crash("ps"); });
  expect_found_by(cluster.try_run(), seconds(200 + 520), "behind a crash");
}

TEST(Pauses, TimeCountsFromTheLastActThatIsPlanned) {
  // Goal: an act that is over hides nothing. Method: the oracle alone, just before and just after
  // its bound of 100 s behind an act at 3,000 s.
  const std::unique_ptr<Oracle> oracle = make_progress(seconds(100));
  Findings findings;
  const auto check_at = [&](Duration now) {
    oracle->check({.now = Instant{now},
                   .calm = true,
                   .calm_since = Instant{seconds(50)},
                   .acts_until = Instant{seconds(3000)}},
                  findings);
  };
  check_at(seconds(2999));
  check_at(seconds(3100));
  EXPECT_FALSE(findings.first());
  check_at(seconds(3101));
  ASSERT_TRUE(findings.first());
  EXPECT_NE(findings.first()->message.find("nothing has moved forward for 101 virtual seconds"),
            std::string::npos)
      << findings.first()->message;
}

}  // namespace
}  // namespace rehearsal::sim
