#include "core/autograd/node_evaluation.h"

#include <ATen/Functions.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/autograd/recv_rpc_backward.h"
#include "core/autograd/send_rpc_backward.h"
#include "core/base/error.h"

namespace rehearsal {
namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::AnomalyMode;
using torch::autograd::Node;
using torch::autograd::variable_list;

variable_list apply_node(Node& node, variable_list inputs) {
  variable_list outputs = node(std::move(inputs));
  torch::autograd::validate_outputs(node.next_edges(), outputs, [&node](const std::string& text) {
    return "Function " + node.name() + " returned an " + text;
  });
  return outputs;
}

void refuse_nan(const Node& node, const variable_list& outputs) {
  if (!AnomalyMode::is_enabled() || !AnomalyMode::should_check_nan()) return;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) continue;
    const at::OptionalDeviceGuard guard(outputs[i].device());
    TORCH_CHECK(!at::isnan(outputs[i]).any().item<bool>(), "Function '", node.name(),
                "' returned nan values in its ", i, "th output.");
  }
}

// LibTorch's text says that the callback came outside a backward pass, which would mislead here.
[[noreturn]] void rethrow(const Node& node, const c10::Error& error) {
  const std::string_view text = error.what_without_backtrace();
  if (text.find("Final callbacks can only be installed") == std::string_view::npos) throw;
  throw RpcError(
      {.kind = ErrorKind::autograd,
       .text = node.name() +
               " or one of its hooks called Engine::queue_callback: a distributed "
               "backward pass does not run in LibTorch's engine, so that final callbacks "
               "(data-parallel reducers use them) are never called",
       .worker = {},
       .function = node.name(),
       .chain = {}});
}

template <class Body>
auto with_clear_errors(const Node& node, Body body) {
  try {
    return body();
  } catch (const c10::Error& error) {
    rethrow(node, error);
  }
}

variable_list run_retain_grad_hooks(Node& node, variable_list inputs) {
  const auto& hooks = node.retains_grad_hooks();
  if (hooks.empty()) return inputs;
  std::vector<size_t> outputs;
  for (const auto& [output, hook] : hooks) outputs.push_back(output);
  std::sort(outputs.begin(), outputs.end());
  for (const size_t output : outputs) inputs = (*hooks.at(output))(inputs);
  return inputs;
}

// Those that compute the gradient of one input without those of the others.
constexpr std::string_view kInParts[] = {
    "AddmmBackward0",       "MmBackward0",     "LinearBackward0", "BmmBackward0",
    "BaddbmmBackward0",     "AddbmmBackward0", "AddmvBackward0",  "MvBackward0",
    "ConvolutionBackward0", "AddBackward0",    "SubBackward0",    "MulBackward0",
    "DivBackward0"};

// Takes edges away for as long as it lives: a node computes nothing for an output that leads
// nowhere.
class WithoutEdges {
 public:
  WithoutEdges(Node& node, const std::vector<bool>& wanted) : node_(node) {
    for (uint32_t i = 0; i < wanted.size(); ++i)
      if (!wanted[i]) taken_.emplace_back(i, std::exchange(node.next_edges()[i], {}));
  }
  ~WithoutEdges() {
    for (auto& [i, edge] : taken_) node_.next_edges()[i] = std::move(edge);
  }
  WithoutEdges(const WithoutEdges&) = delete;
  WithoutEdges& operator=(const WithoutEdges&) = delete;

 private:
  Node& node_;
  std::vector<std::pair<uint32_t, torch::autograd::Edge>> taken_;
};

}  // namespace

bool can_evaluate_in_parts(const Node& node) {
  if (!node.post_hooks().empty()) return false;
  const std::string name = node.name();
  return std::find(std::begin(kInParts), std::end(kInParts), name) != std::end(kInParts);
}

variable_list evaluate_part(Node& node, variable_list inputs, const std::vector<bool>& wanted,
                            bool release) {
  return with_clear_errors(node, [&] {
    const WithoutEdges without(node, wanted);
    if (release) node.will_release_variables();
    variable_list outputs = apply_node(node, std::move(inputs));
    if (release) node.release_variables();
    refuse_nan(node, outputs);
    return outputs;
  });
}

variable_list run_hooks_before(Node& node, variable_list inputs) {
  return with_clear_errors(node, [&] {
    for (const auto& hook : node.tensor_pre_hooks()) inputs = (*hook)(inputs);
    inputs = run_retain_grad_hooks(node, std::move(inputs));
    for (const auto& hook : node.pre_hooks()) inputs = (*hook)(inputs);
    return std::move(inputs);
  });
}

void run_hooks_after_sink(Node& node, const variable_list& inputs) {
  with_clear_errors(node, [&] {
    for (const auto& hook : node.post_hooks()) (*hook)({}, inputs);
  });
}

void run_post_accumulate_hook(AccumulateGrad& leaf) {
  with_clear_errors(leaf, [&] {
    if (const auto& hook = leaf.tensor_post_acc_grad_hooks()) (*hook)(leaf.variable);
  });
}

variable_list evaluate_node(Node& node, variable_list inputs, bool retain_graph) {
  return with_clear_errors(node, [&] {
    inputs = run_hooks_before(node, std::move(inputs));
    if (!retain_graph) node.will_release_variables();
    // A hook that the node adds while it runs gets no inputs, as in the engine.
    const variable_list seen = node.post_hooks().empty() ? variable_list{} : inputs;
    variable_list outputs = apply_node(node, std::move(inputs));
    for (const auto& hook : node.post_hooks()) outputs = (*hook)(outputs, seen);
    if (!retain_graph) node.release_variables();
    refuse_nan(node, outputs);
    return outputs;
  });
}

bool may_run_user_code(Node& node) {
  const bool plain = node.is_traceable() || dynamic_cast<AccumulateGrad*>(&node) != nullptr ||
                     dynamic_cast<SendRpcBackward*>(&node) != nullptr ||
                     dynamic_cast<RecvRpcBackward*>(&node) != nullptr;
  return !plain || !node.tensor_pre_hooks().empty() || !node.retains_grad_hooks().empty() ||
         !node.pre_hooks().empty() || !node.post_hooks().empty() ||
         node.tensor_post_acc_grad_hooks() != nullptr;
}

}  // namespace rehearsal
