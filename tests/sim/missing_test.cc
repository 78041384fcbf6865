// Goal: when a group does not come together, the error of every worker names the one that is
// missing, and no other. Method: five workers, of which each in turn is never there, crashes, or
// stands still, before it has met anybody or when it has met one of the others only.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "sim/cluster.h"

namespace rehearsal::sim {
namespace {

using std::chrono::seconds;

constexpr uint32_t kWorkers = 5;

enum class Fate : uint8_t { never_there, crashes, stands_still };

struct MissingCase {
  uint32_t rank = 0;
  Fate fate{};
  bool dynamic = false;
  bool is_met = false;  // by one of the others, before
};

std::string name_of_rank(uint32_t rank) { return "w" + std::to_string(rank); }

// In a dynamic group nobody is waited for by itself: each main does, for all others in turn; twice,
// since one that was there when it was asked for may be given up later.
Program group_of_five(bool dynamic) {
  Program program{FunctionRegistry()};
  program.worker(
      "w",
      [](Worker& worker) {
        for (const Duration rest : {seconds(10), seconds(100)}) {
          for (const WorkerInfo& other : worker.workers())
            if (other.id != worker.id()) worker.wait_for_worker(other.name, seconds(30));
          worker.sleep(rest);
        }
      },
      Count{kWorkers});
  if (dynamic) program.dynamic();
  return program;
}

// Whether two workers have met, as the first of them saw it.
class Meets final : public Trace {
 public:
  Meets(uint32_t worker, uint32_t peer) : worker_{worker}, peer_{peer} {}
  void on_event(const Event& event) override {
    met |= event.kind == EventKind::peer_up && event.worker == worker_ && event.peer == peer_;
  }
  bool met = false;

 private:
  const WorkerId worker_;
  const WorkerId peer_;
};

// The errors of the others, by rank.
std::vector<std::optional<std::string>> errors_without(const MissingCase& missing) {
  const Program program = group_of_five(missing.dynamic);
  const std::string name = name_of_rank(missing.rank);
  const uint32_t friend_rank = missing.rank == 0 ? 1 : 0;
  Meets meets(friend_rank, missing.rank);
  ClusterOptions options{.faults = FaultLevel::none};
  options.traces.push_back(&meets);
  options.adjust_node = [](NodeOptions& node) {
    node.join_timeout = seconds(20);
    node.peer_timeout = seconds(8);  // A member that stands still is given up before a join is.
  };
  Cluster cluster(Seed{1}, program, options);
  if (missing.is_met) {
    std::vector<std::string> strangers;
    for (uint32_t rank = 0; rank < kWorkers; ++rank)
      if (rank != missing.rank && rank != friend_rank) strangers.push_back(name_of_rank(rank));
    cluster.network().split({name}, strangers);
  }
  EXPECT_TRUE(cluster.run_until([&] { return meets.met || !missing.is_met; }));
  if (missing.fate == Fate::stands_still)
    cluster.pause(name, seconds(1000));
  else
    cluster.crash(name);
  const auto error_of = [&](uint32_t rank) -> std::optional<std::string> {
    const Status* end = rank == missing.rank ? nullptr : cluster.result(name_of_rank(rank));
    return end != nullptr && !end->ok() ? std::optional(end->error().text) : std::nullopt;
  };
  const auto all_have_failed = [&] {
    for (uint32_t rank = 0; rank < kWorkers; ++rank)
      if (rank != missing.rank && !error_of(rank)) return false;
    return true;
  };
  EXPECT_TRUE(cluster.run_until(all_have_failed, seconds(90)));
  std::vector<std::optional<std::string>> errors;
  for (uint32_t rank = 0; rank < kWorkers; ++rank) errors.push_back(error_of(rank));
  return errors;
}

void expect_named_alone(const MissingCase& missing) {
  const auto errors = errors_without(missing);
  for (uint32_t rank = 0; rank < kWorkers; ++rank) {
    if (rank == missing.rank) continue;
    ASSERT_TRUE(errors[rank].has_value()) << name_of_rank(rank);
    for (uint32_t other = 0; other < kWorkers; ++other)
      EXPECT_EQ(errors[rank]->find("'" + name_of_rank(other) + "'") != std::string::npos,
                other == missing.rank)
          << name_of_rank(rank) << ": " << *errors[rank];
  }
}

void expect_each_rank_named(Fate fate, bool is_met) {
  for (const bool dynamic : {false, true}) {
    for (uint32_t rank = 0; rank < kWorkers; ++rank) {
      SCOPED_TRACE((dynamic ? "dynamic, " : "static, ") + name_of_rank(rank));
      expect_named_alone({.rank = rank, .fate = fate, .dynamic = dynamic, .is_met = is_met});
    }
  }
}

TEST(Missing, OneThatNeverComesIsNamedByAllAndNobodyElseIs) {
  // Goal: "each of the four names it". Method: it ends before anything happens.
  expect_each_rank_named(Fate::never_there, /*is_met=*/false);
}

TEST(Missing, OneThatCrashesWhenAnotherHasMetItIsNamedByAllAndNobodyElseIs) {
  // Goal: who has met all but waits for those who have not tells the same story as these. Method: a
  // partition lets one of the others meet it only.
  expect_each_rank_named(Fate::crashes, /*is_met=*/true);
}

TEST(Missing, OneThatStandsStillFromTheStartIsNamedByAllAndNobodyElseIs) {
  // Goal: a worker that lives and does nothing is as missing as one that does not. Method: a pause
  // that is longer than the join may take.
  expect_each_rank_named(Fate::stands_still, /*is_met=*/false);
}

TEST(Missing, OneThatStandsStillWhenAnotherHasMetItIsNamedByAllAndNobodyElseIs) {
  // Goal: who has met it waits for its word, the others for it. Method: a partition, and a pause.
  expect_each_rank_named(Fate::stands_still, /*is_met=*/true);
}

TEST(Missing, TheTextsSayHowMuchIsKnown) {
  // Goal: the words that a user reads. Method: the errors of one worker, literally.
  const auto error_of_w1 = [](const MissingCase& missing) {
    return errors_without(missing)[1].value_or("none");
  };
  EXPECT_EQ(error_of_w1({.rank = 3, .fate = Fate::stands_still}),
            "not all workers have joined in time; missing: 'w3' (never met)");
  EXPECT_EQ(
      error_of_w1({.rank = 0, .fate = Fate::stands_still, .dynamic = true}),
      "the group has not been joined in time; missing: 'w0' (it founds the group: never met)");
}

}  // namespace
}  // namespace rehearsal::sim
