#include "core/wire/protobuf_codec.h"

#include <optional>

#include "core/base/check.h"
#include "core/values/scratch_arena.h"
#include "core/wire/call_envelope.h"
#include "core/wire/decoded_weight.h"
#include "core/wire/message.h"
#include "core/wire/messages.pb.h"
#include "core/wire/wire_parts.h"

namespace rehearsal {
namespace {

struct Writer {
  wire::Envelope& to;
  std::vector<Segment>& segments;

  void operator()(const std::monostate&) const { REHEARSAL_CHECK(false, "an empty message"); }
  void operator()(const Call&) const { REHEARSAL_CHECK(false, "it has a fixed layout"); }
  void operator()(const Response&) const { REHEARSAL_CHECK(false, "it has a fixed layout"); }
  void operator()(const Cancel& cancel) const {
    write(*to.mutable_cancel()->mutable_id(), cancel.id);
  }
  void operator()(const Item& item) const {
    write(*to.mutable_item()->mutable_call(), item.call);
    to.mutable_item()->set_position(item.position);
    write(*to.mutable_item()->mutable_value(), item.value, segments);
    if (item.error) write(*to.mutable_item()->mutable_error(), *item.error);
    if (item.autograd) write(*to.mutable_item()->mutable_autograd(), *item.autograd);
  }
  void operator()(const Credit& credit) const {
    write(*to.mutable_credit()->mutable_call(), credit.call);
    to.mutable_credit()->set_items(credit.items);
  }
  void operator()(const End& end) const {
    write(*to.mutable_end()->mutable_call(), end.call);
    to.mutable_end()->set_items(end.items);
    if (end.error) write(*to.mutable_end()->mutable_error(), *end.error);
    if (end.exception == 0 && end.value.forks.empty()) return;
    write(*to.mutable_end()->mutable_value(), end.value, segments);
    to.mutable_end()->set_exception(end.exception);
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
    if (gradients.autograd) write(*to.mutable_gradients()->mutable_autograd(), *gradients.autograd);
    to.mutable_gradients()->mutable_unreached()->Assign(gradients.unreached.begin(),
                                                        gradients.unreached.end());
  }
  void operator()(const GradientsAnswered& answered) const {
    write(*to.mutable_gradients_answered()->mutable_pass(), answered.pass);
    write(*to.mutable_gradients_answered()->mutable_message(), answered.message);
  }
  void operator()(const PassFinish& finish) const {
    write(*to.mutable_pass_finish()->mutable_pass(), finish.pass);
    to.mutable_pass_finish()->set_wave(static_cast<uint32_t>(finish.wave));
  }
  void operator()(const PassFinished& finished) const {
    write(*to.mutable_pass_finished()->mutable_pass(), finished.pass);
    if (finished.error) write(*to.mutable_pass_finished()->mutable_error(), *finished.error);
    to.mutable_pass_finished()->set_undecided(finished.undecided);
  }
  void operator()(const Marks& marks) const {
    write(*to.mutable_marks()->mutable_pass(), marks.pass);
    for (const Mark& mark : marks.marks) {
      wire::Mark& out = *to.mutable_marks()->add_marks();
      write(*out.mutable_message(), mark.message);
      out.mutable_tensors()->Assign(mark.tensors.begin(), mark.tensors.end());
    }
  }
  void operator()(const MarksAnswered& answered) const {
    write(*to.mutable_marks_answered()->mutable_pass(), answered.pass);
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
    for (const WorkerId lost : report.lost) out.add_lost(lost.value);
    out.set_activity(report.activity);
    out.set_all_arrived(report.all_arrived);
    out.set_lives(report.lives);
  }
  void operator()(const ShutdownProbe& probe) const {
    to.mutable_shutdown_probe()->set_phase(probe.phase);
    to.mutable_shutdown_probe()->set_wave(probe.wave);
  }
  void operator()(const Leave& leave) const { to.mutable_leave()->set_graceful(leave.graceful); }
  void operator()(const Goodbye& goodbye) const {
    write(*to.mutable_goodbye()->mutable_error(), goodbye.error);
  }
  void operator()(const GroupView& view) const {
    to.mutable_group_view()->set_member(view.member);
    for (const MetMember& met : view.met) {
      wire::MetMember& out = *to.mutable_group_view()->add_met();
      out.set_worker(met.worker.value);
      out.set_life(met.life);
    }
  }
  void operator()(const Leaving&) const { to.mutable_leaving(); }
  void operator()(const NothingMore&) const { to.mutable_nothing_more(); }
  void operator()(const LoansReturned& returned) const {
    to.mutable_loans_returned()->mutable_loans()->Assign(returned.loans.begin(),
                                                         returned.loans.end());
  }
};

template <class WireMessage>
MaybeError read_error(const WireMessage& from) {
  if (!from.has_error()) return std::nullopt;
  return read(from.error());
}

Item read_item(wire::Item& from, const std::vector<Segment>& segments) {
  Item item{.call = read<CallId>(from.call()),
            .position = from.position(),
            .value = read(*from.mutable_value(), segments),
            .error = read_error(from),
            .autograd = {}};
  if (from.has_autograd()) item.autograd = read(from.autograd());
  return item;
}

End read_end(wire::End& from, const std::vector<Segment>& segments) {
  End end{read<CallId>(from.call()), from.items(), read_error(from)};
  end.exception = from.exception();
  if (!end.error && (end.exception != 0 || from.has_value()))
    throw BadEnvelope{"an exception without error"};
  if (from.has_value()) end.value = read(*from.mutable_value(), segments);
  return end;
}

ShutdownReport read_report(const wire::ShutdownReport& from) {
  ShutdownReport report{.phase = from.phase(),
                        .wave = from.wave(),
                        .quiet = from.quiet(),
                        .lost = {},
                        .activity = from.activity(),
                        .all_arrived = from.all_arrived(),
                        .lives = from.lives()};
  for (const uint32_t lost : from.lost()) report.lost.push_back(WorkerId{lost});
  return report;
}

GroupView read_view(const wire::GroupView& from) {
  GroupView view{.member = from.member(), .met = {}};
  for (const wire::MetMember& met : from.met())
    view.met.push_back({WorkerId{met.worker()}, met.life()});
  return view;
}

// Nobody but the codec looks at what is in the tensors of gradients.
PassFinish read_finish(const wire::PassFinish& from) {
  if (from.wave() >= kPassWaves) throw BadEnvelope{"wave of a pass"};
  return {read(from.pass()), static_cast<PassWave>(from.wave())};
}

Marks read_marks(const wire::Marks& from) {
  if (from.marks().empty()) throw BadEnvelope{"no marks in it"};
  Marks marks{read(from.pass()), {}};
  for (const wire::Mark& mark : from.marks()) {
    if (mark.tensors().empty()) throw BadEnvelope{"a mark of no tensor"};
    marks.marks.push_back(
        {read<AutogradMessageId>(mark.message()), {mark.tensors().begin(), mark.tensors().end()}});
  }
  return marks;
}

Gradients read_gradients(wire::Gradients& from, const std::vector<Segment>& segments) {
  Gradients gradients{read(from.pass()),
                      read<AutogradMessageId>(from.message()),
                      read(*from.mutable_gradients(), segments),
                      std::nullopt,
                      {from.unreached().begin(), from.unreached().end()}};
  for (const at::Tensor& tensor : gradients.gradients.tensors)
    if (std::string why = why_bad_contents(tensor); !why.empty()) throw BadEnvelope{why};
  if (from.has_autograd()) gradients.autograd = read(from.autograd());
  return gradients;
}

MessageContent read_content(wire::Envelope& from, const std::vector<Segment>& segments) {
  const bool has_payload =
      from.has_item() || from.has_gradients() || (from.has_end() && from.end().has_value());
  if (!has_payload && !segments.empty()) throw BadEnvelope{"segments where none belong"};
  switch (from.content_case()) {
    case wire::Envelope::kCancel:
      return Cancel{read<CallId>(from.cancel().id())};
    case wire::Envelope::kItem:
      return read_item(*from.mutable_item(), segments);
    case wire::Envelope::kCredit:
      return Credit{read<CallId>(from.credit().call()), from.credit().items()};
    case wire::Envelope::kEnd:
      return read_end(*from.mutable_end(), segments);
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
      return read_gradients(*from.mutable_gradients(), segments);
    case wire::Envelope::kGradientsAnswered:
      return GradientsAnswered{read(from.gradients_answered().pass()),
                               read<AutogradMessageId>(from.gradients_answered().message())};
    case wire::Envelope::kPassFinish:
      return read_finish(from.pass_finish());
    case wire::Envelope::kPassFinished:
      return PassFinished{read(from.pass_finished().pass()), read_error(from.pass_finished()),
                          from.pass_finished().undecided()};
    case wire::Envelope::kMarks:
      return read_marks(from.marks());
    case wire::Envelope::kMarksAnswered:
      return MarksAnswered{read(from.marks_answered().pass())};
    case wire::Envelope::kPassFailed:
      return PassFailed{read(from.pass_failed().pass()), read(from.pass_failed().error())};
    case wire::Envelope::kReady:
      return Ready{from.ready().round()};
    case wire::Envelope::kShutdownReport:
      return read_report(from.shutdown_report());
    case wire::Envelope::kLeave:
      return Leave{from.leave().graceful()};
    case wire::Envelope::kGoodbye:
      return Goodbye{read(from.goodbye().error())};
    case wire::Envelope::kShutdownProbe:
      return ShutdownProbe{from.shutdown_probe().phase(), from.shutdown_probe().wave()};
    case wire::Envelope::kGroupView:
      return read_view(from.group_view());
    case wire::Envelope::kLeaving:
      return Leaving{};
    case wire::Envelope::kNothingMore:
      return NothingMore{};
    case wire::Envelope::kLoansReturned:
      return LoansReturned{
          {from.loans_returned().loans().begin(), from.loans_returned().loans().end()}};
    case wire::Envelope::CONTENT_NOT_SET:
      break;
  }
  throw BadEnvelope{"no message in it"};
}

Error malformed(const std::string& why) {
  return {.kind = ErrorKind::protocol, .text = "malformed message: " + why};
}

// The values that a user's code will read.
Payload* values_in(Message& message) {
  if (auto* call = std::get_if<Call>(&message.content)) return &call->arguments;
  if (auto* response = std::get_if<Response>(&message.content)) return &response->value;
  if (auto* item = std::get_if<Item>(&message.content)) return &item->value;
  if (auto* end = std::get_if<End>(&message.content)) return &end->value;
  return nullptr;
}

class ProtobufCodec final : public Codec {
 public:
  explicit ProtobufCodec(uint64_t decoded_bytes) : decoded_bytes_(decoded_bytes) {}

  std::shared_ptr<FrameBody> encode(const Message& message) override {
    auto body = std::make_shared<FrameBody>();
    if (const Call* call = std::get_if<Call>(&message.content)) {
      write_call(*call, *body, scratch_);
    } else if (const Response* response = std::get_if<Response>(&message.content)) {
      write_response(*response, *body, scratch_);
    } else {
      const ScratchArena::Lent<wire::Envelope> envelope(scratch_);
      std::visit(Writer{*envelope, body->segments}, message.content);
      REHEARSAL_CHECK(envelope->SerializeToString(&body->envelope));
    }
    check_fits_frame(*body);
    return body;
  }

  Result<Message> decode(const FrameBody& body) override {
    try {
      Result<Message> decoded{Message{}};  // The result, so that nothing is moved.
      Message& message = decoded.value();
      if (has_fixed_layout(body)) {
        read_call_or_response(body, message, scratch_);
      } else {
        check_weight(body, body.envelope, WireMessage::envelope);
        const ScratchArena::Lent<wire::Envelope> envelope(scratch_);
        if (!envelope->ParseFromString(body.envelope)) throw BadEnvelope{"not a protobuf envelope"};
        message.content = read_content(*envelope, body.segments);
      }
      if (Payload* const values = values_in(message)) values->decoded_bytes = decoded_bytes_;
      return decoded;
    } catch (const BadEnvelope& bad) {
      return malformed(bad.text);
    } catch (const c10::Error& error) {  // LibTorch knows a reason of its own.
      return malformed(first_line(error));
    }
  }

 private:
  const uint64_t decoded_bytes_;
  ScratchArena scratch_;
};

}  // namespace

std::unique_ptr<Codec> make_protobuf_codec(uint64_t decoded_bytes) {
  return std::make_unique<ProtobufCodec>(decoded_bytes);
}

}  // namespace rehearsal
