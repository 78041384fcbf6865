#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/frame.h"
#include "core/base/ids.h"
#include "core/values/sent_tensor.h"
#include "core/wire/message.h"

// The parts that messages share, to and from protobuf (messages.proto): ids, errors, payloads and
// what autograd adds. Reading checks every field and throws BadEnvelope.
namespace rehearsal {

namespace wire {
class Autograd;
class CausalId;
class Error;
class Fork;
class Pass;
class Payload;
class RRefId;
class TraceContext;
}  // namespace wire

// Thrown while decoding; the codec makes an Error of it.
struct BadEnvelope {
  std::string text;
};

void write(wire::CausalId& to, const CausalId& id);
[[nodiscard]] CausalId read(const wire::CausalId& from);
// As one of the ids that a CausalId names.
template <class To>
[[nodiscard]] To read(const wire::CausalId& from) {
  return To{read(from)};
}

void write(wire::RRefId& to, const RRefId& id);
[[nodiscard]] RRefId read(const wire::RRefId& from);

void write(wire::Fork& to, const Fork& fork);
[[nodiscard]] Fork read(const wire::Fork& from);

// Without the exception that it carries: a response has that as its value. However long its texts
// are, it takes less than kErrorBytesMax (short_text.h); one that takes more is not read.
void write(wire::Error& to, const Error& error);
[[nodiscard]] Error read(const wire::Error& from);

void write(wire::Autograd& to, const AutogradMetadata& metadata);
[[nodiscard]] AutogradMetadata read(const wire::Autograd& from);

void write(wire::TraceContext& to, const TraceContext& context);
[[nodiscard]] TraceContext read(const wire::TraceContext& from);

void write(wire::Pass& to, const PassName& pass);
[[nodiscard]] PassName read(const wire::Pass& from);

// The payload is ready to be sent: its tensors are taken apart. Their elements are added to
// `segments`.
void write(wire::Payload& to, const Payload& payload, std::vector<Segment>& segments);
// Takes its bytes. Every segment must have its tensor.
[[nodiscard]] Payload read(wire::Payload& from, const std::vector<Segment>& segments);

// Adds a tensor's elements, if it has any of its own.
void add_segment(const SentTensor& tensor, std::vector<Segment>& segments);

// Gives the tensors of a message their segments, one after another.
class TensorReader {
 public:
  explicit TensorReader(const std::vector<Segment>& segments) : segments_(segments) {}

  // Shares its segment.
  [[nodiscard]] at::Tensor read(const TensorEntry& entry, c10::IntArrayRef sizes);
  // One that is not dense. Its parts have been read; their contents are not looked at.
  [[nodiscard]] at::Tensor read(const TensorEntry& entry, c10::IntArrayRef sizes,
                                c10::IntArrayRef numbers, std::vector<at::Tensor> parts);
  // Of the tensor that is read next, which is no part.
  void note_place(const TensorPlace& place);
  // All tensors have been read: what they have to do with devices. Null: nothing.
  [[nodiscard]] std::shared_ptr<DeviceTensors> take_devices();
  // Throws if there is a segment left.
  void finish() const;

 private:
  Segment take(uint64_t bytes);
  Segment take_any();
  at::Tensor read_lent(c10::IntArrayRef sizes, c10::ScalarType dtype);

  const std::vector<Segment>& segments_;
  size_t next_ = 0;
  size_t tensors_ = 0;
  std::vector<TensorPlace> places_;
  AllBorrowed borrowed_;
};

}  // namespace rehearsal
