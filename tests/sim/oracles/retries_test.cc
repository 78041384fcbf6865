// Programs that try again, and again: where that is in vain they are named, where the server comes
// back they hold.
#include <gtest/gtest.h>

#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "core/api/call_context.h"
#include "core/api/stream.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/effort.h"

namespace rehearsal::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int64_t kValues = 50;  // that each program waits for

int64_t one() { return 1; }
void ones(StreamWriter<int64_t>& out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out.write(1);
}

// Gets its values one by one by `get`; where that throws, it pauses and tries again.
template <class Place>
void retry(const Place& place, Duration pause, const std::function<int64_t()>& get) {
  for (int64_t done = 0; done < kValues;) {
    try {
      done += get();
      place.sleep(milliseconds(100));
    } catch (const RpcError&) {
      if (pause.count() > 0) place.sleep(pause);
    }
  }
}

int64_t retry_for_caller(CallContext& call, const int64_t& pause) {
  retry(call, Duration(pause), [&call] { return call.rpc_sync("ps", &one); });
  return kValues;
}

// Each loop runs at 'trainer'.
using RetryingMain = void (*)(Worker& worker, Duration pause);

void retry_calls(Worker& worker, Duration pause) {
  retry(worker, pause, [&worker] { return worker.rpc_sync("ps", &one); });
}

void retry_futures(Worker& worker, Duration pause) {
  retry(worker, pause, [&worker] {
    const Future<int64_t> future = worker.rpc_async("ps", &one);
    while (!future.ready()) worker.sleep(milliseconds(1));
    return future.wait();
  });
}

void retry_streams(Worker& worker, Duration pause) {
  retry(worker, pause, [&worker] {
    Stream<int64_t> stream = worker.rpc_stream("ps", &ones, int64_t{2});
    int64_t sum = 0;
    while (const std::optional<int64_t> value = stream.next()) sum += *value;
    return sum;
  });
}

void retry_references(Worker& worker, Duration pause) {
  retry(worker, pause, [&worker] { return worker.remote("ps", &one).to_here(); });
}

void retry_creations(Worker& worker, Duration pause) {
  retry(worker, pause, [&worker] {
    worker.remote("ps", &one).created().wait();
    return int64_t{1};
  });
}

void retry_in_function(Worker& worker, Duration pause) {
  worker.with_timeout(Timeout::never())
      .rpc_sync("trainer", &retry_for_caller, static_cast<int64_t>(pause.count()));
}

// A chain of continuations.
void ask_again(Worker& worker, const Promise<int64_t>& done, int64_t left, Duration pause) {
  worker.rpc_async("ps", &one).then([&worker, done, left, pause](const Result<int64_t>& answer) {
    const int64_t now_left = left - (answer.ok() ? 1 : 0);
    if (now_left == 0) return done.complete(int64_t{0});
    const Duration wait = answer.ok() ? Duration(milliseconds(100)) : pause;
    if (wait.count() == 0) return ask_again(worker, done, now_left, pause);
    worker.after(wait).then(
        [&worker, done, now_left, pause] { ask_again(worker, done, now_left, pause); });
  });
}

void retry_in_continuations(Worker& worker, Duration pause) {
  const Promise<int64_t> done = worker.promise<int64_t>();
  ask_again(worker, done, kValues, pause);
  (void)done.future().wait();
}

struct RetryingForm {
  const char* name;
  RetryingMain main;
  const char* function;  // that fails
};
constexpr RetryingForm kForms[] = {{"calls", retry_calls, "one"},
                                   {"futures", retry_futures, "one"},
                                   {"streams", retry_streams, "ones"},
                                   {"references", retry_references, "to_here"},
                                   {"creations", retry_creations, "RRef.created"},
                                   {"served function", retry_in_function, "one"},
                                   {"continuations", retry_in_continuations, "one"}};

constexpr Duration kPauses[] = {Duration{}, Duration(milliseconds(1)), Duration(seconds(1))};

FunctionRegistry retried_functions() {
  FunctionRegistry registry;
  registry.function("one", &one).function("ones", &ones);
  registry.function("retry_for_caller", &retry_for_caller);
  return registry;
}

Program retrying_program(const RetryingForm& form, Duration pause) {
  Program program(retried_functions());
  program.worker("trainer", [main = form.main, pause](Worker& worker) { main(worker, pause); });
  program.worker("ps", [](Worker&) {});
  return program;
}

// A run that is judged soon: what is said of all bounds holds of short ones.
ClusterOptions short_bounds() {
  return {.faults = FaultLevel::none, .storm = seconds(5), .progress_bound = seconds(100)};
}

std::string title_of(const RetryingForm& form, Duration pause) {
  return std::string(form.name) + " with a pause of " + std::to_string(pause / milliseconds(1)) +
         " ms";
}

void expect_named(const RunReport& report, const RetryingForm& form, const std::string& title,
                  const std::string& cause) {
  ASSERT_TRUE(report.failure) << title;
  EXPECT_EQ(report.failure->oracle, "progress") << title;
  EXPECT_EQ(report.failure->object, "trainer") << title;
  const std::string& message = report.failure->message;
  EXPECT_EQ(message.find("trainer has called `" + std::string(form.function) + "` at 'ps' "), 0u)
      << title << ": " << message;
  EXPECT_NE(message.find(" times since "), std::string::npos) << title << ": " << message;
  EXPECT_NE(message.find("; each failed at once: " + cause), std::string::npos)
      << title << ": " << message;
}

TEST(Retries, OfWhatACrashedServerWouldAnswerAreNamed) {
  // Goal: caller, function, peer and error. Method: every form of a loop with every pause, and a
  // server that crashes for good.
  for (const RetryingForm& form : kForms)
    for (const Duration pause : kPauses) {
      const Program program = retrying_program(form, pause);
      Cluster cluster(Seed{1}, program, short_bounds());
      cluster.at(milliseconds(1200), [&cluster] { cluster.crash("ps"); });
      expect_named(cluster.try_run(), form, title_of(form, pause),
                   "peer_lost, 'ps' crashed at 1.2 s");
    }
}

TEST(Retries, AreNamedSoonByThemselves) {
  // Goal: with the bounds that a run has by itself virtual time, and so real time, is short.
  // Method: the plainest loop; at most the storm of 60 s, the bound of 400 s and some time to look.
  for (const Duration pause : kPauses) {
    const Program program = retrying_program(kForms[0], pause);
    Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
    cluster.at(milliseconds(1200), [&cluster] { cluster.crash("ps"); });
    const RunReport& report = cluster.try_run();
    expect_named(report, kForms[0], title_of(kForms[0], pause), "peer_lost, 'ps' crashed at 1.2 s");
    EXPECT_LE(report.virtual_time, seconds(520)) << title_of(kForms[0], pause);
  }
}

TEST(Retries, OfWhatAServerThatIsNotThereWouldAnswerAreNamed) {
  // Method: a dynamic group, which the server leaves as soon as it has joined.
  for (const Duration pause : kPauses) {
    Program program = retrying_program(kForms[0], pause);
    program.dynamic();
    Cluster cluster(Seed{1}, program, short_bounds());
    expect_named(cluster.try_run(), kForms[0], title_of(kForms[0], pause),
                 "peer_lost, 'ps' ended at ");
  }
}

TEST(Retries, OfWhatAFencedServerWouldAnswerAreNamed) {
  // Method: the server stands still until the trainer has given it up; no calm wakes it before.
  for (const Duration pause : kPauses) {
    const Program program = retrying_program(kForms[0], pause);
    ClusterOptions options = short_bounds();
    options.storm = seconds(110);
    Cluster cluster(Seed{1}, program, std::move(options));
    cluster.at(milliseconds(1200), [&cluster] { cluster.pause("ps", seconds(100)); });
    expect_named(cluster.try_run(), kForms[0], title_of(kForms[0], pause), "peer_lost, ");
  }
}

void expect_to_hold(const RetryingForm& form, Duration pause, Duration back) {
  const Program program = retrying_program(form, pause);
  Cluster cluster(Seed{1}, program, short_bounds());
  cluster.at(milliseconds(1200), [&cluster] { cluster.crash("ps"); });
  cluster.at(back, [&cluster] { cluster.restart("ps"); });
  const RunReport& report = cluster.try_run();
  EXPECT_TRUE(report.ok) << title_of(form, pause) << ": " << describe_failure(report);
  EXPECT_GT(report.virtual_time, back) << title_of(form, pause);
}

TEST(Retries, HoldWhereTheServerComesBack) {
  // Goal: trying again is right while something is to come, without a pause too: time passes then.
  // Method: the same loops, and a server that comes back; also long after all bounds.
  for (const Duration pause : kPauses) {
    for (const RetryingForm& form : kForms) expect_to_hold(form, pause, seconds(20));
    expect_to_hold(kForms[0], pause, seconds(150));
  }
}

TEST(Retries, HoldUnderEveryFaultWhereTheServerComesBack) {
  // Goal: no false alarm. Method: every form with every pause, by turns, and crashes that the seed
  // draws, each with a return; REHEARSAL_SEEDS=20000 for more of them.
  EXPECT_TRUE(
      hunt({.seeds = tries(126),
            .first_seed = Seed{1},
            .cluster = {.faults = FaultLevel::hostile, .crashes = 1, .restart = Restart::amnesia}},
           [](Seed seed, const ClusterOptions& options) {
             const RetryingForm& form = kForms[seed.value % std::size(kForms)];
             const Duration pause = kPauses[seed.value / std::size(kForms) % std::size(kPauses)];
             const Program program = retrying_program(form, pause);
             Cluster(seed, program, options).run();
           }));
}

TEST(Retries, AreTheSameTwice) {
  // Goal: it replays. Method: fingerprint and message of two runs of a seed.
  const auto report_of = [](uint64_t seed) {
    const Program program = retrying_program(kForms[0], Duration{});
    ClusterOptions options = short_bounds();
    options.faults = FaultLevel::mild;
    Cluster cluster(Seed{seed}, program, std::move(options));
    cluster.at(milliseconds(1200), [&cluster] { cluster.crash("ps"); });
    return cluster.try_run();
  };
  const RunReport first = report_of(3);
  const RunReport second = report_of(3);
  EXPECT_EQ(first.fingerprint, second.fingerprint);
  ASSERT_TRUE(first.failure && second.failure);
  EXPECT_EQ(first.failure->message, second.failure->message);
}

}  // namespace
}  // namespace rehearsal::sim
