#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/api/autograd_context.h"
#include "core/api/call_context.h"
#include "core/api/process_group.h"

namespace rehearsal {

struct DataParallelOptions {
  // Gradients go round in buckets of so many bytes, or of one parameter, if that is larger.
  uint64_t bucket_bytes = uint64_t{25} << 20;
};

// A module of which each member of a process group has a replica, as
// torch.nn.parallel.DistributedDataParallel: all begin with the parameters of rank 0, and average
// the gradients of each pass, so that all make the same steps. Modules that the replicas call at
// other workers, such as a RemoteModule with embeddings, get the gradients of each replica's own
// context.
//
//   const ProcessGroup trainers(worker, {"trainer0", "trainer1"});
//   const DistributedDataParallel dense(trainers, net);
//   AutogradContext context = worker.autograd_context();
//   auto recording = context.record();
//   context.backward({loss(net->forward(table.forward(rows)))});
//   dense.average_gradients(context);
//   optimizer.step(context);
//
// All members call the same methods equally often, in the same order: collective operations of the
// group, which all of them park and throw as these do. A parameter that a member's loss does not
// depend on counts with zero there; one that nobody's depends on gets no gradient. Sparse gradients
// stay sparse if they are at all members. After an average all members have the same bits.
class DistributedDataParallel {
 public:
  // Broadcasts parameters and buffers. Parks. Throws RpcError, of kind bad_arguments if the members
  // do not have parameters and buffers of the same forms.
  DistributedDataParallel(ProcessGroup group, std::vector<at::Tensor> parameters,
                          const std::vector<at::Tensor>& buffers = {},
                          const DataParallelOptions& options = {});

  // Of a torch::nn::Module: those of its parameters that require gradients.
  template <class Module>
  requires requires(const Module& module) { module.named_parameters(); }
  DistributedDataParallel(ProcessGroup group, const Module& module,
                          const DataParallelOptions& options = {})
      : DistributedDataParallel(std::move(group), module.parameters(), module.buffers(), options) {}

  [[nodiscard]] const ProcessGroup& group() const { return group_; }

  // The gradients that the context has here for the parameters become the mean of those of all
  // members, each in its own context; those of other leaves stay. After `backward`, with no pass
  // under way. Throws RpcError of kind autograd for gradients that were recorded (create_graph).
  void average_gradients(const AutogradContext& context) const;
  // The same in the context that the call is recorded in.
  void average_gradients(const CallContext& call) const;

  // The same of `.grad`, after LibTorch's own backward pass.
  void average_gradients() const;

 private:
  using Tensors = std::vector<at::Tensor>;

  void average_in(const Caller& caller, const ContextName& context, LeafGradients gradients) const;
  // By parameter; undefined where no member has a gradient.
  [[nodiscard]] Tensors averages(const Tensors& gradients) const;
  [[nodiscard]] at::Tensor average_sparse(const at::Tensor& parameter, const at::Tensor& gradient,
                                          int64_t sparse_dim) const;
  [[nodiscard]] std::vector<int64_t> sparse_counts(const at::Tensor& parameter, int64_t sparse_dim,
                                                   int64_t mine) const;
  void check_same(const Tensors& tensors) const;
  [[noreturn]] void refuse(ErrorKind kind, std::string text) const;

  ProcessGroup group_;
  std::shared_ptr<const Caller> caller_;
  Tensors parameters_;
  uint64_t bucket_bytes_;
};

}  // namespace rehearsal
