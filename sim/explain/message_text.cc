#include "sim/explain/message_text.h"

#include <sstream>

#include "core/base/error.h"
#include "sim/explain/value_text.h"

namespace rehearsal::sim {
namespace {

std::string error_text(const MaybeError& error) {
  return error ? "error: " + to_string(*error) : "no error";
}

const Function* function_of(const Call& call, const FunctionRegistry& registry) {
  if (call.kind != CallKind::function || call.function >= registry.functions().size())
    return nullptr;
  return &registry.functions()[call.function];
}

std::string arguments_text(const Call& call, const Function* function) {
  if (call.kind == CallKind::operator_ || (function != nullptr && function->takes_schema))
    return schema_values_text(call.arguments);
  return function == nullptr ? payload_text(call.arguments)
                             : values_text(call.arguments, function->parameters);
}

std::string name_of(const Call& call, const Function* function) {
  switch (call.kind) {
    case CallKind::function:
      // A constructor's name says what it takes.
      return function == nullptr ? "unknown function"
                                 : function->name.substr(0, function->name.find('('));
    case CallKind::operator_:
      return call.failure.empty() ? call.name : "nothing";
    case CallKind::fetch:
      return "fetch";
    case CallKind::await:
      return "await";
  }
  return "?";
}

std::string call_text(const Call& call, const FunctionRegistry& registry) {
  std::ostringstream out;
  const Function* const function = function_of(call, registry);
  out << name_of(call, function) << "(" << arguments_text(call, function) << ")";
  if (call.target) out << " on " << *call.target;
  if (call.created) out << " makes " << *call.created << " with fork " << call.created_fork;
  if (call.credit > 0) out << " as a stream, with room for " << call.credit << " values";
  if (call.order) out << ", in the order of " << *call.order;
  if (!call.failure.empty()) out << ", as " << call.failure;
  if (call.depth > 0) out << ", nested " << call.depth << " deep";
  if (call.context) out << ", in context " << call.context->id;
  return out.str();
}

// A value of what the function returns.
std::string result_text(const Payload& payload, const Function* answered) {
  if (answered == nullptr) return payload_text(payload);
  std::string_view type = answered->result;
  constexpr std::string_view kStream = "stream<";
  if (type.starts_with(kStream))
    type = type.substr(kStream.size(), type.size() - kStream.size() - 1);
  return values_text(payload, type);
}

std::string pass_text(const PassName& pass) {
  std::ostringstream out;
  out << "pass " << pass.id.epoch << " of context " << pass.id.context << " by worker "
      << pass.starter;
  return out.str();
}

std::string_view wave_text(PassWave wave) {
  switch (wave) {
    case PassWave::check:
      return ": is it complete?";
    case PassWave::resume:
      return ": what is not marked gets no gradient";
    case PassWave::commit:
      return ": keep the gradients";
  }
  return {};
}

// Of an answer: kind and worker of what a function threw are known from elsewhere.
std::string short_error(const Error& error) {
  if (error.kind == ErrorKind::remote_exception) return "error: " + error.text;
  return "error: " + std::string(name_of(error.kind)) + ": " + error.text;
}

struct Describer {
  const FunctionRegistry& registry;
  const Function* answered;

  std::string operator()(const Call& call) const { return call_text(call, registry); }
  std::string operator()(const Response& response) const {
    return response.error ? short_error(*response.error) : result_text(response.value, answered);
  }
  std::string operator()(const Item& item) const {
    return "value " + std::to_string(item.position) + ": " +
           (item.error ? error_text(item.error) : result_text(item.value, answered));
  }
  std::string operator()(const Credit& credit) const {
    return "room for " + std::to_string(credit.items) + " values in all";
  }
  std::string operator()(const End& end) const {
    return "after " + std::to_string(end.items) + " values, " + error_text(end.error);
  }
  std::string operator()(const ForkRequest& request) const {
    std::ostringstream out;
    out << "fork " << request.fork << " of " << request.rref << " wants to be registered";
    return out.str();
  }
  std::string operator()(const ForkConfirm& confirm) const {
    return "fork " + to_string(confirm.fork) +
           (confirm.error ? " is refused: " + to_string(*confirm.error) : " is registered");
  }
  std::string operator()(const ChildAccept& accept) const {
    return "fork " + to_string(accept.fork) + " is confirmed at the child";
  }
  std::string operator()(const UserDelete& deletion) const {
    std::ostringstream out;
    out << "fork " << deletion.fork << " of " << deletion.rref << " is dropped";
    return out.str();
  }
  std::string operator()(const Gradients& gradients) const {
    return pass_text(gradients.pass) + ": " + payload_text(gradients.gradients);
  }
  std::string operator()(const GradientsAnswered& answered) const {
    return pass_text(answered.pass);
  }
  std::string operator()(const PassFinish& finish) const {
    return pass_text(finish.pass) + std::string(wave_text(finish.wave));
  }
  std::string operator()(const PassFinished& finished) const {
    return pass_text(finished.pass) + ": " +
           (finished.undecided ? "nodes wait for what may not come" : error_text(finished.error));
  }
  std::string operator()(const Marks& marks) const {
    return pass_text(marks.pass) + ": the roots depend on tensors of " +
           std::to_string(marks.marks.size()) + " messages, the first " +
           to_string(marks.marks.front().message);
  }
  std::string operator()(const MarksAnswered& answered) const { return pass_text(answered.pass); }
  std::string operator()(const PassFailed& failed) const {
    return pass_text(failed.pass) + ": " + to_string(failed.error);
  }
  std::string operator()(const Goodbye& goodbye) const { return to_string(goodbye.error); }
  std::string operator()(const ShutdownReport& report) const {
    return report.quiet ? "quiet" : "not quiet";
  }
  std::string operator()(const LoansReturned& returned) const {
    return std::to_string(returned.loans.size()) + " tensors";
  }
  // The others say nothing but their name and causal id.
  template <class Other>
  std::string operator()(const Other&) const {
    return {};
  }
};

}  // namespace

std::string describe(const Message& message, const FunctionRegistry& registry,
                     const Function* answered) {
  return std::visit(Describer{registry, answered}, message.content);
}

}  // namespace rehearsal::sim
