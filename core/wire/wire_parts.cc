#include "core/wire/wire_parts.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/base/short_text.h"
#include "core/values/device_map.h"
#include "core/wire/messages.pb.h"

namespace rehearsal {

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
  to.set_text(short_text(error.text));
  to.set_worker(short_name(error.worker));
  to.set_function(short_name(error.function));
  for (std::string& worker : short_chain(error.chain)) to.add_chain(std::move(worker));
  if (!error.type.empty()) to.set_type(short_name(error.type));
  if (!error.trace.empty()) to.set_trace(short_text(error.trace));
}

Error read(const wire::Error& from) {
  if (from.kind() > static_cast<uint32_t>(kLastErrorKind)) throw BadEnvelope{"error kind"};
  if (from.ByteSizeLong() > kErrorBytesMax) throw BadEnvelope{"an error that nobody has shortened"};
  return {.kind = static_cast<ErrorKind>(from.kind()),
          .text = from.text(),
          .worker = from.worker(),
          .function = from.function(),
          .chain = {from.chain().begin(), from.chain().end()},
          .type = from.type(),
          .trace = from.trace()};
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

void write(wire::TraceContext& to, const TraceContext& context) {
  to.set_trace_high(context.trace.high);
  to.set_trace_low(context.trace.low);
  to.set_parent(context.parent);
  to.set_flags(context.flags);
}

TraceContext read(const wire::TraceContext& from) {
  const bool named = (from.trace_high() != 0 || from.trace_low() != 0) && from.parent() != 0;
  if (!named || (from.flags() & ~uint32_t{kTraceFlags}) != 0) throw BadEnvelope{"trace context"};
  return {.trace = {from.trace_high(), from.trace_low()},
          .parent = from.parent(),
          .flags = static_cast<uint8_t>(from.flags())};
}

void write(wire::Pass& to, const PassName& pass) {
  write(*to.mutable_context(), pass.id.context);
  to.set_epoch(pass.id.epoch);
  to.set_starter(pass.starter.value);
  to.set_starter_incarnation(pass.id.starter_incarnation.value);
  to.set_retain_graph(pass.retain_graph);
  to.set_context_creator(pass.context_creator.value);
  to.set_create_graph(pass.create_graph);
  to.set_fast(pass.mode == PassMode::fast);
  to.set_settled(pass.settled);
  to.mutable_taken_back()->Assign(pass.taken_back.begin(), pass.taken_back.end());
}

PassName read(const wire::Pass& from) {
  return {.id = {read<AutogradContextId>(from.context()), from.epoch(),
                 Incarnation{from.starter_incarnation()}},
          .starter = WorkerId{from.starter()},
          .retain_graph = from.retain_graph(),
          .create_graph = from.create_graph(),
          .mode = from.fast() ? PassMode::fast : PassMode::smart,
          .context_creator = WorkerId{from.context_creator()},
          .settled = from.settled(),
          .taken_back = {from.taken_back().begin(), from.taken_back().end()}};
}

// ---- tensors ----------------------------------------------------------------

void add_segment(const SentTensor& tensor, std::vector<Segment>& segments) {
  if (tensor.elements.bytes > 0) segments.push_back(tensor.elements);
}

namespace {

c10::ScalarType dtype_of(const TensorEntry& entry) {
  if (entry.dtype >= static_cast<uint32_t>(c10::ScalarType::NumOptions)) throw BadEnvelope{"dtype"};
  const auto dtype = static_cast<c10::ScalarType>(entry.dtype);
  if (dtype == c10::ScalarType::Undefined) throw BadEnvelope{"dtype"};
  return dtype;
}

at::Tensor with_gradient(at::Tensor tensor, const TensorEntry& entry) {
  if (!entry.requires_grad) return tensor;
  const c10::ScalarType dtype = tensor.scalar_type();
  if (!c10::isFloatingType(dtype) && !c10::isComplexType(dtype))
    throw BadEnvelope{"an integer tensor cannot require a gradient"};
  return tensor.set_requires_grad(true);
}

}  // namespace

Segment TensorReader::take_any() {
  if (next_ >= segments_.size()) throw BadEnvelope{"a tensor without its segment"};
  return segments_[next_++];
}

Segment TensorReader::take(uint64_t bytes) {
  if (bytes == 0) return {};
  const Segment segment = take_any();
  if (segment.bytes != bytes) throw BadEnvelope{"a segment of another length than its tensor"};
  return segment;
}

at::Tensor TensorReader::read(const TensorEntry& entry, c10::IntArrayRef sizes) {
  if (entry.undefined) return {};
  const c10::ScalarType dtype = dtype_of(entry);
  if (c10::isQIntType(dtype)) throw BadEnvelope{"dtype"};
  const std::optional<uint64_t> bytes = tensor_bytes(sizes, c10::elementSize(dtype));
  if (!bytes) throw BadEnvelope{"tensor too large"};
  at::Tensor tensor;
  if (entry.lent) {
    tensor = read_lent(sizes, dtype);
  } else if (*bytes == 0) {
    tensor = at::empty(sizes, at::TensorOptions(dtype));
  } else {
    const Segment segment = take(*bytes);
    tensor = at::from_blob(
        segment.data, sizes, [owner = segment.owner](void*) {}, at::TensorOptions(dtype));
  }
  return with_gradient(std::move(tensor), entry);
}

// Its sizes and its type, in place of a tensor of the receiver's device.
at::Tensor TensorReader::read_lent(c10::IntArrayRef sizes, c10::ScalarType dtype) {
  if (places_.size() != tensors_ || places_.back().to == 0)
    throw BadEnvelope{"a lent tensor that goes to no device"};
  const Segment segment = take_any();
  LoanId loan = 0;
  if (segment.bytes <= sizeof loan || segment.bytes > sizeof loan + kTicketBytesMax)
    throw BadEnvelope{"a ticket that is none"};
  std::memcpy(&loan, segment.data, sizeof loan);
  const auto* const ticket = reinterpret_cast<const char*>(segment.data) + sizeof loan;
  borrowed_.resize(tensors_);
  borrowed_.back() =
      std::make_shared<Borrowed>(loan, std::string(ticket, segment.bytes - sizeof loan));
  return at::empty(sizes, at::TensorOptions(dtype).device(at::kMeta));
}

at::Tensor TensorReader::read(const TensorEntry& entry, c10::IntArrayRef sizes,
                              c10::IntArrayRef numbers, std::vector<at::Tensor> parts) {
  if (entry.undefined) throw BadEnvelope{"an undefined tensor of parts"};
  if (entry.lent) throw BadEnvelope{"a lent tensor that is not dense"};
  ReceivedForm received{.form = entry.form,
                        .dtype = dtype_of(entry),
                        .sizes = sizes,
                        .numbers = numbers,
                        .parts = std::move(parts),
                        .elements = {}};
  const std::optional<uint64_t> bytes = element_bytes(received);
  if (!bytes) throw BadEnvelope{"tensor too large, or of a type that its form has not"};
  received.elements = take(*bytes);
  std::optional<at::Tensor> tensor = put_together(std::move(received));
  if (!tensor) throw BadEnvelope{"a tensor whose parts do not fit each other"};
  return with_gradient(std::move(*tensor), entry);
}

void TensorReader::note_place(const TensorPlace& place) {
  ++tensors_;
  if (place == TensorPlace{}) return;
  if (std::max(place.from, place.to) > DeviceNumber::kMax + 1) throw BadEnvelope{"tensor device"};
  places_.resize(tensors_);
  places_.back() = place;
}

std::shared_ptr<DeviceTensors> TensorReader::take_devices() {
  if (places_.empty()) return nullptr;
  places_.resize(tensors_);
  if (!borrowed_.empty()) borrowed_.resize(tensors_);
  return std::make_shared<DeviceTensors>(DeviceTensors{
      .places = std::move(places_), .copies = nullptr, .borrowed = std::move(borrowed_)});
}

void TensorReader::finish() const {
  if (next_ != segments_.size()) throw BadEnvelope{"a segment without its tensor"};
}

// ---- payloads ---------------------------------------------------------------

namespace {

// The segments of the parts come before the tensor's own.
void write(wire::Tensor& to, const SentTensor& tensor, std::vector<Segment>& segments) {
  to.set_dtype(tensor.entry.dtype);
  to.set_requires_grad(tensor.entry.requires_grad);
  to.set_undefined(tensor.entry.undefined);
  to.set_form(static_cast<uint32_t>(tensor.entry.form));
  to.set_device(tensor.entry.place.to);
  to.set_came_from(tensor.entry.place.from);
  to.set_lent(tensor.entry.lent);
  for (const int64_t size : tensor.sizes) to.add_sizes(size);
  for (const int64_t number : tensor.numbers) to.add_numbers(number);
  for (const SentTensor& part : tensor.parts) write(*to.add_parts(), part, segments);
  add_segment(tensor, segments);
}

c10::IntArrayRef array_of(const google::protobuf::RepeatedField<int64_t>& numbers) {
  return {numbers.data(), static_cast<size_t>(numbers.size())};
}

at::Tensor read(const wire::Tensor& from, TensorReader& tensors) {
  if (from.form() > static_cast<uint32_t>(kLastTensorForm)) throw BadEnvelope{"tensor form"};
  const TensorEntry entry{.dtype = from.dtype(),
                          .requires_grad = from.requires_grad(),
                          .undefined = from.undefined(),
                          .form = static_cast<TensorForm>(from.form()),
                          .lent = from.lent()};
  if (entry.form == TensorForm::dense) return tensors.read(entry, array_of(from.sizes()));
  const FormCounts counts = counts_of(entry.form, from.sizes_size());
  if (counts.numbers != static_cast<size_t>(from.numbers_size()) ||
      counts.parts != static_cast<size_t>(from.parts_size()))
    throw BadEnvelope{"a tensor without its numbers and parts"};
  std::vector<at::Tensor> parts;
  for (const wire::Tensor& part : from.parts()) {
    if (part.form() != 0) throw BadEnvelope{"a part of a tensor that has parts"};
    if (part.device() != 0 || part.came_from() != 0 || part.lent())
      throw BadEnvelope{"tensor device"};
    parts.push_back(read(part, tensors));
  }
  return tensors.read(entry, array_of(from.sizes()), array_of(from.numbers()), std::move(parts));
}

}  // namespace

void write(wire::Payload& to, const Payload& payload, std::vector<Segment>& segments) {
  to.set_values(payload.values);
  REHEARSAL_CHECK(payload.sent.size() == payload.tensors.size(), "it is not ready to be sent");
  for (const SentTensor& tensor : payload.sent) write(*to.add_tensors(), tensor, segments);
  for (const Fork& fork : payload.forks) write(*to.add_forks(), fork);
}

Payload read(wire::Payload& from, const std::vector<Segment>& segments) {
  Payload payload;
  payload.values = std::move(*from.mutable_values());
  TensorReader tensors(segments);
  payload.tensors.reserve(from.tensors_size());
  for (const wire::Tensor& tensor : from.tensors()) {
    if (std::max(tensor.device(), tensor.came_from()) > UINT8_MAX)
      throw BadEnvelope{"tensor device"};
    tensors.note_place({.from = static_cast<DeviceCode>(tensor.came_from()),
                        .to = static_cast<DeviceCode>(tensor.device())});
    payload.tensors.push_back(read(tensor, tensors));
  }
  tensors.finish();
  payload.devices = tensors.take_devices();
  for (const wire::Fork& fork : from.forks()) payload.forks.push_back(read(fork));
  return payload;
}

}  // namespace rehearsal
