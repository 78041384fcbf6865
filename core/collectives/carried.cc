#include "core/collectives/carried.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <utility>

#include "core/collectives/algorithms.h"

namespace rehearsal {
namespace {

using Kind = CarriedOperation::Kind;
using Membership = ProcessGroup::Membership;

// An average is a sum until the end.
ReduceOp carried_op(ReduceOp op) { return op == ReduceOp::average ? ReduceOp::sum : op; }

Operation::Plan next_plan(Membership& group, std::string_view function, std::string text) {
  return {.function = function, .text = std::move(text), .number = group.begun++};
}

void open_carrier(const std::shared_ptr<Membership>& group, const std::string& text) {
  group->carrier = group->carriers->make(
      {group->name, group->rank, static_cast<uint32_t>(group->workers.size())});
  Operation::Plan plan = next_plan(*group, "open", "the opening for " + text);
  plan.turn = group->carried++;
  // The operations behind it fail as it does.
  (void)Operation::start(group, std::move(plan), [](Operation& operation) {
    operation.carry({.kind = Kind::open});
    agree(operation);
    operation.pass_turn();
    operation.finish();
  });
}

}  // namespace

bool is_carried(const Membership& group, Kind kind, ReduceOp op, const at::Tensor& like,
                uint64_t bytes) {
  return group.carriers != nullptr && group.workers.size() > 1 && bytes > kSmallBytes &&
         group.carriers->carries(kind, op, like.scalar_type());
}

Future<Unit> start_next(const std::shared_ptr<Membership>& group, NextOperation next,
                        Operation::Body body) {
  if (next.carried && group->carrier == nullptr) open_carrier(group, next.text);
  Operation::Plan plan = next_plan(*group, next.function, std::move(next.text));
  if (next.carried) plan.turn = group->carried++;
  return Operation::start(group, std::move(plan), std::move(body));
}

void agree(Operation& operation) {
  const at::Tensor nothing = at::empty({0}, at::kByte);
  (void)broadcast_by_tree(operation, {reduce_by_tree(operation, nothing, 0, ReduceOp::sum)}, 0);
}

// ---- operations -------------------------------------------------------------------

// Each works on tensors of its own: a carrier may still use them when the operation has failed.
at::Tensor carried_reduction(Operation& operation, const at::Tensor& vector, ReduceOp op) {
  agree(operation);
  at::Tensor sum = vector.clone();
  operation.carry({.kind = Kind::all_reduce, .op = carried_op(op), .outputs = {sum}});
  complete(sum, op, operation.size());
  return sum;
}

at::Tensor carried_broadcast(Operation& operation, const at::Tensor& mine, uint32_t root) {
  agree(operation);
  const at::Tensor given =
      operation.rank() == root ? mine : at::empty_like(mine, at::MemoryFormat::Contiguous);
  operation.carry({.kind = Kind::broadcast, .root = root, .outputs = {given}});
  return given;
}

Tensors carried_gather(Operation& operation, const at::Tensor& mine) {
  agree(operation);
  Tensors all(operation.size());
  for (at::Tensor& one : all) one = at::empty_like(mine);
  operation.carry({.kind = Kind::all_gather, .outputs = all, .inputs = {mine}});
  return all;
}

at::Tensor carried_reduce_scatter(Operation& operation, const Tensors& chunks, ReduceOp op) {
  agree(operation);
  at::Tensor sum = at::empty_like(chunks[operation.rank()]);
  operation.carry(
      {.kind = Kind::reduce_scatter, .op = carried_op(op), .outputs = {sum}, .inputs = chunks});
  complete(sum, op, operation.size());
  return sum;
}

}  // namespace rehearsal
