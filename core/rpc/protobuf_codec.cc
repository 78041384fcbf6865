#include "core/rpc/protobuf_codec.h"

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <google/protobuf/arena.h>

#include <array>
#include <cstddef>
#include <optional>

#include "core/base/check.h"
#include "core/rpc/message.h"
#include "core/rpc/messages.pb.h"

namespace rehearsal {
namespace {

// Thrown while decoding; caught in decode.
struct BadEnvelope {
  std::string text;
};

// Tensors up to this size are copied when encoded, so that nothing that the user does to them
// later can reach the wire.
constexpr uint64_t kCopiedBytesMax = 16 * 1024;

// ---- ids --------------------------------------------------------------------

// Into a wire::CausalId, or into a message that has its fields.
template <class To>
void write_id(To& to, const CausalId& id) {
  to.set_incarnation(id.incarnation.value);
  to.set_path_high(id.path.high);
  to.set_path_low(id.path.low);
  to.set_ordinal(id.ordinal);
}
template <class From>
CausalId read_id(const From& from) {
  return {{from.incarnation()}, {from.path_high(), from.path_low()}, from.ordinal()};
}

void write(wire::CausalId& to, const CausalId& id) { write_id(to, id); }

template <class To = CausalId>
To read(const wire::CausalId& from) {
  return To{read_id(from)};
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

// ---- errors -----------------------------------------------------------------

void write(wire::Error& to, const Error& error) {
  to.set_kind(static_cast<uint32_t>(error.kind));
  to.set_text(error.text);
  to.set_worker(error.worker);
  to.set_function(error.function);
  for (const std::string& worker : error.chain) to.add_chain(worker);
}

Error read(const wire::Error& from) {
  if (from.kind() > static_cast<uint32_t>(ErrorKind::protocol)) throw BadEnvelope{"error kind"};
  return {.kind = static_cast<ErrorKind>(from.kind()),
          .text = from.text(),
          .worker = from.worker(),
          .function = from.function(),
          .chain = {from.chain().begin(), from.chain().end()}};
}

// ---- payloads ---------------------------------------------------------------

Segment segment_of(const at::Tensor& tensor) {
  at::Tensor elements = tensor.detach().resolve_conj().resolve_neg().contiguous();
  if (elements.nbytes() <= kCopiedBytesMax && elements.is_alias_of(tensor))
    elements = elements.clone();
  auto owner = std::make_shared<at::Tensor>(std::move(elements));
  const c10::Device device = owner->device();
  return {.owner = owner,
          .data = static_cast<std::byte*>(owner->data_ptr()),
          .bytes = owner->nbytes(),
          .device = {static_cast<uint8_t>(device.type()),
                     static_cast<uint8_t>(device.index() < 0 ? 0 : device.index())}};
}

void write(wire::Tensor& to, const at::Tensor& tensor, std::vector<Segment>& segments) {
  if (!tensor.defined()) return to.set_undefined(true);
  to.set_dtype(static_cast<uint32_t>(tensor.scalar_type()));
  for (const int64_t size : tensor.sizes()) to.add_sizes(size);
  to.set_requires_grad(tensor.requires_grad());
  if (tensor.numel() > 0) segments.push_back(segment_of(tensor));
}

at::Tensor read(const wire::Tensor& from, const std::vector<Segment>& segments, size_t& next) {
  if (from.undefined()) return {};
  if (from.dtype() >= static_cast<uint32_t>(c10::ScalarType::NumOptions))
    throw BadEnvelope{"dtype"};
  const auto dtype = static_cast<c10::ScalarType>(from.dtype());
  if (c10::isQIntType(dtype) || dtype == c10::ScalarType::Undefined) throw BadEnvelope{"dtype"};
  const c10::IntArrayRef sizes(from.sizes().data(), from.sizes_size());
  const std::optional<uint64_t> bytes = tensor_bytes(sizes, c10::elementSize(dtype));
  if (!bytes) throw BadEnvelope{"tensor too large"};
  at::Tensor tensor;
  if (*bytes == 0) {
    tensor = at::empty(sizes, at::TensorOptions(dtype));
  } else {
    if (next >= segments.size()) throw BadEnvelope{"a tensor without its segment"};
    const Segment& segment = segments[next++];
    if (segment.bytes != *bytes) throw BadEnvelope{"a segment of another length than its tensor"};
    tensor = at::from_blob(
        segment.data, sizes, [owner = segment.owner](void*) {}, at::TensorOptions(dtype));
  }
  if (!from.requires_grad()) return tensor;
  if (!c10::isFloatingType(dtype) && !c10::isComplexType(dtype))
    throw BadEnvelope{"an integer tensor cannot require a gradient"};
  return tensor.set_requires_grad(true);
}

// Into a wire::Payload, or into a message that has its fields.
template <class To>
void write(To& to, const Payload& payload, std::vector<Segment>& segments) {
  to.set_values(payload.values);
  for (const at::Tensor& tensor : payload.tensors) write(*to.add_tensors(), tensor, segments);
  for (const Fork& fork : payload.forks) {
    wire::Fork& entry = *to.add_forks();
    write(*entry.mutable_rref(), fork.rref);
    write(*entry.mutable_fork(), fork.id);
    entry.set_owner_is_parent(fork.owner_is_parent);
  }
}

template <class From>
Payload read_payload(From& from, const std::vector<Segment>& segments) {
  Payload payload;
  payload.values = std::move(*from.mutable_values());
  size_t next = 0;
  payload.tensors.reserve(from.tensors_size());
  for (const wire::Tensor& tensor : from.tensors())
    payload.tensors.push_back(read(tensor, segments, next));
  if (next != segments.size()) throw BadEnvelope{"a segment without its tensor"};
  for (const wire::Fork& fork : from.forks())
    payload.forks.push_back({read(fork.rref()), read<ForkId>(fork.fork()), fork.owner_is_parent()});
  return payload;
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

// ---- messages: one write and one read each ----------------------------------

struct Writer {
  wire::Envelope& to;
  std::vector<Segment>& segments;

  void operator()(const std::monostate&) const { REHEARSAL_CHECK(false, "an empty message"); }
  void operator()(const Call& call) const {
    wire::Call& out = *to.mutable_call();
    write_id(out, call.id);
    write(out, call.arguments, segments);
    out.set_kind(static_cast<uint32_t>(call.kind));
    out.set_function(call.function);
    if (!call.name.empty()) out.set_name(call.name);
    if (call.target) write(*out.mutable_target(), *call.target);
    if (call.created) {
      write(*out.mutable_created(), *call.created);
      write(*out.mutable_created_fork(), call.created_fork);
    }
    out.set_time_left(call.time_left.count());
    out.set_depth(call.depth);
    if (call.autograd) write(*out.mutable_autograd(), *call.autograd);
    if (!call.context) return;
    write(*out.mutable_context(), call.context->id);
    out.set_context_creator(call.context->creator.value);
  }
  void operator()(const Response& response) const {
    wire::Response& out = *to.mutable_response();
    write_id(out, response.id);
    write(out, response.value, segments);
    if (response.error) write(*out.mutable_error(), *response.error);
    if (response.autograd) write(*out.mutable_autograd(), *response.autograd);
  }
  void operator()(const Cancel& cancel) const {
    write(*to.mutable_cancel()->mutable_id(), cancel.id);
  }
  void operator()(const Item& item) const {
    write(*to.mutable_item()->mutable_call(), item.call);
    to.mutable_item()->set_position(item.position);
    write(*to.mutable_item()->mutable_value(), item.value, segments);
  }
  void operator()(const Credit& credit) const {
    write(*to.mutable_credit()->mutable_call(), credit.call);
    to.mutable_credit()->set_items(credit.items);
  }
  void operator()(const End& end) const {
    write(*to.mutable_end()->mutable_call(), end.call);
    to.mutable_end()->set_items(end.items);
    if (end.error) write(*to.mutable_end()->mutable_error(), *end.error);
  }
  void operator()(const ForkRequest& request) const {
    write(*to.mutable_fork_request()->mutable_rref(), request.rref);
    write(*to.mutable_fork_request()->mutable_fork(), request.fork);
  }
  void operator()(const ForkConfirm& confirm) const {
    write(*to.mutable_fork_confirm()->mutable_fork(), confirm.fork);
    if (confirm.error) write(*to.mutable_fork_confirm()->mutable_error(), *confirm.error);
  }
  void operator()(const ChildAccept& accept) const {
    write(*to.mutable_child_accept()->mutable_fork(), accept.fork);
  }
  void operator()(const UserDelete& user_delete) const {
    write(*to.mutable_user_delete()->mutable_rref(), user_delete.rref);
    write(*to.mutable_user_delete()->mutable_fork(), user_delete.fork);
  }
  void operator()(const ContextReached& reached) const {
    write(*to.mutable_context_reached()->mutable_context(), reached.context);
  }
  void operator()(const ContextRelease& release) const {
    write(*to.mutable_context_release()->mutable_context(), release.context);
  }
  void operator()(const Gradients& gradients) const {
    write(*to.mutable_gradients()->mutable_pass(), gradients.pass);
    write(*to.mutable_gradients()->mutable_message(), gradients.message);
    write(*to.mutable_gradients()->mutable_gradients(), gradients.gradients, segments);
  }
  void operator()(const GradientsAnswered& answered) const {
    write(*to.mutable_gradients_answered()->mutable_pass(), answered.pass);
    write(*to.mutable_gradients_answered()->mutable_message(), answered.message);
  }
  void operator()(const PassFinish& finish) const {
    write(*to.mutable_pass_finish()->mutable_pass(), finish.pass);
    to.mutable_pass_finish()->set_commit(finish.commit);
  }
  void operator()(const PassFinished& finished) const {
    write(*to.mutable_pass_finished()->mutable_pass(), finished.pass);
    if (finished.error) write(*to.mutable_pass_finished()->mutable_error(), *finished.error);
  }
  void operator()(const PassFailed& failed) const {
    write(*to.mutable_pass_failed()->mutable_pass(), failed.pass);
    write(*to.mutable_pass_failed()->mutable_error(), failed.error);
  }
  void operator()(const Ready& ready) const { to.mutable_ready()->set_round(ready.round); }
  void operator()(const ShutdownReport& report) const {
    wire::ShutdownReport& out = *to.mutable_shutdown_report();
    out.set_phase(report.phase);
    out.set_wave(report.wave);
    out.set_quiet(report.quiet);
    for (const Incarnation lost : report.lost) out.add_lost(lost.value);
    out.set_activity(report.activity);
  }
  void operator()(const ShutdownProbe& probe) const {
    to.mutable_shutdown_probe()->set_phase(probe.phase);
    to.mutable_shutdown_probe()->set_wave(probe.wave);
  }
  void operator()(const Leave& leave) const { to.mutable_leave()->set_graceful(leave.graceful); }
  void operator()(const Goodbye& goodbye) const {
    write(*to.mutable_goodbye()->mutable_error(), goodbye.error);
  }
};

Call read(wire::Call& from, const std::vector<Segment>& segments) {
  Call call;
  call.id = {read_id(from)};
  if (from.kind() > static_cast<uint32_t>(CallKind::fetch)) throw BadEnvelope{"call kind"};
  call.kind = static_cast<CallKind>(from.kind());
  call.function = from.function();
  call.name = from.name();
  if (from.has_target()) call.target = read(from.target());
  if (from.has_created()) {
    call.created = read(from.created());
    call.created_fork = read<ForkId>(from.created_fork());
  }
  call.arguments = read_payload(from, segments);
  if (from.time_left() < 0) throw BadEnvelope{"time left"};
  call.time_left = Duration(from.time_left());
  call.depth = from.depth();
  if (from.has_autograd()) call.autograd = read(from.autograd());
  if (from.has_context())
    call.context =
        ContextName{read<AutogradContextId>(from.context()), WorkerId{from.context_creator()}};
  return call;
}

template <class WireMessage>
std::optional<Error> read_error(const WireMessage& from) {
  if (!from.has_error()) return std::nullopt;
  return read(from.error());
}

Response read(wire::Response& from, const std::vector<Segment>& segments) {
  Response response;
  response.id = {read_id(from)};
  response.value = read_payload(from, segments);
  response.error = read_error(from);
  if (from.has_autograd()) response.autograd = read(from.autograd());
  return response;
}

ShutdownReport read(const wire::ShutdownReport& from) {
  ShutdownReport report{from.phase(), from.wave(), from.quiet(), {}, from.activity()};
  for (const uint64_t lost : from.lost()) report.lost.push_back(Incarnation{lost});
  return report;
}

MessageContent read(wire::Envelope& from, const std::vector<Segment>& segments) {
  const bool has_payload =
      from.has_call() || from.has_response() || from.has_item() || from.has_gradients();
  if (!has_payload && !segments.empty()) throw BadEnvelope{"segments where none belong"};
  switch (from.content_case()) {
    case wire::Envelope::kCall:
      return read(*from.mutable_call(), segments);
    case wire::Envelope::kResponse:
      return read(*from.mutable_response(), segments);
    case wire::Envelope::kCancel:
      return Cancel{read<CallId>(from.cancel().id())};
    case wire::Envelope::kItem:
      return Item{read<CallId>(from.item().call()), from.item().position(),
                  read_payload(*from.mutable_item()->mutable_value(), segments)};
    case wire::Envelope::kCredit:
      return Credit{read<CallId>(from.credit().call()), from.credit().items()};
    case wire::Envelope::kEnd:
      return End{read<CallId>(from.end().call()), from.end().items(), read_error(from.end())};
    case wire::Envelope::kForkRequest:
      return ForkRequest{read(from.fork_request().rref()),
                         read<ForkId>(from.fork_request().fork())};
    case wire::Envelope::kForkConfirm:
      return ForkConfirm{read<ForkId>(from.fork_confirm().fork()), read_error(from.fork_confirm())};
    case wire::Envelope::kChildAccept:
      return ChildAccept{read<ForkId>(from.child_accept().fork())};
    case wire::Envelope::kUserDelete:
      return UserDelete{read(from.user_delete().rref()), read<ForkId>(from.user_delete().fork())};
    case wire::Envelope::kContextReached:
      return ContextReached{read<AutogradContextId>(from.context_reached().context())};
    case wire::Envelope::kContextRelease:
      return ContextRelease{read<AutogradContextId>(from.context_release().context())};
    case wire::Envelope::kGradients:
      return Gradients{read(from.gradients().pass()),
                       read<AutogradMessageId>(from.gradients().message()),
                       read_payload(*from.mutable_gradients()->mutable_gradients(), segments)};
    case wire::Envelope::kGradientsAnswered:
      return GradientsAnswered{read(from.gradients_answered().pass()),
                               read<AutogradMessageId>(from.gradients_answered().message())};
    case wire::Envelope::kPassFinish:
      return PassFinish{read(from.pass_finish().pass()), from.pass_finish().commit()};
    case wire::Envelope::kPassFinished:
      return PassFinished{read(from.pass_finished().pass()), read_error(from.pass_finished())};
    case wire::Envelope::kPassFailed:
      return PassFailed{read(from.pass_failed().pass()), read(from.pass_failed().error())};
    case wire::Envelope::kReady:
      return Ready{from.ready().round()};
    case wire::Envelope::kShutdownReport:
      return read(from.shutdown_report());
    case wire::Envelope::kLeave:
      return Leave{from.leave().graceful()};
    case wire::Envelope::kGoodbye:
      return Goodbye{read(from.goodbye().error())};
    case wire::Envelope::kShutdownProbe:
      return ShutdownProbe{from.shutdown_probe().phase(), from.shutdown_probe().wave()};
    case wire::Envelope::CONTENT_NOT_SET:
      break;
  }
  throw BadEnvelope{"no message in it"};
}

class ProtobufCodec final : public Codec {
 public:
  std::shared_ptr<const FrameBody> encode(const Message& message) override {
    auto body = std::make_shared<FrameBody>();
    const Scratch scratch(arena_);
    std::visit(Writer{scratch.envelope, body->segments}, message.content);
    REHEARSAL_CHECK(scratch.envelope.SerializeToString(&body->envelope));
    return body;
  }

  Result<Message> decode(const FrameBody& body) override {
    const Scratch scratch(arena_);
    try {
      if (!scratch.envelope.ParseFromString(body.envelope))
        throw BadEnvelope{"not a protobuf envelope"};
      return Message{read(scratch.envelope, body.segments)};
    } catch (const BadEnvelope& bad) {
      return Error{.kind = ErrorKind::protocol, .text = "malformed message: " + bad.text};
    }
  }

 private:
  // An envelope in the arena, which is emptied once it is half full: that costs about as much as
  // reading an ordinary message.
  struct Scratch {
    explicit Scratch(google::protobuf::Arena& of)
        : arena(of), envelope(*google::protobuf::Arena::CreateMessage<wire::Envelope>(&of)) {}
    ~Scratch() {
      if (arena.SpaceUsed() > kBlockBytes / 2) arena.Reset();
    }
    Scratch(const Scratch&) = delete;
    google::protobuf::Arena& arena;
    wire::Envelope& envelope;
  };

  // Holds all parts of some ordinary messages, so that these need no allocations of their own.
  static constexpr size_t kBlockBytes = 16 * 1024;
  alignas(std::max_align_t) std::array<char, kBlockBytes> block_;
  google::protobuf::Arena arena_{block_.data(), block_.size()};
};

}  // namespace

std::unique_ptr<Codec> make_protobuf_codec() { return std::make_unique<ProtobufCodec>(); }

}  // namespace rehearsal
