#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rehearsal {

// The kind of a failure in the world (never in our own code: that is a CHECK).
enum class ErrorKind : uint8_t {
  timeout,           // no answer within the call's time
  peer_lost,         // the peer's incarnation is fenced: it crashed, or was silent too long
  fenced,            // the peer has fenced us, or a reference is of a former life of its owner
  remote_exception,  // the user's function threw
  unknown_function,  // not registered at the callee
  bad_arguments,     // arguments that cannot be encoded, or do not fit the signature
  cancelled,         // the caller gave up
  overloaded,        // refused: too much is queued
  would_park,        // waiting where nothing may wait
  node_stopped,      // this worker, or its node, has shut down
  rref_deleted,      // the remote reference's value is gone
  autograd,          // a context or a pass was used wrongly, or failed
  protocol,          // a peer broke the protocol, or does not fit (version, registry)
  storage,           // a checkpoint cannot be written or read
  rref_leaked,       // references were still held when their worker shut down
};

// A kind that is read from elsewhere is one up to this, or malformed.
inline constexpr ErrorKind kLastErrorKind = ErrorKind::rref_leaked;

[[nodiscard]] std::string_view name_of(ErrorKind kind);

struct Error;

// An exception of a type that the program has registered (FunctionRegistry::exception), kept beside
// the Error that it became.
class CarriedException {
 public:
  virtual ~CarriedException() = default;
  // A new one of its own type, which error_of finds `error` in; an RpcError if it cannot be made
  // here. Runs the type's own code.
  [[nodiscard]] virtual std::exception_ptr made_for(const Error& error) const = 0;
};

// An error is data: it crosses the network as it is, but for texts that are too long
// (short_text.h).
struct Error {
  ErrorKind kind = ErrorKind::protocol;
  std::string text;                // what happened, and what to do
  std::string worker;              // the worker it is about (the dead, the throwing, the refusing)
  std::string function;            // the function that was called; empty if none
  std::vector<std::string> chain;  // workers it passed through, the first to see it first
  std::string type;                // of the exception that user code threw; empty if none
  // Where it was thrown: lines, if the worker was told to keep them (NodeOptions).
  std::string trace;
  // `wait` and the synchronous calls throw it in place of an RpcError; mostly null.
  std::shared_ptr<const CarriedException> exception;

  // Of what it says: the carried exception aside.
  bool operator==(const Error& other) const;
};

// Of kind bad_arguments.
[[nodiscard]] Error wrong_arguments(std::string text);

// One line: kind, worker, function, text, chain.
[[nodiscard]] std::string to_string(const Error& error);

// No error, or one; used as an std::optional is. As large as a pointer, and what handles the error
// is out of line: most of what may fail does not, and its code should not be full of this.
class MaybeError {
 public:
  MaybeError() = default;
  MaybeError(std::nullopt_t) {}
  [[gnu::cold]] MaybeError(Error error);
  MaybeError(const MaybeError& other) {
    if (other.error_ != nullptr) [[unlikely]]
      copy(*other.error_);
  }
  MaybeError(MaybeError&& other) noexcept : error_(std::exchange(other.error_, nullptr)) {}
  MaybeError& operator=(MaybeError other) noexcept {
    std::swap(error_, other.error_);
    return *this;
  }
  ~MaybeError() {
    if (error_ != nullptr) [[unlikely]]
      destroy();
  }

  void reset() { *this = MaybeError(); }
  [[nodiscard]] bool has_value() const { return error_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  [[nodiscard]] const Error& operator*() const { return *error_; }
  [[nodiscard]] Error& operator*() { return *error_; }
  [[nodiscard]] const Error* operator->() const { return error_; }
  [[nodiscard]] Error* operator->() { return error_; }

 private:
  [[gnu::cold]] void copy(const Error& error);
  [[gnu::cold]] void destroy();

  Error* error_ = nullptr;  // owned
};

// How an Error leaves the library: thrown by `wait` and by the synchronous calls.
class RpcError : public std::runtime_error {
 public:
  explicit RpcError(Error error);
  [[nodiscard]] const Error& error() const { return error_; }
  [[nodiscard]] ErrorKind kind() const { return error_.kind; }

 private:
  Error error_;
};

// An exception of a registered type is also one of these if it comes from a call: it has the Error
// that an RpcError would have had.
class CalledError {
 public:
  explicit CalledError(Error error) : error_(std::move(error)) {}
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  Error error_;
};

// The Error that came with an exception from a call, be it an RpcError or one of a registered type:
// its worker, function and chain. Null if `thrown` was thrown here. It lives as long as `thrown`.
[[nodiscard]] const Error* error_of(const std::exception& thrown);

// Throws an error as `wait` does: the exception that it carries, else an RpcError.
[[noreturn]] void throw_error(Error error);

// Unwinds the executions of a node that was killed. Not derived from std::exception, so that user
// code rarely swallows it; who does gets it again from every call.
struct NodeKilled {};

}  // namespace rehearsal
