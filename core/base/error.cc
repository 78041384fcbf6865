#include "core/base/error.h"

#include "core/base/check.h"
#include "core/base/printable.h"

namespace rehearsal {

std::string_view name_of(ErrorKind kind) {
  switch (kind) {
    using enum ErrorKind;
    case timeout:
      return "timeout";
    case peer_lost:
      return "peer_lost";
    case fenced:
      return "fenced";
    case remote_exception:
      return "remote_exception";
    case unknown_function:
      return "unknown_function";
    case bad_arguments:
      return "bad_arguments";
    case cancelled:
      return "cancelled";
    case overloaded:
      return "overloaded";
    case would_park:
      return "would_park";
    case node_stopped:
      return "node_stopped";
    case rref_deleted:
      return "rref_deleted";
    case autograd:
      return "autograd";
    case protocol:
      return "protocol";
    case storage:
      return "storage";
    case rref_leaked:
      return "rref_leaked";
  }
  REHEARSAL_CHECK(false, static_cast<int>(kind));
}

Error wrong_arguments(std::string text) {
  return {.kind = ErrorKind::bad_arguments, .text = std::move(text)};
}

std::string to_string(const Error& error) {
  std::string line(name_of(error.kind));
  if (!error.worker.empty()) line += " at '" + printable(error.worker) + "'";
  if (!error.function.empty()) line += " in " + printable(error.function);
  line += ": " + printable(error.text);
  if (error.chain.empty()) return line;
  line += " [through";
  for (const std::string& worker : error.chain) line += " " + printable(worker);
  return line + "]";
}

bool Error::operator==(const Error& other) const {
  return kind == other.kind && text == other.text && worker == other.worker &&
         function == other.function && chain == other.chain && type == other.type &&
         trace == other.trace;
}

MaybeError::MaybeError(Error error) : error_(new Error(std::move(error))) {}

void MaybeError::copy(const Error& error) { error_ = new Error(error); }

void MaybeError::destroy() { delete error_; }

RpcError::RpcError(Error error) : std::runtime_error(to_string(error)), error_(std::move(error)) {}

const Error* error_of(const std::exception& thrown) {
  if (const auto* plain = dynamic_cast<const RpcError*>(&thrown)) return &plain->error();
  const auto* called = dynamic_cast<const CalledError*>(&thrown);
  return called == nullptr ? nullptr : &called->error();
}

void throw_error(Error error) {
  if (error.exception != nullptr) std::rethrow_exception(error.exception->made_for(error));
  throw RpcError(std::move(error));
}

}  // namespace rehearsal
