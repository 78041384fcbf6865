// Goal: a worker that is killed and started again while its group forms is met by all soon after
// its last start, at whatever step it was killed. Method: groups of three processes, all at once,
// of which each has another rank killed; each process visits all others, and ends when those that
// live have visited it.
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "core/api/worker.h"
#include "core/wire/message.h"
#include "real_net/run_worker.h"
#include "real_net/worker/meeting_store.h"
#include "tests/leased_port.h"
#include "tests/real_net/support/nursery.h"

namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kRanks = 3;

// When a process is killed: by itself, or by the test when the store has something of it.
enum class Step : int { never, claimed, published, linked, ready, joined };

// The visitors of this process that are there to stay.
class Visitors {
 public:
  void add(const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_.insert(name);
  }
  [[nodiscard]] size_t count() {
    const std::lock_guard lock(mutex_);
    return names_.size();
  }

 private:
  std::mutex mutex_;
  std::set<std::string> names_;
};
Visitors visitors;

bool visit(const std::string& who, bool stays) {
  if (stays) visitors.add(who);
  return true;
}

bool has_visited(Worker& worker, const std::string& other, bool stays) {
  try {
    return worker.with_timeout(seconds(5)).rpc_sync(other, &visit, worker.name(), stays);
  } catch (const RpcError& error) {
    // It has been everywhere.
    return error.error().text.find("leaving the group") != std::string::npos ||
           error.error().text.find("has left the group") != std::string::npos;
  }
}

Program visiting_program(bool stays, bool dynamic) {
  FunctionRegistry registry;
  registry.function("visit", &visit);
  Program program(std::move(registry));
  program.worker(
      "w",
      [stays](Worker& worker) {
        for (bool done = false; !done; worker.sleep(milliseconds(10))) {
          done = visitors.count() == kRanks - 1;
          for (const WorkerInfo& other : worker.workers())
            if (other.id != worker.id()) done = has_visited(worker, other.name, stays) && done;
        }
      },
      Count{kRanks});
  if (dynamic) program.dynamic();
  return program;
}

// Kills its process at a step.
class Killer final : public Trace {
 public:
  explicit Killer(Step step) : step_(step) {}
  void on_event(const Event& event) override {
    const bool is_ready =
        event.kind == EventKind::frame_sent && event.message_type == Message{Ready{}}.type();
    const bool due = (step_ == Step::linked && event.kind == EventKind::peer_up) ||
                     (step_ == Step::ready && is_ready) ||
                     (step_ == Step::joined && event.kind == EventKind::execution_started);
    if (due) std::raise(SIGKILL);
  }

 private:
  const Step step_;
};

class RestartsWhileForming : public testing::Test {
 protected:
  // The group in which this rank is killed. Where that is rank 0, the test serves the store, as a
  // launcher does; else rank 0 does.
  struct Group {
    uint32_t victim = 0;
    uint16_t port = leased_port();
    std::shared_ptr<MeetingStore> outer;
    std::vector<pid_t> children = std::vector<pid_t>(kRanks, -1);
    [[nodiscard]] uint32_t last() const { return victim == kRanks - 1 ? victim - 1 : kRanks - 1; }
  };

  [[nodiscard]] static Environment environment(uint32_t rank, const Group& group) {
    std::map<std::string, std::string> variables = {{"RANK", std::to_string(rank)},
                                                    {"WORLD_SIZE", std::to_string(kRanks)},
                                                    {"MASTER_ADDR", "127.0.0.1"},
                                                    {"MASTER_PORT", std::to_string(group.port)}};
    if (group.victim == 0) {
      variables["TORCHELASTIC_RUN_ID"] = "forming";
      variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
    }
    return [variables](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
  }

  [[nodiscard]] static WorkerOptions options(uint32_t rank, const Group& group) {
    WorkerOptions made;
    made.environment = environment(rank, group);
    made.num_worker_threads = 2;
    made.observe.log = "off";
    made.node.heartbeat = milliseconds(500);
    made.node.join_timeout = seconds(90);
    made.node.shutdown_timeout = seconds(60);
    return made;
  }

  // The store of a group, as its rank sees it.
  [[nodiscard]] static std::shared_ptr<MeetingStore> open_store(uint32_t rank, bool serves,
                                                                const Group& group) {
    Placement placement = find_placement({}, environment(rank, group)).or_throw();
    placement.agent_serves = !serves;
    Patience patience(seconds(60), seconds(60), nullptr);
    return MeetingStore::open(placement, {}, Seal(Auth{}), patience).or_throw();
  }

  // A child's number: its group, its rank, the step at which it is killed.
  int live(int number, bool dynamic) const {
    const auto step = static_cast<Step>(number % 10);
    const auto rank = static_cast<uint32_t>(number / 10 % 10);
    Killer killer(step);
    WorkerOptions made = options(rank, groups_[static_cast<size_t>(number / 100)]);
    made.trace = &killer;
    const Status status = run_worker(made, visiting_program(step == Step::never, dynamic));
    if (!status.ok()) std::fprintf(stderr, "w%u: %s\n", rank, to_string(status.error()).c_str());
    return status.ok() ? 0 : 1;
  }

  static pid_t start(Nursery& children, const Group& group, uint32_t rank, Step step) {
    return children.start(static_cast<int>(100 * group.victim + 10 * rank) +
                          static_cast<int>(step));
  }

  // Waits until the store has this of the victim.
  static void await_in_store(const Group& group, Step step) {
    const std::shared_ptr<MeetingStore> store =
        group.outer != nullptr ? group.outer : open_store(1, /*serves=*/false, group);
    const std::string rank = std::to_string(group.victim);
    const auto is_there = [&] {
      return step == Step::claimed ? store->add("group0/claims/" + rank, 0) > 0
                                   : store->has({"group0/members/" + rank});
    };
    const auto limit = std::chrono::steady_clock::now() + seconds(60);
    while (!is_there() && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(milliseconds(1));
  }

  // Where the test kills it, the group is not complete: its last worker comes when the victim has
  // come again.
  void kill_and_start_again(Nursery& children, Group& group, Step step, int times) const {
    const bool by_test = step == Step::claimed || step == Step::published;
    for (uint32_t rank = 0; rank < kRanks; ++rank)
      if (rank != group.victim && !(by_test && rank == group.last()))
        group.children[rank] = start(children, group, rank, Step::never);
    for (int time = 0; time < times; ++time) {
      const pid_t victim = start(children, group, group.victim, step);
      if (by_test && time == 0) await_in_store(group, step);
      EXPECT_EQ(by_test ? children.kill(victim) : children.wait(victim), -SIGKILL);
    }
    group.children[group.victim] = start(children, group, group.victim, Step::never);
    if (by_test) group.children[group.last()] = start(children, group, group.last(), Step::never);
  }

  void expect_that_all_meet(Step step, bool dynamic, int times = 1) {
    for (uint32_t victim = 0; victim < kRanks; ++victim) groups_.push_back({.victim = victim});
    Nursery children([&](int number) { return live(number, dynamic); });
    groups_.front().outer = open_store(0, /*serves=*/true, groups_.front());
    for (Group& group : groups_) kill_and_start_again(children, group, step, times);
    for (const Group& group : groups_)
      for (const pid_t child : group.children)
        EXPECT_EQ(children.wait(child), 0) << "w" << group.victim << " was killed";
  }

  std::vector<Group> groups_;
};

class OfEitherKind : public RestartsWhileForming, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(RestartsWhileForming, OfEitherKind, testing::Bool(), [](const auto& kind) {
  return std::string(kind.param ? "Dynamic" : "Static");
});

TEST_P(OfEitherKind, BeforeItHasPublishedWhereItIs) {
  // Goal: a place that was claimed by a process that died is free. Method: it is killed as soon as
  // the store knows that somebody came.
  expect_that_all_meet(Step::claimed, GetParam());
}

TEST_P(OfEitherKind, WhenItHasPublishedWhereItIs) {
  // Goal: the others do not look where it was, and nobody says that two were started. Method: it is
  // killed when its record is there, and the last worker comes after it has been started again.
  expect_that_all_meet(Step::published, GetParam());
}

TEST_P(OfEitherKind, WhenItIsLinkedWithSome) {
  // Goal: who has met its former life waits for the next. Method: it dies at its first link.
  expect_that_all_meet(Step::linked, GetParam());
}

TEST_P(OfEitherKind, WhenItHasJoined) {
  // Goal: whoever has not joined yet is not left behind. Method: it dies when its main begins.
  expect_that_all_meet(Step::joined, GetParam());
}

TEST_P(OfEitherKind, Twice) {
  // Goal: one restart is as good as many. Method: two lives end at their first link.
  expect_that_all_meet(Step::linked, GetParam(), /*times=*/2);
}

TEST_F(RestartsWhileForming, WhenItIsReady) {
  // Goal: the word of a life that has ended does not stand for the next one. Method: it dies when
  // it says Ready to the first of the others.
  expect_that_all_meet(Step::ready, /*dynamic=*/false);
}

}  // namespace
}  // namespace rehearsal::real
