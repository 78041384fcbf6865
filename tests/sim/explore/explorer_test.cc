#include "sim/explore/explorer.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "sim/explore/runs.h"
#include "sim/world/event_lines.h"
#include "tests/sim/explore/brute_force.h"

namespace rehearsal::sim::explore {
namespace {

using Kind = Transition::Kind;

struct Parcel {
  explicit Parcel(int64_t content) : content(content) {}
  int64_t content;
};

// One reference is made at another worker and dropped.
Program create_and_drop() {
  FunctionRegistry registry;
  registry.type<Parcel>("Parcel").constructor<int64_t>();
  Program program(std::move(registry));
  program.worker("creator", [](Worker& worker) {
    static_cast<void>(worker.remote<Parcel>("owner", int64_t{1}));
  });
  program.worker("owner");
  return program;
}

// The events of each worker, without their times. News of its links, and frames sent again because
// of them, are left out: the reduction says that their place makes no difference, and the test is
// to show that.
class Histories final : public Trace {
 public:
  void on_event(const Event& event) override {
    using enum EventKind;
    if (event.kind == peer_up || event.kind == peer_lost || event.kind == mark) return;
    if (event.kind == frame_resent) return;
    std::ostringstream line;
    line << name_of(event.kind) << ' ' << event.id << ' ' << event.number << ' '
         << event.message_type << ' ' << event.digest << ' ' << event.text << '\n';
    of_worker_[event.worker] += line.str();
  }
  std::string take() {
    std::string all;
    for (const auto& [worker, history] : of_worker_) all += history + "--\n";
    of_worker_.clear();
    return all;
  }

 private:
  std::map<WorkerId, std::string> of_worker_;
};

struct Explored {
  std::set<std::string> histories;
  uint64_t schedules = 0;
};

template <class Search>
Explored explore_with(const Program& program, const std::vector<Transition>& faults) {
  Histories histories;
  const ExploreOptions options{.traces = {&histories}};
  Runs runs(program, options);
  Explored explored;
  Search search;
  while (search.begin_run()) {
    const std::optional<RunReport> report = runs.run(faults, search);
    const std::string history = histories.take();
    if (report) {
      EXPECT_TRUE(report->ok) << describe_failure(*report);
      explored.histories.insert(history);
    }
    search.end_run();
  }
  explored.schedules = search.schedules();
  return explored;
}

// The reduction leaves out no history that any schedule of the small cluster has.
TEST(Explorer, AgreesWithBruteForceOnASmallCluster) {
  const Program program = create_and_drop();
  const std::vector<std::vector<Transition>> fault_sets = {{},
                                                           {{Kind::cut, 0, 1}},
                                                           {{Kind::crash, 0, 0}},
                                                           {{Kind::crash, 1, 0}},
                                                           {{Kind::give_up, 0, 1}},
                                                           {{Kind::give_up, 1, 0}}};
  for (const std::vector<Transition>& faults : fault_sets) {
    const Explored brute = explore_with<BruteForce>(program, faults);
    const Explored reduced = explore_with<Dpor>(program, faults);
    EXPECT_EQ(reduced.histories, brute.histories);
    EXPECT_LE(reduced.schedules, brute.schedules);
    std::cout << (faults.empty() ? "no fault" : to_string(faults.front())) << ": "
              << brute.schedules << " schedules, " << reduced.schedules << " of them run, "
              << brute.histories.size() << " histories\n";
  }
}

}  // namespace
}  // namespace rehearsal::sim::explore
