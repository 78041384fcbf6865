#include "sim/explain/message_text.h"

#include <ATen/core/Tensor.h>

#include <cctype>
#include <sstream>

#include "core/base/error.h"

namespace rehearsal::sim {
namespace {

// "float[8,2]"
std::string tensor_text(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::string text = c10::toString(tensor.scalar_type());
  for (char& letter : text)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  text += "[";
  for (int64_t i = 0; i < tensor.dim(); ++i)
    text += (i == 0 ? "" : ",") + std::to_string(tensor.size(i));
  return text + "]";
}

std::string payload_text(const Payload& payload) {
  constexpr size_t kTensorsShown = 8;
  std::ostringstream out;
  const char* separator = "";
  for (size_t i = 0; i < payload.tensors.size() && i < kTensorsShown; ++i, separator = ", ")
    out << separator << tensor_text(payload.tensors[i]);
  if (payload.tensors.size() > kTensorsShown)
    out << " and " << payload.tensors.size() - kTensorsShown << " tensors more";
  for (const Fork& fork : payload.forks) {
    out << separator << "fork " << fork.id << " of " << fork.rref;
    separator = ", ";
  }
  if (payload.tensors.empty() && payload.forks.empty())
    out << payload.values.size() << " bytes of values";
  return out.str();
}

std::string error_text(const MaybeError& error) {
  return error ? "error: " + to_string(*error) : "no error";
}

std::string call_text(const Call& call, const FunctionRegistry& registry) {
  std::ostringstream out;
  switch (call.kind) {
    case CallKind::function:
      out << (call.function < registry.functions().size() ? registry.functions()[call.function].name
                                                          : "unknown function");
      break;
    case CallKind::operator_:
      out << call.name;
      break;
    case CallKind::fetch:
      out << "fetch";
      break;
    case CallKind::await:
      out << "await";
      break;
  }
  out << "(" << payload_text(call.arguments) << ")";
  if (call.target) out << " on " << *call.target;
  if (call.created) out << " makes " << *call.created << " with fork " << call.created_fork;
  if (call.credit > 0) out << " as a stream, with room for " << call.credit << " values";
  if (call.depth > 0) out << ", nested " << call.depth << " deep";
  if (call.context) out << ", in context " << call.context->id;
  return out.str();
}

std::string pass_text(const PassName& pass) {
  std::ostringstream out;
  out << "pass " << pass.id.epoch << " of context " << pass.id.context << " by worker "
      << pass.starter;
  return out.str();
}

struct Describer {
  const FunctionRegistry& registry;

  std::string operator()(const Call& call) const { return call_text(call, registry); }
  std::string operator()(const Response& response) const {
    return response.error ? error_text(response.error) : payload_text(response.value);
  }
  std::string operator()(const Item& item) const {
    return "value " + std::to_string(item.position) + ": " +
           (item.error ? error_text(item.error) : payload_text(item.value));
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
    return pass_text(finish.pass) + (finish.commit ? ": keep the gradients" : ": is it complete?");
  }
  std::string operator()(const PassFinished& finished) const {
    return pass_text(finished.pass) + ": " + error_text(finished.error);
  }
  std::string operator()(const PassFailed& failed) const {
    return pass_text(failed.pass) + ": " + to_string(failed.error);
  }
  std::string operator()(const Goodbye& goodbye) const { return to_string(goodbye.error); }
  std::string operator()(const ShutdownReport& report) const {
    return report.quiet ? "quiet" : "not quiet";
  }
  // The others say nothing but their name and causal id.
  template <class Other>
  std::string operator()(const Other&) const {
    return {};
  }
};

}  // namespace

std::string describe(const Message& message, const FunctionRegistry& registry) {
  return std::visit(Describer{registry}, message.content);
}

}  // namespace rehearsal::sim
