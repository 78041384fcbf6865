#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/api/worker_access.h"

namespace rehearsal {

// How the tensors of all members become one, element by element. `average`: of floating-point and
// complex numbers only. Of booleans, the sum is "or" and the product "and".
enum class ReduceOp : uint8_t { sum, product, min, max, average };

struct ProcessGroupOptions {
  // For all members to come together, and for each operation. Default: the worker's own for calls.
  Timeout timeout = {};
};

// Collective operations of some workers, the members, over the same links as their calls: a process
// group as in PyTorch. Each member makes it, as often as the others and in the same order:
//
//   ProcessGroup trainers(worker, {"trainer0", "trainer1"});
//   trainers.all_reduce(gradient, ReduceOp::average);
//
// All members do the same operations in the same order; `send` and `recv` concern two of them, and
// have an order of their own. Tensors are dense and in host memory, of any type that a call can
// carry, contiguous or not. Results are written where PyTorch writes them: into the tensors given,
// all at once at the end, so that an operation that fails leaves them as they were; a tensor that
// is sent is left alone until then. Nothing is recorded by autograd.
//
// The bits of a result depend on the members and their tensors only, never on the order in which
// messages arrive, and are the same at all members. Workers can be started so that large tensors
// are carried otherwise than by calls (real_net/README.md): sums of fractions then have another
// order.
//
// Each operation parks until this member's part is done: it has what it is given, and others have
// taken what it gives. The forms that end in _async never park; several may be under way, and a
// shutdown waits for them.
//
// Throws RpcError, as a Future does: peer_lost, which names the member and the operation, if one is
// lost or has begun a new life; cancelled if one has let go of the group without taking part, or
// the call is given up in which it uses it; timeout, which says who is missing; bad_arguments,
// which names both, if two members do not do the same. Those who wait ask the others after a
// quarter of their time what they do. The first failure ends the group, at all members: with it
// fails every later operation, and an earlier one where it is not yet done. Make a new one then,
// with those who live.
//
// A handle: copies name the same group, which ends here with the last of them. It may be kept
// anywhere, also in a worker's state: it holds nothing up. One stack at a time uses it.
class ProcessGroup {
 public:
  // Of the named workers, of all of the program if none are named; this one is one of them, and
  // their order is that of the ranks. Parks until all are there. Throws RpcError: peer_lost if one
  // is lost, timeout, bad_arguments if they do not name the same workers in the same order.
  explicit ProcessGroup(const WorkerAccess& worker, const std::vector<std::string>& names = {},
                        const ProcessGroupOptions& options = {});

  [[nodiscard]] uint32_t rank() const;
  [[nodiscard]] uint32_t size() const;
  [[nodiscard]] const std::vector<std::string>& names() const;  // by rank

  // The tensor becomes the reduction of those of all members.
  void all_reduce(const at::Tensor& tensor, ReduceOp op = ReduceOp::sum) const {
    all_reduce_async(tensor, op).wait();
  }
  [[nodiscard]] Future<Unit> all_reduce_async(const at::Tensor& tensor,
                                              ReduceOp op = ReduceOp::sum) const;

  // The tensor becomes that of the root.
  void broadcast(const at::Tensor& tensor, uint32_t root) const {
    broadcast_async(tensor, root).wait();
  }
  [[nodiscard]] Future<Unit> broadcast_async(const at::Tensor& tensor, uint32_t root) const;

  // The root's tensor becomes the reduction; the others' stay as they are.
  void reduce(const at::Tensor& tensor, uint32_t root, ReduceOp op = ReduceOp::sum) const {
    reduce_async(tensor, root, op).wait();
  }
  [[nodiscard]] Future<Unit> reduce_async(const at::Tensor& tensor, uint32_t root,
                                          ReduceOp op = ReduceOp::sum) const;

  // outputs[i], of the form of `input`, becomes the input of rank i.
  void all_gather(const std::vector<at::Tensor>& outputs, const at::Tensor& input) const {
    all_gather_async(outputs, input).wait();
  }
  [[nodiscard]] Future<Unit> all_gather_async(const std::vector<at::Tensor>& outputs,
                                              const at::Tensor& input) const;

  // At the root, outputs[i] becomes the input of rank i; the others give no outputs.
  void gather(const std::vector<at::Tensor>& outputs, const at::Tensor& input,
              uint32_t root) const {
    gather_async(outputs, input, root).wait();
  }
  [[nodiscard]] Future<Unit> gather_async(const std::vector<at::Tensor>& outputs,
                                          const at::Tensor& input, uint32_t root) const;

  // The output becomes inputs[this rank] of the root; the others give no inputs.
  void scatter(const at::Tensor& output, const std::vector<at::Tensor>& inputs,
               uint32_t root) const {
    scatter_async(output, inputs, root).wait();
  }
  [[nodiscard]] Future<Unit> scatter_async(const at::Tensor& output,
                                           const std::vector<at::Tensor>& inputs,
                                           uint32_t root) const;

  // The output becomes the reduction of all members' inputs[this rank]. All are of one form.
  void reduce_scatter(const at::Tensor& output, const std::vector<at::Tensor>& inputs,
                      ReduceOp op = ReduceOp::sum) const {
    reduce_scatter_async(output, inputs, op).wait();
  }
  [[nodiscard]] Future<Unit> reduce_scatter_async(const at::Tensor& output,
                                                  const std::vector<at::Tensor>& inputs,
                                                  ReduceOp op = ReduceOp::sum) const;

  // outputs[i] becomes the inputs[this rank] of rank i, which has the same form. Of one type; the
  // sizes may differ from pair to pair.
  void all_to_all(const std::vector<at::Tensor>& outputs,
                  const std::vector<at::Tensor>& inputs) const {
    all_to_all_async(outputs, inputs).wait();
  }
  [[nodiscard]] Future<Unit> all_to_all_async(const std::vector<at::Tensor>& outputs,
                                              const std::vector<at::Tensor>& inputs) const;

  // Parks until all members have come here.
  void barrier() const { barrier_async().wait(); }
  [[nodiscard]] Future<Unit> barrier_async() const;

  // One tensor from one member to another, which are two. The n-th of a tag meets the n-th `recv`
  // of that tag and rank; it is done when it is received.
  void send(const at::Tensor& tensor, uint32_t to, uint32_t tag = 0) const {
    send_async(tensor, to, tag).wait();
  }
  [[nodiscard]] Future<Unit> send_async(const at::Tensor& tensor, uint32_t to,
                                        uint32_t tag = 0) const;
  void recv(const at::Tensor& tensor, uint32_t from, uint32_t tag = 0) const {
    recv_async(tensor, from, tag).wait();
  }
  [[nodiscard]] Future<Unit> recv_async(const at::Tensor& tensor, uint32_t from,
                                        uint32_t tag = 0) const;

  [[nodiscard]] const std::shared_ptr<const Caller>& caller() const;  // this member's node

  struct Membership;  // core/collectives

 private:
  std::shared_ptr<Membership> membership_;
};

// The functions that every program has: parcels at their receivers, and the keys of c10d_group.h.
class FunctionRegistry;
void register_process_groups(FunctionRegistry& registry);

}  // namespace rehearsal
