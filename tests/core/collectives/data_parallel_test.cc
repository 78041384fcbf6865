// Goal: replicas of a module have the mean of all members' gradients after each pass, with the same
// bits, and remain one module. Method: simulated trainers beside one process, under faults.
#include "core/api/data_parallel.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/module.h>
#include <torch/optim/sgd.h>

#include <optional>

#include "core/api/distributed_optimizer.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/core/collectives/group_program.h"
#include "tests/effort.h"

namespace rehearsal::testing {
namespace {

using sim::Cluster;
using sim::ClusterOptions;
using sim::FaultLevel;
using Tensors = std::vector<at::Tensor>;

constexpr int64_t kRows = 10;
constexpr int64_t kWidth = 3;

// A table of rows, a layer on it, and a part that only some losses use.
struct Net : torch::nn::Module {
  explicit Net(uint64_t seed)
      : table(register_parameter("table", rough_numbers({kRows, kWidth}, seed))),
        weight(register_parameter("weight", rough_numbers({kWidth, 2}, seed + 1))),
        extra(register_parameter("extra", rough_numbers({2}, seed + 2))),
        idle(register_parameter("idle", rough_numbers({5}, seed + 3))),
        frozen(register_parameter("frozen", rough_numbers({2}, seed + 4), false)),
        buffer(register_buffer("buffer", rough_numbers({2}, seed + 5))) {}

  at::Tensor loss(const at::Tensor& rows, bool with_extra) const {
    at::Tensor out = at::embedding(table, rows, -1, false, /*sparse=*/true).matmul(weight);
    if (with_extra) out = out * extra;
    return (out + frozen + buffer).square().sum();
  }

  at::Tensor table, weight, extra, idle, frozen, buffer;
};

at::Tensor rows_of(uint32_t rank, int64_t step) {
  return at::tensor({(rank * 3 + step) % kRows, static_cast<long>(rank), int64_t{7}}, at::kLong);
}
bool uses_extra(uint32_t rank) { return rank % 2 == 1; }

// By parameter of a net that all replicas equal: the mean of what the passes of all members give.
Tensors means_in_one_process(const Net& net, uint32_t members, int64_t step) {
  Tensors sums(4);
  const Tensors leaves = {net.table, net.weight, net.extra, net.idle};
  for (uint32_t rank = 0; rank < members; ++rank) {
    const Tensors gradients =
        torch::autograd::grad({net.loss(rows_of(rank, step), uses_extra(rank))}, leaves, {},
                              std::nullopt, false, /*allow_unused=*/true);
    for (size_t i = 0; i < leaves.size(); ++i)
      if (gradients[i].defined())
        sums[i] = sums[i].defined() ? sums[i] + gradients[i] : gradients[i];
  }
  for (at::Tensor& sum : sums)
    if (sum.defined()) sum = sum / static_cast<int64_t>(members);
  return sums;
}

void expect_means(const Tensors& found, const Tensors& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(found[i].defined(), expected[i].defined()) << i;
    if (!expected[i].defined()) continue;
    EXPECT_EQ(found[i].is_sparse(), expected[i].is_sparse()) << i;
    EXPECT_TRUE(at::allclose(found[i].to_dense(), expected[i].to_dense(), 1e-5, 1e-6)) << i;
  }
}

void expect_same_everywhere(const ProcessGroup& group, const at::Tensor& tensor) {
  Tensors all(group.size());
  for (at::Tensor& one : all) one = at::zeros_like(tensor);
  group.all_gather(all, tensor);
  for (const at::Tensor& one : all) EXPECT_TRUE(equal_bits(one, tensor.detach()));
}

TEST(DistributedDataParallel, AveragesTheGradientsOfAContextAndOfLocalPasses) {
  // Goal: dense, sparse and unused parameters, in a context and in `.grad`, with large and with
  // tiny buckets; leaves that are none of the module's stay.
  for (const uint32_t count : {1U, 2U, 3U})
    EXPECT_TRUE(sim::hunt({.seeds = tries(10)}, [count](Seed seed, const ClusterOptions& options) {
      const uint64_t bucket_bytes = seed.value % 2 == 0 ? 8 : 1 << 20;
      const Program program = members(count, [count, bucket_bytes](Worker& worker) {
        const ProcessGroup group(worker);
        // Before the broadcast each has its own numbers.
        const Net net(10 * worker.id().value);
        const DistributedDataParallel replicas(group, net, {.bucket_bytes = bucket_bytes});
        const Net first(0);
        for (size_t i = 0; i < net.parameters().size(); ++i)
          EXPECT_TRUE(equal_bits(net.parameters()[i].detach(), first.parameters()[i].detach()));
        EXPECT_TRUE(equal_bits(net.buffer, first.buffer));
        const Tensors leaves = {net.table, net.weight, net.extra, net.idle};
        torch::optim::SGD optimizer(leaves, 0.1);
        for (int64_t step = 0; step < 2; ++step) {
          const Tensors expected = means_in_one_process(first, count, step);
          const at::Tensor other = at::ones({2}).requires_grad_();
          const at::Tensor loss = net.loss(rows_of(group.rank(), step), uses_extra(group.rank()));
          const AutogradContext context = worker.autograd_context();
          context.backward({loss + (other * 5).sum()}, /*retain_graph=*/true);
          replicas.average_gradients(context);
          const LeafGradients gradients = context.get_gradients();
          Tensors found;
          for (const at::Tensor& leaf : leaves) found.push_back(gradients.find(leaf));
          expect_means(found, expected);
          EXPECT_TRUE(at::equal(gradients.find(other), at::full({2}, 5.0F)));
          for (const at::Tensor& one : found)
            if (one.defined()) expect_same_everywhere(group, one.to_dense());
          // A later pass adds to the mean.
          context.backward({(other * 2).sum() + net.weight.sum()});
          EXPECT_TRUE(at::equal(context.get_gradients().find(other), at::full({2}, 7.0F)));
          EXPECT_TRUE(at::equal(context.get_gradients().find(net.weight), found[1] + 1));

          optimizer.zero_grad();  // Refuses views.
          for (const at::Tensor& leaf : leaves) EXPECT_FALSE(leaf.grad().defined());
          loss.backward();
          replicas.average_gradients();
          Tensors local;
          for (const at::Tensor& leaf : leaves) local.push_back(leaf.grad());
          expect_means(local, expected);
          for (size_t i = 0; i < local.size(); ++i)
            if (local[i].defined())
              EXPECT_TRUE(equal_bits(local[i].to_dense(), found[i].to_dense()));
        }
      });
      Cluster(seed, program, options).run();
    }));
}

TEST(DistributedDataParallel, OfADenseAndASparseGradientIsDense) {
  const Program program = members(2, [](Worker& worker) {
    const ProcessGroup group(worker);
    const at::Tensor table = rough_numbers({4, 2}, 1).requires_grad_();
    const DistributedDataParallel replicas(group, Tensors{table});
    const bool is_sparse = group.rank() == 0;
    at::embedding(table, at::tensor({1, 2}, at::kLong), -1, false, is_sparse).sum().backward();
    replicas.average_gradients();
    EXPECT_FALSE(table.grad().is_sparse());
    EXPECT_TRUE(
        at::equal(table.grad(), at::tensor({0, 0, 1, 1, 1, 1, 0, 0}, at::kFloat).reshape({4, 2})));
  });
  Cluster(Seed{1}, program, {.faults = FaultLevel::none}).run();
}

// A layer at another worker.
struct FarLayer {
  at::Tensor forward(const at::Tensor& x) { return at::tanh(x.matmul(weight)); }
  RRef<at::Tensor> parameter(CallContext& call) { return call.rref(weight); }
  at::Tensor value() const { return weight.detach().clone(); }
  at::Tensor weight = rough_numbers({kWidth, kWidth}, 77).requires_grad_();
};

TEST(DistributedDataParallel, TrainsReplicasBesideALayerThatLivesElsewhere) {
  // Goal: the hybrid: replicas with averaged gradients and one remote layer that gets the gradients
  // of each trainer; the replicas have the same bits after every step.
  FunctionRegistry registry;
  registry.type<FarLayer>("FarLayer")
      .constructor<>()
      .method("forward", &FarLayer::forward)
      .method("parameter", &FarLayer::parameter)
      .method("value", &FarLayer::value);
  Program program(std::move(registry));
  program.worker(
      "trainer",
      [](Worker& worker) {
        const ProcessGroup group(worker, {"trainer0", "trainer1"});
        const auto far = worker.lookup<FarLayer>("ps", "layer");
        const at::Tensor weight = rough_numbers({kWidth, 1}, worker.id().value).requires_grad_();
        const DistributedDataParallel replicas(group, Tensors{weight});
        const DistributedOptimizer optimizer(
            worker, {far.rpc_sync(&FarLayer::parameter), worker.rref(weight)},
            torch::optim::SGDOptions(0.1));
        const at::Tensor before = far.rpc_sync(&FarLayer::value);
        for (uint64_t step = 0; step < 3; ++step) {
          const AutogradContext context = worker.autograd_context();
          const auto recording = context.record();
          const at::Tensor x = rough_numbers({4, kWidth}, 10 * step + group.rank());
          context.backward({far.rpc_sync(&FarLayer::forward, x).matmul(weight).square().sum()});
          replicas.average_gradients(context);
          optimizer.step(context);
          expect_same_everywhere(group, weight.detach());
        }
        EXPECT_FALSE(at::equal(far.rpc_sync(&FarLayer::value), before));
      },
      Count{2});
  program.worker("ps", [](Worker& worker) { worker.publish("layer", worker.rref(FarLayer())); });
  EXPECT_TRUE(sim::hunt(
      {.seeds = tries(15), .cluster = {.faults = FaultLevel::hostile}},
      [&](Seed seed, const ClusterOptions& options) { Cluster(seed, program, options).run(); }));
}

TEST(DistributedDataParallel, RefusesReplicasThatDifferAndRecordedGradients) {
  const Program program = members(2, [](Worker& worker) {
    const ProcessGroup group(worker);
    const auto leaf = [](at::IntArrayRef sizes) { return at::ones(sizes).requires_grad_(); };
    Tensors mine = {leaf({2})};
    if (group.rank() == 1) mine.push_back(leaf({3}));
    const Error more = error_of([&] { DistributedDataParallel(group, mine); });
    EXPECT_EQ(more.kind, ErrorKind::bad_arguments) << to_string(more);
    EXPECT_TRUE(contains(more.text, "'member0' has 1 parameters and buffers, 'member1' 2"))
        << more.text;
    const Error other = error_of([&] {
      DistributedDataParallel(group, Tensors{leaf({2 + static_cast<int64_t>(group.rank())})});
    });
    EXPECT_TRUE(contains(other.text, "other forms")) << other.text;

    const at::Tensor weight = leaf({2});
    const DistributedDataParallel replicas(group, Tensors{weight});
    const AutogradContext context = worker.autograd_context();
    context.backward({weight.square().sum()}, {.create_graph = true});
    const Error recorded = error_of([&] { replicas.average_gradients(context); });
    EXPECT_EQ(recorded.kind, ErrorKind::autograd) << to_string(recorded);
    EXPECT_TRUE(contains(recorded.text, "create_graph")) << recorded.text;
  });
  Cluster(Seed{1}, program, {.faults = FaultLevel::none}).run();
}

// The words of a member, in place of averaging its gradients.
struct FalseGradient {
  int64_t kind = 1;
  int64_t count = 1;
  int64_t index = 0;
  std::string refusal;
};

// Up to where the other member refuses it.
void say_falsely(const ProcessGroup& group, const FalseGradient& said) {
  at::Tensor kinds = at::tensor({said.kind}, at::kLong);
  group.all_reduce(kinds, ReduceOp::max);
  if (said.kind != 1) return;
  Tensors counts = {at::zeros({1}, at::kLong), at::zeros({1}, at::kLong)};
  group.all_gather(counts, at::tensor({said.count}, at::kLong));
  if (said.count != 1) return;
  const int64_t others = counts[0].item<int64_t>();
  Tensors indices = {at::zeros({1, others}, at::kLong), at::zeros({1, 1}, at::kLong)};
  Tensors values = {at::zeros({others, 2}), at::zeros({1, 2})};
  const Future<Unit> given =
      group.all_to_all_async(indices, Tensors(2, at::full({1, 1}, said.index, at::kLong)));
  group.all_to_all(values, Tensors(2, at::ones({1, 2})));
  given.wait();
}

TEST(DistributedDataParallel, RefusesASparseGradientThatCannotBe) {
  // Goal: nothing is written beside a parameter, and no memory is taken for more than it has.
  // Method: a member that lies in each exchange of the average of a table of four rows.
  const std::vector<FalseGradient> all = {
      {.kind = 3, .refusal = "is sparse in 3 dimensions"},
      {.kind = 99, .refusal = "is sparse in 99 dimensions"},
      {.count = 5, .refusal = "'member1' says that its sparse gradient has 5 places: the "},
      {.count = -1, .refusal = "'member1' says that its sparse gradient has -1 places: the "},
      {.index = 4, .refusal = "the sparse gradient of 'member1' has places that "},
      {.index = -1, .refusal = "the sparse gradient of 'member1' has places that "},
      {.index = int64_t{1} << 40, .refusal = "the sparse gradient of 'member1' has places that "}};
  for (const FalseGradient& said : all) {
    SCOPED_TRACE(said.refusal);
    const Program program = members(2, [&said](Worker& worker) {
      const ProcessGroup group(worker);
      const at::Tensor table = rough_numbers({4, 2}, 1).requires_grad_();
      const DistributedDataParallel replicas(group, Tensors{table});
      if (group.rank() == 1) return say_falsely(group, said);
      at::embedding(table, at::tensor({1, 2}, at::kLong), -1, false, /*sparse=*/true)
          .sum()
          .backward();
      const Error error = error_of([&] { replicas.average_gradients(); });
      EXPECT_EQ(error.kind, ErrorKind::protocol) << to_string(error);
      EXPECT_TRUE(contains(error.text, said.refusal)) << error.text;
    });
    Cluster(Seed{1}, program, {.faults = FaultLevel::none}).run();
  }
}

TEST(DistributedDataParallel, IsToldOfALostReplica) {
  // Goal: the average fails with who is lost, and the gradients stay as they were.
  EXPECT_TRUE(sim::hunt({.seeds = tries(15)}, [](Seed seed, const ClusterOptions& options) {
    int told = 0;
    const Program program = members(3, [&told](Worker& worker) {
      const ProcessGroup group(worker);
      const at::Tensor weight = at::ones({2}).requires_grad_();
      const DistributedDataParallel replicas(group, Tensors{weight});
      if (group.rank() == 2) worker.sleep(std::chrono::seconds(1000));
      const AutogradContext context = worker.autograd_context();
      context.backward({(weight * 3).sum()});
      const Error error = error_of([&] { replicas.average_gradients(context); });
      EXPECT_EQ(error.kind, ErrorKind::peer_lost) << to_string(error);
      EXPECT_EQ(error.worker, "member2");
      EXPECT_TRUE(at::equal(context.get_gradients().find(weight), at::full({2}, 3.0F)));
      ++told;
    });
    Cluster cluster(seed, program, options);
    cluster.advance(std::chrono::seconds(5));
    cluster.crash("member2");
    (void)cluster.try_run();
    EXPECT_EQ(told, 2);
  }));
}

}  // namespace
}  // namespace rehearsal::testing
