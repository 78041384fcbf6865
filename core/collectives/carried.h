#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/collectives/group_carrier.h"
#include "core/collectives/operation.h"

// The operations that go by the carrier of a process group, where it has one, instead of parcels.
// All members first agree, by parcels, that they are at the same operation: so nobody waits in a
// carrier for a member that has not come, and none gives it what another does not expect.
namespace rehearsal {

// Whether an operation with so many bytes, of tensors like this, is carried.
[[nodiscard]] bool is_carried(const ProcessGroup::Membership& group, CarriedOperation::Kind kind,
                              ReduceOp op, const at::Tensor& like, uint64_t bytes);

// An operation of all members together, before it begins.
struct NextOperation {
  std::string_view function;  // see Operation::Plan
  std::string text;
  bool carried = false;
};
// Begins it; before the first that is carried, the carrier is opened.
[[nodiscard]] Future<Unit> start_next(const std::shared_ptr<ProcessGroup::Membership>& group,
                                      NextOperation next, Operation::Body body);

// All members are at this operation. Takes steps 0 and 1. Parks, as all of these.
void agree(Operation& operation);

// The same as in algorithms.h, carried; none changes a tensor that it is given.
[[nodiscard]] at::Tensor carried_reduction(Operation& operation, const at::Tensor& vector,
                                           ReduceOp op);
[[nodiscard]] at::Tensor carried_broadcast(Operation& operation, const at::Tensor& mine,
                                           uint32_t root);
[[nodiscard]] std::vector<at::Tensor> carried_gather(Operation& operation, const at::Tensor& mine);
[[nodiscard]] at::Tensor carried_reduce_scatter(Operation& operation,
                                                const std::vector<at::Tensor>& chunks, ReduceOp op);

}  // namespace rehearsal
