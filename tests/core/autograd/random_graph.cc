#include "tests/core/autograd/random_graph.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/utils.h>

#include <memory>

namespace rehearsal::testing {
namespace {

using torch::autograd::variable_list;

// a·b, whose gradient for `b` is undefined.
struct HalfDifferentiable : torch::autograd::Function<HalfDifferentiable> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& a,
                            const at::Tensor& b) {
    context->save_for_backward({b});
    return a * b;
  }
  static variable_list backward(torch::autograd::AutogradContext* context,
                                variable_list gradients) {
    return {gradients[0] * context->get_saved_variables()[0], at::Tensor()};
  }
};

at::Tensor segment(const at::Tensor& a, const at::Tensor& b) {
  return (a * b).tanh() + a.sigmoid() * b;
}

// Computes `segment` without history, and again with it when the gradients are wanted.
struct Checkpoint : torch::autograd::Function<Checkpoint> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& a,
                            const at::Tensor& b) {
    context->save_for_backward({a, b});
    const at::NoGradGuard no_grad;
    return segment(a, b);
  }
  static variable_list backward(torch::autograd::AutogradContext* context,
                                variable_list gradients) {
    variable_list inputs;
    for (const at::Tensor& saved : context->get_saved_variables())
      inputs.push_back(saved.detach().requires_grad_());
    const at::AutoGradMode grad(true);
    return torch::autograd::grad({segment(inputs[0], inputs[1])}, inputs, {gradients[0]});
  }
};

// Two outputs, of which users often drop one: its gradient is then undefined, not zero.
struct TwoOutputs : torch::autograd::Function<TwoOutputs> {
  static variable_list forward(torch::autograd::AutogradContext* context, const at::Tensor& a) {
    context->set_materialize_grads(false);
    return {a * 2, a * 3};
  }
  static variable_list backward(torch::autograd::AutogradContext*, variable_list gradients) {
    at::Tensor sum;
    if (gradients[0].defined()) sum = gradients[0] * 2;
    if (gradients[1].defined()) sum = sum.defined() ? sum + gradients[1] * 3 : gradients[1] * 3;
    return {sum};
  }
};

struct ScalingPreHook : torch::autograd::FunctionPreHook {
  variable_list operator()(const variable_list& gradients) override {
    variable_list scaled;
    for (const at::Tensor& gradient : gradients)
      scaled.push_back(gradient.defined() ? gradient * 0.75 : gradient);
    return scaled;
  }
};

struct ScalingPostHook : torch::autograd::FunctionPostHook {
  variable_list operator()(const variable_list& outputs, const variable_list& inputs) override {
    variable_list scaled;
    const double factor = inputs.empty() || !inputs[0].defined() ? 1.5 : 1.25;
    for (const at::Tensor& output : outputs)
      scaled.push_back(output.defined() ? output * factor : output);
    return scaled;
  }
};

}  // namespace

RandomGraph::RandomGraph(uint64_t seed) : state_(mix(seed)) {
  torch::manual_seed(seed);
  for (int i = 0; i < 3; ++i) leaves.push_back(torch::randn({4, 3}).requires_grad_());
  pool_ = leaves;
  square_ = torch::randn({3, 3}).requires_grad_();
  table_ = torch::randn({6, 3}).requires_grad_();
  leaves.push_back(square_);
  leaves.push_back(table_);
  if (chance(30)) pool_.push_back(torch::randn({4, 3}));
  const uint64_t steps = 3 + draw(20);
  for (uint64_t i = 0; i < steps; ++i) {
    pool_.push_back(next_tensor());
    if (chance(20)) hook(pool_.back());
  }
  hook_leaves();
  choose_roots();
}

uint64_t RandomGraph::draw(uint64_t count) { return (state_ = mix(state_)) % count; }

at::Tensor RandomGraph::next_tensor() {
  switch (draw(8)) {
    case 0:
    case 1:
    case 2:
      return arithmetic();
    case 3:
      return reshaped();
    case 4:
    case 5:
      return changed_in_place();
    case 6:
      return through_own_function();
    default:
      return looked_up();
  }
}

at::Tensor RandomGraph::arithmetic() {
  const at::Tensor a = any();
  const at::Tensor b = any();
  switch (draw(9)) {
    case 0:
      return a + b;
    case 1:
      return a * b;
    case 2:
      return a.tanh() - b.sigmoid();
    case 3:
      return torch::mm(a, square_);
    case 4:
      return a.softmax(1) * a;
    case 5:
      return torch::layer_norm(a + a, {3});
    case 6:
      return a.sum(0, true).expand({4, 3}) + b;
    case 7:
      return torch::where(a.detach() > 0, a, b);
    default:
      return torch::mm(torch::mm(a, square_.t()), square_);
  }
}

at::Tensor RandomGraph::reshaped() {
  const at::Tensor a = any();
  switch (draw(6)) {
    case 0: {
      const auto parts = a.chunk(3, 1);
      return torch::cat({parts[draw(3)], parts[draw(3)], parts[0]}, 1);
    }
    case 1:
      return a.t().contiguous().t() + a;
    case 2: {
      const auto rows = a.unbind(0);
      return torch::stack({rows[draw(4)], rows[draw(4)], rows[1], rows[draw(4)]});
    }
    case 3:
      return std::get<0>(a.max(1, true)).expand({4, 3}) * a;
    case 4:
      return a.index_select(0, torch::tensor({3, 0, 3, 1}));
    default:
      return a.reshape({2, 6}).narrow(1, 0, 3).repeat({2, 1});
  }
}

at::Tensor RandomGraph::changed_in_place() {
  const at::Tensor other = any();
  at::Tensor base = any().clone(at::MemoryFormat::Contiguous);
  switch (draw(5)) {
    case 0:
      return base.mul_(other);
    case 1:
      base.narrow(0, draw(2), 2).add_(other.narrow(0, 1, 2));
      return base;
    case 2: {
      at::Tensor view = base.view({2, 6});
      base.add_(other);
      view.narrow(1, 1, 2).mul_(2.5);
      return view.view({4, 3}) * base;
    }
    case 3: {
      at::Tensor rows = base.narrow(0, 0, 2);
      at::Tensor row = rows.select(0, 1);
      row.copy_(other.select(0, 2));
      base.sigmoid_();
      return torch::cat({rows, base.narrow(0, 1, 2)}, 0);
    }
    default:
      base.t().select(0, 0).zero_();
      return base + other;
  }
}

at::Tensor RandomGraph::through_own_function() {
  const at::Tensor a = any();
  const at::Tensor b = any();
  switch (draw(3)) {
    case 0:
      return HalfDifferentiable::apply(a, b);
    case 1:
      return Checkpoint::apply(a, b);
    default: {
      const variable_list outputs = TwoOutputs::apply(a);
      return outputs[draw(2)] + b;
    }
  }
}

at::Tensor RandomGraph::looked_up() {
  const at::Tensor rows = torch::randint(0, 6, {4}, torch::kLong);
  if (chance(20)) return torch::embedding(table_, rows) * any();
  return torch::embedding(table_, rows, -1, false, /*sparse=*/true) + any();
}

void RandomGraph::hook(const at::Tensor& tensor) {
  if (!tensor.requires_grad() || tensor.is_leaf()) return;
  const uint64_t id = draw(1'000'000);
  switch (draw(5)) {
    case 0:
      tensor.register_hook([this, id](const at::Tensor&) { hook_calls.push_back(id); });
      return;
    case 1:
      tensor.register_hook([this, id](const at::Tensor& gradient) {
        hook_calls.push_back(id);
        return gradient.defined() ? gradient * 1.5 : gradient;
      });
      return;
    case 2:
      tensor.retain_grad();
      retained.push_back(tensor);
      return;
    case 3:
      tensor.grad_fn()->add_pre_hook(std::make_unique<ScalingPreHook>());
      return;
    default:
      tensor.grad_fn()->add_post_hook(std::make_unique<ScalingPostHook>());
  }
}

void RandomGraph::hook_leaves() {
  for (const at::Tensor& leaf : leaves) {
    if (!chance(15)) continue;
    leaf.register_hook([this](const at::Tensor& gradient) {
      ++leaf_hook_calls;
      return gradient.defined() ? gradient * 0.5 : gradient;
    });
  }
}

void RandomGraph::choose_roots() {
  const uint64_t count = 1 + draw(3);
  for (uint64_t i = 0; i < count; ++i) {
    at::Tensor root = chance(60) ? pool_.back() : any();
    if (!root.requires_grad()) root = leaves[0];
    if (chance(30)) root = root.sum();
    roots.push_back(root);
    root_gradients.push_back(torch::randn(root.sizes()));
  }
}

}  // namespace rehearsal::testing
