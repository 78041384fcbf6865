#include "scenarios/random_model/reference.h"

#include <torch/autograd.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "scenarios/random_model/sums.h"

namespace rehearsal::random_model {
namespace {

// A use of a leaf, and the copy of the leaf that it has for itself.
struct Use {
  size_t leaf = 0;
  size_t user = 0;
  at::Tensor copy;
};

// The graph of the model, as it is in one process.
class Graph {
 public:
  Graph(const Model& model, int64_t last) : model_(model), last_(last) {
    for (size_t i = 0; i < model.nodes.size(); ++i) outputs_.push_back(evaluated(i));
  }

  [[nodiscard]] const std::vector<Outputs>& outputs() const { return outputs_; }
  [[nodiscard]] const std::vector<Use>& uses() const { return uses_; }

  // The contribution of each use in this pass; undefined where there is none.
  std::vector<at::Tensor> run(const Pass& pass) {
    std::vector<at::Tensor> roots;
    for (const size_t loss : pass.losses) roots.push_back(outputs_[loss].front());
    if (pass.losses.empty()) roots = penalties();
    if (roots.empty()) return std::vector<at::Tensor>(uses_.size());
    std::vector<at::Tensor> copies;
    for (const Use& use : uses_) copies.push_back(use.copy);
    const std::vector<at::Tensor> gradients = torch::autograd::grad(
        roots, copies, {}, /*retain_graph=*/true, pass.create_graph, /*allow_unused=*/true);
    for (size_t i = 0; i < uses_.size(); ++i) {
      if (!model_.records || !gradients[i].defined()) continue;
      at::Tensor& sum = sums_[uses_[i].leaf];
      sum = sum.defined() ? sum + gradients[i] : gradients[i];
    }
    return gradients;
  }

 private:
  Outputs evaluated(size_t index) {
    const Node& node = model_.nodes[index];
    if (is_leaf(node)) return {node.content};
    Outputs inputs;
    for (const Input& input : node.inputs) inputs.push_back(value_of(input, index));
    Outputs outputs = evaluate(model_, node, inputs, /*owned=*/false);
    if (model_.hub == index) hub_ = fork(outputs.front(), last_);
    return outputs;
  }

  at::Tensor value_of(const Input& input, size_t user) {
    if (is_leaf(model_.nodes[input.node])) {
      uses_.push_back(
          {input.node, user, model_.nodes[input.node].content.clone().requires_grad_()});
      return uses_.back().copy;
    }
    if (model_.hub == input.node && input.output == 0) return hub_.at(hub_uses_++);
    return outputs_[input.node][input.output];
  }

  std::vector<at::Tensor> penalties() const {
    std::vector<at::Tensor> found;
    for (uint32_t worker = 0; worker < model_.workers; ++worker) {
      Outputs gradients;
      for (const size_t leaf : leaves_of(model_, worker))
        if (const auto sum = sums_.find(leaf); sum != sums_.end()) gradients.push_back(sum->second);
      const at::Tensor penalty = penalty_of(gradients);
      if (penalty.defined()) found.push_back(penalty);
    }
    return found;
  }

  const Model& model_;
  const int64_t last_;
  std::vector<Outputs> outputs_;
  std::vector<Use> uses_;
  Outputs hub_;
  size_t hub_uses_ = 0;
  std::map<size_t, at::Tensor> sums_;  // of all passes so far, by leaf, for the penalty
};

at::Tensor dense(const at::Tensor& gradient) {
  const at::Tensor detached = gradient.detach();
  if (detached._is_zerotensor()) return at::zeros_like(detached);
  return detached.is_sparse() ? detached.to_dense() : detached;
}

// No sum of such numbers was rounded.
void expect_exact(const at::Tensor& gradient) {
  constexpr double kLargest = 0x1p48;
  if (gradient.abs().max().item<double>() > kLargest)
    throw std::logic_error("the drawn model is too large to be exact");
}

}  // namespace

Reference::Reference(const Model& model) : model_(model) {
  for (size_t i = 0; i < model.nodes.size(); ++i)
    if (is_leaf(model.nodes[i])) leaves_.push_back(i);
  const int64_t orders = model.hub ? 3 : 1;
  for (int64_t last = 0; last < orders; ++last) calculate(last);
}

void Reference::calculate(int64_t last) {
  Graph graph(model_, last);
  Terms terms(leaves_.size());
  for (size_t pass = 0; pass < model_.passes.size(); ++pass) {
    const std::vector<at::Tensor> gradients = graph.run(model_.passes[pass]);
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      const Use& use = graph.uses()[i];
      const at::Tensor term = dense(gradients[i]);
      if (model_.exact) expect_exact(term);
      const auto leaf = std::find(leaves_.begin(), leaves_.end(), use.leaf) - leaves_.begin();
      terms[static_cast<size_t>(leaf)].push_back({use.user, pass, term});
    }
  }
  orders_.push_back(std::move(terms));
  if (!outputs_.empty()) return;
  for (const Outputs& outputs : graph.outputs()) {
    outputs_.emplace_back();
    for (const at::Tensor& output : outputs) outputs_.back().push_back(output.detach());
  }
}

std::optional<std::string> Reference::difference(size_t passes,
                                                 const std::vector<at::Tensor>& gradients) const {
  std::optional<std::string> first;
  for (const Terms& terms : orders_) {
    std::optional<std::string> wrong = difference(terms, passes, gradients);
    if (!wrong) return std::nullopt;
    if (!first) first = std::move(wrong);
  }
  return first;
}

namespace {

// Which terms those are, and which of them explains the difference.
std::string explained(const Model& model, const at::Tensor& sum, const std::vector<Term>& terms,
                      size_t left_out) {
  std::vector<at::Tensor> others;
  for (size_t i = 0; i < terms.size(); ++i)
    if (i != left_out) others.push_back(terms[i].gradient);
  const std::string name = "what " + text_of(model, terms[left_out].user) +
                           " contributes in pass " + std::to_string(terms[left_out].pass);
  if (!sum_difference(sum, others, model.exact)) return name + " is missing";
  others.push_back(terms[left_out].gradient);
  others.push_back(terms[left_out].gradient);
  if (!sum_difference(sum, others, model.exact)) return name + " has come twice";
  return {};
}

}  // namespace

std::optional<std::string> Reference::difference(const Terms& terms, size_t passes,
                                                 const std::vector<at::Tensor>& gradients) const {
  for (size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
    std::vector<Term> expected;
    std::vector<at::Tensor> tensors;
    for (const Term& term : terms[leaf]) {
      if (term.pass >= passes) continue;
      expected.push_back(term);
      tensors.push_back(term.gradient);
    }
    const at::Tensor sum = gradients[leaf].defined() ? dense(gradients[leaf]) : at::Tensor();
    const auto wrong = sum_difference(sum, tensors, model_.exact);
    if (!wrong) continue;
    std::string text = "the gradient of " + text_of(model_, leaves_[leaf]) + " after " +
                       std::to_string(passes) + " passes: " + *wrong;
    for (size_t i = 0; i < expected.size(); ++i)
      if (const std::string why = explained(model_, sum, expected, i); !why.empty())
        return text + "; " + why;
    for (const Term& term : expected)
      text += "; " + text_of(model_, term.user) + " contributes " + numbers_of(term.gradient) +
              " in pass " + std::to_string(term.pass);
    return text;
  }
  return std::nullopt;
}

}  // namespace rehearsal::random_model
