#pragma once

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "core/api/autograd_context.h"
#include "tests/reference/row.h"

// The helpers that the rows of distributed autograd share.
namespace rehearsal::reference {

// ---- tensors --------------------------------------------------------------------

// 3 x 3, all elements equal.
inline at::Tensor square_leaf(double value) { return at::full({3, 3}, value).requires_grad_(); }

// 3 x 3, of the reference's numbers: A = .1 … .9 by rows, and B, the same backwards.
inline at::Tensor matrix_a() { return at::arange(1, 10, at::kDouble).reshape({3, 3}) / 10; }
inline at::Tensor matrix_b() { return matrix_a().flip({0, 1}); }

// 3 x 3, with three elements.
inline at::Tensor sparse_square() {
  const at::Tensor indices = at::tensor({0, 1, 1, 2, 0, 2}, at::kLong).reshape({2, 3});
  return at::sparse_coo_tensor(indices, at::tensor({3.2, 4.1, 5.3}, at::kDouble), {3, 3})
      .coalesce();
}

// The sum of all elements; of a sparse tensor its gradient is sparse.
inline at::Tensor total(const at::Tensor& tensor) {
  return tensor.is_sparse() ? at::_sparse_sum(tensor) : tensor.sum();
}

// The same layout and elements, and both there.
inline bool same(const at::Tensor& first, const at::Tensor& second) {
  if (!first.defined() || !second.defined()) return false;
  if (first.layout() != second.layout() || first.dtype() != second.dtype()) return false;
  return at::equal(first.to_dense(), second.to_dense());
}

inline bool close(const at::Tensor& first, const at::Tensor& second) {
  return first.defined() && first.sizes() == second.sizes() &&
         at::allclose(first.to(at::kDouble), second.to(at::kDouble), 1e-5, 1e-6);
}

// An operator at another worker, whose result stays there and is fetched.
template <class... A>
at::Tensor operator_there(Worker& worker, const std::string& to, const std::string& name,
                          const A&... arguments) {
  return worker.remote_by_name<c10::IValue>(to, name, arguments...).to_here().toTensor();
}

// ---- gradients ------------------------------------------------------------------

// As LibTorch itself computes them; undefined where the root does not depend on a leaf.
inline std::vector<at::Tensor> local_gradients(const at::Tensor& root,
                                               const std::vector<at::Tensor>& leaves) {
  return torch::autograd::grad({root}, leaves, {}, /*retain_graph=*/true, false,
                               /*allow_unused=*/true);
}

// The context holds these gradients of these leaves, bit for bit, and no others.
inline void expect_gradients(const AutogradContext& context, const std::vector<at::Tensor>& leaves,
                             const std::vector<at::Tensor>& expected) {
  const LeafGradients gradients = context.get_gradients();
  EXPECT_EQ(gradients.all().size(), leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    const at::Tensor found = gradients.find(leaves[i]);
    EXPECT_TRUE(same(found, expected[i]))
        << "leaf " << i << ": " << found << "\nexpected " << expected[i];
  }
}

// … those that a local pass from this root gives.
inline void expect_local_gradients(const AutogradContext& context, const at::Tensor& root,
                                   const std::vector<at::Tensor>& leaves) {
  expect_gradients(context, leaves, local_gradients(root, leaves));
}

// The gradients of the leaves of the worker that serves the call.
inline std::vector<at::Tensor> all_gradients(CallContext& call) {
  std::vector<at::Tensor> all;
  for (const LeafGradient& gradient : get_gradients(call).all()) all.push_back(gradient.gradient);
  return all;
}

// ---- tables ---------------------------------------------------------------------

// The part of a context that a worker's tables show.
struct Recorded {
  int64_t sends = 0;  // send functions
  int64_t peers = 0;  // other workers with which calls of the context were exchanged
  bool operator==(const Recorded&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Recorded& recorded) {
  return out << recorded.sends << " sends, " << recorded.peers << " peers";
}

// Nothing if the worker does not hold the context.
inline std::optional<Recorded> recorded_of(const WorkerAccess& worker,
                                           const AutogradContextId& id) {
  const std::string table = worker.debug_info().at("autograd.table");
  const size_t start = table.find("autograd context " + to_string(id) + " of ");
  if (start == std::string::npos) return std::nullopt;
  const std::string line = table.substr(start, table.find('\n', start) - start);
  static const std::regex counts(R"((\d+) send functions.* (\d+) peers)");
  std::smatch found;
  if (!std::regex_search(line, found, counts)) {
    ADD_FAILURE() << "the table's line is of another form: " << line;
    return std::nullopt;
  }
  return Recorded{std::stoll(found[1]), std::stoll(found[2])};
}

// The send functions that the worker which serves the call holds of the call's context; -1 if it
// does not hold it.
inline int64_t sends_here(CallContext& call) {
  if (!call.autograd_context()) return -1;
  const auto recorded = recorded_of(call, call.autograd_context()->id);
  return recorded ? recorded->sends : -1;
}

// All workers have closed their contexts, and within ten seconds none is left here.
inline void expect_all_contexts_end(Worker& worker) {
  worker.barrier();
  for (int milliseconds = 0; milliseconds < 10000; ++milliseconds) {
    if (worker.debug_info().at("autograd.contexts") == "0") break;
    worker.sleep(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(worker.debug_info().at("autograd.contexts"), "0");
  EXPECT_EQ(worker.debug_info().at("autograd.passes"), "0");
}

// ---- graphs ---------------------------------------------------------------------

// One message brought these tensors: they are the outputs of one receive function, in their order.
inline void expect_of_one_message(const std::vector<at::Tensor>& tensors) {
  const auto function = tensors.at(0).grad_fn();
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function->name(), "RecvRpcBackward");
  EXPECT_EQ(function->num_inputs(), tensors.size());
  EXPECT_EQ(function->num_outputs(), 0u);
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(tensors[i].grad_fn(), function);
    EXPECT_EQ(tensors[i].output_nr(), i);
  }
}

// The edges of the function that made `result` lead to these tensors' places, in their order.
inline void expect_edges_to(const at::Tensor& result, const std::vector<at::Tensor>& tensors) {
  ASSERT_NE(result.grad_fn(), nullptr);
  ASSERT_EQ(result.grad_fn()->num_outputs(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    EXPECT_EQ(result.grad_fn()->next_edge(i), torch::autograd::impl::gradient_edge(tensors[i]));
}

}  // namespace rehearsal::reference
