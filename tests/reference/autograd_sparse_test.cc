// Goal: sparse tensors have sparse gradients, here and at other workers, the same as in one
// process. Method: the reference's tests of passes with its sparse tensor as a leaf, and LibTorch's
// own pass.
#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "tests/effort.h"
#include "tests/reference/autograd.h"

namespace rehearsal::reference::autograd_sparse_test {
namespace {

at::Tensor add(const at::Tensor& x, const at::Tensor& y) { return x + y; }

at::Tensor add_at(CallContext& call, const std::string& to, const at::Tensor& x,
                  const at::Tensor& y) {
  return call.rpc_sync(to, &add, x, y);
}

at::Tensor make_leaf() { return sparse_square().requires_grad_(); }

at::Tensor add_fetched(const RRef<at::Tensor>& x, const at::Tensor& y) { return x.to_here() + y; }

at::Tensor by_requirement(const at::Tensor& x, const at::Tensor& y) {
  return y.requires_grad() ? x - y : x * y;
}

at::Tensor branches(CallContext& call, const std::string& to, const at::Tensor& x,
                    const at::Tensor& y) {
  const at::Tensor product = x * y;
  const at::Tensor sum = x + y;
  return x * y * product * sum * call.rpc_sync(to, &add, product, sum);
}

at::Tensor branches_here(const at::Tensor& x, const at::Tensor& y) {
  const at::Tensor product = x * y;
  const at::Tensor sum = x + y;
  return x * y * product * sum * (product + sum);
}

constexpr const char* kSource = R"(
def add(x, y):
    return x + y
)";

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add)
      .function("add_at", &add_at)
      .function("make_leaf", &make_leaf)
      .function("add_fetched", &add_fetched)
      .function("by_requirement", &by_requirement)
      .function("branches", &branches)
      .function("all_gradients", &all_gradients)
      .script("lib", kSource);
  return registry;
}

at::Tensor sparse_leaf(double factor = 1) { return (sparse_square() * factor).requires_grad_(); }

using Form = std::function<at::Tensor(const std::string&, const at::Tensor&, const at::Tensor&)>;

std::vector<Form> forms(Worker& worker) {
  return {[&worker](const auto& to, const auto& x, const auto& y) {
            return worker.rpc_sync<at::Tensor>(to, "aten::add", x, y);
          },
          [&worker](const auto& to, const auto& x, const auto& y) {
            return worker.rpc_sync(to, &add, x, y);
          },
          [&worker](const auto& to, const auto& x, const auto& y) {
            return worker.remote(to, &add, x, y).to_here();
          },
          [&worker](const auto& to, const auto& x, const auto& y) {
            return worker.rpc_sync<at::Tensor>(to, "script::lib.add", x, y);
          }};
}

// Rows: dist_autograd_test::TensorPipeAgentDistAutogradTest.{test_backward_simple_sparse,
// Rows: test_backward_simple_self_sparse, test_backward_simple_python_udf_sparse,
// Rows: test_backward_simple_script_call_sparse}
TEST(ReferenceAutogradSparse, EveryFormOfACallGivesSparseGradients) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    for (const std::string& to : {after(worker), worker.name()})
      for (const Form& form : forms(worker)) {
        const at::Tensor x = sparse_leaf();
        const at::Tensor y = sparse_leaf(2);
        const AutogradContext context = worker.autograd_context();
        const auto recording = context.record();
        context.backward({total(form(to, x, y) * y)});
        expect_local_gradients(context, total((x + y) * y), {x, y});
        EXPECT_TRUE(context.get_gradients().find(x).is_sparse());
        EXPECT_FALSE(x.grad().defined());
      }
  }));
}

// Rows: dist_autograd_test::TensorPipeAgentDistAutogradTest.{
// Rows: test_backward_no_grad_on_tensor_sparse, test_multiple_backward_sparse}
TEST(ReferenceAutogradSparse, ManyPassesNeverTouchTheTensorsOwnGradients) {
  const auto passes = [](int count) {
    return everywhere(functions(), [count](Worker& worker) {
      const at::Tensor x = sparse_leaf();
      const at::Tensor y = sparse_leaf(2);
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      const at::Tensor loss = total(worker.rpc_sync(after(worker), &add, x, y));
      context.backward({loss}, /*retain_graph=*/true);
      EXPECT_FALSE(x.grad().defined() || y.grad().defined());
      total(x + y).backward();
      const at::Tensor own = x.grad().clone();
      for (int i = 1; i < count; ++i) context.backward({loss}, /*retain_graph=*/true);
      EXPECT_TRUE(same(x.grad(), own));
      EXPECT_EQ(recorded_of(worker, context.id())->sends, 1);
      for (const at::Tensor& leaf : {x, y}) {
        const at::Tensor gradient = context.get_gradients().find(leaf);
        EXPECT_TRUE(gradient.is_sparse());
        EXPECT_TRUE(at::equal(gradient.to_dense(), own.to_dense() * count));
      }
    });
  };
  on_simulated_clusters(passes(4), {.seeds = tries(25)});
  on_simulated_clusters(passes(100), {.seeds = 1});
  over_loopback(passes(100));
}

// Rows: dist_autograd_test::TensorPipeAgentDistAutogradTest.{test_backward_rref_sparse,
// Rows: test_backward_rref_multi_sparse, test_backward_rref_nested_sparse}
TEST(ReferenceAutogradSparse, AReferencedSparseTensorGetsASparseGradientAtItsOwner) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const auto train = [&](const std::string& callee, const std::string& owner) {
      const at::Tensor y = sparse_leaf(2);
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      const RRef<at::Tensor> x = worker.remote(owner, &make_leaf);
      const at::Tensor sum = worker.remote(callee, &add_fetched, x, y).to_here();
      context.backward({total(sum)});
      const at::Tensor same_x = make_leaf();
      const auto expected = local_gradients(total(same_x + y), {same_x, y});
      expect_gradients(context, {y}, {expected[1]});
      const auto there = worker.rpc_sync(owner, &all_gradients);
      ASSERT_EQ(there.size(), 1u);
      EXPECT_TRUE(same(there[0], expected[0]));
      EXPECT_TRUE(there[0].is_sparse());
    };
    train(after(worker), after(worker));
    train(after(worker), after(worker, 2));
    if (worker.id().value > 0) train("worker0", "worker0");
  }));
}

// Rows: dist_autograd_test::TensorPipeAgentDistAutogradTest.{
// Rows: test_backward_multiple_round_trips_sparse, test_backward_different_dtypes_sparse}
TEST(ReferenceAutogradSparse, BackAndForthAndOfTwoTypes) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    std::vector<at::Tensor> t;
    for (int i = 1; i <= 5; ++i)
      t.push_back((sparse_square() * i).coalesce().set_requires_grad(i % 2 == 1));
    uint32_t step = 0;
    const auto remote = [&](const char* name, const at::Tensor& x, const at::Tensor& y) {
      return worker.rpc_sync<at::Tensor>(after(worker, ++step), name, x, y);
    };
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    at::Tensor value = remote("aten::add", t[0], t[1]);
    value = remote("aten::mul", t[2], value);
    const at::Tensor one = remote("aten::add", t[3], value);
    const at::Tensor two = remote("aten::add", t[4], value);
    value = remote("aten::mul", one, two);
    value = remote("aten::mul", value, value);
    context.backward({total(value)});
    const at::Tensor inner = t[2] * (t[0] + t[1]);
    const at::Tensor product = (t[3] + inner) * (t[4] + inner);
    expect_local_gradients(context, total(product * product), {t[0], t[2], t[4]});

    const at::Tensor narrow = sparse_square().to(at::kFloat).requires_grad_();
    const at::Tensor wide = sparse_leaf();
    const AutogradContext types = worker.autograd_context();
    types.backward({total(types.rpc_sync(after(worker), &add, narrow, wide))});
    expect_local_gradients(types, total(narrow + wide), {narrow, wide});
    EXPECT_EQ(types.get_gradients().find(narrow).scalar_type(), at::kFloat);
  }));
}

// Rows: dist_autograd_test::TensorPipeAgentDistAutogradTest.{
// Rows: test_backwards_nested_python_udf_sparse, test_nested_backward_accumulate_grads_sparse,
// Rows: test_mixed_requires_grad_sparse}
TEST(ReferenceAutogradSparse, NestedTwiceAndOfTwoTensorsOne) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const at::Tensor x = sparse_leaf();
    const at::Tensor y = sparse_leaf(2);
    const AutogradContext nested = worker.autograd_context();
    nested.backward({total(nested.rpc_sync(after(worker), &branches, after(worker, 2), x, y))});
    expect_local_gradients(nested, total(branches_here(x, y)), {x, y});

    const AutogradContext twice = worker.autograd_context();
    const at::Tensor loss = total(twice.rpc_sync(after(worker), &add_at, after(worker, 2), x, y));
    twice.backward({loss}, /*retain_graph=*/true);
    twice.backward({loss});
    for (const at::Tensor& leaf : {x, y}) {
      const at::Tensor once = local_gradients(total(x + y), {leaf}).at(0);
      const at::Tensor gradient = twice.get_gradients().find(leaf);
      EXPECT_TRUE(gradient.is_sparse());
      EXPECT_TRUE(at::equal(gradient.to_dense(), once.to_dense() * 2));
    }

    const AutogradContext mixed = worker.autograd_context();
    const at::Tensor plain = sparse_square();
    const at::Tensor product = mixed.rpc_sync(after(worker), &by_requirement, x, plain);
    EXPECT_TRUE(same(product.detach(), (x * plain).detach()));
    mixed.backward({total(product)});
    expect_local_gradients(mixed, total(x * plain), {x});
  }));
}

}  // namespace
}  // namespace rehearsal::reference::autograd_sparse_test
