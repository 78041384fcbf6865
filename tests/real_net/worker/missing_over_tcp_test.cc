// Goal: when a group of processes does not come together, or a member is lost before it has worked,
// the error of each names that one, and no other. Method: groups of five processes, all at once, of
// which each has another rank missing: never there, killed, or stopped, once it has published where
// it is.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "core/api/worker.h"
#include "real_net/run_worker.h"
#include "real_net/worker/meeting_store.h"
#include "tests/leased_port.h"
#include "tests/real_net/support/file_lock.h"
#include "tests/real_net/support/nursery.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kMembers = 5;  // workers, and groups

enum class Fate : uint8_t { never_there, killed, stopped };

bool is_there() { return true; }

// Whether all its threads have stopped.
bool is_stopped(pid_t process) {
  const std::string threads = "/proc/" + std::to_string(process) + "/task";
  for (const auto& thread : std::filesystem::directory_iterator(threads))
    if (read_whole_file(thread.path() / "stat").find(") T ") == std::string::npos) return false;
  return true;
}

std::string worker_of(uint32_t rank) { return "w" + std::to_string(rank); }

class MissingOverTcp : public testing::Test {
 protected:
  // The group in which this rank is missing. A child's number says its group, then its rank.
  struct Group {
    uint32_t missing = 0;
    std::string rendezvous;
    std::optional<std::string> file;  // in which they meet
    std::vector<pid_t> children = std::vector<pid_t>(kMembers, -1);
    [[nodiscard]] uint32_t last() const {
      return missing == kMembers - 1 ? missing - 1 : kMembers - 1;
    }
  };

  [[nodiscard]] static WorkerOptions options(uint32_t rank, const std::string& rendezvous) {
    WorkerOptions made;
    made.placement = {.rank = rank, .world_size = {}, .rendezvous = rendezvous};
    made.environment = [](const std::string&) { return std::nullopt; };
    made.num_worker_threads = 1;
    made.observe.log = "off";
    made.node.heartbeat = milliseconds(500);
    made.node.peer_timeout = seconds(3);
    made.node.refusal_limit = seconds(2);
    made.node.join_timeout = seconds(5);
    made.node.shutdown_timeout = seconds(8);
    return made;
  }

  // In a dynamic group nobody is waited for by itself. A main that finds the missing one calls it
  // until it is lost.
  static Program program_missing(uint32_t missing, bool dynamic) {
    FunctionRegistry registry;
    registry.function("is_there", &is_there);
    Program program(std::move(registry));
    program.worker(
        "w",
        [name = worker_of(missing)](Worker& worker) {
          worker.wait_for_worker(name, seconds(5));
          while (worker.rpc_sync(name, &is_there)) worker.sleep(milliseconds(50));
        },
        Count{kMembers});
    if (dynamic) program.dynamic();
    return program;
  }

  [[nodiscard]] std::string error_file(uint32_t group, uint32_t rank) const {
    return folder_.file("error" + std::to_string(group) + std::to_string(rank));
  }

  int live(uint32_t group, uint32_t rank, bool dynamic) const {
    const Status status =
        run_worker(options(rank, groups_[group].rendezvous), program_missing(group, dynamic));
    std::ofstream(error_file(group, rank)) << (status.ok() ? "none" : status.error().text);
    return 0;
  }

  // Waits until these workers have published where they are.
  static void await_published(const Group& group, const std::vector<uint32_t>& ranks) {
    PlacementFlags flags = options(1, group.rendezvous).placement;
    Environment nothing = [](const std::string&) { return std::nullopt; };
    const Placement placement = find_placement(flags, nothing).or_throw();
    Patience patience(seconds(60), seconds(60), nullptr);
    const auto store = MeetingStore::open(placement, {}, Seal(Auth{}), patience).or_throw();
    std::vector<std::string> keys;
    for (const uint32_t rank : ranks) keys.push_back("group0/members/" + std::to_string(rank));
    while (!store->has(keys) && !patience.is_over()) std::this_thread::sleep_for(milliseconds(5));
  }

  void start(Nursery& children, Group& group, uint32_t rank) const {
    group.children[rank] = children.start(static_cast<int>(10 * group.missing + rank));
  }

  // One that is stopped while it keeps the file of the rendezvous locked keeps all others, who do
  // not know who it is (locked_file_test.cc). So it is stopped while it cannot.
  static void stop(const Group& group, pid_t child) {
    std::optional<FileLock> lock;
    if (group.file) lock.emplace(*group.file);
    EXPECT_EQ(::kill(child, SIGSTOP), 0);
    while (!is_stopped(child)) std::this_thread::sleep_for(milliseconds(1));
  }

  // A static group has not met yet when one is lost: its last worker comes when that has happened.
  void lose(Nursery& children, Group& group, Fate fate, bool dynamic) const {
    std::vector<uint32_t> there;
    for (uint32_t rank = 0; rank < kMembers; ++rank)
      if (dynamic || rank != group.last()) there.push_back(rank);
    await_published(group, there);
    const pid_t lost = group.children[group.missing];
    if (fate == Fate::killed) {
      EXPECT_EQ(children.kill(lost), -SIGKILL);
    } else {
      stop(group, lost);
    }
    if (!dynamic) start(children, group, group.last());
  }

  void expect_each_rank_named(Fate fate, bool dynamic) {
    for (uint32_t missing = 0; missing < kMembers; ++missing) {
      const std::string file = folder_.file("store" + std::to_string(missing));
      const std::string tcp = "tcp://127.0.0.1:" + std::to_string(leased_port());
      if (dynamic)
        groups_.push_back({.missing = missing, .rendezvous = "file://" + file, .file = file});
      else
        groups_.push_back({.missing = missing, .rendezvous = tcp, .file = {}});
    }
    Nursery children([&](int number) {
      return live(static_cast<uint32_t>(number) / 10, static_cast<uint32_t>(number) % 10, dynamic);
    });
    const bool comes = fate != Fate::never_there;
    for (Group& group : groups_)
      for (uint32_t rank = 0; rank < kMembers; ++rank)
        if (comes ? dynamic || rank != group.last() : rank != group.missing)
          start(children, group, rank);
    if (comes)
      for (Group& group : groups_) lose(children, group, fate, dynamic);
    for (const Group& group : groups_) expect_named_alone(children, group);
    for (const Group& group : groups_)
      if (fate == Fate::stopped) children.kill(group.children[group.missing]);
  }

  void expect_named_alone(Nursery& children, const Group& group) const {
    for (uint32_t rank = 0; rank < kMembers; ++rank) {
      if (rank == group.missing) continue;
      EXPECT_EQ(children.wait(group.children[rank]), 0);
      const std::string text = read_whole_file(error_file(group.missing, rank));
      for (uint32_t other = 0; other < kMembers; ++other)
        EXPECT_EQ(text.find("'" + worker_of(other) + "'") != std::string::npos,
                  other == group.missing)
            << worker_of(group.missing) << " is missing; " << worker_of(rank) << " says: " << text;
    }
  }

  const TemporaryFolder folder_;
  std::vector<Group> groups_;
};

TEST_F(MissingOverTcp, OneThatNeverComesToAStaticGroup) {
  // Goal: all say the same. Method: rank 0, if it is there, serves the store.
  expect_each_rank_named(Fate::never_there, /*dynamic=*/false);
}

TEST_F(MissingOverTcp, OneThatIsKilledWhenItHasSaidWhereItIs) {
  // Goal: nobody blames those that run because they wait, too. Method: SIGKILL before the last
  // worker has come.
  expect_each_rank_named(Fate::killed, /*dynamic=*/false);
}

TEST_F(MissingOverTcp, OneThatIsStoppedWhenItHasSaidWhereItIs) {
  // Goal: the same of a port that takes connections behind which nobody lives. Method: SIGSTOP.
  expect_each_rank_named(Fate::stopped, /*dynamic=*/false);
}

TEST_F(MissingOverTcp, OneThatNeverComesToADynamicGroup) {
  // Goal: the founder is named by those that cannot join, any other by those that wait for it.
  // Method: they meet in a file.
  expect_each_rank_named(Fate::never_there, /*dynamic=*/true);
}

TEST_F(MissingOverTcp, OneThatIsKilledInADynamicGroup) {
  // Goal: whether they have joined or not, they name it. Method: SIGKILL when all have said where
  // they are.
  expect_each_rank_named(Fate::killed, /*dynamic=*/true);
}

TEST_F(MissingOverTcp, OneThatIsStoppedInADynamicGroup) {
  // Goal: the same of one that says nothing. Method: SIGSTOP.
  expect_each_rank_named(Fate::stopped, /*dynamic=*/true);
}

}  // namespace
}  // namespace rehearsal::real
