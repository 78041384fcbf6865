#include "core/wire/decoded_weight.h"

#include <google/protobuf/io/coded_stream.h>

#include <array>
#include <optional>
#include <string>

#include "core/values/payload.h"
#include "core/wire/wire_parts.h"

namespace rehearsal {
namespace {

// Bytes of memory, about: of a field that is text or a message (the largest is a fork: protobuf's
// message, and ours in a vector that grows), and of a tensor. One that protobuf brings takes
// kTensorFieldWeight. Numbers of their own lie in the message that they belong to. The
// sender of tensors has counted them (core/values/sent_weight.h): an honest message is never too
// heavy.
constexpr uint64_t kFieldBytes = 320;
constexpr uint64_t kTensorBytes = 384;

uint64_t weight_max(const FrameBody& body) {
  return kDecodedBytes + kDecodedRatio * (body.bytes() + body.segments.size() * kWireSegmentBytes);
}

void check(const FrameBody& body, uint64_t weight) {
  if (weight > weight_max(body))
    throw BadEnvelope{"it would take more than " + std::to_string(weight_max(body)) +
                      " bytes of memory, the most that its " + std::to_string(body.bytes()) +
                      " may become"};
}

// A message of messages.proto that has fields of any number, or that leads to one. `numbers` is a
// packed field.
enum class Shape : uint8_t {
  plain,
  numbers,
  envelope,
  call_rest,
  response_rest,
  item,
  end,
  failure,  // whose second field is an error
  goodbye,
  gradients,
  of_pass,
  pass,
  marks,
  mark,
  report,
  loans,
  group_view,
  error,
  payload,
  tensor
};

struct Step {
  Shape from;
  int field;
  Shape to;
};

using enum Shape;
constexpr std::array kSteps = std::to_array<Step>({
    {envelope, 4, item},       {envelope, 6, end},         {envelope, 8, failure},
    {envelope, 13, gradients}, {envelope, 14, of_pass},    {envelope, 15, of_pass},
    {envelope, 16, failure},   {envelope, 17, failure},    {envelope, 19, report},
    {envelope, 21, goodbye},   {envelope, 23, group_view}, {envelope, 26, marks},
    {envelope, 27, of_pass},   {envelope, 28, loans},      {loans, 1, numbers},
    {item, 3, payload},        {item, 4, error},           {end, 3, error},
    {end, 4, payload},         {failure, 1, pass},         {failure, 2, error},
    {goodbye, 1, error},       {gradients, 1, pass},       {gradients, 3, payload},
    {gradients, 5, numbers},   {of_pass, 1, pass},         {pass, 10, numbers},
    {marks, 1, pass},          {marks, 2, mark},           {mark, 2, numbers},
    {report, 4, numbers},      {response_rest, 2, error},  {payload, 2, tensor},
    {tensor, 2, numbers},      {tensor, 6, numbers},       {tensor, 7, tensor},
});

Shape shape_of(Shape from, int field) {
  for (const Step& step : kSteps)
    if (step.from == from && step.field == field) return step.to;
  return plain;
}

Shape shape_of(WireMessage message) {
  switch (message) {
    case WireMessage::envelope:
      return envelope;
    case WireMessage::call_rest:
      return call_rest;
    case WireMessage::response_rest:
      return response_rest;
  }
  return plain;
}

// Adds up what the fields of a message will take.
class Scale {
 public:
  explicit Scale(std::string_view bytes)
      : in_(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size())) {}

  // None: what stands behind some place cannot be counted. No worker writes such bytes.
  std::optional<uint64_t> weigh(Shape shape) {
    if (!add_fields(shape, 0)) return std::nullopt;
    return weight_;
  }

 private:
  // A part of a tensor of a value of a stream is four messages deep, and nothing deeper.
  static constexpr int kDepthMax = 8;

  // False: these are no fields, or deeper ones than there are.
  bool add_fields(Shape shape, int depth) {
    if (depth == kDepthMax) return false;
    while (const uint32_t tag = in_.ReadTag()) {
      if (!add_field(shape_of(shape, static_cast<int>(tag >> 3)), tag & 7, depth)) return false;
    }
    return in_.ConsumedEntireMessage();
  }

  bool add_field(Shape shape, uint32_t type, int depth) {
    uint64_t ignored;
    uint32_t length;
    if (shape == numbers) weight_ += kNumberByteWeight;
    switch (type) {
      case 0:
        return in_.ReadVarint64(&ignored);
      case 1:
        return in_.Skip(8);
      case 2:
        if (!in_.ReadVarint32(&length) || length > uint32_t{INT32_MAX}) return false;
        return add_bytes(shape, static_cast<int>(length), depth);
      case 5:
        return in_.Skip(4);
      default:
        return false;  // Groups: none of ours.
    }
  }

  bool add_bytes(Shape shape, int length, int depth) {
    if (shape == numbers)
      weight_ += static_cast<uint64_t>(length) * kNumberByteWeight;
    else
      weight_ += shape == tensor ? kTensorFieldWeight : kFieldBytes;
    if (shape == numbers || shape == plain) return in_.Skip(length);
    const auto limit = in_.PushLimit(length);
    const bool whole = add_fields(shape, depth + 1);
    in_.PopLimit(limit);
    return whole;
  }

  google::protobuf::io::CodedInputStream in_;
  uint64_t weight_ = 0;
};

// So few bytes cannot be too much: a field has two at least.
bool is_light(size_t bytes) { return bytes * kTensorFieldWeight / 2 <= kDecodedBytes; }

}  // namespace

void check_weight(const FrameBody& body, std::string_view bytes, WireMessage message) {
  if (is_light(bytes.size())) [[likely]]
    return;
  const std::optional<uint64_t> weight = Scale(bytes).weigh(shape_of(message));
  if (!weight) throw BadEnvelope{"its fields cannot be counted"};
  check(body, *weight);
}

void check_tensor_weight(const FrameBody& body, uint64_t tensor_count) {
  check(body, tensor_count * kTensorBytes);
}

}  // namespace rehearsal
