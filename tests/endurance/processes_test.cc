// Goal: real workers that are killed and started again, again and again, through faults, end well
// or with an error that says whom they lost and why. Method: the storm with four processes behind
// proxies in bad weather, one group after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

#include "core/base/hash.h"
#include "tests/endurance/how_long.h"
#include "tests/endurance/process_meter.h"
#include "tests/endurance/weather.h"
#include "tests/endurance/worker_process.h"
#include "tests/leased_port.h"
#include "tests/temporary_folder.h"

namespace rehearsal::endurance {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kProcesses = 4;
constexpr uint64_t kGroupsMax = 20;       // without a kill that came
constexpr auto kGroupMax = seconds(600);  // joining, working, shutting down, each in its time

// Leased, so that a worker that comes back finds its own again.
std::array<uint16_t, kProcesses> leased_ports() {
  std::array<uint16_t, kProcesses> ports{};
  for (uint16_t& port : ports) port = leased_port();
  return ports;
}

class Storm {
 public:
  Storm() : ports_(leased_ports()) {
    for (size_t rank = 0; rank < kProcesses; ++rank)
      proxies_[rank] = std::make_unique<real::FaultProxy>(ports_[rank]);
  }

  // One group: it is joined, workers of it are killed and come back, and it ends.
  void run_group(uint64_t seed) {
    seed_ = seed;
    store_ = folder_.file("group" + std::to_string(seed));
    for (size_t rank = 0; rank < kProcesses; ++rank) start(rank);
    std::vector<real::FaultProxy*> ways;
    for (const auto& proxy : proxies_) ways.push_back(proxy.get());
    Weather weather(ways, Seed{seed}, milliseconds(400));
    wait_until_all_joined();
    kill_some();
    wait_for_all();
    breaks += weather.breaks();
  }

  uint64_t kills = 0;
  uint64_t breaks = 0;
  uint64_t ended_well = 0;
  uint64_t ended_by_loss = 0;

 private:
  void start(size_t rank) {
    workers_[rank].reset();
    workers_[rank] =
        std::make_unique<WorkerProcess>(WorkerOrder{.rank = static_cast<uint32_t>(rank),
                                                    .listen = ports_[rank],
                                                    .advertise = proxies_[rank]->port(),
                                                    .store = store_,
                                                    .seed = seed_,
                                                    .operations = 150});
  }

  // Before that, a rank that comes twice is a mistake.
  void wait_until_all_joined() {
    const Stretch patience(kGroupMax);
    const auto has_begun = [](const auto& worker) { return worker->joined() || worker->ended(); };
    while (!std::all_of(workers_.begin(), workers_.end(), has_begun) && !patience.over())
      std::this_thread::sleep_for(milliseconds(5));
  }

  void kill_some() {
    const uint64_t count = mix(seed_, 1) % 4;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t word = mix(seed_, 10 + i);
      std::this_thread::sleep_for(milliseconds(100 + mix(word, 1) % 1'500));
      const size_t rank = word % kProcesses;
      // A worker that comes back to a group that has ended forms the next, in vain, and may do so
      // once.
      if (std::any_of(workers_.begin(), workers_.end(), [](auto& one) { return one->ended(); }))
        return;
      workers_[rank]->kill();
      ++kills;
      start(rank);
    }
  }

  void wait_for_all() {
    const Stretch patience(kGroupMax);
    for (size_t rank = 0; rank < kProcesses; ++rank) {
      while (!workers_[rank]->ended() && !patience.over())
        std::this_thread::sleep_for(milliseconds(10));
      if (!workers_[rank]->ended()) {
        ADD_FAILURE() << "seed " << seed_ << ": worker " << rank << " does not end";
        workers_[rank]->kill();
      }
      judge(rank);
      workers_[rank].reset();
    }
  }

  void judge(size_t rank) {
    const WorkerProcess& worker = *workers_[rank];
    if (worker.status() == 0) {
      ++ended_well;
      return;
    }
    const std::string words = worker.last_words();
    EXPECT_EQ(worker.status(), 1) << "seed " << seed_ << ": worker " << rank << ": " << words;
    bool names_a_cause = false;
    for (const char* kind : {"peer_lost", "fenced", "timeout", "node_stopped"})
      names_a_cause |= words.starts_with(kind);
    const bool names_a_worker = words.find("'worker") != std::string::npos;
    EXPECT_TRUE(names_a_cause && names_a_worker)
        << "seed " << seed_ << ": worker " << rank << " ended with: " << words;
    ++ended_by_loss;
  }

  const TemporaryFolder folder_;
  const std::array<uint16_t, kProcesses> ports_;
  std::array<std::unique_ptr<real::FaultProxy>, kProcesses> proxies_;
  std::array<std::unique_ptr<WorkerProcess>, kProcesses> workers_;
  std::string store_;
  uint64_t seed_ = 0;
};

// Groups of these seeds, for half of the time, and so many that there is something to see.
void expect_storms_to_end(uint64_t seed) {
  Storm storm;
  const Stretch time(how_long() / 2);
  const auto enough = [&] { return storm.kills > 0 && storm.breaks > 0 && storm.ended_well > 0; };
  uint64_t groups = 0;
  for (; (!time.over() || (!enough() && groups < kGroupsMax)) && !testing::Test::HasFailure();
       ++groups)
    storm.run_group(seed = next_seed(seed));
  std::printf("%lu groups, %lu kills, %lu breaks, %lu ended well, %lu by a loss\n", groups,
              storm.kills, storm.breaks, storm.ended_well, storm.ended_by_loss);
  EXPECT_GT(storm.kills, 0u);
  EXPECT_GT(storm.breaks, 0u);
  EXPECT_GT(storm.ended_well, 0u);
}

TEST(Processes, WorkersThatAreKilledAndComeBackEndTheStorm) { expect_storms_to_end(0); }
TEST(Processes, WorkersThatAreKilledAndComeBackEndAnother) { expect_storms_to_end(1'000'000); }

}  // namespace
}  // namespace rehearsal::endurance
