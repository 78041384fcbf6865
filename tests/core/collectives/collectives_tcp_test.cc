// Goal: the operations of a process group are the same over TCP as in the simulator, bit for bit.
// Method: workers on loopback, beside a simulated cluster of the same program.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "sim/cluster.h"
#include "tests/core/collectives/group_program.h"
#include "tests/real_net/support/loopback_group.h"

namespace rehearsal::testing {
namespace {

// The tensors that the members end with, by a name; all members give the same.
class Results {
 public:
  void add(const std::string& name, const at::Tensor& tensor) {
    const std::lock_guard lock(mutex_);
    const auto [known, fresh] = all_.emplace(name, tensor.clone());
    EXPECT_TRUE(equal_bits(known->second, tensor)) << name;
  }
  [[nodiscard]] const std::map<std::string, at::Tensor>& all() const { return all_; }

 private:
  std::mutex mutex_;
  std::map<std::string, at::Tensor> all_;
};

Program program_into(Results& results) {
  return members(4, [&results](Worker& worker) {
    const ProcessGroup group(worker);
    for (const int64_t size : {1, 1'000, 1'000'000}) {
      const std::string text = " of " + std::to_string(size);
      const at::Tensor sum = rough_numbers({size}, group.rank());
      group.all_reduce(sum, ReduceOp::average);
      results.add("average" + text, sum);
      const at::Tensor given = rough_numbers({size}, group.rank());
      group.broadcast(given, 2);
      results.add("broadcast" + text, given);
      std::vector<at::Tensor> parts(4);
      for (at::Tensor& part : parts) part = at::zeros({size});
      group.all_gather(parts, rough_numbers({size}, group.rank()));
      results.add("all_gather" + text, at::cat(parts));
      const at::Tensor own = at::zeros({size});
      group.reduce_scatter(own, parts);
      group.all_gather(parts, own);
      results.add("reduce_scatter" + text, at::cat(parts));
    }
    // Many at once, and messages.
    std::vector<Future<Unit>> under_way;
    std::vector<at::Tensor> sums;
    for (int64_t i = 0; i < 16; ++i) {
      sums.push_back(rough_numbers({100 * i}, group.rank()));
      under_way.push_back(group.all_reduce_async(sums.back()));
    }
    const uint32_t other = group.rank() ^ 1;
    under_way.push_back(group.send_async(at::full({3}, group.rank()), other, 7));
    const at::Tensor message = at::zeros({3}, at::kInt);
    under_way.push_back(group.recv_async(message.zero_(), other, 8));
    under_way.push_back(group.send_async(at::full({3}, 5, at::kInt), other, 8));
    const at::Tensor rank = at::full({3}, 100);
    group.recv(rank, other, 7);
    for (const auto& one : under_way) one.wait();
    EXPECT_TRUE(at::equal(rank, at::full({3}, other)));
    EXPECT_TRUE(at::equal(message, at::full({3}, 5, at::kInt)));
    results.add("many", at::cat(sums));
  });
}

TEST(CollectivesOverTcp, GiveTheBitsOfTheSimulator) {
  Results simulated;
  const Program program = program_into(simulated);
  sim::Cluster(Seed{1}, program, {.faults = sim::FaultLevel::none}).run();
  EXPECT_EQ(simulated.all().size(), 13u);
  for (const uint32_t threads : {0, 1, 2}) {
    Results real;
    const Program real_program = program_into(real);
    real::LoopbackGroup group(real_program, {.worker_threads = threads});
    for (const Status& ended : group.run()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
    ASSERT_EQ(real.all().size(), simulated.all().size());
    for (const auto& [name, tensor] : simulated.all())
      EXPECT_TRUE(equal_bits(tensor, real.all().at(name))) << name;
  }
}

TEST(CollectivesOverTcp, SurviveBrokenConnections) {
  // Goal: links that break in the middle of large tensors cost time only. Method: proxies that cut
  // them while ten large sums are under way.
  const Program program = members(3, [](Worker& worker) {
    const ProcessGroup group(worker);
    for (int i = 0; i < 10; ++i) {
      const at::Tensor sum = at::full({500'000}, group.rank() + i);
      group.all_reduce(sum);
      EXPECT_TRUE(at::equal(sum, at::full({500'000}, 3 + 3 * i)));
    }
  });
  real::LoopbackGroup group(program, {.worker_threads = 1, .through_proxies = true});
  std::thread cutter([&] {
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      group.proxy(i % 3).reset_all();
    }
  });
  for (const Status& ended : group.run()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
  cutter.join();
}

TEST(CollectivesOverTcp, AMemberThatEndsFailsTheOthersWithItsName) {
  // The first of the others to fail ends too: the last one may hear of that first. Nobody ends
  // before all have the group.
  std::optional<ProcessGroup> kept;  // outlives its node
  std::atomic<int> grouped = 0;
  std::array<std::string, 2> named;
  const Program program = members(3, [&](Worker& worker) {
    const ProcessGroup group(worker);
    worker.leave_at_once();
    ++grouped;
    if (worker.id().value == 2) {
      while (grouped < 3) worker.sleep(std::chrono::milliseconds(1));
      kept = group;
      return;
    }
    const Error error = error_of([&] { group.all_reduce(at::ones({100'000})); });
    EXPECT_EQ(error.kind, ErrorKind::peer_lost) << to_string(error);
    named.at(worker.id().value) = error.worker;
  });
  real::LoopbackGroup group(program, {});
  for (const Status& ended : group.run()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
  EXPECT_TRUE(named[0] == "member2" || named[1] == "member2") << named[0] << ", " << named[1];
  EXPECT_TRUE(named[0] == "member2" || named[0] == "member1") << named[0];
  EXPECT_TRUE(named[1] == "member2" || named[1] == "member0") << named[1];
}

}  // namespace
}  // namespace rehearsal::testing
