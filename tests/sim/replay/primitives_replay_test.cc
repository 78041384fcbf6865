#include <gtest/gtest.h>

#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/mutex.hpp>
#include <deque>
#include <mutex>

#include "core/api/worker.h"
#include "tests/sim/replay/recorded_group.h"

// Workers whose executions wait for each other in primitives of Boost.Fiber, recorded over TCP and
// replayed.
namespace rehearsal::sim {
namespace {

struct Queue {
  boost::fibers::mutex mutex;
  boost::fibers::condition_variable changed;
  std::deque<int64_t> numbers;
  int64_t sum = 0;  // of all that were taken so far
};

int64_t next_of(int64_t number) { return number + 1; }

// In the lock it asks whoever calls.
void put(CallContext& context, int64_t number) {
  Queue& queue = context.state<Queue>();
  const std::lock_guard lock(queue.mutex);
  queue.numbers.push_back(context.rpc_sync(context.caller_info().id, &next_of, number));
  queue.changed.notify_one();
}

// It gives, and notes, a number that follows from the order of all.
int64_t take(CallContext& context) {
  Queue& queue = context.state<Queue>();
  std::unique_lock lock(queue.mutex);
  queue.changed.wait(lock, [&queue] { return !queue.numbers.empty(); });
  queue.sum = 3 * queue.sum + queue.numbers.front();
  queue.numbers.pop_front();
  context.note("sum", queue.sum);
  return queue.sum;
}

void put_back(CallContext& context) {
  context.rpc_sync(context.caller_info().id, &put, int64_t{1});
}

// Its caller puts what it takes, and is asked to in the lock: nothing is there before it waits.
int64_t take_after_waiting(CallContext& context) {
  Queue& queue = context.state<Queue>();
  std::unique_lock lock(queue.mutex);
  const Future<Unit> is_put = context.rpc_async(context.caller_info().id, &put_back);
  queue.changed.wait(lock, [&queue] { return !queue.numbers.empty(); });
  lock.unlock();
  is_put.wait();
  return queue.sum;
}

// Differs from what it was in another life of the process.
int64_t count_in_process(int64_t by) {
  static int64_t count = 0;
  return count += by;
}

void use(Worker& worker) {
  constexpr int64_t kNumbers = 20;
  std::vector<Future<int64_t>> taken;
  std::vector<Future<Unit>> are_put;
  for (int64_t i = 0; i < kNumbers; ++i) {
    taken.push_back(worker.rpc_async("ps", &take));
    are_put.push_back(worker.rpc_async("ps", &put, i));
  }
  for (const auto& one : are_put) one.wait();
  for (const auto& one : taken) one.wait();
}

void use_another_way(CallContext& context) {
  const WorkerId server = context.caller_info().id;
  context.rpc_sync(server, &count_in_process, int64_t{1});
  context.rpc_sync(server, &take_after_waiting);
}

Program program_of(const Program::Main& main, const Program::Main& server = {}) {
  FunctionRegistry registry;
  registry.function("put", &put).function("take", &take).function("next_of", &next_of);
  registry.function("put_back", &put_back).function("take_after_waiting", &take_after_waiting);
  registry.function("count_in_process", &count_in_process);
  registry.function("use_another_way", &use_another_way);
  Program program(std::move(registry));
  program.worker("ps", server).state<Queue>();
  program.worker("one", main).worker("other", main);
  return program;
}

TEST(PrimitivesReplay, OnOneThreadEachWorkerDoesAgainWhatItDid) {
  // Goal: the order in which executions take locks and are woken is in the record. Method: what
  // they give follows from it, and is an act of the node.
  const Program program = program_of(use);
  RecordedGroup group(program, {.worker_threads = 0});
  for (const Status& end : group.run()) EXPECT_TRUE(end.ok()) << to_string(end.error());
  for (const uint32_t rank : {0u, 1u, 2u}) {
    const ReplayReport report = group.replay_alike(rank);
    EXPECT_TRUE(report.ended);
    EXPECT_FALSE(report.woke_beside_threads);
  }
}

ReplayReport replayed(const RecordedGroup& group, const Program& program, uint32_t rank) {
  return replay(*record::read_record(group.file(rank)).or_throw(), program, {});
}

TEST(PrimitivesReplay, OnSeveralThreadsItSaysThatItMayDiffer) {
  // Goal: a replay that differs is no riddle, and none stands still. Method: the same on two
  // threads, ten times; whatever the threads did.
  const Program program = program_of(use);
  for (int i = 0; i < 10; ++i) {
    RecordedGroup group(program, {.worker_threads = 2});
    for (const Status& end : group.run()) EXPECT_TRUE(end.ok()) << to_string(end.error());
    const ReplayReport report = replayed(group, program, 0);
    EXPECT_TRUE(report.woke_beside_threads);
    if (report.divergence) {
      EXPECT_NE(report.divergence->text.find("REHEARSAL_WORKER_THREADS=0"), std::string::npos);
    }
  }
}

TEST(PrimitivesReplay, ADivergenceNamesTheThreadsWhereTheyMayBeTheCause) {
  // Goal: the hint is where a person looks, and only where it may help. Method: a function that
  // gives something else each time, with a wake beside threads and without. The server's main
  // begins it all, so that its thread is known to be one of them.
  for (const bool threads : {false, true}) {
    const Program program = program_of(
        [](Worker&) {}, [](Worker& worker) { worker.rpc_sync("one", &use_another_way); });
    RecordedGroup group(program, {.worker_threads = threads ? 2u : 0u});
    for (const Status& end : group.run()) EXPECT_TRUE(end.ok()) << to_string(end.error());
    const ReplayReport report = replayed(group, program, 0);
    ASSERT_TRUE(report.divergence);
    EXPECT_EQ(report.divergence->text.find("REHEARSAL_WORKER_THREADS=0") != std::string::npos,
              threads)
        << report.divergence->text;
  }
}

}  // namespace
}  // namespace rehearsal::sim
