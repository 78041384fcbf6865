// Goal: the gradients of a distributed pass are those of the same computation at one worker, bit
// for bit. Method: the reference's tests of passes, each beside LibTorch's own pass, and where
// there are some beside numbers worked out by hand.
#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "tests/reference/autograd.h"

namespace rehearsal::reference::autograd_backward_test {
namespace {

at::Tensor add(const at::Tensor& x, const at::Tensor& y) { return x + y; }

at::Tensor product_at(CallContext& call, const std::string& to, const at::Tensor& x,
                      const at::Tensor& y) {
  return call.rpc_sync<at::Tensor>(to, "aten::matmul", x, y);
}

at::Tensor five(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c, const at::Tensor& d,
                const at::Tensor& e) {
  return at::linalg_multi_dot({a, b, c, d, e});
}

// At two workers: the graph branches here and comes together again.
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

at::Tensor sum_of(const at::Tensor& x) { return x.sum(); }

std::vector<at::Tensor> split(const at::Tensor& whole) { return at::split(whole, 2); }

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add)
      .function("product_at", &product_at)
      .function("five", &five)
      .function("branches", &branches)
      .function("sum_of", &sum_of)
      .function("split", &split);
  return registry;
}

// An operator at another worker, its result fetched or answered.
struct Remote {
  Worker& worker;
  bool by_reference = false;
  uint32_t step = 0;

  // Each at the next worker.
  template <class... A>
  at::Tensor operator()(const std::string& name, const A&... arguments) {
    const std::string to = after(worker, ++step);
    return by_reference ? operator_there(worker, to, name, arguments...)
                        : worker.rpc_sync<at::Tensor>(to, name, arguments...);
  }
};

at::Tensor random(at::IntArrayRef sizes) {
  return at::sin(at::arange(c10::multiply_integers(sizes), at::kDouble) * 12.9898).reshape(sizes);
}

// Rows: dist_autograd_test::DistAutogradTest.test_backward_no_grad_on_tensor
TEST(ReferenceAutogradBackward, APassNeverTouchesTheTensorsOwnGradients) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const at::Tensor x = random({3, 3}).requires_grad_();
    const at::Tensor y = random({3, 3}).mul(2).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    const at::Tensor loss = worker.rpc_sync<at::Tensor>(after(worker), "aten::mul", x, y).sum();
    context.backward({loss}, /*retain_graph=*/true);
    EXPECT_FALSE(x.grad().defined() || y.grad().defined());
    (x + y).sum().backward();
    EXPECT_TRUE(same(x.grad(), at::ones({3, 3}, at::kDouble)));
    context.backward({loss});
    EXPECT_TRUE(same(x.grad(), at::ones({3, 3}, at::kDouble)));
    EXPECT_TRUE(same(y.grad(), at::ones({3, 3}, at::kDouble)));
    expect_gradients(context, {x, y}, {y.detach() * 2, x.detach() * 2});
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.test_backward_multiple_round_trips
TEST(ReferenceAutogradBackward, AGraphThatGoesBackAndForthSixTimes) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    for (const bool by_reference : {false, true}) {
      std::vector<at::Tensor> t;
      for (int i = 1; i <= 5; ++i) t.push_back((random({3, 3}) * i).set_requires_grad(i % 2 == 1));
      Remote remote{worker, by_reference};
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      at::Tensor value = remote("aten::add", t[0], t[1]);
      value = remote("aten::mul", t[2], value);
      const at::Tensor one = remote("aten::stack", std::vector{t[3], value});
      const at::Tensor two = remote("aten::stack", std::vector{t[4], value});
      value = remote("aten::bmm", one, two);
      value = remote("aten::matmul", value, value);
      context.backward({value.sum()});

      const at::Tensor inner = t[2] * (t[0] + t[1]);
      const at::Tensor local = at::bmm(at::stack({t[3], inner}), at::stack({t[4], inner}));
      expect_local_gradients(context, at::matmul(local, local).sum(), {t[0], t[2], t[4]});
    }
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.{test_backward_different_tensor_dims,
// Rows: test_backward_different_dtypes, test_backward_complex_python_udf,
// Rows: test_backward_without_rpc}
TEST(ReferenceAutogradBackward, TensorsOfAllSizesAndTypesAndAGraphThatIsHereAlone) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    Remote remote{worker};
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    const std::vector<at::Tensor> chain = {random({4, 6}).requires_grad_(), random({6, 5}),
                                           random({5, 7}).requires_grad_(), random({7, 9})};
    const at::Tensor product = remote(
        "aten::matmul",
        remote("aten::matmul", remote("aten::matmul", chain[0], chain[1]), chain[2]), chain[3]);
    context.backward({product.sum()});
    expect_local_gradients(
        context, at::matmul(at::matmul(at::matmul(chain[0], chain[1]), chain[2]), chain[3]).sum(),
        {chain[0], chain[2]});

    const AutogradContext types = worker.autograd_context();
    const at::Tensor narrow = random({3, 3}).to(at::kFloat).requires_grad_();
    const at::Tensor wide = random({3, 3}).requires_grad_();
    types.backward({types.rpc_sync(after(worker), &add, narrow, wide).sum()});
    expect_gradients(types, {narrow, wide},
                     {at::ones({3, 3}, at::kFloat), at::ones({3, 3}, at::kDouble)});

    const AutogradContext matrices = worker.autograd_context();
    std::vector<at::Tensor> m;
    for (int i = 1; i <= 5; ++i) m.push_back((random({3, 3}) * i).requires_grad_());
    matrices.backward(
        {matrices.rpc_sync(after(worker), &five, m[0], m[1], m[2], m[3], m[4]).sum()});
    expect_local_gradients(matrices, five(m[0], m[1], m[2], m[3], m[4]).sum(), m);

    const AutogradContext alone = worker.autograd_context();
    alone.backward({(narrow + wide).sum()});
    expect_gradients(alone, {narrow, wide},
                     {at::ones({3, 3}, at::kFloat), at::ones({3, 3}, at::kDouble)});
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.test_backward_unused_tensors
TEST(ReferenceAutogradBackward, ATensorOfWhichNothingIsUsedGetsZeros) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    Remote remote{worker};
    std::vector<at::Tensor> t;
    for (int i = 1; i <= 3; ++i) t.push_back((random({3, 3}) * i).requires_grad_());
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    const at::Tensor stacked = remote("aten::stack", t);
    const at::Tensor product = remote("aten::matmul", stacked[0], stacked[2]);
    context.backward({product.sum()});
    const at::Tensor local = at::stack(t);
    expect_local_gradients(context, at::matmul(local[0], local[2]).sum(), t);
    EXPECT_TRUE(same(context.get_gradients().find(t[1]), at::zeros({3, 3}, at::kDouble)));
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.test_backward_multiple_output_tensors
TEST(ReferenceAutogradBackward, OfFiveResultsOfACallThreeAreUsed) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    Remote remote{worker};
    const at::Tensor whole = random({10, 2}).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    const std::vector<at::Tensor> parts = worker.rpc_sync(after(worker), &split, whole);
    ASSERT_EQ(parts.size(), 5u);
    expect_of_one_message(parts);
    const at::Tensor product =
        remote("aten::matmul", remote("aten::matmul", parts[0], parts[2]), parts[4]);
    context.backward({product.sum()});
    const auto local = split(whole);
    expect_local_gradients(context, at::matmul(at::matmul(local[0], local[2]), local[4]).sum(),
                           {whole});
    const at::Tensor gradient = context.get_gradients().find(whole);
    for (const int64_t unused : {2, 6})
      EXPECT_TRUE(same(gradient.narrow(0, unused, 2), at::zeros({2, 2}, at::kDouble)));
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.test_backward_multiple_roots
TEST(ReferenceAutogradBackward, FourRootsFromFourWorkersCountTogether) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const at::Tensor a = matrix_a().requires_grad_();
    const at::Tensor b = matrix_b().requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    Remote remote{worker};
    const std::vector<at::Tensor> roots = {
        remote("aten::add", a, b).sum(), remote("aten::mul", a, b).sum(),
        remote("aten::cos", a).sum(), remote("aten::div", a, b).sum()};
    const std::vector<double> values = {9, 1.65, 7.637545, 19.289683};
    for (size_t i = 0; i < roots.size(); ++i) EXPECT_NEAR(roots[i].item<double>(), values[i], 1e-6);
    context.backward(roots);
    const at::Tensor of_a = at::tensor({2.911278, 2.851331, 2.833051, 2.877248, 3.020575, 3.335358,
                                        3.989116, 5.482644, 10.316673})
                                .reshape({3, 3});
    const at::Tensor of_b =
        at::tensor({.976543, .8875, .687755, .288889, -.5, -2.15, -6.077778, -18.2, -88.1})
            .reshape({3, 3});
    EXPECT_TRUE(close(context.get_gradients().find(a), of_a));
    EXPECT_TRUE(close(context.get_gradients().find(b), of_b));
    EXPECT_EQ(context.get_gradients().all().size(), 2u);

    // The same of roots that stay where they are.
    const AutogradContext referenced = worker.autograd_context();
    std::vector<RRef<at::Tensor>> far;
    uint32_t step = 0;
    for (const char* name : {"aten::add", "aten::mul", "aten::div"}) {
      const std::string to = after(worker, ++step);
      far.push_back(
          referenced.remote(to, &sum_of, referenced.rpc_sync<at::Tensor>(to, name, a, b)));
    }
    referenced.backward_at(far);
    expect_local_gradients(referenced, (a + b).sum() + (a * b).sum() + (a / b).sum(), {a, b});
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.test_backwards_nested_python_udf
TEST(ReferenceAutogradBackward, ALocalAndARemotePathMeetAgainAtOneTensor) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const at::Tensor a = matrix_a().requires_grad_();
    const at::Tensor b = matrix_b().requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    const at::Tensor loss = worker.rpc_sync(after(worker), &branches, after(worker, 2), a, b).sum();
    EXPECT_NEAR(loss.item<double>(), .404745, 1e-6);
    context.backward({loss});
    expect_local_gradients(context, branches_here(a, b).sum(), {a, b});
    const at::Tensor of_a = at::tensor({.200799, .372736, .484071, .520704, .484375, .390144,
                                        .263151, .134656, .037359})
                                .reshape({3, 3});
    EXPECT_TRUE(close(context.get_gradients().find(a), of_a));
    EXPECT_TRUE(close(context.get_gradients().find(b), of_a.flip({0, 1})));
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.{test_backward_accumulate_grads,
// Rows: test_nested_backward_accumulate_grads}
TEST(ReferenceAutogradBackward, ASecondPassDoublesTheGradients) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    for (const bool nested : {false, true}) {
      const at::Tensor a = matrix_a().requires_grad_();
      const at::Tensor b = matrix_b().requires_grad_();
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      const at::Tensor loss =
          (nested ? worker.rpc_sync(after(worker), &product_at, after(worker, 2), a, b)
                  : worker.rpc_sync<at::Tensor>(after(worker), "aten::matmul", a, b))
              .sum();
      context.backward({loss}, /*retain_graph=*/true);
      expect_local_gradients(context, at::matmul(a, b).sum(), {a, b});
      const LeafGradients first = context.get_gradients();
      const at::Tensor kept = first.find(a);
      const at::Tensor before = kept.clone();
      context.backward({loss});
      const at::Tensor twice_a = at::tensor({4.8, 3.0, 1.2}).expand({3, 3});
      const at::Tensor twice_b = at::tensor({2.4, 3.0, 3.6}).reshape({3, 1}).expand({3, 3});
      EXPECT_TRUE(close(context.get_gradients().find(a), twice_a));
      EXPECT_TRUE(close(context.get_gradients().find(b), twice_b));
      EXPECT_EQ(context.get_gradients().all().size(), 2u);
      // The gradients that were taken before are as they were.
      EXPECT_TRUE(same(kept, before));
    }
  }));
}

// Rows: dist_autograd_test::DistAutogradTest.test_multiple_backward
TEST(ReferenceAutogradBackward, AThousandPassesOverOneGraphLeaveNoMoreThanTheFirst) {
  const auto passes = [](int count) {
    return one_caller(functions(), [count](Worker& worker) {
      const at::Tensor a = matrix_a().requires_grad_();
      const at::Tensor b = matrix_b().requires_grad_();
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      const at::Tensor loss = worker.rpc_sync<at::Tensor>("worker1", "aten::matmul", a, b).sum();
      context.backward({loss}, /*retain_graph=*/true);
      const at::Tensor once = context.get_gradients().find(a).clone();
      const std::string table = worker.debug_info().at("autograd.table");
      at::Tensor sum = once.clone();
      for (int i = 1; i < count; ++i) {
        context.backward({loss}, /*retain_graph=*/true);
        sum += once;
      }
      EXPECT_TRUE(same(context.get_gradients().find(a), sum));
      EXPECT_EQ(worker.debug_info().at("autograd.table"), table);
      EXPECT_EQ(worker.debug_info().at("autograd.passes"), "0");
      EXPECT_EQ(worker.debug_info().at("rpc.pending_calls"), "0");
    });
  };
  on_simulated_clusters(passes(1000), {.seeds = 2});
  on_simulated_clusters(passes(20));
  over_loopback(passes(1000));
}

}  // namespace
}  // namespace rehearsal::reference::autograd_backward_test
