#pragma once

#include "core/values/value.h"

namespace rehearsal {

class OutgoingStream;  // core/calls/outgoing_stream.h

namespace detail {

// Sends a value when the caller has room for it. Parks. Throws RpcError.
void write_value(OutgoingStream& stream, Payload&& value);

// For the stream's values; null: its caller has no map for this worker.
[[nodiscard]] const DeviceMap* devices_of(const OutgoingStream& stream);
[[nodiscard]] DeviceWay lend_to_reader(const OutgoingStream& stream);

}  // namespace detail

// A function writes the values of its answer to it, one after another, if that is a stream. A
// registered function that takes a StreamWriter<T>& first, behind a CallContext& if it takes one,
// is given it; it is not part of its wire signature. The stream ends when the function returns, or
// with the error that it throws.
//
//   void count_up(StreamWriter<int64_t>& out, int64_t end) {
//     for (int64_t number = 0; number < end; ++number) out.write(number);
//   }
//
// May be kept no longer than the function runs.
template <class T>
class StreamWriter {
 public:
  static_assert(Sendable<T>, "the values of a stream must be of a type that can be sent");

  explicit StreamWriter(OutgoingStream& stream) : stream_(stream) {}
  StreamWriter(const StreamWriter&) = delete;
  StreamWriter& operator=(const StreamWriter&) = delete;

  // Sends a value. Parks while as many are on their way as the caller has room for; a method gives
  // up its value's monitor meanwhile. Throws RpcError: of kind cancelled once the caller has given
  // up or is lost, of kind bad_arguments for a value that cannot be sent.
  void write(const T& value) {
    Payload payload;
    try {
      ValueWriter writer(payload);
      Value<T>::write(writer, value);
      writer.finish(detail::devices_of(stream_), {"the device map of the stream's caller"},
                    detail::lend_to_reader(stream_));
    } catch (const BadValue& bad) {
      throw RpcError({.kind = ErrorKind::bad_arguments, .text = bad.what()});
    }
    detail::write_value(stream_, std::move(payload));
  }

 private:
  OutgoingStream& stream_;
};

}  // namespace rehearsal
