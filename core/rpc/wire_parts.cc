#include "core/rpc/wire_parts.h"

#include <ATen/Functions.h>

#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "core/rpc/messages.pb.h"

namespace rehearsal {
namespace {

// Tensors up to this size are copied when encoded, so that nothing that the user does to them
// later can reach the wire.
constexpr uint64_t kCopiedBytesMax = 16 * 1024;

// Whether a tensor's elements lie in memory as they are sent, and are to be copied.
bool can_be_copied(const at::Tensor& tensor) {
  return tensor.nbytes() <= kCopiedBytesMax && tensor.device().is_cpu() && tensor.is_contiguous() &&
         !tensor.is_conj() && !tensor.is_neg();
}

// By hand: what LibTorch does around a copy costs many times the copy of a small tensor.
Segment copy_of(const at::Tensor& tensor) {
  constexpr std::align_val_t kAlignment{64};
  const uint64_t bytes = tensor.nbytes();
  std::shared_ptr<void> memory(::operator new(bytes, kAlignment),
                               [](void* elements) { ::operator delete(elements, kAlignment); });
  std::memcpy(memory.get(), tensor.const_data_ptr(), bytes);
  auto* const data = static_cast<std::byte*>(memory.get());
  return {.owner = std::move(memory), .data = data, .bytes = bytes};
}

}  // namespace

// ---- ids --------------------------------------------------------------------

void write(wire::CausalId& to, const CausalId& id) {
  to.set_incarnation(id.incarnation.value);
  to.set_path_high(id.path.high);
  to.set_path_low(id.path.low);
  to.set_ordinal(id.ordinal);
}

CausalId read(const wire::CausalId& from) {
  return {{from.incarnation()}, {from.path_high(), from.path_low()}, from.ordinal()};
}

void write(wire::RRefId& to, const RRefId& id) {
  write(*to.mutable_causal(), id.causal);
  to.set_owner(id.owner.value);
  to.set_counter(id.counter);
  to.set_owner_incarnation(id.owner_incarnation.value);
}

RRefId read(const wire::RRefId& from) {
  return {read(from.causal()), WorkerId{from.owner()}, Incarnation{from.owner_incarnation()},
          from.counter()};
}

void write(wire::Fork& to, const Fork& fork) {
  write(*to.mutable_rref(), fork.rref);
  write(*to.mutable_fork(), fork.id);
  to.set_owner_is_parent(fork.owner_is_parent);
}

Fork read(const wire::Fork& from) {
  return {read(from.rref()), read<ForkId>(from.fork()), from.owner_is_parent()};
}

// ---- errors -----------------------------------------------------------------

void write(wire::Error& to, const Error& error) {
  to.set_kind(static_cast<uint32_t>(error.kind));
  to.set_text(error.text);
  to.set_worker(error.worker);
  to.set_function(error.function);
  for (const std::string& worker : error.chain) to.add_chain(worker);
}

Error read(const wire::Error& from) {
  if (from.kind() > static_cast<uint32_t>(kLastErrorKind)) throw BadEnvelope{"error kind"};
  return {.kind = static_cast<ErrorKind>(from.kind()),
          .text = from.text(),
          .worker = from.worker(),
          .function = from.function(),
          .chain = {from.chain().begin(), from.chain().end()}};
}

// ---- autograd ---------------------------------------------------------------

void write(wire::Autograd& to, const AutogradMetadata& metadata) {
  write(*to.mutable_context(), metadata.context);
  write(*to.mutable_message(), metadata.message);
  to.set_creator(metadata.creator.value);
}

AutogradMetadata read(const wire::Autograd& from) {
  return {read<AutogradContextId>(from.context()), read<AutogradMessageId>(from.message()),
          WorkerId{from.creator()}};
}

void write(wire::Pass& to, const PassName& pass) {
  write(*to.mutable_context(), pass.id.context);
  to.set_epoch(pass.id.epoch);
  to.set_starter(pass.starter.value);
  to.set_starter_incarnation(pass.id.starter_incarnation.value);
  to.set_retain_graph(pass.retain_graph);
  to.set_context_creator(pass.context_creator.value);
}

PassName read(const wire::Pass& from) {
  return {.id = {read<AutogradContextId>(from.context()), from.epoch(),
                 Incarnation{from.starter_incarnation()}},
          .starter = WorkerId{from.starter()},
          .retain_graph = from.retain_graph(),
          .context_creator = WorkerId{from.context_creator()}};
}

// ---- tensors ----------------------------------------------------------------

TensorEntry entry_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {.undefined = true};
  return {.dtype = static_cast<uint32_t>(tensor.scalar_type()),
          .requires_grad = tensor.requires_grad()};
}

void add_segment(const at::Tensor& tensor, std::vector<Segment>& segments) {
  if (!tensor.defined() || tensor.numel() == 0) return;
  if (can_be_copied(tensor)) return segments.push_back(copy_of(tensor));
  at::Tensor elements = tensor.detach().resolve_conj().resolve_neg().contiguous();
  if (elements.nbytes() <= kCopiedBytesMax && elements.is_alias_of(tensor))
    elements = elements.clone();
  auto owner = std::make_shared<at::Tensor>(std::move(elements));
  const c10::Device device = owner->device();
  segments.push_back({.owner = owner,
                      .data = static_cast<std::byte*>(owner->data_ptr()),
                      .bytes = owner->nbytes(),
                      .device = {static_cast<uint8_t>(device.type()),
                                 static_cast<uint8_t>(device.index() < 0 ? 0 : device.index())}});
}

at::Tensor TensorReader::read(const TensorEntry& entry, c10::IntArrayRef sizes) {
  if (entry.undefined) return {};
  if (entry.dtype >= static_cast<uint32_t>(c10::ScalarType::NumOptions)) throw BadEnvelope{"dtype"};
  const auto dtype = static_cast<c10::ScalarType>(entry.dtype);
  if (c10::isQIntType(dtype) || dtype == c10::ScalarType::Undefined) throw BadEnvelope{"dtype"};
  const std::optional<uint64_t> bytes = tensor_bytes(sizes, c10::elementSize(dtype));
  if (!bytes) throw BadEnvelope{"tensor too large"};
  at::Tensor tensor;
  if (*bytes == 0) {
    tensor = at::empty(sizes, at::TensorOptions(dtype));
  } else {
    if (next_ >= segments_.size()) throw BadEnvelope{"a tensor without its segment"};
    const Segment& segment = segments_[next_++];
    if (segment.bytes != *bytes) throw BadEnvelope{"a segment of another length than its tensor"};
    tensor = at::from_blob(
        segment.data, sizes, [owner = segment.owner](void*) {}, at::TensorOptions(dtype));
  }
  if (!entry.requires_grad) return tensor;
  if (!c10::isFloatingType(dtype) && !c10::isComplexType(dtype))
    throw BadEnvelope{"an integer tensor cannot require a gradient"};
  return tensor.set_requires_grad(true);
}

void TensorReader::finish() const {
  if (next_ != segments_.size()) throw BadEnvelope{"a segment without its tensor"};
}

// ---- payloads ---------------------------------------------------------------

void write(wire::Payload& to, const Payload& payload, std::vector<Segment>& segments) {
  to.set_values(payload.values);
  for (const at::Tensor& tensor : payload.tensors) {
    wire::Tensor& out = *to.add_tensors();
    const TensorEntry entry = entry_of(tensor);
    out.set_dtype(entry.dtype);
    out.set_requires_grad(entry.requires_grad);
    out.set_undefined(entry.undefined);
    if (entry.undefined) continue;
    for (const int64_t size : tensor.sizes()) out.add_sizes(size);
    add_segment(tensor, segments);
  }
  for (const Fork& fork : payload.forks) write(*to.add_forks(), fork);
}

Payload read(wire::Payload& from, const std::vector<Segment>& segments) {
  Payload payload;
  payload.values = std::move(*from.mutable_values());
  TensorReader tensors(segments);
  payload.tensors.reserve(from.tensors_size());
  for (const wire::Tensor& tensor : from.tensors())
    payload.tensors.push_back(
        tensors.read({tensor.dtype(), tensor.requires_grad(), tensor.undefined()},
                     {tensor.sizes().data(), static_cast<size_t>(tensor.sizes_size())}));
  tensors.finish();
  for (const wire::Fork& fork : from.forks()) payload.forks.push_back(read(fork));
  return payload;
}

}  // namespace rehearsal
