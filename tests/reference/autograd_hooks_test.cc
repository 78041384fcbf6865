// Goal: hooks run in a distributed pass as in a local one, a gradient that nobody else has is taken
// over as it is, and a reference starts a pass. Method: the reference's tests of hooks, of buffers
// and of passes from references.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/reference/autograd.h"

namespace rehearsal::reference::autograd_hooks_test {
namespace {

using LocalContext = torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The last gradient that one of the functions below has given, as its buffers.
struct Seen {
  const void* elements = nullptr;
  at::Tensor indices;  // a view of those of a sparse one, which somebody still has
};

const void* buffer_of(const at::Tensor& gradient) {
  return gradient.is_sparse() ? gradient._values().const_data_ptr() : gradient.const_data_ptr();
}

// Gives its gradient on, and notes it.
struct Same : torch::autograd::Function<Same> {
  static at::Tensor forward(LocalContext* local, const at::Tensor& x, Seen* seen) {
    local->saved_data["seen"] = reinterpret_cast<int64_t>(seen);
    return x.clone();
  }
  static variable_list backward(LocalContext* local, const variable_list& gradients) {
    auto* const seen = reinterpret_cast<Seen*>(local->saved_data["seen"].toInt());
    seen->elements = buffer_of(gradients[0]);
    if (gradients[0].is_sparse()) seen->indices = gradients[0]._indices();
    return {gradients[0], at::Tensor()};
  }
};

// Gives one gradient to both of its arguments.
struct Shared : torch::autograd::Function<Shared> {
  static at::Tensor forward(LocalContext*, const at::Tensor& x, const at::Tensor& y) {
    return x + y;
  }
  static variable_list backward(LocalContext*, const variable_list& gradients) {
    return {gradients[0], gradients[0]};
  }
};

// Gives a gradient whose elements are one in memory: 5 x 6, or sparse, with eight rows that are
// one.
struct Expanded : torch::autograd::Function<Expanded> {
  static at::Tensor forward(LocalContext* local, const at::Tensor& x, bool sparse) {
    local->saved_data["sparse"] = sparse;
    return x.sum();
  }
  static variable_list backward(LocalContext* local, const variable_list&) {
    if (!local->saved_data["sparse"].toBool()) return {at::ones({1}).expand({5, 6}), at::Tensor()};
    const at::Tensor indices = at::ones({1, 1}, at::kLong).expand({1, 8});
    return {at::sparse_coo_tensor(indices, at::ones({1, 6}).expand({8, 6}), {5, 6}), at::Tensor()};
  }
};

at::Tensor values() { return at::arange(30, at::kFloat).reshape({5, 6}).requires_grad_(); }

at::Tensor sum_of(const at::Tensor& x) { return x.sum(); }

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("sum_of", &sum_of);
  return registry;
}

// Rows: dist_autograd_test::DistAutogradTest.{test_backward_verify_hooks, test_post_hooks}
TEST(ReferenceAutogradHooks, HooksRunOnceInEveryPass) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const at::Tensor x = square_leaf(1);
    const at::Tensor y = square_leaf(1);
    int calls = 0;
    x.register_hook([&calls](const at::Tensor& gradient) {
      ++calls;
      return gradient * 2;
    });
    for (const std::string& to : {after(worker), worker.name()}) {
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      calls = 0;
      const at::Tensor product = worker.rpc_sync<at::Tensor>(to, "aten::matmul", x, y);
      context.backward({product.sum()});
      EXPECT_EQ(calls, 1);
      expect_gradients(context, {x, y}, {at::full({3, 3}, 6.0), at::full({3, 3}, 3.0)});
    }
    // The hooks of the function that collects a leaf's gradient.
    const at::Tensor z = square_leaf(1);
    const at::Tensor sum = z + z;
    int total_of_hooks = 0;
    const auto add_hook = [&](size_t edge, int amount) {
      sum.grad_fn()->next_edge(edge).function->add_post_hook(
          std::make_unique<torch::autograd::utils::LambdaPostHook>(
              [&total_of_hooks, amount](const variable_list& outputs, const variable_list&) {
                total_of_hooks += amount;
                return outputs;
              }));
    };
    add_hook(0, 1);
    add_hook(0, 2);
    add_hook(1, 2);
    const AutogradContext context = worker.autograd_context();
    context.backward({sum.sum()});
    EXPECT_EQ(total_of_hooks, 5);
    expect_gradients(context, {z}, {at::full({3, 3}, 2.0)});
    EXPECT_FALSE(z.grad().defined());
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.{test_no_grad_copy, test_no_grad_copy_sparse,
// Rows: test_grad_copy_sparse_indices_extra_ref}
TEST(ReferenceAutogradHooks, AGradientIsCopiedOnlyIfSomebodyElseHasItOrItIsNotCompact) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const at::Tensor x = values();
    const at::Tensor y = values();
    const at::Tensor rows = at::tensor({1, 2, 4, 3, 4, 3, 2, 0}, at::kLong);
    Seen seen;
    {
      const AutogradContext context = worker.autograd_context();
      context.backward({Same::apply(x, &seen)[1][0]});
      EXPECT_EQ(buffer_of(context.get_gradients().find(x)), seen.elements);
    }
    {
      const AutogradContext context = worker.autograd_context();
      const at::Tensor looked_up = at::embedding(Same::apply(x, &seen), rows, -1, false, true);
      const at::Tensor loss = (looked_up * at::full({8, 6}, 2.0)).sum();
      context.backward({loss}, /*retain_graph=*/true);
      at::Tensor gradient = context.get_gradients().find(x);
      EXPECT_TRUE(gradient.is_sparse());
      EXPECT_EQ(buffer_of(gradient), seen.elements);
      const at::Tensor once = gradient.to_dense();
      for (int passes = 2; passes <= 10; ++passes) {
        context.backward({loss}, /*retain_graph=*/true);
        gradient = context.get_gradients().find(x);
        EXPECT_TRUE(gradient.is_sparse());
        EXPECT_TRUE(at::equal(gradient.to_dense(), once * passes));
      }
    }
    {
      const AutogradContext context = worker.autograd_context();
      context.backward({Shared::apply(x, y)[1][0]});
      const at::Tensor of_x = context.get_gradients().find(x);
      const at::Tensor of_y = context.get_gradients().find(y);
      EXPECT_TRUE(same(of_x, of_y));
      EXPECT_NE(buffer_of(of_x), buffer_of(of_y));
    }
    for (const bool sparse : {false, true}) {
      const AutogradContext context = worker.autograd_context();
      context.backward({Expanded::apply(x, sparse)});
      const at::Tensor gradient = context.get_gradients().find(x);
      EXPECT_EQ(gradient.is_sparse(), sparse);
      EXPECT_TRUE((sparse ? gradient._values() : gradient).is_contiguous());
      const at::Tensor rows_of = sparse ? at::tensor({0, 8, 0, 0, 0}, at::kFloat) : at::ones({5});
      EXPECT_TRUE(at::equal(gradient.to_dense(), rows_of.reshape({5, 1}).expand({5, 6})));
    }
  }));
}

// Rows: rpc_test::RpcTest.test_owner_rref_backward
TEST(ReferenceAutogradHooks, APassStartsFromAReferenceAtItsOwner) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const at::Tensor leaf = at::ones({10, 10}).requires_grad_();
    worker.rref(leaf.sum() + leaf.sum()).backward();
    EXPECT_TRUE(same(leaf.grad(), at::full({10, 10}, 2.0)));

    const auto in_context = [&](auto passes) {
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      const at::Tensor sum = worker.rpc_sync<at::Tensor>(after(worker), "aten::add", leaf, leaf);
      passes(worker.rref(sum.sum()), context);
      return context.get_gradients().find(leaf);
    };
    const at::Tensor once =
        in_context([](const RRef<at::Tensor>& rref, const AutogradContext& context) {
          rref.backward(context);
        });
    EXPECT_TRUE(same(once, at::full({10, 10}, 2.0)));
    const at::Tensor twice =
        in_context([](const RRef<at::Tensor>& rref, const AutogradContext& context) {
          rref.backward(context, BackwardOptions{.retain_graph = true});
          rref.backward(context);
        });
    EXPECT_TRUE(same(twice, at::full({10, 10}, 4.0)));
    EXPECT_TRUE(same(leaf.grad(), at::full({10, 10}, 2.0)));

    // Refused, by LibTorch without a context and by us with one.
    const AutogradContext context = worker.autograd_context();
    const auto refused = [&](const at::Tensor& root) {
      const RRef<at::Tensor> rref = worker.rref(root);
      EXPECT_THROW(rref.backward(), c10::Error);
      const Error error = error_of([&] { rref.backward(context); });
      EXPECT_EQ(error.kind, ErrorKind::autograd);
      EXPECT_EQ(error.worker, worker.name());
      return error.text;
    };
    EXPECT_EQ(refused(at::ones({})), "a root does not require gradients");
    EXPECT_EQ(refused(leaf + leaf), "a root has more elements than one: add them up first");
    EXPECT_TRUE(context.get_gradients().empty());
  }));
}

// Rows: rpc_test::RpcTest.test_user_rref_backward
TEST(ReferenceAutogradHooks, APassStartsFromAReferenceElsewhere) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const at::Tensor leaf = at::ones({10}).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    const RRef<at::Tensor> sum = worker.remote(after(worker), &sum_of, leaf);
    sum.backward(context, BackwardOptions{.retain_graph = true});
    sum.backward(context);
    expect_gradients(context, {leaf}, {at::full({10}, 2.0)});
    // Without a context there is nothing here that a pass could go over.
    const Error refused = error_of([&] { sum.backward(); });
    EXPECT_EQ(refused.kind, ErrorKind::bad_arguments);
    EXPECT_TRUE(contains(refused.text, after(worker))) << refused.text;
    expect_gradients(context, {leaf}, {at::full({10}, 2.0)});
  }));
}

}  // namespace
}  // namespace rehearsal::reference::autograd_hooks_test
