// Goal: on a bad network of machines nothing is lost, doubled or left, and every error names worker
// and cause. Method: groups of four recorded workers storm, one group after the other, each worker
// a process in a network namespace of its own, under TLS; packets are lost, doubled, delayed and
// reordered, the rate is low, the MTU changes, cables come out, processes stand still, are killed
// and come back, some at another address. `check` judges what each group has recorded.
#include "tests/bad_network/bad_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <memory>
#include <thread>

#include "core/base/hash.h"
#include "scenarios/storm/actor.h"
#include "tests/bad_network/machine_process.h"
#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"

namespace rehearsal::bad_network {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr size_t kWorkers = 4;
constexpr auto kGroupMax = seconds(600);
constexpr uint64_t kGroupsMax = 10;  // until some have seen everything, if that takes longer
constexpr auto kBeforeFaults = milliseconds(200);  // after all links stand

// Unless a time is said: one small group.
const char* said_time() { return std::getenv("REHEARSAL_BAD_NETWORK_SECONDS"); }
seconds how_long() {
  return seconds(said_time() == nullptr ? 1 : std::max(1, std::atoi(said_time())));
}
std::string operations() { return said_time() == nullptr ? "operations=150" : "operations=500"; }

// Whole numbers from a seed, one after the other.
class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(seed) {}
  uint64_t below(uint64_t bound) { return mix(seed_, ++count_) % bound; }
  milliseconds time(int64_t least, int64_t most) {
    return milliseconds(least + static_cast<int64_t>(below(static_cast<uint64_t>(most - least))));
  }

 private:
  const uint64_t seed_;
  uint64_t count_ = 0;
};

Weather drawn_weather(Draws& draws) {
  Weather weather;
  const auto part = [&draws](uint64_t thousandths) {
    return static_cast<double>(draws.below(thousandths + 1)) / 1000;
  };
  if (draws.below(2) == 0) weather.loss = part(30);
  if (draws.below(2) == 0) weather.doubled = part(20);
  if (draws.below(2) == 0) weather.overtaking = part(50);
  if (draws.below(2) == 0) weather.delay = draws.time(0, 20);
  if (draws.below(2) == 0) weather.jitter = draws.time(0, 10);
  if (draws.below(3) == 0) weather.bytes_per_second = 1'000'000 + draws.below(20'000'000);
  return weather;
}

class Group {
 public:
  Group(uint64_t seed, const std::filesystem::path& folder)
      : seed_(seed), folder_(folder), network_(kWorkers, Seed{seed}), draws_(mix(seed, 1)) {
    std::filesystem::create_directories(folder_);
    for (size_t rank = 0; rank < kWorkers; ++rank) start(rank);
  }

  // Until all have ended, or time is over.
  void live_through_faults() {
    const auto end = Clock::now() + kGroupMax;
    while (!all_linked() && !any_ended() && Clock::now() < end)
      std::this_thread::sleep_for(milliseconds(20));
    std::this_thread::sleep_for(kBeforeFaults);
    while (!all_ended() && Clock::now() < end) {
      if (faults_ < kFaultsMax && !any_ended()) one_fault();
      std::this_thread::sleep_for(draws_.time(50, 500));
    }
    calm();
    while (!all_ended() && Clock::now() < end) std::this_thread::sleep_for(milliseconds(20));
  }

  void judge() {
    for (size_t rank = 0; rank < kWorkers; ++rank) judge_worker(rank);
    const command_line::ToolRun checked = command_line::run_tool("check " + records());
    EXPECT_EQ(checked.status, 0) << "seed " << seed_ << ": " << checked.out << checked.err;
    if (testing::Test::HasFailure()) std::cout << "the records are in " << records() << "\n";
  }

  [[nodiscard]] BadNetwork::Counts packets() { return network_.counts(); }
  uint64_t kills = 0, moves = 0, stands = 0, cables = 0;
  uint64_t ended_well = 0, ended_by_loss = 0;

 private:
  static constexpr int kFaultsMax = 30;
  static constexpr uint64_t kKillsMax = 2;

  [[nodiscard]] std::string records() const { return (folder_ / "records").string(); }

  // Each life has a folder of its own for its record.
  void start(size_t rank) {
    const std::string life = records() + "/" + std::to_string(lives_++);
    const std::vector<std::string> words = {
        "worker",         "storm",
        "--set",          "workers=4",
        "--set",          operations(),
        "--set",          "recordable=1",
        "--seed",         std::to_string(seed_),
        "--rank",         std::to_string(rank),
        "--rendezvous",   "file://" + (folder_ / "store").string(),
        "--listen",       network_.address(rank) + ":7000",
        "--record",       life,
        "--record-size",  "192M",
        "--heartbeat",    "500ms",
        "--peer-timeout", "6s",
        "--log",          "info",
        "--checkpoints",  (folder_ / "checkpoints").string()};
    workers_[rank] = std::make_unique<MachineProcess>(
        network_.name_space(rank), words,
        std::vector<std::string>{"REHEARSAL_AUTH=secret:env=GROUP_SECRET",
                                 "GROUP_SECRET=a secret of this group"},
        (folder_ / ("output" + std::to_string(rank))).string());
  }

  [[nodiscard]] bool all_linked() const {
    return std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) {
      const std::string text = worker->output();
      size_t links = 0;
      for (size_t at = 0; (at = text.find("event=link_up", at)) != std::string::npos; ++at) ++links;
      return links >= kWorkers - 1;
    });
  }
  [[nodiscard]] bool any_ended() const {
    return std::any_of(workers_.begin(), workers_.end(), [](auto& one) { return one->ended(); });
  }
  [[nodiscard]] bool all_ended() const {
    return std::all_of(workers_.begin(), workers_.end(), [](auto& one) { return one->ended(); });
  }

  void one_fault() {
    ++faults_;
    const size_t rank = draws_.below(kWorkers);
    switch (draws_.below(8)) {
      case 0:
        network_.set_cable(rank, false);
        std::this_thread::sleep_for(draws_.time(50, 2000));
        network_.set_cable(rank, true);
        ++cables;
        return;
      case 1:
        workers_[rank]->signal(SIGSTOP);
        std::this_thread::sleep_for(draws_.time(50, 2000));
        workers_[rank]->signal(SIGCONT);
        ++stands;
        return;
      case 2:
        if (kills < kKillsMax) return kill_one(rank);
        [[fallthrough]];
      case 3:
        return network_.set_mtu(rank, static_cast<int>(600 + draws_.below(8400)));
      default:
        return network_.set(drawn_weather(draws_));
    }
  }

  void kill_one(size_t rank) {
    workers_[rank]->kill();
    ++kills;
    if (draws_.below(2) == 0) {
      network_.move(rank);
      ++moves;
    }
    std::this_thread::sleep_for(draws_.time(0, 500));
    start(rank);
  }

  void calm() {
    network_.set({});
    for (size_t rank = 0; rank < kWorkers; ++rank) network_.set_cable(rank, true);
  }

  void judge_worker(size_t rank) {
    MachineProcess& worker = *workers_[rank];
    const std::string what = "seed " + std::to_string(seed_) + ": worker " + std::to_string(rank);
    if (!worker.ended()) {
      ADD_FAILURE() << what << " does not end: " << worker.output();
      return worker.kill();
    }
    if (worker.status() == 0) {
      ++ended_well;
      return;
    }
    const std::string words = worker.output();
    EXPECT_EQ(worker.status(), 1) << what << ": " << words;
    bool names_a_cause = false;
    for (const char* kind : {"peer_lost", "fenced", "timeout", "node_stopped"})
      names_a_cause |= words.find(kind) != std::string::npos;
    EXPECT_TRUE(names_a_cause && words.find("'worker") != std::string::npos)
        << what << ": " << words;
    ++ended_by_loss;
  }

  const uint64_t seed_;
  const std::filesystem::path folder_;
  BadNetwork network_;
  Draws draws_;
  uint64_t lives_ = 0;
  int faults_ = 0;
  std::array<std::unique_ptr<MachineProcess>, kWorkers> workers_;
};

// Over TCP a worker that comes back too late for a meeting waits for long.
uint64_t next_seed(uint64_t seed) {
  do ++seed;
  while (storm::workers_meet(Seed{seed}));
  return seed;
}

TEST(WorkersOnABadNetwork, NothingIsLostDoubledOrLeftOnABadNetwork) {
  if (const std::string why = BadNetwork::why_impossible(); !why.empty())
    GTEST_SKIP() << why << ": run it as root of a container, or where user namespaces are allowed";
  TemporaryFolder folder;
  const auto end = Clock::now() + how_long();
  const char* first = std::getenv("REHEARSAL_BAD_NETWORK_SEED");
  uint64_t seed = first == nullptr ? 0 : std::strtoull(first, nullptr, 10) - 1;
  uint64_t groups = 0, well = 0, by_loss = 0, faults = 0, lost = 0;
  const auto saw_all = [&] { return well > 0 && faults > 0 && lost > 0; };
  while (!HasFailure() && (Clock::now() < end || (!saw_all() && groups < kGroupsMax))) {
    seed = next_seed(seed);
    const std::string place = folder.file(std::to_string(seed));
    Group group(seed, place);
    group.live_through_faults();
    group.judge();
    const BadNetwork::Counts packets = group.packets();
    std::printf(
        "seed %lu: %lu packets, %lu lost, %lu doubled, %lu out of order; %lu cables out, %lu stood "
        "still, %lu killed, %lu at another address; %lu ended well, %lu by a loss\n",
        seed, packets.packets, packets.lost, packets.doubled, packets.overtaken, group.cables,
        group.stands, group.kills, group.moves, group.ended_well, group.ended_by_loss);
    std::fflush(stdout);
    ++groups;
    well += group.ended_well;
    faults += group.kills + group.stands + group.cables;
    lost += packets.lost;
    by_loss += group.ended_by_loss;
    if (HasFailure())
      folder.keep();
    else
      std::filesystem::remove_all(place);
  }
  std::printf("%lu groups: %lu workers ended well, %lu by a loss\n", groups, well, by_loss);
  EXPECT_GT(well, 0u);
  EXPECT_GT(faults, 0u) << "the groups ended before anything happened to them";
  EXPECT_GT(lost, 0u);
}

}  // namespace
}  // namespace rehearsal::bad_network
