// The callee's side of calls that it does not take.
#include "core/calls/served_calls.h"
#include "core/functions/operator_call.h"
#include "core/session/authority.h"

namespace rehearsal {

// Of what waits for nothing a flood would grow without end; and so would few calls, each large.
MaybeError ServedCalls::why_overloaded(WorkerId from) const {
  if (served_.size() >= options_.served_limit)
    return overloaded(options_.served_limit, "not answered yet");
  const uint64_t limit = session_options_.limits.served_bytes;
  if (bytes_of_.count(from) < limit) return std::nullopt;
  return Error{.kind = ErrorKind::overloaded,
               .text = "the arguments of the caller's calls that are not answered yet take " +
                       std::to_string(limit) + " bytes or more (PeerLimits::served_bytes)",
               .worker = strand_.name()};
}

// Of a call that is refused only the references are dealt with.
void ServedCalls::drop_unused(Payload& arguments) {
  arguments.values.clear();
  if (arguments.tensors.empty()) return;
  auto unused = std::make_shared<Payload>();
  unused->tensors = std::exchange(arguments.tensors, {});
  unused->devices = std::exchange(arguments.devices, nullptr);
  strand_.release_later(std::move(unused));
}

Error ServedCalls::overloaded(uint32_t calls, const char* which) const {
  return {.kind = ErrorKind::overloaded,
          .text = std::to_string(calls) + " calls are " + which,
          .worker = strand_.name()};
}

// The caller need not know: it may have called for another one, which has called it twice with one
// id, and then what it calls has one id, too.
Error ServedCalls::repeated() const {
  strand_.mark("a call came with the id of one that is being served");
  return {.kind = ErrorKind::protocol,
          .text = "a call of this id is being served: a worker has called twice with one id",
          .worker = strand_.name()};
}

MaybeError ServedCalls::why_kept_out(WorkerId from, const CallerRule& callers,
                                     std::string_view called) const {
  if (callers.admits_everybody()) return std::nullopt;
  const std::string& caller = session_options_.names[from.value];
  if (callers.admits(caller)) return std::nullopt;
  return Error{.kind = ErrorKind::unknown_function,
               .text = "'" + caller + "' may not call '" + std::string(called) +
                       "': it is callable by " + callers.text(),
               .function = std::string(called)};
}

MaybeError ServedCalls::why_not_fetched(WorkerId from, std::type_index type) const {
  const CallerRule* const callers = registry_.callers_of(type);
  if (callers == nullptr) return std::nullopt;
  return why_kept_out(from, *callers, registry_.type_name(type) + ".to_here");
}

MaybeError ServedCalls::why_refused(WorkerId from, const Call& call) {
  if (call.context)
    if (Status met = records_->meet_context(*call.context, from); !met.ok()) return met.error();
  if (call.depth + 1 >= kCallDepthMax)
    return Error{.kind = ErrorKind::bad_arguments,
                 .text = "it is nested as deeply as calls can be"};
  if (call.credit > 0 && call.kind != CallKind::function)
    return Error{.kind = ErrorKind::protocol, .text = "a stream of what is not a function"};
  if (call.kind == CallKind::fetch || call.kind == CallKind::await) {
    if (call.target && !call.created) return std::nullopt;
    return Error{.kind = ErrorKind::protocol, .text = "a fetch without a target"};
  }
  if (call.kind == CallKind::operator_) {
    if (!call.failure.empty())
      return Error{.kind = ErrorKind::bad_arguments,
                   .text = call.failure,
                   .worker = session_options_.names[from.value]};
    if (call.target)
      return Error{.kind = ErrorKind::bad_arguments, .text = "a target for what is not a method"};
    if (MaybeError kept_out = why_kept_out(from, registry_.operator_callers(), call.name))
      return kept_out;
    return check_operator(call.name, registry_.allowed_operators());
  }
  if (call.function >= registry_.functions().size())
    return Error{.kind = ErrorKind::unknown_function,
                 .text = "no function number " + std::to_string(call.function)};
  const Function& function = registry_.functions()[call.function];
  if (MaybeError kept_out = why_kept_out(from, function.callers, function.name)) return kept_out;
  if (function.is_stream != (call.credit > 0) || (function.is_stream && call.created))
    return Error{.kind = ErrorKind::bad_arguments,
                 .text = function.is_stream ? "its answer is a stream: call it with rpc_stream"
                                            : "its answer is one value, not a stream"};
  const bool is_method = !function.is_constructor && function.object_type != typeid(void);
  if (is_method != call.target.has_value())
    return Error{.kind = ErrorKind::bad_arguments,
                 .text = is_method ? "a method needs a remote reference to call it on"
                                   : "a target for what is not a method"};
  return std::nullopt;
}

}  // namespace rehearsal
