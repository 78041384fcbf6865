// Goal: what is called in an autograd context is recorded without saying so, as in PyTorch. Method:
// the reference's tests of contexts, with its ordinary forms of call.
#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "core/api/autograd_context.h"
#include "tests/reference/row.h"

namespace rehearsal::reference::autograd_contexts_test {
namespace {

at::Tensor add(const at::Tensor& x, const at::Tensor& y) { return x + y; }

at::Tensor make_leaf(double value) { return at::full({3}, value).requires_grad_(); }

at::Tensor add_fetched(const RRef<at::Tensor>& x, const at::Tensor& y) { return x.to_here() + y; }

// The second is a plain tensor.
at::Tensor by_requirement(const at::Tensor& x, const at::Tensor& y) {
  return y.requires_grad() ? x + y : x * y;
}

std::vector<at::Tensor> all_gradients(CallContext& call) {
  std::vector<at::Tensor> all;
  for (const LeafGradient& gradient : get_gradients(call).all()) all.push_back(gradient.gradient);
  return all;
}

constexpr const char* kSource = R"(
def add(x, y):
    return x + y
)";

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add)
      .function("make_leaf", &make_leaf)
      .function("add_fetched", &add_fetched)
      .function("by_requirement", &by_requirement)
      .function("all_gradients", &all_gradients)
      .script("lib", kSource);
  return registry;
}

at::Tensor threes(double value) { return at::full({3}, value); }

// Rows: dist_autograd_test::DistAutogradTest.test_nested_context
TEST(ReferenceAutogradContexts, AContextInAContextIsRefusedAndTheFirstGoesOn) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const at::Tensor x = threes(2).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    const AutogradContext second = worker.autograd_context();
    EXPECT_EQ(kind_of([&] { const auto nested = second.record(); }), ErrorKind::autograd);
    context.backward({worker.rpc_sync(after(worker), &add, x, threes(1)).sum()});
    EXPECT_TRUE(at::equal(context.get_gradients().find(x), threes(1)));
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.{test_backward_simple, test_backward_simple_self,
// Rows: test_backward_simple_python_udf, test_backward_simple_script_call}
TEST(ReferenceAutogradContexts, EveryFormOfASimpleCallGivesTheGradientsOfALocalOne) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    using Form =
        std::function<at::Tensor(const std::string&, const at::Tensor&, const at::Tensor&)>;
    const std::vector<Form> forms = {[&](const auto& to, const auto& x, const auto& y) {
                                       return worker.rpc_sync<at::Tensor>(to, "aten::add", x, y);
                                     },
                                     [&](const auto& to, const auto& x, const auto& y) {
                                       return worker.rpc_sync(to, &add, x, y);
                                     },
                                     [&](const auto& to, const auto& x, const auto& y) {
                                       return worker.rpc_async(to, &add, x, y).wait();
                                     },
                                     [&](const auto& to, const auto& x, const auto& y) {
                                       return worker.remote(to, &add, x, y).to_here();
                                     },
                                     [&](const auto& to, const auto& x, const auto& y) {
                                       return worker.rpc_sync<at::Tensor>(to, "script::lib.add", x,
                                                                          y);
                                     }};
    for (const std::string& to : {after(worker), worker.name()})
      for (const Form& form : forms) {
        const at::Tensor x = threes(2).requires_grad_();
        const at::Tensor y = threes(3).requires_grad_();
        const AutogradContext context = worker.autograd_context();
        const auto recording = context.record();
        context.backward({(form(to, x, y) * y).sum()});
        EXPECT_TRUE(at::equal(context.get_gradients().find(x), threes(3)));
        EXPECT_TRUE(at::equal(context.get_gradients().find(y), threes(8)));
        EXPECT_FALSE(x.grad().defined());
      }
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.{test_backward_rref, test_backward_rref_multi}
TEST(ReferenceAutogradContexts, AReferencedTensorGetsItsGradientAtItsOwner) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    // The next worker, and then all others the same one at once.
    std::vector<std::string> owners = {after(worker)};
    if (worker.id().value > 0) owners.push_back("worker0");
    for (const std::string& owner : owners) {
      const at::Tensor y = threes(2).requires_grad_();
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      const RRef<at::Tensor> x = worker.remote(owner, &make_leaf, 1.0);
      const at::Tensor sum = worker.rpc_sync(owner, &add_fetched, x, y);
      EXPECT_TRUE(at::equal(sum, threes(3)));
      context.backward({sum.sum()});
      EXPECT_TRUE(at::equal(context.get_gradients().find(y), threes(1)));
      const auto there = worker.rpc_sync(owner, &all_gradients);
      ASSERT_EQ(there.size(), 1u);
      EXPECT_TRUE(at::equal(there[0], threes(1)));
    }
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.{test_grad_only_on_return_value,
// Rows: test_grad_only_on_return_value_remote}
TEST(ReferenceAutogradContexts, AResultMayRequireGradientsWhenNoArgumentDoes) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const std::string to = after(worker);
    for (const bool by_reference : {false, true}) {
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      const at::Tensor result = by_reference ? worker.remote(to, &make_leaf, 1.0).to_here()
                                             : worker.rpc_sync(to, &make_leaf, 1.0);
      context.backward({result.sum()});
      const auto there = worker.rpc_sync(to, &all_gradients);
      ASSERT_EQ(there.size(), 1u);
      EXPECT_TRUE(at::equal(there[0], threes(1)));
    }
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.test_mixed_requires_grad
TEST(ReferenceAutogradContexts, TheCalleeSeesWhichTensorsRequireGradients) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const at::Tensor x = threes(2).requires_grad_();
    const at::Tensor y = threes(5);
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    const at::Tensor product = worker.rpc_sync(after(worker), &by_requirement, x, y);
    EXPECT_TRUE(at::equal(product, threes(10)));
    context.backward({product.sum()});
    EXPECT_TRUE(at::equal(context.get_gradients().find(x), y));
    EXPECT_EQ(context.get_gradients().all().size(), 1u);
  }));
}

}  // namespace
}  // namespace rehearsal::reference::autograd_contexts_test
