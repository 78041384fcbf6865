// Goal: whole loops of training, alone and side by side, have the gradients that a hand computes.
// Method: the reference's data-parallel trainers, whose gradients are averaged in their contexts,
// beside a local model; and its end-to-end loop.
#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "core/api/data_parallel.h"
#include "tests/effort.h"
#include "tests/reference/autograd.h"

namespace rehearsal::reference::autograd_training_test {
namespace {

at::Tensor add(const at::Tensor& x, const at::Tensor& y) { return x + y; }

// The reference's weight: ones, but for the first.
at::Tensor weight_of(int64_t in, int64_t out) {
  at::Tensor weight = at::ones({out, in});
  weight[0][0] = -1;
  return weight.requires_grad_();
}

// At a worker of its own: an embedding, and a layer behind the trainers' first one.
class RemotePart {
 public:
  at::Tensor embed(const at::Tensor& rows) { return at::embedding(embedding_, rows); }
  at::Tensor forward(const at::Tensor& input) { return at::relu(at::linear(input, weight_)); }
  std::vector<at::Tensor> leaves() const { return {embedding_, weight_}; }
  std::vector<at::Tensor> gradients(CallContext& call) {
    const LeafGradients found = get_gradients(call);
    return {found.find(embedding_), found.find(weight_)};
  }

 private:
  const at::Tensor embedding_ = at::full({2, 3}, 0.5).requires_grad_();
  const at::Tensor weight_ = weight_of(5, 3);
};

// One layer without a bias.
class Layer {
 public:
  Layer(int64_t in, int64_t out)
      : weight_((at::arange(in * out, at::kFloat).reshape({out, in}) / 8).requires_grad_()) {}
  at::Tensor forward(const at::Tensor& input) { return at::linear(input, weight_); }
  at::Tensor gradient(CallContext& call) { return get_gradients(call).find(weight_); }
  const at::Tensor& weight() const { return weight_; }

 private:
  const at::Tensor weight_;
};

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add);
  registry.type<RemotePart>("RemotePart")
      .constructor<>()
      .method("embed", &RemotePart::embed)
      .method("forward", &RemotePart::forward)
      .method("gradients", &RemotePart::gradients);
  registry.type<Layer>("Layer")
      .constructor<int64_t, int64_t>()
      .method("forward", &Layer::forward)
      .method("gradient", &Layer::gradient);
  return registry;
}

// ---- trainers whose examples cancel each other -------------------------------------

struct Examples {
  at::Tensor dense = at::zeros({4, 2});
  at::Tensor rows = at::zeros({4}, at::kLong);
  at::Tensor values = at::zeros({4});
};

// Four of sixteen: for each there is another one with the same features and the opposite value.
Examples examples_of(uint32_t trainer) {
  Examples examples;
  int64_t index = 0;
  for (const int value : {-1, 1})
    for (const int x : {-value, value})
      for (const int y : {value, -value})
        for (const int row : {0, 1}) {
          const int64_t at = index++ - 4 * static_cast<int64_t>(trainer);
          if (at < 0 || at >= 4) continue;
          examples.dense[at][0] = x;
          examples.dense[at][1] = y;
          examples.rows[at] = row;
          examples.values[at] = value;
        }
  return examples;
}

// Worked out by hand, for each trainer: those of its 2 x 2 layer and of its 1 x 3 layer.
const double kFirst[4][4] = {
    {-32, -16, 0, -16}, {16, -16, 16, -16}, {-16, 16, -16, 16}, {32, 16, 0, 16}};
const double kSecond[4][3] = {{-56, -28, -28}, {0, -28, -28}, {0, 28, 28}, {56, 28, 28}};

template <size_t count>
at::Tensor tensor_of(const double (&numbers)[count]) {
  return at::tensor(at::ArrayRef<double>(numbers, count)).to(at::kFloat);
}

enum class Averaged { nothing, all, second };

void train_round(Worker& worker, const ProcessGroup& trainers, const RRef<RemotePart>& part,
                 Averaged which) {
  const Examples examples = examples_of(worker.id().value);
  const at::Tensor first = weight_of(2, 2);
  const at::Tensor second = weight_of(3, 1);
  std::vector<at::Tensor> replicated;
  if (which == Averaged::all) replicated.push_back(first);
  if (which != Averaged::nothing) replicated.push_back(second);
  const DistributedDataParallel replicas(trainers, replicated);
  const AutogradContext context = worker.autograd_context();
  const auto recording = context.record();
  const at::Tensor embedded = worker.rpc_sync(part, &RemotePart::embed, examples.rows);
  const at::Tensor joined = at::cat({at::linear(examples.dense, first), embedded}, 1);
  const at::Tensor out = at::linear(worker.rpc_sync(part, &RemotePart::forward, joined), second);
  context.backward({(out * examples.values).sum()});
  replicas.average_gradients(context);
  // The remote layers' gradients are those of this trainer's context alone.
  RemotePart twin;
  const at::Tensor beside =
      at::cat({at::linear(examples.dense, first), twin.embed(examples.rows)}, 1);
  const at::Tensor same_out = at::linear(twin.forward(beside), second);
  const auto expected = local_gradients((same_out * examples.values).sum(), twin.leaves());
  const auto remote = worker.rpc_sync(part, &RemotePart::gradients);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(same(remote[i], expected[i])) << remote[i];

  const LeafGradients gradients = context.get_gradients();
  const auto expect = [&](const at::Tensor& leaf, const at::Tensor& own, bool average) {
    const at::Tensor found = gradients.find(leaf);
    const at::Tensor expected = (average ? at::zeros_like(own) : own).reshape(leaf.sizes());
    EXPECT_TRUE(at::equal(found, expected)) << found << expected;
  };
  const uint32_t rank = worker.id().value;
  expect(first, tensor_of(kFirst[rank]), which == Averaged::all);
  expect(second, tensor_of(kSecond[rank]), which != Averaged::nothing);
}

// Rows: ddp_under_dist_autograd_test::DdpUnderDistAutogradTest.{test_backward_no_ddp,
// Rows: test_backward_ddp_outside, test_backward_ddp_inside}
TEST(ReferenceAutogradTraining, GradientsOfFourTrainersThatCancelEachOtherAverageToZero) {
  Program program(functions());
  program.worker(
      "worker",
      [](Worker& worker) {
        const ProcessGroup trainers(worker, {"worker0", "worker1", "worker2", "worker3"});
        const auto part = worker.lookup<RemotePart>("master", "part");
        for (int round = 0; round < 3; ++round)
          for (const Averaged which : {Averaged::nothing, Averaged::all, Averaged::second})
            train_round(worker, trainers, part, which);
      },
      Count{4});
  program.worker("remote");
  program.worker("master", [](Worker& worker) {
    worker.publish("part", worker.remote<RemotePart>("remote"));
  });
  in_both_worlds(program, {.seeds = tries(5)});
}

// ---- distributed and local passes side by side ---------------------------------------

// Averaged over all members: what the context has for a leaf, and what a local pass gives.
void expect_local_average(const ProcessGroup& group, const AutogradContext& context,
                          const at::Tensor& leaf, const at::Tensor& local) {
  const DistributedDataParallel replicas(group, std::vector<at::Tensor>{leaf});
  replicas.average_gradients(context);
  leaf.mutable_grad() = local;
  replicas.average_gradients();
  EXPECT_TRUE(same(context.get_gradients().find(leaf), leaf.grad()));
  // It is the mean, and not one of them.
  const at::Tensor sum = local.to_dense();
  group.all_reduce(sum);
  EXPECT_TRUE(close(leaf.grad().to_dense(), sum / static_cast<double>(group.size())));
}

// Rows: ddp_under_dist_autograd_test::DdpComparisonTest.{test_ddp_comparison,
// Rows: test_ddp_dist_autograd_sparse_grads, test_ddp_dist_autograd_local_vs_remote}
TEST(ReferenceAutogradTraining, AveragedGradientsAreThoseOfLocalPasses) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const ProcessGroup everybody(worker);
    const double rank = worker.id().value;
    // One layer, which is averaged.
    Layer layer(5, 1);
    const at::Tensor inputs = at::arange(50, at::kFloat).reshape({10, 5}) * rank;
    const at::Tensor loss = layer.forward(inputs).norm();
    const AutogradContext plain = worker.autograd_context();
    plain.backward({loss}, /*retain_graph=*/true);
    expect_local_average(everybody, plain, layer.weight(),
                         local_gradients(loss, {layer.weight()}).at(0));

    // An embedding with sparse gradients.
    const at::Tensor table = at::arange(30, at::kFloat).reshape({10, 3}).requires_grad_();
    const at::Tensor rows = at::tensor({1, 2, 4, 5, 4, 3, 2, 9}, at::kLong) - worker.id().value % 2;
    const at::Tensor sum = at::embedding(table, rows, -1, false, /*sparse=*/true).sum();
    const AutogradContext sparse = worker.autograd_context();
    sparse.backward({sum}, /*retain_graph=*/true);
    expect_local_average(everybody, sparse, table, local_gradients(sum, {table}).at(0));
    EXPECT_TRUE(sparse.get_gradients().find(table).is_sparse());

    // A first layer at worker0, then one here, which is averaged; and both here.
    const RRef<Layer> far = worker.remote<Layer>("worker0", 5, 4);
    Layer same_first(5, 4);
    Layer second(4, 1);
    const AutogradContext mixed = worker.autograd_context();
    mixed.backward({second.forward(mixed.rpc_sync(far, &Layer::forward, inputs)).norm()});
    const auto expected = local_gradients(second.forward(same_first.forward(inputs)).norm(),
                                          {same_first.weight(), second.weight()});
    expect_local_average(everybody, mixed, second.weight(), expected[1]);
    EXPECT_TRUE(same(mixed.rpc_sync(far, &Layer::gradient), expected[0]));
  }));
}

// ---- end to end ------------------------------------------------------------------

Program end_to_end(int iterations) {
  Program program(functions());
  program.worker("worker", [iterations](Worker& worker) {
    for (int i = 0; i < iterations; ++i) {
      const at::Tensor x = square_leaf(1);
      const at::Tensor y = square_leaf(1);
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      at::Tensor result = worker.rpc_sync<at::Tensor>("worker", "aten::add", x, y);
      for (int more = 0; more < 5; ++more)
        result = worker.rpc_sync<at::Tensor>("worker", "aten::add", x, result);
      const at::Tensor sum = operator_there(worker, "worker", "aten::add", x, result);
      EXPECT_TRUE(at::equal(sum, at::full({3, 3}, 8.0)));
      context.backward({sum.sum()});
      expect_gradients(context, {x, y}, {at::full({3, 3}, 7.0), at::ones({3, 3})});
    }
    expect_all_contexts_end(worker);
    const auto left = [&worker] {
      std::string text;
      const DebugInfo info = worker.debug_info();
      for (const char* table : {"rpc.pending_calls", "rpc.waiting", "rpc.timers", "rref.owners",
                                "rref.owner_handles", "rref.users"})
        if (info.at(table) != "0") text += std::string(table) + " " + info.at(table) + "\n";
      return text;
    };
    for (int milliseconds = 0; milliseconds < 10000 && !left().empty(); ++milliseconds)
      worker.sleep(std::chrono::milliseconds(1));
    EXPECT_EQ(left(), "");
  });
  return program;
}

// Rows: cpp/test_e2e_tensorpipe::TestE2ETensorPipe.TestTrainingLoop
// Rows: cpp/test_e2e_process_group::TestE2EProcessGroup.TestTrainingLoop
TEST(ReferenceAutogradTraining, AHundredIterationsOfOneWorkerWithItselfLeaveNothing) {
  on_simulated_clusters(end_to_end(100), {.seeds = tries(2)});
  on_simulated_clusters(end_to_end(5));
  over_loopback(end_to_end(100));
}

}  // namespace
}  // namespace rehearsal::reference::autograd_training_test
