// Programs that would never end, and those that only look so.
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "sim/cluster.h"

namespace rehearsal::sim {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

int64_t answer_late(CallContext& call) {
  call.sleep(seconds(3));
  return 1;
}
int64_t answer_at_once() { return 1; }

int64_t look_whether_cancelled(CallContext& call) {
  while (!call.cancelled()) {
  }
  return 1;
}

int64_t call_on(CallContext& call) {
  for (;;) {
    try {
      call.rpc_sync("ps", &answer_at_once);
      call.sleep(milliseconds(10));
    } catch (const RpcError&) {
    }
  }
}

int64_t swallow_every_error(CallContext& call) {
  for (;;) {
    try {
      call.sleep(seconds(1));
    } catch (const RpcError&) {
    }
  }
}

int64_t swallow_the_end(CallContext& call) {
  try {
    call.sleep(hours(1));
  } catch (...) {
  }
  for (;;) {
    try {
      (void)call.rpc_async("ps", &answer_at_once);
    } catch (...) {
    }
  }
}

FunctionRegistry endless_functions() {
  FunctionRegistry registry;
  registry.function("answer_late", &answer_late)
      .function("answer_at_once", &answer_at_once)
      .function("look_whether_cancelled", &look_whether_cancelled)
      .function("call_on", &call_on)
      .function("swallow_every_error", &swallow_every_error)
      .function("swallow_the_end", &swallow_the_end);
  return registry;
}

Program endless_program(Program::Main trainer) {
  Program program(endless_functions());
  program.worker("ps", [](Worker&) {}).worker("trainer", std::move(trainer));
  return program;
}

// The caller of a function that does not end gives it up after two seconds.
Program program_that_gives_up(int64_t (*function)(CallContext&)) {
  Program program(endless_functions());
  program.worker("ps", [](Worker&) {}).worker("helper", [](Worker&) {});
  program.worker("trainer", [function](Worker& worker) {
    try {
      worker.with_timeout(seconds(2)).rpc_sync("helper", function);
    } catch (const RpcError&) {
    }
  });
  return program;
}

ClusterOptions judged_soon() {
  return {.faults = FaultLevel::none, .storm = seconds(5), .progress_bound = seconds(100)};
}

RunReport report_of(const Program& program, ClusterOptions options) {
  Cluster cluster(Seed{1}, program, std::move(options));
  return cluster.try_run();
}

void expect_told(const RunReport& report, const std::string& oracle, const std::string& text) {
  ASSERT_TRUE(report.failure) << text;
  EXPECT_EQ(report.failure->oracle, oracle) << text;
  EXPECT_NE(report.failure->message.find(text), std::string::npos) << report.failure->message;
}

TEST(Endless, APollWithoutAPauseThatHasAnEndHolds) {
  // Goal: over TCP it holds, and so it does here: time passes for who asks without waiting.
  // Method: a future that is looked at, and a function that looks whether it is wanted.
  const Program waiting = endless_program([](Worker& worker) {
    const Future<int64_t> answer = worker.rpc_async("ps", &answer_late);
    while (!answer.ready()) {
    }
    if (answer.wait() != 1) throw std::logic_error("a wrong answer");
  });
  const RunReport waited = report_of(waiting, judged_soon());
  EXPECT_TRUE(waited.ok) << describe_failure(waited);
  EXPECT_GE(waited.virtual_time, seconds(3));
  const RunReport given_up =
      report_of(program_that_gives_up(&look_whether_cancelled), judged_soon());
  EXPECT_TRUE(given_up.ok) << describe_failure(given_up);
}

TEST(Endless, APollWithoutAPauseThatHasNoEndIsNamed) {
  // Goal: who it is, although it stands in no table. Method: a main looks for a third member of
  // two.
  const Program program = endless_program([](Worker& worker) {
    while (worker.members().size() < 3) {
    }
  });
  const RunReport report = report_of(program, judged_soon());
  expect_told(report, "progress", "nothing has moved forward for ");
  expect_told(report, "progress", "main at trainer asks again and again, and never waits\n");
}

TEST(Endless, AFunctionThatCallsOnThoughItsCallerHasGivenUpIsNamed) {
  expect_told(report_of(program_that_gives_up(&call_on), judged_soon()), "progress",
              "helper has called `answer_at_once` at 'ps' ");
  expect_told(report_of(program_that_gives_up(&call_on), judged_soon()), "progress",
              "; each failed at once: cancelled");
}

TEST(Endless, AFunctionThatSwallowsTheEndOfItsWorkerIsNamed) {
  // Goal: as over TCP, where the process is left without it. Method: the shutdown has given it up
  // after its time, and each of its calls gives an error.
  expect_told(report_of(program_that_gives_up(&swallow_every_error), {.faults = FaultLevel::none}),
              "progress", "'swallow_every_error' at helper does not end although its worker has");
}

TEST(Endless, ALoopThatNeverWaitsIsEnded) {
  // Goal: a failure with its seed, and no process that is ended. Method: calls whose futures nobody
  // looks at, to a worker that is gone, in a main and in a continuation.
  const auto call_for_ever = [](Worker& worker) {
    for (;;) {
      try {
        (void)worker.rpc_async("ps", &answer_at_once);
      } catch (const RpcError&) {
      }
    }
  };
  const Program in_main = endless_program([call_for_ever](Worker& worker) {
    worker.sleep(seconds(10));
    call_for_ever(worker);
  });
  const Program in_continuation = endless_program([call_for_ever](Worker& worker) {
    worker.after(seconds(10)).then([call_for_ever, &worker] { call_for_ever(worker); }).wait();
  });
  for (const Program* const program : {&in_main, &in_continuation}) {
    Cluster cluster(Seed{1}, *program, {.faults = FaultLevel::none});
    cluster.at(seconds(1), [&cluster] { cluster.crash("ps"); });
    expect_told(cluster.try_run(), "progress", "; it never waits");
  }
}

TEST(Endless, CodeThatSwallowsItsOwnCrashEndsTheProcessWithItsName) {
  // Goal: also where it asks for nothing that would wait. Method: asynchronous calls for ever.
  const Program program = endless_program([](Worker& worker) {
    (void)worker.with_timeout(Timeout::never()).rpc_sync("ps", &swallow_the_end);
  });
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  cluster.at(seconds(1), [&cluster] { cluster.crash("ps"); });
  EXPECT_DEATH((void)cluster.try_run(), "swallow_the_end goes on although its node was killed");
}

TEST(Endless, AProgramThatGoesOnForEverIsEndedByItsVirtualTime) {
  // Goal: a bound without being asked for. Method: calls that all have values, an hour apart.
  Program program(endless_functions());
  program.worker("alone", [](Worker& worker) {
    for (;;) {
      worker.rpc_sync("alone", &answer_at_once);
      worker.sleep(hours(1));
    }
  });
  const RunReport report = report_of(program, {.faults = FaultLevel::none});
  expect_told(report, "time", "longer than the virtual time that it was given, 604800 s");
  expect_told(report, "time", "main waits for time to pass");
  const RunReport short_report =
      report_of(program, {.faults = FaultLevel::none, .virtual_time_max = hours(2)});
  expect_told(short_report, "time", "longer than the virtual time that it was given, 7200 s");
}

TEST(Endless, ActsThatMakeActsForEverAreEndedToo) {
  // Goal: also when all mains have ended. Method: an act that plans the next one.
  const Program program = endless_program([](Worker&) {});
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  std::function<void()> tick = [&] {
    cluster.at(cluster.now().time_since_epoch() + hours(1), tick);
  };
  cluster.at(hours(1), tick);
  expect_told(cluster.try_run(), "time", "longer than the virtual time that it was given");
}

TEST(Endless, CallsForWhichTimeDoesNotPassAreEnded) {
  // Goal: a bound on what happens at one instant. Method: calls to oneself, without latencies.
  const Program program = endless_program([](Worker& worker) {
    for (;;) worker.rpc_sync("trainer", &answer_at_once);
  });
  expect_told(report_of(program, {.faults = FaultLevel::none, .oracles = false}), "time",
              "time does not pass");
}

}  // namespace
}  // namespace rehearsal::sim
