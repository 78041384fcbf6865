#include "sim/replay/replay.h"

#include <ATen/ATen.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarTypeToTypeMeta.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "core/api/worker.h"
#include "record/ring_file.h"
#include "sim/world/torch_settings.h"
#include "tests/sim/replay/recorded_group.h"

// Workers that ran over TCP and threads, each replayed alone from what was recorded of it.
namespace rehearsal::sim {
namespace {

using std::chrono::milliseconds;

int64_t add(int64_t a, int64_t b) { return a + b; }

at::Tensor twice(const at::Tensor& tensor) { return tensor + tensor; }

int64_t fail_on_purpose(int64_t number) {
  throw std::runtime_error("no " + std::to_string(number));
}

at::Tensor draw(int64_t count) { return at::rand({count}); }

int64_t nest(CallContext& context, int64_t depth) {
  if (depth == 0) return 0;
  const std::string other = context.worker_info().name == "ps" ? "trainer" : "ps";
  return 1 + context.rpc_sync(other, &nest, depth - 1);
}

// How long something takes, as the worker's own clock has it: no two runs agree.
int64_t measure(CallContext& context) {
  const Instant before = context.caller()->strand()->runtime().now();
  const std::string other = context.worker_info().name == "ps" ? "trainer" : "ps";
  context.rpc_sync(other, &add, int64_t{1}, int64_t{1});
  return (context.caller()->strand()->runtime().now() - before).count();
}

// Differs from what it was in another life of the process: what no record holds.
int64_t& process_count() {
  static int64_t count = 0;
  return count;
}
int64_t add_in_process(int64_t by) { return process_count() += by; }
void note_in_process(CallContext& context, int64_t by) {
  context.note("count", process_count() += by);
}

class Counter {
 public:
  explicit Counter(int64_t start) : count_(start) {}
  int64_t add(int64_t by) { return count_ += by; }

 private:
  int64_t count_;
};

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add).function("twice", &twice).function("nest", &nest);
  registry.function("fail_on_purpose", &fail_on_purpose).function("draw", &draw);
  registry.function("measure", &measure).function("add_in_process", &add_in_process);
  registry.function("note_in_process", &note_in_process);
  registry.type<Counter>("Counter").constructor<int64_t>().method("add", &Counter::add);
  return registry;
}

void serve(Worker&) {}

// Calls of every kind, also side by side, references among them.
void train(Worker& worker) {
  EXPECT_EQ(worker.rpc_sync("ps", &add, int64_t{2}, int64_t{3}), 5);
  EXPECT_EQ(worker.rpc_sync(worker.name(), &add, int64_t{4}, int64_t{5}), 9);
  const at::Tensor large = at::full({1 << 16}, 1.5f);
  EXPECT_TRUE(worker.rpc_sync("ps", &twice, large).equal(large + large));
  EXPECT_EQ(worker.rpc_sync("ps", &nest, int64_t{20}), 20);
  // The exception that ends a worker cut off here must get through.
  try {
    worker.rpc_sync("ps", &fail_on_purpose, int64_t{3});
    ADD_FAILURE();
  } catch (const RpcError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::remote_exception);
  }
  const auto counter = worker.remote<Counter>("ps", int64_t{100});
  std::vector<Future<int64_t>> sums;
  for (int64_t i = 0; i < 50; ++i) {
    sums.push_back(worker.rpc_async(counter, &Counter::add, int64_t{1}));
    sums.push_back(worker.rpc_async("ps", &add, i, i).then([](int64_t sum) { return sum + 1; }));
  }
  worker.when_all(sums).wait();
  EXPECT_EQ(worker.rpc_sync(counter, &Counter::add, int64_t{0}), 150);
  EXPECT_EQ(worker.rpc_sync("ps", &draw, int64_t{8}).size(0), 8);
  const Instant before = worker.now();
  const int64_t nanoseconds = worker.rpc_sync("ps", &measure);
  EXPECT_GT(nanoseconds, 0);
  worker.rpc_sync("ps", &add, nanoseconds, (worker.now() - before).count());
  // Where nothing may wait, waiting says so.
  const Future<int64_t> later = worker.rpc_async("ps", &add, int64_t{1}, int64_t{1});
  const auto kind = worker.rpc_async("ps", &add, int64_t{2}, int64_t{2}).then([&](int64_t) {
    const Result<int64_t> result = later.result();
    return result.ok() ? int64_t{-1} : static_cast<int64_t>(Result<int64_t>(result).error().kind);
  });
  EXPECT_EQ(kind.wait(), static_cast<int64_t>(ErrorKind::would_park));
}

class Replay : public testing::TestWithParam<uint32_t> {};

TEST_P(Replay, DoesAgainWhatEachWorkerDid) {
  // Goal: every event, frame and tensor of every worker is as it was. Method: calls of all kinds
  // between three workers, with so many threads for their functions.
  Program program(functions());
  program.worker("ps", serve).worker("trainer", train).worker("other", train);
  RecordedGroup group(program, {.worker_threads = GetParam()});
  for (const Status& end : group.run()) EXPECT_TRUE(end.ok()) << to_string(end.error());
  for (const uint32_t rank : {0u, 1u, 2u}) {
    const ReplayReport report = group.replay_alike(rank);
    EXPECT_TRUE(report.ended);
    EXPECT_FALSE(report.failure.has_value());
    EXPECT_GT(report.entries, 100u);
    EXPECT_GE(report.acts, group.events(rank).size());
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, Replay, testing::Values(0u, 1u, 2u, 4u));

TEST(Replay, LeavesLibTorchsSettingsAsTheyWere) {
  // Goal: a worker that sets the default dtype is replayed alike, and no later replay of the same
  // process has it. Method: both workers, the one that does so first.
  Program program(functions());
  program.worker("ps", serve).worker("trainer", [](Worker& worker) {
    c10::set_default_dtype(c10::scalarTypeToTypeMeta(at::kDouble));
    EXPECT_EQ(worker.rpc_sync("ps", &twice, at::ones({2})).scalar_type(), at::kDouble);
  });
  RecordedGroup group(program, {.worker_threads = 1});
  {
    const TorchSettingsKept settings;  // Over TCP, but in this process.
    for (const Status& end : group.run()) EXPECT_TRUE(end.ok()) << to_string(end.error());
  }
  for (const uint32_t rank : {1u, 0u}) {
    EXPECT_TRUE(group.replay_alike(rank).ended);
    EXPECT_EQ(at::ones({1}).scalar_type(), at::kFloat);
  }
}

TEST(Replay, FollowsLinksThatAreResetAgainAndAgain) {
  Program program(functions());
  program.worker("ps", serve).worker("trainer", [](Worker& worker) {
    for (int64_t i = 0; i < 300; ++i) EXPECT_EQ(worker.rpc_sync("ps", &add, i, i), 2 * i);
  });
  real::GroupOptions options{.through_proxies = true};
  options.node.peer_timeout = milliseconds(1'500);
  options.node.heartbeat = milliseconds(200);
  RecordedGroup group(program, options);
  for (const uint32_t rank : {0u, 1u}) group.group().proxy(rank).set_reset_after(10'000);
  for (const Status& end : group.run()) EXPECT_TRUE(end.ok()) << to_string(end.error());
  for (const uint32_t rank : {0u, 1u}) {
    const ReplayReport report = group.replay_alike(rank);
    EXPECT_TRUE(report.ended);
    const auto& events = group.events(rank);
    EXPECT_TRUE(std::any_of(events.begin(), events.end(),
                            [](const std::string& line) { return line.starts_with("peer_lost"); }));
  }
}

// A pair of workers over TCP that did what `train` does, and the record of one of them.
class OneRecord : public testing::Test {
 protected:
  OneRecord() : program_(functions()) {}

  std::unique_ptr<record::Record> record(Program::Main main, uint32_t rank) {
    program_.worker("ps", serve).worker("trainer", std::move(main));
    group_.emplace(program_, real::GroupOptions{});
    for (const Status& end : group_->run()) EXPECT_TRUE(end.ok()) << to_string(end.error());
    return record::read_record(group_->file(rank)).or_throw();
  }

  Program program_;
  std::optional<RecordedGroup> group_;
};

TEST_F(OneRecord, OfWhichAMessageIsMissingIsNoticedAtOnce) {
  // Goal: the first thing that a node does otherwise is named. Method: messages are left out one by
  // one, with what was read and done behind them. Not acknowledgements: the next one makes up for
  // one that never came.
  const auto whole = record(train, 0);
  uint64_t entry = 0;
  uint64_t tried = 0;
  for (size_t i = 0; i < whole->items.size(); ++i) {
    if (!std::holds_alternative<record::Outcome>(whole->items[i])) continue;
    ++entry;
    size_t first = i;
    while (first > 0 && !std::holds_alternative<record::Outcome>(whole->items[first - 1])) --first;
    const auto* came = std::get_if<record::FrameReceived>(&whole->items[first]);
    if (came == nullptr || came->header.kind != FrameKind::message || entry % 5 != 0) continue;
    record::Record less{.header = whole->header, .items = whole->items, .bytes = {}};
    less.items.erase(less.items.begin() + first, less.items.begin() + i + 1);
    const ReplayReport report = replay(less, program_);
    ASSERT_TRUE(report.divergence.has_value()) << entry;
    EXPECT_GE(report.divergence->entry, entry - 1);
    EXPECT_FALSE(report.divergence->text.empty());
    ++tried;
  }
  EXPECT_GT(tried, 2u);
}

TEST_F(OneRecord, StopsWhereItIsCutOff) {
  // Goal: half a record is replayed as far as it goes, wherever it stops. Method: every 40th item.
  const auto whole = record(train, 1);
  for (size_t items = 0; items < whole->items.size(); items += 40) {
    record::Record less{.header = whole->header, .items = whole->items, .bytes = {}};
    less.items.resize(items);
    const ReplayReport report = replay(less, program_);
    ASSERT_FALSE(report.divergence.has_value())
        << items << " " << report.divergence->entry << " " << report.divergence->text;
    EXPECT_FALSE(report.ended);
  }
}

TEST_F(OneRecord, OfAProgramThatReadsSomethingElseDivergesWhereItDoes) {
  // Goal: what user code takes from elsewhere is noticed at the frame that tells of it. Method: a
  // count that the process has kept since the run.
  process_count() = 0;
  const auto whole = record(
      [](Worker& worker) {
        EXPECT_EQ(worker.rpc_sync("ps", &add, int64_t{1}, int64_t{2}), 3);
        EXPECT_EQ(worker.rpc_sync("ps", &add_in_process, int64_t{7}), 7);
      },
      0);
  process_count() = 0;
  EXPECT_FALSE(replay(*whole, program_).divergence.has_value());
  const ReplayReport report = replay(*whole, program_);
  ASSERT_TRUE(report.divergence.has_value());
  EXPECT_EQ(report.divergence->text,
            "the record has another frame where the replay has frame with trainer");
}

TEST_F(OneRecord, OfAProgramThatNotesSomethingElseDivergesThere) {
  // Goal: notes are part of the record, with their values. Method: a served function that notes how
  // often it was called in this process.
  process_count() = 0;
  const auto whole =
      record([](Worker& worker) { worker.rpc_sync("ps", &note_in_process, int64_t{7}); }, 0);
  process_count() = 0;
  EXPECT_FALSE(replay(*whole, program_).divergence.has_value());
  const ReplayReport report = replay(*whole, program_);
  ASSERT_TRUE(report.divergence.has_value());
  EXPECT_EQ(report.divergence->text,
            "the record has another event note where the replay has event note 'count' = 14");
}

TEST_F(OneRecord, OfAnotherBuildOrProgramIsRefused) {
  const auto whole = record(train, 0);
  const std::string build = std::exchange(whole->header.build, "0123456789abcdef");
  EXPECT_EQ(*refusal(*whole), "was recorded by another build (0123456789abcdef, this one is " +
                                  build + "): replay it with the program that recorded it");
  whole->header.build = build;
  EXPECT_EQ(refusal(*whole), std::nullopt);
  Program other(functions());
  other.worker("ps", serve);
  EXPECT_EQ(*refusal(*whole, other), "was recorded by another program: it has other workers");
  Program without(FunctionRegistry{});
  without.worker("ps", serve).worker("trainer", serve);
  EXPECT_TRUE(
      refusal(*whole, without)
          ->starts_with("was recorded with another program, LibTorch or kind of processor: "));
}

TEST_F(OneRecord, OfAWorkerThatUsesThreadsOfItsOwnIsRefused) {
  const auto whole = record(
      [](Worker& worker) {
        const Promise<int64_t> promise = worker.promise<int64_t>();
        std::thread other([promise] { promise.complete(int64_t{5}); });
        other.join();
        EXPECT_EQ(promise.future().wait(), 5);
      },
      1);
  EXPECT_EQ(*refusal(*whole),
            "is of a worker that threads of the program's own have used, and a replay has none");
}

TEST_F(OneRecord, TakesFewBytesForACall) {
  // Goal: what recording costs. Method: 500 calls with two integers, each waited for.
  const auto whole = record(
      [](Worker& worker) {
        for (int64_t i = 0; i < 500; ++i) worker.rpc_sync("ps", &add, i, i);
      },
      1);
  const auto served = record::read_record(group_->file(0)).or_throw();
  const auto bytes_of = [](const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    record::Preface preface{};
    in.read(reinterpret_cast<char*>(&preface), sizeof preface);
    return preface.written;
  };
  EXPECT_LT(bytes_of(group_->file(1)), 500 * 400u);
  EXPECT_LT(bytes_of(group_->file(0)), 500 * 500u);
}

// Calls when it dies, and lets out what the call throws.
struct CallsAtItsEnd {
  ~CallsAtItsEnd() { counter.rpc_sync(&Counter::add, int64_t{1}); }
  RRef<Counter> counter;
};

TEST(ReplayOfAFailure, EndsAsTheWorkerDid) {
  // Goal: the error is all that it was: its type, too. Method: exceptions of a main.
  Program program(functions());
  program.worker("ps", serve).worker("trainer", [](Worker&) {
    throw std::logic_error("it failed");
  });
  RecordedGroup group(program, {});
  const Error error = group.run_only().at(1).error();
  EXPECT_EQ(error.type, "std::logic_error");
  const ReplayReport report = group.replay_alike(1);
  EXPECT_TRUE(report.ended);
  EXPECT_EQ(report.failure, error);
}

TEST(ReplayOfAFailure, WhatTheWorkerHeldMayCallAsItEnds) {
  // Goal: the replay goes on to its report. Method: a state whose destructor lets out an error,
  // which is told behind the end of the record.
  Program program(functions());
  program.worker("ps", serve)
      .worker("trainer", [](Worker&) { throw std::logic_error("it failed"); })
      .state<CallsAtItsEnd>(
          [](Worker& worker) { return CallsAtItsEnd{worker.rref(Counter(int64_t{1}))}; });
  RecordedGroup group(program, {});
  const std::vector<Status> ends = group.run_only();
  ASSERT_FALSE(ends[1].ok());
  const auto record = record::read_record(group.file(1)).or_throw();
  const ReplayReport report = replay(*record, program, {});
  EXPECT_FALSE(report.divergence) << report.divergence->text;
  EXPECT_TRUE(report.ended);
  EXPECT_EQ(report.failure, Status(ends[1]).error());
}

TEST(ReplayOfAnAbort, EndsAsTheWorkerDid) {
  Program program(functions());
  program.worker("ps", serve).worker("trainer", [](Worker& worker) {
    while (true) worker.rpc_sync("ps", &add, int64_t{1}, int64_t{2});
  });
  RecordedGroup group(program, {});
  std::thread aborts([&group] {
    while (group.group().node(0).transport().census().reads < 100) std::this_thread::yield();
    group.group().node(0).abort({.kind = ErrorKind::node_stopped, .text = "enough"});
  });
  const std::vector<Status> ends = group.run_only();
  aborts.join();
  for (const uint32_t rank : {0u, 1u}) {
    ASSERT_FALSE(ends[rank].ok());
    const ReplayReport report = group.replay_alike(rank);
    EXPECT_TRUE(report.ended);
    EXPECT_EQ(*report.failure, Status(ends[rank]).error());
  }
}

}  // namespace
}  // namespace rehearsal::sim
