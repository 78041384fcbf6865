#include "core/api/data_parallel.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/div.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <utility>

#include "core/autograd/contexts.h"
#include "core/base/hash.h"
#include "core/collectives/operation.h"

namespace rehearsal {
namespace {

using Tensors = std::vector<at::Tensor>;

// The kind of a gradient: none, sparse in so many dimensions, or dense.
constexpr int64_t kNone = 0;
constexpr int64_t kDense = 100;

int64_t kind_of(const at::Tensor& gradient) {
  if (!gradient.defined()) return kNone;
  return gradient.is_sparse() ? gradient.sparse_dim() : kDense;
}

// Whether each column is a place in the first dimensions of a tensor of these sizes.
bool are_places_in(at::IntArrayRef sizes, const at::Tensor& indices) {
  const at::Tensor ends = at::tensor(sizes.slice(0, indices.size(0)), at::kLong).unsqueeze(1);
  return indices.ge(0).logical_and(indices.lt(ends)).all().item<bool>();
}

at::Tensor dense_of(const at::Tensor& parameter, const at::Tensor& gradient) {
  if (!gradient.defined()) return at::zeros(parameter.sizes(), parameter.options());
  return gradient.is_sparse() ? gradient.to_dense() : gradient;
}

}  // namespace

void DistributedDataParallel::refuse(ErrorKind kind, std::string text) const {
  throw RpcError({.kind = kind, .text = std::move(text), .worker = caller_->strand()->name()});
}

DistributedDataParallel::DistributedDataParallel(ProcessGroup group, Tensors parameters,
                                                 const Tensors& buffers,
                                                 const DataParallelOptions& options)
    : group_(std::move(group)),
      caller_(group_.caller()),
      parameters_(std::move(parameters)),
      bucket_bytes_(options.bucket_bytes) {
  Tensors all = parameters_;
  all.insert(all.end(), buffers.begin(), buffers.end());
  check_same(all);
  std::vector<Future<Unit>> given;
  for (const at::Tensor& tensor : all) given.push_back(group_.broadcast_async(tensor, 0));
  for (const Future<Unit>& one : given) one.wait();
  std::erase_if(parameters_,
                [](const at::Tensor& parameter) { return !parameter.requires_grad(); });
}

void DistributedDataParallel::check_same(const Tensors& tensors) const {
  std::string text;
  for (const at::Tensor& tensor : tensors)
    text += shape_text(tensor) + (tensor.requires_grad() ? " with gradient; " : "; ");
  const at::Tensor mine = at::tensor(
      {static_cast<int64_t>(tensors.size()), static_cast<int64_t>(hash_text(text))}, at::kLong);
  Tensors theirs(group_.size());
  for (at::Tensor& one : theirs) one = at::zeros({2}, at::kLong);
  group_.all_gather(theirs, mine);
  for (uint32_t rank = 1; rank < group_.size(); ++rank)
    if (!theirs[rank].equal(theirs[0]))
      refuse(ErrorKind::bad_arguments, "the replicas of a module differ: '" + group_.names()[0] +
                                           "' has " + std::to_string(theirs[0][0].item<int64_t>()) +
                                           " parameters and buffers, '" + group_.names()[rank] +
                                           "' " + std::to_string(theirs[rank][0].item<int64_t>()) +
                                           ", or they have other forms; here: " + text);
}

// ---- averages ---------------------------------------------------------------------

// How many places each member's gradient has.
std::vector<int64_t> DistributedDataParallel::sparse_counts(const at::Tensor& parameter,
                                                            int64_t sparse_dim,
                                                            int64_t mine) const {
  Tensors told(group_.size());
  for (at::Tensor& count : told) count = at::zeros({1}, at::kLong);
  group_.all_gather(told, at::tensor({mine}, at::kLong));
  // Each place once: a gradient is coalesced before it is sent.
  const int64_t most = c10::multiply_integers(parameter.sizes().slice(0, sparse_dim));
  std::vector<int64_t> counts;
  for (const at::Tensor& count : told) {
    counts.push_back(count.item<int64_t>());
    if (counts.back() < 0 || counts.back() > most)
      refuse(ErrorKind::protocol, "'" + group_.names()[counts.size() - 1] +
                                      "' says that its sparse gradient has " +
                                      std::to_string(counts.back()) +
                                      " places: the parameter has " + std::to_string(most));
  }
  return counts;
}

// The terms in the order of the ranks.
at::Tensor DistributedDataParallel::average_sparse(const at::Tensor& parameter,
                                                   const at::Tensor& gradient,
                                                   int64_t sparse_dim) const {
  std::vector<int64_t> value_sizes = parameter.sizes().slice(sparse_dim).vec();
  value_sizes.insert(value_sizes.begin(), 0);
  at::Tensor indices = at::zeros({sparse_dim, 0}, at::kLong);
  at::Tensor values = at::zeros(value_sizes, parameter.options());
  if (gradient.defined()) {
    const at::Tensor coalesced = gradient.detach().coalesce();
    indices = coalesced.indices();
    values = coalesced.values();
  }
  Tensors all_indices;
  Tensors all_values;
  for (const int64_t count : sparse_counts(parameter, sparse_dim, indices.size(1))) {
    value_sizes.front() = count;
    all_indices.push_back(at::zeros({sparse_dim, count}, at::kLong));
    all_values.push_back(at::zeros(value_sizes, values.options()));
  }
  const Future<Unit> got_indices =
      group_.all_to_all_async(all_indices, Tensors(group_.size(), indices));
  group_.all_to_all(all_values, Tensors(group_.size(), values));
  got_indices.wait();
  // LibTorch takes them as they are, and writes where they say.
  for (uint32_t rank = 0; rank < group_.size(); ++rank)
    if (!are_places_in(parameter.sizes(), all_indices[rank]))
      refuse(ErrorKind::protocol, "the sparse gradient of '" + group_.names()[rank] +
                                      "' has places that its parameter, " + shape_text(parameter) +
                                      ", has not");
  const at::Tensor sum =
      at::sparse_coo_tensor(at::cat(all_indices, 1), at::cat(all_values), parameter.sizes())
          .coalesce();
  return at::div(sum, static_cast<int64_t>(group_.size()));
}

DistributedDataParallel::Tensors DistributedDataParallel::averages(const Tensors& gradients) const {
  const size_t count = parameters_.size();
  at::Tensor kinds = at::zeros({static_cast<int64_t>(count)}, at::kLong);
  for (size_t i = 0; i < count; ++i) {
    if (gradients[i].defined() && gradients[i].requires_grad())
      refuse(ErrorKind::autograd,
             "gradients that were recorded (create_graph) are not averaged: that is not recorded");
    kinds[static_cast<int64_t>(i)] = kind_of(gradients[i]);
  }
  group_.all_reduce(kinds, ReduceOp::max);

  // From the last parameter to the first, as passes reach them.
  struct Bucket {
    at::Tensor vector;
    std::vector<size_t> parameters;
    Future<Unit> done;
  };
  std::vector<Bucket> buckets;
  Tensors parts;
  uint64_t bytes = 0;
  const auto close = [&] {
    if (parts.empty()) return;
    buckets.back().vector = at::cat(std::exchange(parts, {}));
    buckets.back().done = group_.all_reduce_async(buckets.back().vector, ReduceOp::average);
    bytes = 0;
  };
  for (size_t i = count; i-- > 0;) {
    if (kinds[static_cast<int64_t>(i)].item<int64_t>() != kDense) continue;
    const at::Tensor part = dense_of(parameters_[i], gradients[i]).detach().contiguous().view(-1);
    const bool is_full = bytes + part.nbytes() > bucket_bytes_;
    if (!parts.empty() && (is_full || parts.front().scalar_type() != part.scalar_type())) close();
    if (parts.empty()) buckets.emplace_back();
    buckets.back().parameters.push_back(i);
    parts.push_back(part);
    bytes += part.nbytes();
  }
  close();

  Tensors averages(count);
  for (size_t i = 0; i < count; ++i) {
    const int64_t kind = kinds[static_cast<int64_t>(i)].item<int64_t>();
    if (kind == kNone || kind == kDense) continue;
    if (kind < 0 || kind > parameters_[i].dim())
      refuse(ErrorKind::protocol, "a member says that the gradient of parameter " +
                                      std::to_string(i) + ", " + shape_text(parameters_[i]) +
                                      ", is sparse in " + std::to_string(kind) + " dimensions");
    averages[i] = average_sparse(parameters_[i], gradients[i], kind);
  }
  for (const Bucket& bucket : buckets) {
    bucket.done.wait();
    int64_t begin = 0;
    for (const size_t i : bucket.parameters) {
      const int64_t size = parameters_[i].numel();
      averages[i] = bucket.vector.narrow(0, begin, size).view(parameters_[i].sizes());
      begin += size;
    }
  }
  return averages;
}

void DistributedDataParallel::average_gradients() const {
  Tensors gradients;
  for (const at::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
  const Tensors averaged = averages(gradients);
  // Copies: LibTorch's zero_grad refuses views of a bucket.
  for (size_t i = 0; i < averaged.size(); ++i)
    parameters_[i].mutable_grad() =
        averaged[i].defined() && averaged[i].is_view() ? averaged[i].clone() : averaged[i];
}

void DistributedDataParallel::average_in(const Caller& caller, const ContextName& context,
                                         LeafGradients gradients) const {
  Tensors mine;
  for (const at::Tensor& parameter : parameters_) mine.push_back(gradients.find(parameter));
  const Tensors averaged = averages(mine);
  LeafGradients replaced;
  for (size_t i = 0; i < averaged.size(); ++i)
    if (averaged[i].defined()) replaced.accumulate({parameters_[i], averaged[i]});
  for (const LeafGradient& other : gradients.all())
    if (!replaced.find(other.variable).defined()) replaced.accumulate(other);
  Status done = Unit{};
  caller.visit_strand("gradients", [&] {
    done = caller.contexts().replace_gradients(context, std::move(replaced));
  });
  std::move(done).or_throw();
}

void DistributedDataParallel::average_gradients(const AutogradContext& context) const {
  const Caller& caller = *context.caller();
  average_in(caller, {context.id(), caller.strand()->self()}, context.get_gradients());
}

void DistributedDataParallel::average_gradients(const CallContext& call) const {
  LeafGradients gradients = get_gradients(call);
  average_in(*call.caller(), *call.autograd_context(), std::move(gradients));
}

}  // namespace rehearsal
