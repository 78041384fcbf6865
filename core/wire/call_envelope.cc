#include "core/wire/call_envelope.h"

#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "core/base/check.h"
#include "core/base/short_text.h"
#include "core/values/scratch_arena.h"
#include "core/wire/decoded_weight.h"
#include "core/wire/message.h"
#include "core/wire/messages.pb.h"
#include "core/wire/wire_parts.h"

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

namespace rehearsal {
namespace {

// Field number 0 is no field of protobuf: bytes below 8 begin none of its messages.
constexpr uint8_t kCallForm = 1;
constexpr uint8_t kResponseForm = 2;

constexpr uint16_t kHasRest = 1;  // the only flag

struct IdBytes {
  uint64_t incarnation;
  uint64_t path_high;
  uint64_t path_low;
  uint64_t ordinal;
};

struct CallBytes {
  uint8_t form;
  uint8_t kind;
  uint16_t flags;
  uint32_t function;
  IdBytes id;
  int64_t time_left;
  uint32_t depth;
  uint32_t value_bytes;
  uint64_t tensor_count;
};
static_assert(std::has_unique_object_representations_v<CallBytes>);

struct ResponseBytes {
  uint8_t form;
  uint8_t reserved;
  uint16_t flags;
  uint32_t value_bytes;
  IdBytes id;
  uint64_t tensor_count;
};
static_assert(std::has_unique_object_representations_v<ResponseBytes>);

constexpr uint8_t kRequiresGrad = 1;
constexpr uint8_t kUndefined = 2;
constexpr uint8_t kLent = 4;

// Before the sizes of its dimensions, 8 bytes each. Then, if it is not dense, its numbers, 8 bytes
// each, and its parts as tensors of their own: as many as its form has.
struct TensorBytes {
  uint8_t dtype;
  uint8_t flags;
  uint16_t dimensions;
  uint8_t form;
  uint8_t device;  // of the receiver: 0 is the CPU, n + 1 the device with number n
  uint8_t came_from;
  uint8_t reserved;
};
static_assert(std::has_unique_object_representations_v<TensorBytes>);

IdBytes bytes_of(const CausalId& id) {
  return {id.incarnation.value, id.path.high, id.path.low, id.ordinal};
}
CausalId id_of(const IdBytes& bytes) {
  return {{bytes.incarnation}, {bytes.path_high, bytes.path_low}, bytes.ordinal};
}

// ---- writing ----------------------------------------------------------------

template <class T>
void append(std::string& out, const T& bytes) {
  out.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
}

void append_numbers(std::string& out, c10::IntArrayRef numbers) {
  out.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t));
}

void append_tensor(const SentTensor& tensor, FrameBody& body) {
  const TensorEntry& entry = tensor.entry;
  const auto flags =
      static_cast<uint8_t>((entry.requires_grad ? kRequiresGrad : 0) |
                           (entry.undefined ? kUndefined : 0) | (entry.lent ? kLent : 0));
  append(body.envelope, TensorBytes{.dtype = static_cast<uint8_t>(entry.dtype),
                                    .flags = flags,
                                    .dimensions = static_cast<uint16_t>(tensor.sizes.size()),
                                    .form = static_cast<uint8_t>(entry.form),
                                    .device = entry.place.to,
                                    .came_from = entry.place.from,
                                    .reserved = 0});
  append_numbers(body.envelope, tensor.sizes);
  append_numbers(body.envelope, tensor.numbers);
  for (const SentTensor& part : tensor.parts) append_tensor(part, body);
  add_segment(tensor, body.segments);
}

// Room for an ordinary rest, so that the envelope need not be moved for it.
constexpr size_t kRestBytes = 256;

template <class Head>
void write_fields(const Head& head, const Payload& payload, FrameBody& body) {
  body.envelope.reserve(sizeof head + payload.values.size() + (head.flags != 0 ? kRestBytes : 0));
  append(body.envelope, head);
  body.envelope.append(payload.values);
  REHEARSAL_CHECK(payload.sent.size() == payload.tensors.size(), "it is not ready to be sent");
  for (const SentTensor& tensor : payload.sent) append_tensor(tensor, body);
}

// ---- reading ----------------------------------------------------------------

// Takes bytes from the front of what is left of an envelope.
class Bytes {
 public:
  explicit Bytes(std::string_view rest) : rest_(rest) {}

  template <class T>
  T take() {
    T bytes;
    std::memcpy(&bytes, take(sizeof bytes).data(), sizeof bytes);
    return bytes;
  }
  std::string_view take(size_t size) {
    if (size > rest_.size()) throw BadEnvelope{"it ends too early"};
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// Sizes of dimensions, or numbers of a form.
class Numbers {
 public:
  Numbers(Bytes& from, size_t count) : count_(count) {
    if (count > numbers_.size()) throw BadEnvelope{"tensor too large"};
    const std::string_view given = from.take(count * sizeof(int64_t));
    std::memcpy(numbers_.data(), given.data(), given.size());
  }
  [[nodiscard]] c10::IntArrayRef all() const { return {numbers_.data(), count_}; }

 private:
  std::array<int64_t, kDimensionsMax> numbers_;
  size_t count_;
};

at::Tensor take_tensor(Bytes& from, TensorReader& tensors, bool is_part = false) {
  const auto bytes = from.take<TensorBytes>();
  if (bytes.reserved != 0 || bytes.flags > (kRequiresGrad | kUndefined | kLent))
    throw BadEnvelope{"tensor flags"};
  const bool is_lent = (bytes.flags & kLent) != 0;
  if (is_part && (bytes.device != 0 || bytes.came_from != 0 || is_lent))
    throw BadEnvelope{"tensor device"};
  if (!is_part) tensors.note_place({.from = bytes.came_from, .to = bytes.device});
  if (bytes.form > static_cast<uint8_t>(kLastTensorForm)) throw BadEnvelope{"tensor form"};
  const TensorEntry entry{.dtype = bytes.dtype,
                          .requires_grad = (bytes.flags & kRequiresGrad) != 0,
                          .undefined = (bytes.flags & kUndefined) != 0,
                          .form = static_cast<TensorForm>(bytes.form),
                          .lent = is_lent};
  const Numbers sizes(from, bytes.dimensions);
  if (entry.form == TensorForm::dense) [[likely]]
    return tensors.read(entry, sizes.all());
  if (is_part) throw BadEnvelope{"a part of a tensor that has parts"};
  const FormCounts counts = counts_of(entry.form, bytes.dimensions);
  const Numbers numbers(from, counts.numbers);
  std::vector<at::Tensor> parts;
  for (size_t left = counts.parts; left > 0; --left)
    parts.push_back(take_tensor(from, tensors, true));
  return tensors.read(entry, sizes.all(), numbers.all(), std::move(parts));
}

void take_payload(Bytes& from, uint32_t value_bytes, uint64_t tensor_count, const FrameBody& body,
                  Payload& payload) {
  const std::vector<Segment>& segments = body.segments;
  payload.values = from.take(value_bytes);
  if (tensor_count == 0 && segments.empty()) [[likely]]
    return;
  if (tensor_count > from.rest().size() / sizeof(TensorBytes))
    throw BadEnvelope{"more tensors than bytes"};
  check_tensor_weight(body, tensor_count);
  payload.tensors.reserve(tensor_count);
  TensorReader tensors(segments);
  for (uint64_t left = tensor_count; left > 0; --left)
    payload.tensors.push_back(take_tensor(from, tensors));
  tensors.finish();
  payload.devices = tensors.take_devices();
}

template <class Rest>
void parse_rest(const FrameBody& body, std::string_view bytes, WireMessage message, Rest& rest) {
  check_weight(body, bytes, message);
  if (!rest.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    throw BadEnvelope{"its rest is no protobuf"};
}

// Whether a rest follows.
bool has_rest(uint16_t flags, std::string_view left) {
  if ((flags & ~kHasRest) != 0) throw BadEnvelope{"unknown flags"};
  if (flags == 0 && !left.empty()) throw BadEnvelope{"bytes behind its end"};
  return flags != 0;
}

// ---- calls ------------------------------------------------------------------

bool has_rest(const Call& call) {
  return !call.arguments.forks.empty() || !call.name.empty() || call.target || call.created ||
         call.autograd || call.context || call.credit > 0 || call.trace || call.stream ||
         call.order || !call.failure.empty();
}

void write_rest(wire::CallRest& rest, const Call& call) {
  for (const Fork& fork : call.arguments.forks) write(*rest.add_forks(), fork);
  if (!call.name.empty()) rest.set_name(call.name);
  if (call.target) write(*rest.mutable_target(), *call.target);
  if (call.created) {
    write(*rest.mutable_created(), *call.created);
    write(*rest.mutable_created_fork(), call.created_fork);
  }
  if (call.autograd) write(*rest.mutable_autograd(), *call.autograd);
  rest.set_credit(call.credit);
  if (call.trace) write(*rest.mutable_trace(), *call.trace);
  if (call.stream) {
    rest.set_stream_high(call.stream->high);
    rest.set_stream_low(call.stream->low);
  }
  if (call.order) write(*rest.mutable_order(), *call.order);
  if (!call.failure.empty()) rest.set_failure(short_text(call.failure));
  if (!call.context) return;
  write(*rest.mutable_context(), call.context->id);
  rest.set_context_creator(call.context->creator.value);
}

void take_rest(const wire::CallRest& from, Call& call) {
  for (const wire::Fork& fork : from.forks()) call.arguments.forks.push_back(read(fork));
  call.name = from.name();
  if (from.has_target()) call.target = read(from.target());
  if (from.has_created()) {
    call.created = read(from.created());
    call.created_fork = read<ForkId>(from.created_fork());
  }
  if (from.has_autograd()) call.autograd = read(from.autograd());
  call.credit = from.credit();
  if (from.has_trace()) call.trace = read(from.trace());
  if (from.stream_high() != 0 || from.stream_low() != 0)
    call.stream = Hash128{from.stream_high(), from.stream_low()};
  if (from.has_order()) call.order = read(from.order());
  call.failure = from.failure();
  if (from.has_context())
    call.context =
        ContextName{read<AutogradContextId>(from.context()), WorkerId{from.context_creator()}};
}

void read_call(const FrameBody& body, Call& call, ScratchArena& scratch) {
  Bytes from(body.envelope);
  const auto head = from.take<CallBytes>();
  if (head.kind > static_cast<uint8_t>(CallKind::await)) throw BadEnvelope{"call kind"};
  if (head.time_left < 0) throw BadEnvelope{"time left"};
  call.id = CallId{id_of(head.id)};
  call.kind = static_cast<CallKind>(head.kind);
  call.function = head.function;
  call.time_left = Duration(head.time_left);
  call.depth = head.depth;
  take_payload(from, head.value_bytes, head.tensor_count, body, call.arguments);
  if (!has_rest(head.flags, from.rest())) return;
  const ScratchArena::Lent<wire::CallRest> rest(scratch);
  parse_rest(body, from.rest(), WireMessage::call_rest, *rest);
  take_rest(*rest, call);
}

// ---- responses --------------------------------------------------------------

bool has_rest(const Response& response) {
  return !response.value.forks.empty() || response.error || response.autograd;
}

void write_rest(wire::ResponseRest& rest, const Response& response) {
  for (const Fork& fork : response.value.forks) write(*rest.add_forks(), fork);
  if (response.error) write(*rest.mutable_error(), *response.error);
  if (response.autograd) write(*rest.mutable_autograd(), *response.autograd);
  if (response.exception != 0) rest.set_exception(response.exception);
}

void take_rest(const wire::ResponseRest& from, Response& response) {
  for (const wire::Fork& fork : from.forks()) response.value.forks.push_back(read(fork));
  if (from.has_error()) response.error = read(from.error());
  if (from.has_autograd()) response.autograd = read(from.autograd());
  response.exception = from.exception();
  if (response.exception != 0 && !response.error) throw BadEnvelope{"an exception without error"};
}

void read_response(const FrameBody& body, Response& response, ScratchArena& scratch) {
  Bytes from(body.envelope);
  const auto head = from.take<ResponseBytes>();
  if (head.reserved != 0) throw BadEnvelope{"unknown flags"};
  response.id = CallId{id_of(head.id)};
  take_payload(from, head.value_bytes, head.tensor_count, body, response.value);
  if (!has_rest(head.flags, from.rest())) return;
  const ScratchArena::Lent<wire::ResponseRest> rest(scratch);
  parse_rest(body, from.rest(), WireMessage::response_rest, *rest);
  take_rest(*rest, response);
}

template <class Rest, class Content>
void append_rest(const Content& content, FrameBody& body, ScratchArena& scratch) {
  const ScratchArena::Lent<Rest> rest(scratch);
  write_rest(*rest, content);
  REHEARSAL_CHECK(rest->AppendToString(&body.envelope));
}

}  // namespace

void write_call(const Call& call, FrameBody& body, ScratchArena& scratch) {
  const bool more = has_rest(call);
  const CallBytes head{.form = kCallForm,
                       .kind = static_cast<uint8_t>(call.kind),
                       .flags = more ? kHasRest : uint16_t{0},
                       .function = call.function,
                       .id = bytes_of(call.id),
                       .time_left = call.time_left.count(),
                       .depth = call.depth,
                       .value_bytes = static_cast<uint32_t>(call.arguments.values.size()),
                       .tensor_count = call.arguments.tensors.size()};
  write_fields(head, call.arguments, body);
  if (more) append_rest<wire::CallRest>(call, body, scratch);
}

void write_response(const Response& response, FrameBody& body, ScratchArena& scratch) {
  const bool more = has_rest(response);
  const ResponseBytes head{.form = kResponseForm,
                           .reserved = 0,
                           .flags = more ? kHasRest : uint16_t{0},
                           .value_bytes = static_cast<uint32_t>(response.value.values.size()),
                           .id = bytes_of(response.id),
                           .tensor_count = response.value.tensors.size()};
  write_fields(head, response.value, body);
  if (more) append_rest<wire::ResponseRest>(response, body, scratch);
}

bool has_fixed_layout(const FrameBody& body) {
  return !body.envelope.empty() &&
         (body.envelope[0] == kCallForm || body.envelope[0] == kResponseForm);
}

void read_call_or_response(const FrameBody& body, Message& message, ScratchArena& scratch) {
  if (body.envelope[0] == kCallForm) {
    read_call(body, message.content.emplace<Call>(), scratch);
  } else {
    read_response(body, message.content.emplace<Response>(), scratch);
  }
}

}  // namespace rehearsal
