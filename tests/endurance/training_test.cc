// Goal: a training of any length leaves nothing from step to step, at any worker: no entry of a
// table, no memory, no descriptor, no file. Method: three workers train together, with an
// autograd context, an optimizer's step and a sum over a process group in each step and a
// checkpoint at each tenth; what they hold after the first steps and after all, simulated under
// faults, and over loopback.
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <filesystem>

#include "core/api/autograd_context.h"
#include "core/api/distributed_checkpoint.h"
#include "core/api/distributed_optimizer.h"
#include "core/api/process_group.h"
#include "core/base/mutants.h"
#include "scenarios/recovery/layers.h"
#include "sim/cluster.h"
#include "tests/endurance/how_long.h"
#include "tests/endurance/process_meter.h"
#include "tests/real_net/support/loopback_group.h"
#include "tests/temporary_folder.h"

namespace rehearsal::endurance {
namespace {

using recovery::Layer;
using std::chrono::milliseconds;

constexpr int64_t kWarmUpSteps = 300;
constexpr int64_t kStepsForASecond = 30;
constexpr int64_t kStepsOfACheckpoint = 10;
// A worker remembers which execution made which node, up to 262,144 of each thread: 50 bytes for
// each execution that made any.
constexpr uint64_t kMakersOfStep = 400;

int64_t steps_in(std::chrono::seconds time) {
  return kWarmUpSteps + kStepsForASecond * time.count();
}

using TablesOfAll = std::map<std::string, DebugInfo>;

// The holdings of all at a moment at which nothing is under way.
struct Moment {
  TablesOfAll tables;
  Holdings process;
  std::map<std::string, uint64_t> files;  // bytes, by path
};

DebugInfo tables_here(CallContext& call) { return call.debug_info(); }

std::map<std::string, uint64_t> files_below(const std::string& folder) {
  std::map<std::string, uint64_t> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[entry.path().string()] = entry.file_size();
  return files;
}

struct Plan {
  int64_t steps = 0;
  std::string folder;      // of the checkpoints; empty: in the simulator
  Duration until_quiet{};  // the time after which nothing is under way any more
  Moment after_warm_up = {};
  Moment after_all = {};
};

const std::vector<std::string> kTrainers = {"trainer0", "trainer1"};

Moment moment_of(const Worker& worker, const Plan& plan) {
  worker.sleep(plan.until_quiet);
  Moment moment;
  for (const WorkerInfo& other : worker.workers())
    moment.tables[other.name] = worker.rpc_sync(other.name, &tables_here);
  moment.process = Holdings::now();
  moment.files = files_below(plan.folder);
  return moment;
}

// The first trainer's part of a step: its context ends with it.
double train_step(const Worker& worker, const RemoteModule<Layer>& first,
                  const RemoteModule<Layer>& second, const DistributedOptimizer& optimizer,
                  int64_t step) {
  const AutogradContext context = worker.autograd_context();
  const auto recording = context.record();
  const at::Tensor batch = recovery::batch_of(1, step);
  const at::Tensor loss = recovery::loss_of(second.forward(first.forward(batch)), batch);
  context.backward({loss});
  optimizer.clip_grad_norm(context, 1.0);
  optimizer.step(context);
  return loss.item<double>();
}

// A step as every trainer sees it: who does not lead waits for the sum.
void train(Worker& worker, Plan& plan, const std::function<double(int64_t step)>& lead,
           DistributedCheckpoint& checkpoint) {
  const ProcessGroup group(worker, kTrainers);
  for (int64_t step = checkpoint.resume(); step < plan.steps;) {
    const bool is_looked_at = step == kWarmUpSteps || step + 1 == plan.steps;
    if (is_looked_at) {
      checkpoint.wait();
      worker.barrier(kTrainers);
    }
    if (is_looked_at && lead)
      (step == kWarmUpSteps ? plan.after_warm_up : plan.after_all) = moment_of(worker, plan);
    const at::Tensor loss = torch::full({1}, lead ? lead(step) : 0.0);
    group.all_reduce(loss, ReduceOp::sum);
    if (++step % kStepsOfACheckpoint == 0) checkpoint.save(step);
  }
  checkpoint.wait();
}

void leader_main(Worker& worker, Plan& plan) {
  const RemoteModule<Layer> first(worker, "owner", recovery::kIn, recovery::kHidden,
                                  recovery::kFirstSeed);
  const RemoteModule<Layer> second(worker, "trainer1", recovery::kHidden, recovery::kOut,
                                   recovery::kSecondSeed);
  std::vector<RRef<at::Tensor>> parameters = first.remote_parameters();
  for (const RRef<at::Tensor>& parameter : second.remote_parameters())
    parameters.push_back(parameter);
  DistributedOptimizer optimizer(worker, parameters, torch::optim::AdamOptions(0.001));
  DistributedCheckpoint checkpoint(worker, "training", {.members = kTrainers});
  checkpoint.module("first", first).module("second", second).optimizer("adam", optimizer);
  train(
      worker, plan,
      [&](int64_t step) { return train_step(worker, first, second, optimizer, step); }, checkpoint);
}

Program program_of(Plan& plan) {
  FunctionRegistry registry;
  recovery::register_layers(registry);
  registry.function("tables_here", &tables_here);
  Program program(std::move(registry));
  program.worker("trainer0", [&plan](Worker& worker) { leader_main(worker, plan); });
  program.worker("trainer1", [&plan](Worker& worker) {
    DistributedCheckpoint checkpoint(worker, "training", {.members = kTrainers});
    train(worker, plan, nullptr, checkpoint);
  });
  program.worker("owner");
  return program;
}

// The tables that differ, a line each; empty: none does. The waits of the moment are no table.
std::string grown(const TablesOfAll& before, const TablesOfAll& after) {
  if (before.size() != 3 || after.size() != 3) return "not all were looked at\n";
  std::string lines;
  for (const auto& [worker, tables] : after)
    for (const auto& [name, value] : tables)
      if (const std::string& old = before.at(worker).at(name); old != value && name != "rpc.waits")
        lines += worker + ": " + name + " was " + old + ", is " + value + "\n";
  return lines;
}

void expect_memory_is_flat(const Plan& plan) {
  const Holdings& before = plan.after_warm_up.process;
  const Holdings& after = plan.after_all.process;
  const std::string both =
      to_string(before) + "; after " + std::to_string(plan.steps) + " steps " + to_string(after);
  const auto counted = static_cast<uint64_t>(plan.steps - kWarmUpSteps);
  EXPECT_LE(after.allocated_bytes,
            before.allocated_bytes + kAllocatedSlack + kMakersOfStep * counted)
      << both;
  EXPECT_EQ(after.descriptors, before.descriptors) << both;
  EXPECT_EQ(after.threads, before.threads) << both;
  std::printf("%s\n", both.c_str());
}

sim::RunReport simulate(Plan& plan, const std::vector<std::string>& mutants) {
  const Program program = program_of(plan);
  sim::ClusterOptions options;
  options.oracles = false;  // They remember the run.
  options.adjust_node = [&](NodeOptions& node) { node.mutants = mutants; };
  sim::Cluster cluster(Seed{1}, program, options);
  return cluster.try_run();
}

TEST(Training, LeavesNothingSimulated) {
  Plan plan{.steps = steps_in(how_long()), .folder = "", .until_quiet = std::chrono::seconds(10)};
  const sim::RunReport report = simulate(plan, {});
  ASSERT_TRUE(report.ok) << sim::describe_failure(report);
  EXPECT_EQ(grown(plan.after_warm_up.tables, plan.after_all.tables), "");
  expect_memory_is_flat(plan);
}

TEST(Training, LeavesNothingOverTcp) {
  const TemporaryFolder made;
  const std::string folder = made.file("checkpoints");
  Plan plan{.steps = steps_in(how_long()), .folder = folder, .until_quiet = milliseconds(200)};
  const Program program = program_of(plan);
  for (const Status& end : real::LoopbackGroup(program, {.checkpoints = folder}).run())
    EXPECT_TRUE(end.ok()) << to_string(end.error());
  EXPECT_EQ(grown(plan.after_warm_up.tables, plan.after_all.tables), "");
  EXPECT_EQ(plan.after_all.files, plan.after_warm_up.files);
  EXPECT_FALSE(plan.after_all.files.empty());
  expect_memory_is_flat(plan);
}

TEST(Training, ARuleLeftOutIsNoticed) {
  // Goal: the comparison of tables can fail. Method: the deadlines of answered calls stay in
  // theirs.
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants, and so no failure";
  Plan plan{.steps = kWarmUpSteps + 10, .folder = "", .until_quiet = std::chrono::seconds(10)};
  const sim::RunReport report = simulate(plan, {"answered_call_keeps_its_deadline"});
  const std::string found = grown(plan.after_warm_up.tables, plan.after_all.tables);
  for (const std::string name : {"trainer0", "trainer1"})
    EXPECT_NE(found.find(name + ": rpc.timers was "), std::string::npos)
        << found << sim::describe_failure(report);
}

}  // namespace
}  // namespace rehearsal::endurance
