// A pass that a fault meets, at every moment: what each of its workers is told, and that the same
// pass can be run again.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "net_fake/decisions.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/core/autograd/remote_model.h"
#include "tests/effort.h"

namespace rehearsal::testing {
namespace {

using sim::Cluster;
using sim::ClusterOptions;
using sim::DecisionKind;
using sim::FaultLevel;
using std::chrono::seconds;

const std::vector<std::string> kNames = {"trainer", "first", "second"};

// How the passes of a run ended, at each worker.
class PassEnds : public Trace {
 public:
  void on_event(const Event& event) override {
    if (event.kind == EventKind::pass_ended) at_[event.worker.value].emplace_back(event.text);
  }
  // Each worker's errors.
  [[nodiscard]] std::vector<std::pair<uint32_t, std::string>> errors() const {
    std::vector<std::pair<uint32_t, std::string>> found;
    for (const auto& [worker, texts] : at_)
      for (const std::string& text : texts)
        if (!text.empty()) found.emplace_back(worker, text);
    return found;
  }

 private:
  std::map<uint32_t, std::vector<std::string>> at_;
};

// trainer → first → second → first → trainer, and the same pass back; beside one process.
void train_through_both(Worker& worker) {
  const at::Tensor w = numbers({4, 4}, 7).requires_grad_();
  auto first = worker.remote<Layer>("first", 4, 1);
  auto second = worker.remote<Layer>("second", 4, 2);
  const AutogradContext context = worker.autograd_context();
  const at::Tensor input = at::matmul(numbers({3, 4}, 99), w);
  context.backward({context.rpc_sync(first, &Layer::forward_around, input, second).sum()});

  Layer same_first(4, 1);
  Layer same_second(4, 2);
  const at::Tensor same_input = at::matmul(numbers({3, 4}, 99), w);
  const at::Tensor local =
      same_first.forward(same_second.forward(same_first.forward(same_input))).sum();
  const auto expected = local_gradients(local, {w, same_first.weight_, same_second.weight_});
  EXPECT_TRUE(equal_bits(context.get_gradients().find(w), expected[0]));
  EXPECT_TRUE(equal_bits(context.rpc_sync(first, &Layer::gradients).at(0), expected[1]));
  EXPECT_TRUE(equal_bits(context.rpc_sync(second, &Layer::gradients).at(0), expected[2]));
}

// Mains of trainers that began, and those that had their gradients.
struct Trainers {
  uint64_t began = 0;
  uint64_t trained = 0;
};

// As a user whose workers come back would: in a new context, with new layers.
void train_until_it_holds(Worker& worker, Trainers& trainers) {
  ++trainers.began;
  for (int attempt = 1;; ++attempt) {
    try {
      train_through_both(worker);
      ++trainers.trained;
      return;
    } catch (const RpcError& thrown) {
      if (attempt == 60) throw;
      worker.sleep(seconds(1));
    }
  }
}

Program through_both(const std::function<void(Worker&)>& main) {
  Program program(layer_functions());
  program.worker("trainer", main);
  program.worker("first", [](Worker&) {}).worker("second", [](Worker&) {});
  return program;
}

// One run, and how its passes ended.
struct Faulted {
  sim::RunReport report;
  std::vector<std::pair<uint32_t, std::string>> errors;
};

Faulted run_with(const Program& program, ClusterOptions options) {
  PassEnds ends;
  options.traces = {&ends};
  Cluster cluster(Seed{3}, program, options);
  const sim::RunReport report = cluster.try_run();
  return {report, ends.errors()};
}

TEST(FaultedPass, WhoeverIsLeftIsToldWhoDied) {
  // Goal: a crash at any moment ends the pass at every worker, with the cause. Method: a crash
  // before each event of each worker; all that the ends of passes say.
  const Program program = through_both(train_through_both);
  const Faulted whole = run_with(program, {.faults = FaultLevel::none});
  ASSERT_TRUE(whole.report.ok) << describe_failure(whole.report);
  ASSERT_TRUE(whole.errors.empty());
  std::map<uint32_t, uint64_t> told;
  for (uint32_t victim = 0; victim < 3; ++victim)
    for (uint64_t point = victim % every(2); point < whole.report.workers[victim].decisions;
         point += every(2)) {
      ClusterOptions options{.faults = FaultLevel::none};
      options.crash_points = {{WorkerId{victim}, point}};
      const Faulted run = run_with(program, options);
      SCOPED_TRACE(kNames[victim] + " dies before its event " + std::to_string(point));
      EXPECT_TRUE(run.report.ok) << describe_failure(run.report);
      EXPECT_LT(run.report.virtual_time, seconds(400));  // A group may take 300 to come together.
      for (const auto& [worker, text] : run.errors) {
        if (worker == victim) continue;
        EXPECT_NE(text.find("'" + kNames[victim] + "'"), std::string::npos)
            << kNames[worker] << ": " << text;
        ++told[worker];
      }
    }
  for (uint32_t worker = 0; worker < 3; ++worker) EXPECT_GT(told[worker], 0u) << kNames[worker];
}

TEST(FaultedPass, AnyOfItsWorkersMayDieAndComeBack) {
  // Goal: the same pass in a new context has the gradients of one process. Method: the same, and
  // the dead come back with nothing; the trainer tries again.
  Trainers trainers;
  const Program program =
      through_both([&trainers](Worker& worker) { train_until_it_holds(worker, trainers); });
  const Faulted whole = run_with(program, {.faults = FaultLevel::none});
  ASSERT_TRUE(whole.report.ok) << describe_failure(whole.report);
  for (uint32_t victim = 0; victim < 3; ++victim)
    for (uint64_t point = victim % every(4); point < whole.report.workers[victim].decisions;
         point += every(4)) {
      ClusterOptions options{.faults = FaultLevel::none, .restart = sim::Restart::amnesia};
      options.crash_points = {{WorkerId{victim}, point}};
      trainers = {};
      const Faulted run = run_with(program, options);
      SCOPED_TRACE(kNames[victim] + " dies before its event " + std::to_string(point));
      EXPECT_TRUE(run.report.ok) << describe_failure(run.report);
      EXPECT_EQ(trainers.trained > 0, trainers.began > 0);  // No group, no main.
    }
}

// Runs the program once for each frame of each link, with what `fault` makes happen there.
uint64_t for_each_frame(
    const Program& program,
    const std::function<ClusterOptions(net_fake::LifeId from, net_fake::LifeId to, uint64_t frame)>&
        fault,
    const std::function<void(const Faulted&, uint32_t from, uint32_t to)>& judge) {
  uint64_t runs = 0;
  for (uint32_t from = 0; from < 3; ++from)
    for (uint32_t to = 0; to < 3; ++to)
      for (uint64_t frame = 1; from != to; frame += every(2)) {
        const Faulted run = run_with(program, fault({WorkerId{from}, 0}, {WorkerId{to}, 0}, frame));
        if (!run.report.absent_overrides.empty()) break;
        SCOPED_TRACE("frame " + std::to_string(frame) + " from " + kNames[from] + " to " +
                     kNames[to]);
        EXPECT_TRUE(run.report.ok) << describe_failure(run.report);
        judge(run, from, to);
        ++runs;
      }
  return runs;
}

TEST(FaultedPass, ALinkThatIsLostAnywhereCostsNothing) {
  // Goal: no gradient is lost with a link, or added twice. Method: cut each link at each frame.
  const Program program = through_both(train_through_both);
  uint64_t cuts = 0;
  const uint64_t runs = for_each_frame(
      program,
      [](net_fake::LifeId from, net_fake::LifeId to, uint64_t frame) {
        ClusterOptions options{.faults = FaultLevel::none};
        options.otherwise = sim::Otherwise::benign;
        options.network.link.cut_millionths = 1;
        options.overrides = {{{DecisionKind::cut, from, to, {}, frame}, 999'999}};
        return options;
      },
      [&cuts](const Faulted& run, uint32_t, uint32_t) {
        EXPECT_TRUE(run.errors.empty()) << run.errors.front().second;
        EXPECT_FALSE(run.report.workers[0].error.has_value());
        cuts += run.report.network.losses;
      });
  EXPECT_GT(runs, 20u);
  EXPECT_GE(cuts, runs);
}

TEST(FaultedPass, AWorkerThatIsTakenForDeadIsNamedToAll) {
  // Goal: a false suspicion ends the pass everywhere, for the reason that it has. Method: part the
  // ends of each link at each frame, for longer than `peer_timeout`.
  const Program program = through_both(train_through_both);
  uint64_t told = 0;
  for_each_frame(
      program,
      [](net_fake::LifeId from, net_fake::LifeId to, uint64_t frame) {
        ClusterOptions options{.faults = FaultLevel::hostile, .long_partitions = true};
        options.otherwise = sim::Otherwise::benign;
        options.overrides = {{{DecisionKind::partition, from, to, {}, frame}, 999'999},
                             {{DecisionKind::partition_length, from, to, {}, frame}, 4}};
        return options;
      },
      [&told](const Faulted& run, uint32_t from, uint32_t to) {
        for (const auto& [worker, text] : run.errors) {
          const bool names = text.find("'" + kNames[from] + "'") != std::string::npos ||
                             text.find("'" + kNames[to] + "'") != std::string::npos;
          EXPECT_TRUE(names) << kNames[worker] << ": " << text;
          ++told;
        }
      });
  EXPECT_GT(told, 10u);
}

// A table whose gradient is sparse: in its rows, or in its cells, which cannot be added.
class SparseTable {
 public:
  at::Tensor rows(const at::Tensor& which) {
    return at::embedding(table_, which, -1, false, /*sparse=*/true);
  }
  at::Tensor cells(const at::Tensor& which) {
    return at::gather(table_, 1, which, /*sparse_grad=*/true);
  }
  bool has_gradient(CallContext& call) { return get_gradients(call).find(table_).defined(); }

 private:
  at::Tensor table_ = numbers({3, 2}, 5).requires_grad_();
};

template <class Body>
std::string text_thrown_by(Body body) {
  try {
    body();
  } catch (const RpcError& thrown) {
    return thrown.error().text;
  }
  return "nothing was thrown";
}

TEST(FaultedPass, GradientsThatCannotBeAddedAreAnErrorOfWhoeverAddsThem) {
  // Goal: neither the next pass nor who reads the gradients ends a worker. Method: two passes whose
  // gradients LibTorch does not add, at another worker and at the starter itself.
  FunctionRegistry registry;
  registry.type<SparseTable>("SparseTable")
      .constructor<>()
      .method("rows", &SparseTable::rows)
      .method("cells", &SparseTable::cells)
      .method("has_gradient", &SparseTable::has_gradient);
  Program program(std::move(registry));
  const auto train_at = [](Worker& worker, const std::string& owner) {
    const at::Tensor row = at::zeros({1}, at::kLong);
    const at::Tensor cell = at::zeros({1, 1}, at::kLong);
    const auto table = worker.remote<SparseTable>(owner);
    {
      const AutogradContext context = worker.autograd_context();
      context.backward({context.rpc_sync(table, &SparseTable::rows, row).sum()});
      context.backward({context.rpc_sync(table, &SparseTable::cells, cell).sum()});
      const std::string unread =
          text_thrown_by([&] { (void)context.rpc_sync(table, &SparseTable::has_gradient); });
      EXPECT_NE(unread.find("same density"), std::string::npos) << unread;
      const std::string third = text_thrown_by(
          [&] { context.backward({context.rpc_sync(table, &SparseTable::rows, row).sum()}); });
      EXPECT_NE(third.find("same density"), std::string::npos) << third;
    }
    const AutogradContext again = worker.autograd_context();
    again.backward({again.rpc_sync(table, &SparseTable::rows, row).sum()});
    EXPECT_TRUE(again.rpc_sync(table, &SparseTable::has_gradient));
  };
  program.worker("trainer", [train_at](Worker& worker) {
    train_at(worker, "owner");
    train_at(worker, "trainer");
  });
  program.worker("owner", [](Worker&) {});
  Cluster(Seed{1}, program, {.faults = FaultLevel::none}).run();
}

}  // namespace
}  // namespace rehearsal::testing
