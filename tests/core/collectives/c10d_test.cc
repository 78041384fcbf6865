// Goal: code that is written against LibTorch's own interfaces, c10d::ProcessGroup and c10d::Store,
// runs over a process group and over calls. Method: their functions as LibTorch calls them, through
// its dispatcher, at simulated workers under faults and over TCP.
#include <gtest/gtest.h>

#include "core/api/c10d_group.h"

// The wheel is built with it, and c10d's headers ask for it.
#define USE_DISTRIBUTED
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/core/collectives/group_program.h"
#include "tests/effort.h"
#include "tests/real_net/support/loopback_group.h"

namespace rehearsal::testing {
namespace {

using sim::Cluster;
using sim::ClusterOptions;
using sim::FaultLevel;
using std::chrono::milliseconds;
using Tensors = std::vector<at::Tensor>;

constexpr uint32_t kMembers = 3;

::testing::AssertionResult holds(const Program& program, uint64_t seeds = 20) {
  return sim::hunt(
      {.seeds = tries(seeds), .cluster = {.faults = FaultLevel::hostile}},
      [&](Seed seed, const ClusterOptions& options) { Cluster(seed, program, options).run(); });
}

void expect_to_hold_over_tcp(const Program& program) {
  for (const uint32_t threads : {0, 2}) {
    real::LoopbackGroup group(program, {.worker_threads = threads});
    for (const Status& ended : group.run()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
  }
}

at::Tensor full(int64_t size, double value) { return at::full({size}, value, at::kFloat); }

void reduce_and_move(c10d::ProcessGroup& group) {
  const double rank = group.getRank();
  Tensors sum = {full(4, rank)};
  group.allreduce(sum)->wait();
  EXPECT_TRUE(at::equal(sum[0], full(4, 3)));
  Tensors mean = {full(4, rank)};
  group.allreduce(mean, {.reduceOp = c10d::ReduceOp::AVG})->wait();
  EXPECT_TRUE(at::equal(mean[0], full(4, 1)));
  Tensors several = {full(2, rank), full(3, rank + 1)};
  c10d::AllreduceCoalescedOptions of_several;
  of_several.reduceOp = c10d::ReduceOp::MAX;
  group.allreduce_coalesced(several, of_several)->wait();
  EXPECT_TRUE(at::equal(several[0], full(2, 2)));
  EXPECT_TRUE(at::equal(several[1], full(3, 3)));
  Tensors given = {full(2, rank)};
  group.broadcast(given, {.rootRank = 1})->wait();
  EXPECT_TRUE(at::equal(given[0], full(2, 1)));
  Tensors product = {full(2, rank + 1)};
  group.reduce(product, {.reduceOp = c10d::ReduceOp::PRODUCT, .rootRank = 2})->wait();
  EXPECT_TRUE(at::equal(product[0], full(2, rank == 2 ? 6 : rank + 1)));
  group.barrier()->wait();
}

void gather_and_scatter(c10d::ProcessGroup& group) {
  const double rank = group.getRank();
  const bool is_root = group.getRank() == 0;
  std::vector<Tensors> outputs = {{full(2, 9), full(2, 9), full(2, 9)}};
  Tensors mine = {full(2, rank)};
  const auto gathered = group.allgather(outputs, mine);
  EXPECT_TRUE(gathered->wait());
  EXPECT_TRUE(gathered->isCompleted());
  EXPECT_TRUE(gathered->isSuccess());
  for (size_t i = 0; i < kMembers; ++i)
    EXPECT_TRUE(at::equal(outputs[0][i], full(2, static_cast<double>(i))));
  at::Tensor base = at::zeros({6});
  at::Tensor input = full(2, rank);
  group._allgather_base(base, input)->wait();
  EXPECT_TRUE(at::equal(base, at::cat({full(2, 0), full(2, 1), full(2, 2)})));
  at::Tensor part = at::zeros({2});
  group._reduce_scatter_base(part, base)->wait();
  EXPECT_TRUE(at::equal(part, full(2, 3 * rank)));
  std::vector<Tensors> to_scatter;
  if (is_root) to_scatter.push_back({full(1, 5), full(1, 6), full(1, 7)});
  Tensors own = {full(1, 0)};
  group.scatter(own, to_scatter)->wait();
  EXPECT_TRUE(at::equal(own[0], full(1, 5 + rank)));
  std::vector<Tensors> at_root;
  if (is_root) at_root.push_back({full(1, 0), full(1, 0), full(1, 0)});
  group.gather(at_root, own)->wait();
  if (is_root) EXPECT_TRUE(at::equal(at::cat(at_root[0]), at::arange(5, 8, at::kFloat)));
  // Rank r gives r + 1 rows to each.
  std::vector<int64_t> in_rows(kMembers, group.getRank() + 1);
  std::vector<int64_t> out_rows = {1, 2, 3};
  at::Tensor in = full(kMembers * in_rows[0], rank);
  at::Tensor out = at::zeros({6});
  group.alltoall_base(out, in, out_rows, in_rows)->wait();
  EXPECT_TRUE(at::equal(out, at::cat({full(1, 0), full(2, 1), full(3, 2)})));
}

TEST(C10dGroup, HasTheOperationsOfLibTorchsProcessGroups) {
  const Program program = members(kMembers, [](Worker& worker) {
    const ProcessGroup group(worker);
    const auto outside = as_c10d_group(group);
    reduce_and_move(*outside);
    gather_and_scatter(*outside);
    // Messages, and a future that is complete when the operation is.
    Tensors message = {full(2, outside->getRank())};
    if (outside->getRank() == 0) outside->send(message, 1, 7)->wait();
    if (outside->getRank() == 1) outside->recv(message, 0, 7)->wait();
    EXPECT_TRUE(at::equal(message[0], full(2, outside->getRank() == 2 ? 2 : 0)));
    Tensors sum = {full(2, 1)};
    const auto work = outside->allreduce(sum);
    const auto future = work->getFuture();
    work->wait();
    while (!future->completed()) worker.sleep(milliseconds(1));
    EXPECT_TRUE(at::equal(future->value().toTensorVector().at(0), full(2, 3)));
    // Operations of the group itself come between.
    group.barrier();
    outside->barrier()->wait();
  });
  EXPECT_TRUE(holds(program));
  expect_to_hold_over_tcp(program);
}

TEST(C10dGroup, TellsOfFailuresAndRefusesWhatItCannot) {
  EXPECT_TRUE(holds(members(2, [](Worker& worker) {
    const ProcessGroup group(worker, {}, {.timeout = std::chrono::seconds(20)});
    const auto outside = as_c10d_group(group);
    Tensors tensors = {at::ones({2}, at::kLong)};
    EXPECT_THROW(outside->allreduce(tensors, {.reduceOp = c10d::ReduceOp::BXOR}), c10::Error);
    EXPECT_THROW(outside->allreduce(tensors, {.timeout = milliseconds(5)}), c10::Error);
    Tensors two = {at::ones({2}), at::ones({2})};
    EXPECT_THROW(outside->broadcast(two), c10::Error);
    if (outside->getRank() == 1) tensors[0] = at::ones({3}, at::kLong);
    const auto work = outside->allreduce(tensors);
    const Error error = error_of([&] { work->wait(); });
    EXPECT_EQ(error.kind, ErrorKind::bad_arguments) << to_string(error);
    EXPECT_TRUE(work->isCompleted());
    EXPECT_FALSE(work->isSuccess());
    EXPECT_NE(work->exception(), nullptr);
  })));
}

TEST(C10dStore, KeepsKeysAtOneWorkerForAll) {
  const Program program = members(kMembers, [](Worker& worker) {
    const auto store = open_c10d_store(worker, "member2", "keys");
    const std::string name = worker.name();
    store->set("of " + name, name);
    for (uint32_t i = 0; i < kMembers; ++i) {
      const std::string other = "member" + std::to_string(i);
      EXPECT_EQ(store->get_to_str("of " + other), other);
    }
    // A barrier as rendezvous make them.
    if (store->add("arrived", 1) == kMembers) store->set("all", "yes");
    store->wait({"all", "arrived"});
    EXPECT_EQ(store->add("arrived", 0), kMembers);
    EXPECT_EQ(store->get_to_str("arrived"), "3");
    EXPECT_TRUE(store->check({"all", "arrived"}));
    EXPECT_FALSE(store->check({"all", "none"}));
    worker.barrier();
    if (worker.id().value == 0) {
      EXPECT_EQ(store->getNumKeys(), 5);
      EXPECT_EQ(store->listKeys().front(), "all");
      EXPECT_EQ(store->compareSet("turn", "wrong", "x"), "wrong");
      EXPECT_EQ(store->compareSet("turn", "", "x"), "x");
      EXPECT_EQ(store->compareSet("turn", "wrong", "y"), "x");
      EXPECT_EQ(store->compareSet("turn", "x", "y"), "y");
      EXPECT_TRUE(store->deleteKey("turn"));
      EXPECT_FALSE(store->deleteKey("turn"));
      const auto copy = store->clone();
      copy->setTimeout(milliseconds(500));
      const Error late = error_of([&] { copy->get("never"); });
      EXPECT_EQ(late.kind, ErrorKind::timeout) << to_string(late);
      const Error none = error_of([&] { store->add("all", 1); });
      EXPECT_TRUE(contains(none.text, "the value of 'all' is no number")) << none.text;
      store->set("most", std::to_string(INT64_MAX));
      const Error beyond = error_of([&] { store->add("most", 1); });
      EXPECT_EQ(beyond.kind, ErrorKind::bad_arguments) << to_string(beyond);
      EXPECT_TRUE(contains(beyond.text, "with 1 no number of 64 bits")) << beyond.text;
      EXPECT_EQ(store->add("most", -1), INT64_MAX - 1);
      // Bytes that are no text, and another store of the same worker.
      store->set("bytes", std::vector<uint8_t>{0, 255, 10});
      EXPECT_EQ(store->get("bytes"), (std::vector<uint8_t>{0, 255, 10}));
      EXPECT_EQ(open_c10d_store(worker, "member2", "others")->getNumKeys(), 0);
      auto prefixed = c10::make_intrusive<c10d::PrefixStore>("run 1", store);
      prefixed->set("key", std::vector<uint8_t>{1});
      EXPECT_TRUE(store->check({"run 1/key"}));
    }
  });
  EXPECT_TRUE(holds(program));
  expect_to_hold_over_tcp(program);
}

TEST(C10dStore, EndsTheWaitForAWorkerThatDies) {
  int told = 0;
  const Program program = members(2, [&told](Worker& worker) {
    const auto store = open_c10d_store(worker, "member1", "keys");
    if (worker.id().value == 1) worker.sleep(std::chrono::seconds(1000));
    const Error error = error_of([&] { store->get("never"); });
    EXPECT_EQ(error.kind, ErrorKind::peer_lost) << to_string(error);
    ++told;
  });
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  cluster.advance(std::chrono::seconds(5));
  cluster.crash("member1");
  (void)cluster.try_run();
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace rehearsal::testing
