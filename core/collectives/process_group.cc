#include "core/api/process_group.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/api/gather.h"
#include "core/calls/gatherings.h"
#include "core/collectives/algorithms.h"
#include "core/collectives/carried.h"
#include "core/collectives/operation.h"
#include "core/collectives/store_table.h"

namespace rehearsal {
namespace {

using Kind = CarriedOperation::Kind;
using Membership = ProcessGroup::Membership;

// A member's part in the making of a group.
struct Introduction {
  uint64_t incarnation = 0;
  GroupName name;  // the group's, if this member is the first
  std::vector<std::string> names;
  friend void describe(Introduction& introduction, auto&& fields) {
    fields(introduction.incarnation, introduction.name, introduction.names);
  }
};

[[noreturn]] void refuse(const Membership& group, std::string text) {
  throw RpcError({.kind = ErrorKind::bad_arguments,
                  .text = std::move(text),
                  .worker = group.caller->strand()->name()});
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

// ---- the tensors of an operation --------------------------------------------------

// The tensor as it is sent and written: without its history, and without names of dimensions, which
// each member's own tensor keeps.
at::Tensor plain(const Membership& group, const at::Tensor& tensor) {
  if (!tensor.defined()) refuse(group, "an undefined tensor in a process group");
  if (tensor.layout() != at::kStrided || !tensor.device().is_cpu() || tensor.is_quantized())
    refuse(group, "a process group takes dense tensors in host memory, not " + tensor.toString());
  return tensor.has_names() ? tensor.detach().rename(std::nullopt) : tensor.detach();
}

Tensors all_plain(const Membership& group, const Tensors& tensors, size_t expected,
                  std::string_view what) {
  if (tensors.size() != expected)
    refuse(group, std::to_string(expected) + " " + std::string(what) + " are expected, not " +
                      std::to_string(tensors.size()));
  Tensors all;
  for (const at::Tensor& tensor : tensors) all.push_back(plain(group, tensor));
  return all;
}

void check_same_form(const Membership& group, const Tensors& tensors, const at::Tensor& like) {
  for (const at::Tensor& tensor : tensors)
    if (tensor.scalar_type() != like.scalar_type() || tensor.sizes() != like.sizes())
      refuse(group, "tensors of one form are expected, not " + shape_text(like) + " and " +
                        shape_text(tensor));
}

void check_rank(const Membership& group, uint32_t rank) {
  if (rank >= group.workers.size())
    refuse(group, "there is no rank " + std::to_string(rank) + " in a process group of " +
                      std::to_string(group.workers.size()));
}

std::string_view name_of(ReduceOp op) {
  constexpr std::array<std::string_view, 5> kNames = {"sum", "product", "min", "max", "average"};
  return kNames.at(static_cast<size_t>(op));
}

void check_reduces(const Membership& group, const at::Tensor& tensor, ReduceOp op) {
  const c10::ScalarType type = tensor.scalar_type();
  const bool is_complex = c10::isComplexType(type);
  const bool is_ordered = op == ReduceOp::min || op == ReduceOp::max;
  const bool is_fraction = is_complex || c10::isFloatingType(type);
  if ((is_ordered && is_complex) || (op == ReduceOp::average && !is_fraction))
    refuse(group, "there is no " + std::string(name_of(op)) + " of " + c10::toString(type));
}

std::string text_of(std::string_view function, ReduceOp op, const at::Tensor& tensor) {
  return std::string(function) + "(" + std::string(name_of(op)) + ") of " + shape_text(tensor);
}
std::string text_of(std::string_view function, const Membership& group, uint32_t root,
                    const at::Tensor& tensor) {
  return std::string(function) + " with root '" + group.names[root] + "' of " + shape_text(tensor);
}

// Elements one after another.
at::Tensor vector_of(const at::Tensor& tensor) { return tensor.contiguous().view(-1); }

void write(const at::Tensor& target, const at::Tensor& value) {
  target.copy_(value.view(target.sizes()));
}

// The same of a value in pieces that follow each other; without a copy of all of it, if it can be.
void write(const at::Tensor& target, const Tensors& pieces) {
  if (!target.is_contiguous()) return write(target, at::cat(pieces));
  const at::Tensor vector = target.view(-1);
  int64_t begin = 0;
  for (const at::Tensor& piece : pieces) {
    vector.narrow(0, begin, piece.numel()).copy_(piece);
    begin += piece.numel();
  }
}

}  // namespace

// ---- a group ----------------------------------------------------------------------

ProcessGroup::ProcessGroup(const WorkerAccess& worker, const std::vector<std::string>& names,
                           const ProcessGroupOptions& options)
    : membership_(std::make_shared<Membership>(worker.caller())) {
  Membership& group = *membership_;
  const Caller& caller = *group.caller;
  group.names = names.empty() ? caller.names() : names;
  group.timeout = options.timeout;
  for (const std::string& name : group.names) {
    const WorkerId id = caller.find(Target(name));
    if (std::count(group.workers.begin(), group.workers.end(), id) > 0)
      refuse(group, "worker '" + name + "' is named twice in a process group");
    group.workers.push_back(id);
    if (id == worker.id()) group.rank = static_cast<uint32_t>(group.workers.size() - 1);
  }
  Introduction introduction{.incarnation = 0, .name = {}, .names = group.names};
  caller.visit_strand("the state of a process group", [&] {
    group.mailboxes = &caller.gatherings().mailboxes();
    group.carriers = group.mailboxes->carriers();
    introduction.name = group.mailboxes->next_name();
    introduction.incarnation = introduction.name.founder;
  });
  Gathered gathered =
      rehearsal::gather(caller, group.names, share_of(introduction), options.timeout);
  std::vector<Mailboxes::Member> members(group.workers.size());
  for (size_t i = 0; i < gathered.names.size(); ++i) {
    const auto theirs =
        value_of_share<Introduction>(std::move(gathered.shares[i]), gathered.names[i]);
    if (i == 0) introduction = theirs;
    if (theirs.names != introduction.names)
      refuse(group,
             "the members of a process group must name the same workers in the same order: '" +
                 gathered.names[0] + "' names " + list_of(introduction.names) + ", '" +
                 gathered.names[i] + "' names " + list_of(theirs.names));
    const auto place = std::find(group.names.begin(), group.names.end(), gathered.names[i]);
    members[place - group.names.begin()] = {caller.find(Target(gathered.names[i])),
                                            Incarnation{theirs.incarnation}};
  }
  group.name = introduction.name;
  MaybeError refused;
  caller.visit_strand("the state of a process group",
                      [&] { refused = group.mailboxes->open(group.name, std::move(members)); });
  if (refused) throw RpcError(*std::move(refused));
  group.is_open = true;
}

const std::shared_ptr<const Caller>& ProcessGroup::caller() const { return membership_->caller; }
uint32_t ProcessGroup::rank() const { return membership_->rank; }
uint32_t ProcessGroup::size() const { return static_cast<uint32_t>(membership_->workers.size()); }
const std::vector<std::string>& ProcessGroup::names() const { return membership_->names; }

// ---- operations -------------------------------------------------------------------

Future<Unit> ProcessGroup::all_reduce_async(const at::Tensor& tensor, ReduceOp op) const {
  const at::Tensor target = plain(*membership_, tensor);
  check_reduces(*membership_, target, op);
  const bool carried = is_carried(*membership_, Kind::all_reduce, op, target, target.nbytes());
  return start_next(membership_, {"all_reduce", text_of("all_reduce", op, target), carried},
                    [target, op, carried](Operation& operation) {
                      const at::Tensor vector = vector_of(target);
                      const Tensors reduced =
                          carried ? Tensors{carried_reduction(operation, vector, op)}
                                  : reduce_to_all(operation, vector, op);
                      operation.finish();
                      write(target, reduced);
                    });
}

Future<Unit> ProcessGroup::broadcast_async(const at::Tensor& tensor, uint32_t root) const {
  check_rank(*membership_, root);
  const at::Tensor target = plain(*membership_, tensor);
  const bool carried =
      is_carried(*membership_, Kind::broadcast, ReduceOp::sum, target, target.nbytes());
  return start_next(
      membership_, {"broadcast", text_of("broadcast", *membership_, root, target), carried},
      [target, root, carried](Operation& operation) {
        const at::Tensor mine = target.contiguous();
        const at::Tensor given = carried ? carried_broadcast(operation, mine, root)
                                         : broadcast_by_tree(operation, {mine}, root).front();
        operation.finish();
        if (operation.rank() != root) write(target, given);
      });
}

Future<Unit> ProcessGroup::reduce_async(const at::Tensor& tensor, uint32_t root,
                                        ReduceOp op) const {
  check_rank(*membership_, root);
  const at::Tensor target = plain(*membership_, tensor);
  check_reduces(*membership_, target, op);
  const std::string function = "reduce(" + std::string(name_of(op)) + ")";
  return start_next(membership_, {"reduce", text_of(function, *membership_, root, target)},
                    [target, root, op](Operation& operation) {
                      const at::Tensor reduced =
                          reduce_by_tree(operation, vector_of(target), root, op);
                      operation.finish();
                      if (operation.rank() == root) write(target, reduced);
                    });
}

Future<Unit> ProcessGroup::all_gather_async(const std::vector<at::Tensor>& outputs,
                                            const at::Tensor& input) const {
  const at::Tensor mine = plain(*membership_, input);
  Tensors targets = all_plain(*membership_, outputs, size(), "outputs");
  check_same_form(*membership_, targets, mine);
  const bool carried =
      is_carried(*membership_, Kind::all_gather, ReduceOp::sum, mine, mine.nbytes() * size());
  return start_next(membership_, {"all_gather", "all_gather of " + shape_text(mine), carried},
                    [mine, carried, targets = std::move(targets)](Operation& operation) {
                      const at::Tensor vector = vector_of(mine);
                      const Tensors all = carried ? carried_gather(operation, vector)
                                                  : gather_to_all(operation, vector);
                      operation.finish();
                      for (size_t i = 0; i < targets.size(); ++i) write(targets[i], all[i]);
                    });
}

Future<Unit> ProcessGroup::gather_async(const std::vector<at::Tensor>& outputs,
                                        const at::Tensor& input, uint32_t root) const {
  check_rank(*membership_, root);
  const at::Tensor mine = plain(*membership_, input);
  Tensors targets =
      all_plain(*membership_, outputs, rank() == root ? size() : 0, "outputs of a gather");
  check_same_form(*membership_, targets, mine);
  return start_next(membership_, {"gather", text_of("gather", *membership_, root, mine)},
                    [mine, root, targets = std::move(targets)](Operation& operation) {
                      const at::Tensor vector = vector_of(mine);
                      if (operation.rank() != root) operation.send(root, 0, {vector});
                      Tensors all(targets.size(), vector);
                      for (uint32_t rank = 0; rank < targets.size(); ++rank)
                        if (rank != root) all[rank] = operation.receive(rank, 0, {vector}).front();
                      operation.finish();
                      for (size_t i = 0; i < targets.size(); ++i) write(targets[i], all[i]);
                    });
}

Future<Unit> ProcessGroup::scatter_async(const at::Tensor& output,
                                         const std::vector<at::Tensor>& inputs,
                                         uint32_t root) const {
  check_rank(*membership_, root);
  const at::Tensor target = plain(*membership_, output);
  Tensors sources =
      all_plain(*membership_, inputs, rank() == root ? size() : 0, "inputs of a scatter");
  check_same_form(*membership_, sources, target);
  return start_next(membership_, {"scatter", text_of("scatter", *membership_, root, target)},
                    [target, root, sources = std::move(sources)](Operation& operation) {
                      for (uint32_t rank = 0; rank < sources.size(); ++rank)
                        if (rank != root) operation.send(rank, 0, {vector_of(sources[rank])});
                      const at::Tensor given =
                          operation.rank() == root
                              ? vector_of(sources[root])
                              : operation.receive(root, 0, {vector_of(target)}).front();
                      operation.finish();
                      write(target, given);
                    });
}

Future<Unit> ProcessGroup::reduce_scatter_async(const at::Tensor& output,
                                                const std::vector<at::Tensor>& inputs,
                                                ReduceOp op) const {
  const at::Tensor target = plain(*membership_, output);
  check_reduces(*membership_, target, op);
  Tensors sources = all_plain(*membership_, inputs, size(), "inputs");
  check_same_form(*membership_, sources, target);
  const bool carried =
      is_carried(*membership_, Kind::reduce_scatter, op, target, target.nbytes() * size());
  return start_next(membership_, {"reduce_scatter", text_of("reduce_scatter", op, target), carried},
                    [target, op, carried, sources = std::move(sources)](Operation& operation) {
                      Tensors chunks;
                      for (const at::Tensor& source : sources) chunks.push_back(vector_of(source));
                      const at::Tensor reduced = carried
                                                     ? carried_reduce_scatter(operation, chunks, op)
                                                     : reduce_and_scatter(operation, chunks, op);
                      operation.finish();
                      write(target, reduced);
                    });
}

Future<Unit> ProcessGroup::all_to_all_async(const std::vector<at::Tensor>& outputs,
                                            const std::vector<at::Tensor>& inputs) const {
  Tensors targets = all_plain(*membership_, outputs, size(), "outputs");
  Tensors sources = all_plain(*membership_, inputs, size(), "inputs");
  check_same_form(*membership_, {targets[rank()]}, sources[rank()]);
  const c10::ScalarType type = sources.front().scalar_type();
  for (const Tensors& tensors : {targets, sources})
    for (const at::Tensor& tensor : tensors)
      if (tensor.scalar_type() != type) refuse(*membership_, "tensors of one type are expected");
  return start_next(
      membership_, {"all_to_all", std::string("all_to_all of ") + c10::toString(type)},
      [targets = std::move(targets), sources = std::move(sources)](Operation& operation) {
        const uint32_t size = operation.size();
        const uint32_t own = operation.rank();
        // Each begins with the next after it: not all of them with the same.
        for (uint32_t i = 1; i < size; ++i)
          operation.send((own + i) % size, 0, {sources[(own + i) % size].contiguous()});
        Tensors all(size, sources[own]);
        for (uint32_t i = 1; i < size; ++i) {
          const uint32_t rank = (own + size - i) % size;
          all[rank] = operation.receive(rank, 0, {targets[rank]}).front();
        }
        operation.finish();
        for (uint32_t rank = 0; rank < size; ++rank) targets[rank].copy_(all[rank]);
      });
}

Future<Unit> ProcessGroup::barrier_async() const {
  return start_next(membership_, {"barrier", "barrier"}, [](Operation& operation) {
    agree(operation);
    operation.finish();
  });
}

Future<Unit> ProcessGroup::send_async(const at::Tensor& tensor, uint32_t to, uint32_t tag) const {
  check_rank(*membership_, to);
  if (to == rank()) refuse(*membership_, "a member sends to others only");
  const at::Tensor mine = plain(*membership_, tensor);
  return Operation::start(
      membership_,
      {.function = "send",
       .text = "message with tag " + std::to_string(tag) + " of " + shape_text(mine),
       .between_two = true,
       .number = tag,
       .step = membership_->sent[{to, tag}]++},
      [mine, to](Operation& operation) {
        operation.send(to, 0, {mine.contiguous()});
        operation.finish();
      });
}

Future<Unit> ProcessGroup::recv_async(const at::Tensor& tensor, uint32_t from, uint32_t tag) const {
  check_rank(*membership_, from);
  if (from == rank()) refuse(*membership_, "a member receives from others only");
  const at::Tensor target = plain(*membership_, tensor);
  return Operation::start(
      membership_,
      {.function = "recv",
       .text = "message with tag " + std::to_string(tag) + " of " + shape_text(target),
       .between_two = true,
       .number = tag,
       .step = membership_->received[{from, tag}]++},
      [target, from](Operation& operation) {
        const at::Tensor given = operation.receive(from, 0, {target}).front();
        operation.finish();
        target.copy_(given);
      });
}

void register_process_groups(FunctionRegistry& registry) {
  register_parcels(registry);
  register_stores(registry);
}

}  // namespace rehearsal
