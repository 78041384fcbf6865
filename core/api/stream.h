#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "core/api/caller.h"
#include "core/base/future.h"

namespace rehearsal {

// How many values of a stream may be on their way to a caller that names no other number.
inline constexpr uint64_t kStreamCredit = 16;

// The source of a Stream<T>: a call that is answered by many values. Off the strand. When it dies
// the call is given up; that posts, and never parks.
class StreamReader {
 public:
  // Starts the call. Throws RpcError (bad_arguments) for no credit.
  StreamReader(std::shared_ptr<const Caller> caller, Draft&& draft, uint64_t credit);
  ~StreamReader();
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;

  // The next value, encoded. Parks.
  [[nodiscard]] NextValue next();
  // The same; `taker` runs on the strand; never if the node has ended by then.
  void next(ValueTaker taker);

  // Gives the call up.
  void cancel();

  [[nodiscard]] const Caller& caller() const { return *caller_; }

 private:
  const std::shared_ptr<const Caller> caller_;
  const CallId id_;
  const std::shared_ptr<IncomingStream> stream_;
};

// The values that a call gives one after another, in the order in which its function writes them:
//
//   for (const Batch& batch : worker.rpc_stream("loader", &read_batches, epoch)) train(batch);
//
// The function runs ahead of whoever reads by as many values as the call has credit for
// (Calls::with_credit). The call's time-out is that of the whole stream, until its last value has
// arrived. Values that had arrived before a stream failed are given first, then its error.
//
// Can be moved, not copied: there is one reader. When it dies the call is given up: its function
// gets `cancelled` from its next write, and references in values that are still on their way are
// released. Reading in an autograd context: every value that was sent counts, also if it was not
// read.
template <class T>
class Stream {
 public:
  using value_type = T;

  // Empty; only to be assigned to.
  Stream() = default;
  explicit Stream(std::unique_ptr<StreamReader> reader) : reader_(std::move(reader)) {}

  [[nodiscard]] bool valid() const { return reader_ != nullptr; }

  // The next value; none when the stream has ended. Parks. Throws RpcError: why the stream failed,
  // also when it is asked again.
  [[nodiscard]] std::optional<T> next() {
    std::optional<Answer> value = reader().next().or_throw();
    if (!value) return std::nullopt;
    return reader_->caller().template decode<T>(std::move(*value)).or_throw();
  }

  // The same, without parking. May be called again before it is complete: values come in the order
  // in which they were asked for. A future that is cancelled loses its value.
  [[nodiscard]] Future<std::optional<T>> next_async();

  // Gives up the values that have not arrived; any thread. Then `next` fails with `cancelled`.
  void cancel() { reader().cancel(); }

  // For `for (const T& value : stream)`. Starting and going on park, and throw RpcError.
  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(Stream& stream) : stream_(&stream), value_(stream.next()) {}
    const T& operator*() const { return *value_; }
    const T* operator->() const { return &*value_; }
    Iterator& operator++() {
      value_ = stream_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !value_.has_value(); }

   private:
    Stream* stream_;
    std::optional<T> value_;
  };
  [[nodiscard]] Iterator begin() { return Iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  [[nodiscard]] StreamReader& reader() const {
    if (reader_ == nullptr)
      throw RpcError({.kind = ErrorKind::bad_arguments, .text = "the stream is empty"});
    return *reader_;
  }

  std::unique_ptr<StreamReader> reader_;
};

template <class T>
Future<std::optional<T>> Stream<T>::next_async() {
  const Caller& caller = reader().caller();
  const std::shared_ptr<NodeStrand> strand = caller.strand();
  const CausalId id = strand->running().next_id();
  Promise<std::optional<T>> promise(strand);
  promise.future().core()->work_in(StreamSet::current(strand->devices()));
  reader_->next([&caller, strand, id, promise](NextValue&& next) {
    if (!next.ok()) return promise.complete(std::move(next.error()));
    if (!next.value()) return promise.complete(std::optional<T>());
    // User code reads the value: off the strand.
    strand->run_continuation(
        {.id = id, .streams = promise.future().core()->streams()},
        [&caller, promise, value = std::move(*std::move(next).value())]() mutable {
          Result<T> read = caller.decode<T>(std::move(value));
          if (!read.ok()) return promise.complete(std::move(read.error()));
          promise.complete(std::optional<T>(std::move(read).value()));
        });
  });
  return promise.future();
}

}  // namespace rehearsal
