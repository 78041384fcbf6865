#include "scenarios/random_model/operators.h"

#include <torch/autograd.h>

#include <stdexcept>

namespace rehearsal::random_model {
namespace {

using torch::autograd::variable_list;
using FunctionContext = torch::autograd::AutogradContext;

// a·b, whose gradient for `b` is undefined.
struct HalfDifferentiable : torch::autograd::Function<HalfDifferentiable> {
  static at::Tensor forward(FunctionContext* context, const at::Tensor& a, const at::Tensor& b) {
    context->set_materialize_grads(false);
    context->save_for_backward({b});
    return a * b;
  }
  static variable_list backward(FunctionContext* context, variable_list gradients) {
    if (!gradients[0].defined()) return {at::Tensor(), at::Tensor()};
    return {gradients[0] * context->get_saved_variables()[0], at::Tensor()};
  }
};

// Twice and three times: the gradient of a result that nobody uses is undefined, not zero.
struct TwoOutputs : torch::autograd::Function<TwoOutputs> {
  static variable_list forward(FunctionContext* context, const at::Tensor& a) {
    context->set_materialize_grads(false);
    return {a * 2, a * 3};
  }
  static variable_list backward(FunctionContext*, variable_list gradients) {
    at::Tensor sum;
    if (gradients[0].defined()) sum = gradients[0] * 2;
    if (gradients[1].defined()) sum = sum.defined() ? sum + gradients[1] * 3 : gradients[1] * 3;
    return {sum};
  }
};

at::Tensor segment(const at::Tensor& a, const at::Tensor& b) { return (a + b).relu() - b; }

// Computes `segment` without history, and again with it when the gradients are wanted.
struct Checkpoint : torch::autograd::Function<Checkpoint> {
  static at::Tensor forward(FunctionContext* context, const at::Tensor& a, const at::Tensor& b) {
    context->set_materialize_grads(false);
    context->save_for_backward({a, b});
    const at::NoGradGuard no_grad;
    return segment(a, b);
  }
  static variable_list backward(FunctionContext* context, variable_list gradients) {
    if (!gradients[0].defined()) return {at::Tensor(), at::Tensor()};
    variable_list inputs;
    for (const at::Tensor& saved : context->get_saved_variables())
      inputs.push_back(saved.detach().requires_grad_());
    const at::AutoGradMode grad(true);
    return torch::autograd::grad({segment(inputs[0], inputs[1])}, inputs, {gradients[0]});
  }
};

struct Fork : torch::autograd::Function<Fork> {
  static variable_list forward(FunctionContext* context, const at::Tensor& x, int64_t last) {
    context->set_materialize_grads(false);
    context->saved_data["last"] = last;
    return {x.clone(), x.clone(), x.clone()};
  }
  static variable_list backward(FunctionContext* context, variable_list gradients) {
    const auto last = static_cast<size_t>(context->saved_data["last"].toInt());
    at::Tensor sum;
    for (size_t i = 1; i <= 3; ++i) {
      const at::Tensor& next = gradients[(last + i) % 3];
      if (next.defined()) sum = sum.defined() ? sum + next : next;
    }
    return {sum, at::Tensor()};
  }
};

at::Tensor as_type(const at::Tensor& x, at::ScalarType type) {
  if (x.scalar_type() == type) return x;
  if (x.is_complex() && !at::isComplexType(type)) return at::real(x).to(type);
  return x.to(type);
}

// Whole numbers from −2 to 2, with the gradient of `x` itself.
at::Tensor wrapped(const at::Tensor& x) { return at::remainder(x, 5) - 2; }

// A factor that keeps products small; of whole numbers they are wrapped.
at::Tensor bounded(const Model& model, const at::Tensor& x) { return model.exact ? x : x.sin(); }

at::Tensor activated(const Model& model, const Node& node, const at::Tensor& a) {
  if (model.exact) return node.word % 2 == 0 ? a.relu() : a.abs();
  switch (node.word % 3) {
    case 0:
      return a.tanh();
    case 1:
      return a.sigmoid();
    default:
      return a.sin();
  }
}

at::Tensor chosen(const Node& node, const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor mask = (at::real(node.content) > 0);
  return node.word % 8 == 0 ? a.where(at::ones_like(mask), b) : a.where(mask, b);
}

at::Tensor rearranged(const Node& node, const at::Tensor& a) {
  if (node.word % 2 == 0) {
    const std::vector<at::Tensor> columns = a.unbind(1);
    return (at::stack({columns[2], columns[0], columns[1]}, 1) * node.content).t().contiguous().t();
  }
  return at::cat({node.content, a * node.content, node.content}).narrow(0, 2, 2);
}

at::Tensor changed(const Node& node, at::Tensor base, const at::Tensor& other) {
  switch (node.word % 3) {
    case 0:
      return base.mul_(node.content).add_(other);
    case 1:
      base.narrow(1, 0, 2).add_(other.narrow(1, 1, 2));
      return base.mul_(node.content);
    default:
      base.mul_(node.content);
      base.select(0, 1).copy_(other.select(0, 0));
      return base;
  }
}

// The second result is as long as its message must be to take the large lane.
Outputs enlarged(const Node& node, const at::Tensor& a) {
  constexpr int64_t kLargeBytes = 66'000;
  const at::Tensor scaled = a * node.content;
  const int64_t rows = kLargeBytes / (3 * static_cast<int64_t>(scaled.element_size()));
  return {scaled, at::cat({scaled, at::ones({rows, 3}, scaled.options())})};
}

at::Tensor shrunk(const Node& node, const at::Tensor& large) {
  return (large.narrow(0, 0, 2) - large.narrow(0, large.size(0) - 2, 2)) * node.content;
}

at::Tensor without_grad(const Node& node, const at::Tensor& a) {
  const at::NoGradGuard no_grad;
  return a * node.content;
}

at::Tensor lost(const Node& node, const Outputs& inputs) {
  at::Tensor sum;
  for (const at::Tensor& input : inputs) {
    const at::Tensor part = (as_type(input, at::kDouble) * node.content).sum();
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

at::Tensor looked_up(const Model& model, const Node& node, const at::Tensor& table) {
  const int64_t first = static_cast<int64_t>(node.word % 4);
  const at::Tensor rows =
      at::tensor({first, (first + 1 + static_cast<int64_t>(node.word / 4 % 3)) % 4}, at::kLong);
  const bool sparse = model.sparse && !model.records && node.word / 16 % 4 != 0;
  return as_type(at::embedding(table, rows.to(table.device()), -1, false, sparse), node.type) *
         node.content;
}

// Of which the operator may change the first, if it is in place.
Outputs prepared(const Node& node, const Outputs& inputs, bool owned) {
  Outputs ready;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor cast = as_type(inputs[i], node.type);
    const bool own = i == 0 && node.op == Operator::in_place && owned && cast.is_contiguous();
    ready.push_back(own ? cast : cast.clone(at::MemoryFormat::Contiguous));
  }
  return ready;
}

Outputs computed(const Model& model, const Node& node, const Outputs& in) {
  const at::Tensor& factor = node.content;
  switch (node.op) {
    case Operator::add:
      return {(in[0] + in[1]) * factor};
    case Operator::subtract:
      return {in[0] * factor - in[1]};
    case Operator::multiply:
      return {in[0] * bounded(model, in[1]) * factor};
    case Operator::blend:
      return {in[0].mm(node.matrix) * factor};
    case Operator::outer:
      return {in[0].mm(bounded(model, in[1]).t()).mm(node.matrix.narrow(0, 0, 2)) * factor};
    case Operator::activation:
      return {activated(model, node, in[0]) * factor};
    case Operator::where:
      return {chosen(node, in[0], in[1]) * factor};
    case Operator::rearrange:
      return {rearranged(node, in[0])};
    case Operator::in_place:
      return {changed(node, in[0], in[1])};
    case Operator::half_differentiable:
      return {HalfDifferentiable::apply(in[0], bounded(model, in[1])) * factor};
    case Operator::two_outputs: {
      const variable_list both = TwoOutputs::apply(in[0] * factor);
      return {both[0], both[1]};
    }
    case Operator::checkpoint:
      return {Checkpoint::apply(in[0], in[1]) * factor};
    case Operator::without_grad:
      return {without_grad(node, in[0])};
    case Operator::detached:
      return {in[0].detach() * factor + in[1] * factor};
    case Operator::with_indices:
      return {in[0] * factor, in[0].detach().argmax(1)};
    case Operator::enlarge:
      return enlarged(node, in[0]);
    case Operator::shrink:
      return {shrunk(node, in[0])};
    default:
      throw std::logic_error("no such operator");
  }
}

}  // namespace

Outputs evaluate(const Model& model, const Node& node, const Outputs& inputs, bool owned) {
  if (node.op == Operator::loss) return {lost(node, inputs)};
  Outputs outputs = node.op == Operator::look_up
                        ? Outputs{looked_up(model, node, inputs[0])}
                        : computed(model, node, prepared(node, inputs, owned));
  if (model.exact)
    for (at::Tensor& output : outputs)
      if (output.scalar_type() == at::kDouble && node.op != Operator::without_grad)
        output = wrapped(output);
  return outputs;
}

at::Tensor penalty_of(const Outputs& gradients) {
  at::Tensor sum;
  for (const at::Tensor& gradient : gradients) {
    if (!gradient.defined() || !gradient.requires_grad()) continue;
    const at::Tensor part = wrapped(as_type(gradient, at::kDouble)).pow(2).sum();
    sum = sum.defined() ? sum + part.to(sum.device()) : part;
  }
  return sum;
}

Outputs fork(const at::Tensor& x, int64_t last) { return Fork::apply(x, last); }

}  // namespace rehearsal::random_model
