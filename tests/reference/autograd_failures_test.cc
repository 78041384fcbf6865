// Goal: a pass that cannot be whole fails with its cause, everywhere, and harms nothing else.
// Method: the reference's tests of unused results, functions that throw, workers that leave, wrong
// arguments and messages that are lost.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <vector>

#include "core/wire/message.h"
#include "tests/reference/autograd.h"

namespace rehearsal::reference::autograd_failures_test {
namespace {

using LocalContext = torch::autograd::AutogradContext;
using std::chrono::seconds;
using torch::autograd::variable_list;

struct Failing : torch::autograd::Function<Failing> {
  static at::Tensor forward(LocalContext*, const at::Tensor& x) { return x.clone(); }
  static variable_list backward(LocalContext*, const variable_list&) {
    throw std::runtime_error("Simulate error on backward pass");
  }
};

at::Tensor add(const at::Tensor& x, const at::Tensor& y) { return x + y; }

at::Tensor add_at(CallContext& call, const std::string& to, const at::Tensor& x) {
  return call.rpc_sync(to, &add, x, x);
}

int64_t light() { return 0; }

at::Tensor fails_there(const at::Tensor& x, const at::Tensor& y) {
  const at::Tensor sum = x + y;
  return at::linalg_multi_dot({x, y, sum, Failing::apply(sum)});
}

at::Tensor fails_further_on(CallContext& call, const std::string& to, const at::Tensor& x,
                            const at::Tensor& y) {
  const at::Tensor product = x * y;
  const at::Tensor sum = product + y;
  return at::matmul(call.rpc_sync(to, &fails_there, product, sum), product);
}

// A pass of its own, in the context of the call.
void pass_there(CallContext& call) { backward(call, {square_leaf(1).sum()}); }

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add)
      .function("add_at", &add_at)
      .function("light", &light)
      .function("fails_there", &fails_there)
      .function("fails_further_on", &fails_further_on)
      .function("pass_there", &pass_there)
      .function("all_gradients", &all_gradients);
  return registry;
}

// Rows: dist_autograd_test::DistAutogradTest.test_backward_unused_send_function
TEST(ReferenceAutogradFailures, AResultThatNobodyUsesTakesNoPartOrIsNamed) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const at::Tensor x = square_leaf(2);
    const at::Tensor y = square_leaf(3);
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    (void)worker.rpc_sync(after(worker), &add, x, y);
    const at::Tensor loss = (x * y).sum();
    const Error error =
        error_of([&] { context.backward({loss}, {.retain_graph = true, .mode = PassMode::fast}); });
    EXPECT_EQ(error.kind, ErrorKind::autograd);
    EXPECT_TRUE(contains(error.text, "no gradient came back for ")) << error.text;
    EXPECT_TRUE(contains(error.text, " 'add', which '")) << error.text;
    EXPECT_TRUE(contains(error.text, "'" + after(worker) + "'")) << error.text;
    EXPECT_TRUE(context.get_gradients().empty());

    context.backward({loss});
    expect_gradients(context, {x, y}, {y.detach(), x.detach()});
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.test_backward_python_udf_error
TEST(ReferenceAutogradFailures, AnErrorTwoWorkersAwayFailsThePass) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const at::Tensor x = square_leaf(2);
    const at::Tensor y = square_leaf(3);
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    const at::Tensor loss =
        worker.rpc_sync(after(worker), &fails_further_on, after(worker, 2), x, y).sum();
    const Error error = error_of([&] { context.backward({loss}); });
    EXPECT_EQ(error.kind, ErrorKind::remote_exception);
    EXPECT_EQ(error.worker, after(worker, 2));
    EXPECT_TRUE(contains(error.text, "Simulate error on backward pass")) << error.text;
    for (uint32_t steps = 0; steps <= 2; ++steps)
      EXPECT_TRUE(worker.rpc_sync(after(worker, steps), &all_gradients).empty()) << steps;
    // The context is as good as before.
    context.backward({worker.rpc_sync(after(worker), &add, x, y).sum()});
    expect_gradients(context, {x, y}, {at::ones({3, 3}), at::ones({3, 3})});
  }));
}

// Workers 1 and 3 leave at once when all have come to a barrier.
void lose_a_worker(Worker& worker) {
  worker.leave_at_once();
  const at::Tensor x = square_leaf(1);
  const AutogradContext context = worker.autograd_context();
  const auto recording = context.record();
  const at::Tensor sum = worker.rpc_sync(after(worker), &add, x, x);
  const auto tolerant_barrier = [&](const std::vector<std::string>& workers) {
    try {
      worker.barrier(workers);
    } catch (const RpcError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::peer_lost);  // The first of them left before all knew.
    }
  };
  tolerant_barrier({});
  if (worker.id().value % 2 == 1) return;
  for (const std::string left : {"worker1", "worker3"})
    while (true) {
      const Result<int64_t> answer = worker.rpc_async(left, &light).result();
      if (answer.ok()) continue;
      EXPECT_EQ(answer.error().kind, ErrorKind::peer_lost);
      EXPECT_EQ(answer.error().worker, left);
      break;
    }
  const Error error =
      error_of([&] { context.backward({sum.sum()}, /*retain_graph=*/false, seconds(5)); });
  EXPECT_EQ(error.kind, ErrorKind::peer_lost);
  EXPECT_EQ(error.worker, after(worker));
  EXPECT_TRUE(context.get_gradients().empty());
  tolerant_barrier({"worker0", "worker2"});
}

// Rows: dist_autograd_test::DistAutogradTest.test_backward_node_failure
TEST(ReferenceAutogradFailures, APassThatNeedsAWorkerWhichHasLeftNamesIt) {
  in_both_worlds(everywhere(functions(), lose_a_worker));
}

// Rows: dist_autograd_test::DistAutogradTest.{test_backward_without_context,
// Rows: test_backward_invalid_args}
TEST(ReferenceAutogradFailures, WrongRootsAreRefusedEachWithItsReasonAndChangeNothing) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const std::string next = after(worker);
    const AutogradContext context = worker.autograd_context();
    const at::Tensor x = square_leaf(1);
    const auto refused = [&](const std::vector<at::Tensor>& roots) {
      const Error error = error_of([&] { context.backward(roots); });
      EXPECT_EQ(error.kind, ErrorKind::autograd);
      EXPECT_EQ(error.worker, worker.name());
      return error.text;
    };
    EXPECT_EQ(refused({}), "there are no roots");
    EXPECT_EQ(refused({at::ones({})}), "a root does not require gradients");
    EXPECT_EQ(refused({at::Tensor()}), "a root does not require gradients");
    EXPECT_EQ(refused({x}), "a root has more elements than one: add them up first");
    EXPECT_EQ(refused({x.sum(), x * 2}), "a root has more elements than one: add them up first");
    // Served functions have the context of their call, or none.
    for (const Error& none : {error_of([&] { worker.rpc_sync(next, &pass_there); }),
                              error_of([&] { (void)worker.rpc_sync(next, &all_gradients); })}) {
      EXPECT_EQ(none.kind, ErrorKind::autograd);
      EXPECT_EQ(none.worker, next);
      EXPECT_TRUE(contains(none.text, "the call is recorded in no")) << none.text;
    }
    EXPECT_TRUE(context.get_gradients().empty());
    // A root may be a leaf, as in a local pass.
    const at::Tensor scalar = at::ones({}).requires_grad_();
    context.backward({x.sum(), scalar});
    expect_gradients(context, {x, scalar}, {at::ones({3, 3}), at::ones({})});
    context.rpc_sync(next, &pass_there);
    EXPECT_EQ(context.rpc_sync(next, &all_gradients).size(), 1u);
  }));
}

// Rows: dist_autograd_test::FaultyAgentDistAutogradTest.test_verify_backend_options
TEST(ReferenceAutogradFailures, TheFirstThreeMessagesOfAnyKindMayBeLost) {
  // Each message of one kind is lost with its link, until three were: the pass and the end of its
  // context are whole all the same.
  const Program program = everywhere(
      functions(),
      [](Worker& worker) {
        if (worker.id().value == 0) {
          const at::Tensor x = square_leaf(1);
          const AutogradContext context = worker.autograd_context();
          const auto recording = context.record();
          context.backward({worker.rpc_sync("worker1", &add_at, std::string("worker2"), x).sum()});
          expect_gradients(context, {x}, {at::full({3, 3}, 2.0)});
        }
        expect_all_contexts_end(worker);
      },
      3);
  for (const std::string kind : {"Call", "Response", "ContextReached", "ContextRelease",
                                 "Gradients", "GradientsAnswered", "PassFinish", "PassFinished"})
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      sim::Cluster cluster(Seed{seed}, program, {.faults = sim::FaultLevel::none});
      int cuts = 0;
      const auto guard = cluster.network().rule([&](const net_fake::FrameView& frame) {
        if (message_name(frame.message_type) != kind || cuts == 3) return net_fake::Action::pass();
        ++cuts;
        return net_fake::Action::cut();
      });
      cluster.run();
      EXPECT_EQ(cuts, 3) << kind;
    }
}

}  // namespace
}  // namespace rehearsal::reference::autograd_failures_test
