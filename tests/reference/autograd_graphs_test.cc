// Goal: a call leaves at both workers the functions by which gradients come back, and no others.
// Method: the reference's tests of the shape of graphs, dense and sparse: the history of what came,
// and the counts in the workers' tables.
#include <ATen/ATen.h>

#include <set>
#include <string>
#include <vector>

#include "tests/reference/autograd.h"

namespace rehearsal::reference::autograd_graphs_test {
namespace {

// The gradients of the two are different.
at::Tensor sum_of(const at::Tensor& x, const at::Tensor& y) { return at::add(x, y, 2); }

at::Tensor add_two(const at::Tensor& x, const at::Tensor& y) {
  expect_of_one_message({x, y});
  const at::Tensor sum = sum_of(x, y);
  expect_edges_to(sum, {x, y});
  return sum;
}

// Sent on through the named workers; the last one adds.
at::Tensor add_further(CallContext& call, const at::Tensor& x, const at::Tensor& y,
                       const std::vector<std::string>& further, bool by_reference) {
  if (further.empty()) return add_two(x, y);
  expect_of_one_message({x, y});
  const std::vector<std::string> rest(further.begin() + 1, further.end());
  const at::Tensor sum = by_reference
                             ? call.remote(further[0], &add_further, x, y, rest, true).to_here()
                             : call.rpc_sync(further[0], &add_further, x, y, rest, false);
  expect_of_one_message({sum});
  return sum;
}

at::Tensor add_plain(const at::Tensor& x, const at::Tensor& y) {
  EXPECT_FALSE(x.requires_grad() || y.requires_grad());
  return x + y;
}

// Of the tensors that require gradients each is an output of the message; the others are plain.
at::Tensor stack(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> recorded;
  for (const at::Tensor& tensor : tensors)
    if (tensor.requires_grad()) recorded.push_back(tensor);
  expect_of_one_message(recorded);
  return at::stack(tensors);
}

// The sum of 1, 2, … times the tensors.
at::Tensor weighted(const std::vector<at::Tensor>& tensors) {
  at::Tensor sum = tensors.at(0);
  for (size_t i = 1; i < tensors.size(); ++i) sum = sum + tensors[i] * (1.0 + i);
  return sum;
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add_two", &add_two)
      .function("add_further", &add_further)
      .function("add_plain", &add_plain)
      .function("stack", &stack)
      .function("weighted", &weighted)
      .function("sends_here", &sends_here);
  return registry;
}

at::Tensor leaf(bool sparse, double value) {
  return sparse ? sparse_square().requires_grad_() : square_leaf(value);
}

at::Tensor plain(bool sparse) { return sparse ? sparse_square() : at::ones({3, 3}); }

using Form = std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>;

std::vector<Form> forms(Worker& worker, const std::string& to) {
  return {
      [&worker, to](const auto& x, const auto& y) {
        return worker.rpc_sync<at::Tensor>(to, "aten::add", x, y, kwarg("alpha", 2));
      },
      [&worker, to](const auto& x, const auto& y) { return worker.rpc_sync(to, &add_two, x, y); },
      [&worker, to](const auto& x, const auto& y) {
        return operator_there(worker, to, "aten::add", x, y, kwarg("alpha", 2));
      },
      [&worker, to](const auto& x, const auto& y) {
        return worker.remote(to, &add_two, x, y).to_here();
      }};
}

void one_call(Worker& worker, bool sparse) {
  const std::string next = after(worker);
  for (const Form& form : forms(worker, next)) {
    const at::Tensor x = leaf(sparse, 1);
    const at::Tensor y = leaf(sparse, 0);
    std::optional<AutogradContextId> id;
    {
      const AutogradContext context = worker.autograd_context();
      id = context.id();
      const auto recording = context.record();
      const at::Tensor sum = form(x, y);
      EXPECT_TRUE(same(sum.detach(), sum_of(x, y).detach()));
      expect_of_one_message({sum});
      EXPECT_EQ(recorded_of(worker, *id), (Recorded{.sends = 1, .peers = 1}));
      EXPECT_EQ(worker.rpc_sync(next, &sends_here), 1);
      // The send function's edges lead to the leaves, in the order of the arguments.
      context.backward({total(sum)});
      expect_local_gradients(context, total(sum_of(x, y)), {x, y});
    }
    EXPECT_EQ(recorded_of(worker, *id), std::nullopt);
  }
}

// Rows: dist_autograd_test::DistAutogradTest.{test_graph_for_builtin_call,
// Rows: test_graph_for_python_call, test_graph_for_builtin_remote_call,
// Rows: test_graph_for_python_remote_call}
TEST(ReferenceAutogradGraphs, ACallHasOneSendAndOneReceiveFunctionAtEachEnd) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) { one_call(worker, false); }));
}

// Rows: dist_autograd_test::TensorPipeAgentDistAutogradTest.{test_graph_for_builtin_call_sparse,
// Rows: test_graph_for_python_call_sparse, test_graph_for_builtin_remote_call_sparse,
// Rows: test_graph_for_python_remote_call_sparse}
TEST(ReferenceAutogradGraphs, ACallOfSparseTensorsHasTheSameShape) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) { one_call(worker, true); }));
}

// `route` are the workers after this one; `sends` is how many functions each of all has.
void nested_call(Worker& worker, const std::vector<std::string>& route,
                 const std::vector<int64_t>& sends, bool sparse) {
  for (const bool by_reference : {false, true}) {
    const at::Tensor x = leaf(sparse, 1);
    const at::Tensor y = leaf(sparse, 0);
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    const std::vector<std::string> further(route.begin() + 1, route.end());
    const at::Tensor sum =
        by_reference ? worker.remote(route[0], &add_further, x, y, further, true).to_here()
                     : worker.rpc_sync(route[0], &add_further, x, y, further, false);
    expect_of_one_message({sum});
    const auto here = recorded_of(worker, context.id());
    ASSERT_TRUE(here);
    EXPECT_EQ(here->sends, sends[0]);
    for (size_t i = 1; i < sends.size(); ++i)
      EXPECT_EQ(worker.rpc_sync(route[i - 1], &sends_here), sends[i]) << route[i - 1];
    context.backward({total(sum)});
    expect_local_gradients(context, total(sum_of(x, y)), {x, y});
  }
}

// Rows: dist_autograd_test::DistAutogradTest.{test_graph_for_py_nested_call,
// Rows: test_graph_for_py_nested_remote_call}
TEST(ReferenceAutogradGraphs, AChainHasTwoSendFunctionsAtEachWorkerBetweenItsEnds) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    nested_call(worker, {after(worker), after(worker, 2), after(worker, 3)}, {1, 2, 2, 1}, false);
  }));
}

// Rows: dist_autograd_test::TensorPipeAgentDistAutogradTest.{test_graph_for_py_nested_call_sparse,
// Rows: test_graph_for_py_nested_remote_call_sparse,
// Rows: test_graph_for_py_nested_call_itself_sparse,
// Rows: test_graph_for_py_nested_remote_call_itself_sparse}
TEST(ReferenceAutogradGraphs, AChainOfSparseTensorsHasTheSameShapeAlsoWhereItReturns) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    nested_call(worker, {after(worker), after(worker, 2), after(worker, 3)}, {1, 2, 2, 1}, true);
    // Its own arguments and the result that it adds up for the next worker.
    nested_call(worker, {after(worker), worker.name()}, {2, 2}, true);
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.{test_no_graph_with_tensors_not_require_grad,
// Rows: test_no_graph_with_tensors_not_require_grad_remote}
// Rows: dist_autograd_test::TensorPipeAgentDistAutogradTest.{
// Rows: test_no_graph_with_tensors_not_require_grad_sparse,
// Rows: test_no_graph_with_tensors_not_require_grad_remote_sparse}
TEST(ReferenceAutogradGraphs, WithoutGradientsThereIsAContextAndNoFunctionInIt) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const std::string next = after(worker);
    for (const bool sparse : {false, true})
      for (const bool by_reference : {false, true}) {
        const AutogradContext context = worker.autograd_context();
        const auto recording = context.record();
        const at::Tensor x = plain(sparse);
        const at::Tensor sum = by_reference ? worker.remote(next, &add_plain, x, x).to_here()
                                            : worker.rpc_sync(next, &add_plain, x, x);
        EXPECT_TRUE(same(sum, x + x));
        EXPECT_FALSE(sum.requires_grad());
        EXPECT_EQ(recorded_of(worker, context.id()), (Recorded{.sends = 0, .peers = 1}));
        EXPECT_EQ(worker.rpc_sync(next, &sends_here), 0);
      }
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.{test_rpc_complex_args, test_remote_complex_args}
// Rows: dist_autograd_test::TensorPipeAgentDistAutogradTest.{test_rpc_complex_args_sparse,
// Rows: test_remote_complex_args_sparse}
TEST(ReferenceAutogradGraphs, OfAListThoseTensorsAreRecordedThatRequireGradientsInTheirOrder) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const std::string next = after(worker);
    for (const bool sparse : {false, true})
      for (const bool by_reference : {false, true}) {
        std::vector<at::Tensor> tensors;
        std::vector<at::Tensor> leaves;
        for (int i = 0; i < 10; ++i) {
          tensors.push_back(i % 2 == 0 ? leaf(sparse, 1) : plain(sparse));
          if (i % 2 == 0) leaves.push_back(tensors.back());
        }
        const auto call = [&](auto function) {
          return by_reference ? worker.remote(next, function, tensors).to_here()
                              : worker.rpc_sync(next, function, tensors);
        };
        const AutogradContext context = worker.autograd_context();
        const auto recording = context.record();
        const at::Tensor stacked = call(&stack);
        EXPECT_TRUE(same(stacked.detach(), at::stack(tensors).detach()));
        EXPECT_EQ(recorded_of(worker, context.id()), (Recorded{.sends = 1, .peers = 1}));
        // Each tensor's gradient has a weight of its own.
        context.backward({total(call(&weighted))});
        expect_local_gradients(context, total(weighted(tensors)), leaves);
      }
  }));
}

}  // namespace
}  // namespace rehearsal::reference::autograd_graphs_test
