// The memory of envelopes: what they would become is counted before they are read.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fibers/sanitizer.h"
#include "core/values/value_io.h"
#include "core/wire/message.h"
#include "core/wire/protobuf_codec.h"
#include "tests/core/wire/ready_message.h"

namespace rehearsal {
namespace {

// A field of protobuf with bytes in it.
std::string field(uint32_t number, std::string_view bytes) {
  std::string out;
  const auto append = [&out](uint64_t value) {
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
    out.push_back(static_cast<char>(value));
  };
  append(number << 3 | 2);
  append(bytes.size());
  return out.append(bytes);
}

std::string times(uint64_t count, const std::string& text) {
  std::string all;
  all.reserve(count * text.size());
  for (uint64_t i = 0; i < count; ++i) all += text;
  return all;
}

std::string why_refused(const FrameBody& body) {
  const Result<Message> decoded = make_protobuf_codec()->decode(body);
  return decoded.ok() ? "accepted" : decoded.error().text;
}

constexpr const char* kTooMuch = "malformed message: it would take more than";

// A call or an answer, and then a rest.
std::string with_rest(const Message& message, const std::string& rest) {
  std::string envelope = make_protobuf_codec()->encode(ready(message))->envelope;
  envelope[2] = 1;  // the flag of a rest
  return envelope + rest;
}

struct Attack {
  std::string name;
  std::string envelope;
};

// Eight MiB each.
std::vector<Attack> attacks() {
  constexpr uint64_t kCount = 4 << 20;
  const auto many = [](uint32_t number) { return times(kCount, field(number, "")); };
  const CallId id{{Incarnation{1}, {1, 2}, 3}};
  return {
      {"forks of a call", with_rest(Message{Call{.id = id}}, many(1))},
      {"forks of an answer", with_rest(Message{Response{.id = id}}, many(1))},
      {"workers of an answer's error", with_rest(Message{Response{.id = id}}, field(2, many(5)))},
      {"tensors of an item", field(4, field(3, many(2)))},
      {"forks of an item", field(4, field(3, many(3)))},
      {"parts of an item's tensor", field(4, field(3, field(2, many(7))))},
      {"sizes of an item's tensor",
       field(4, field(3, field(2, field(2, std::string(2 * kCount, '\0')))))},
      {"workers of an item's error", field(4, field(4, many(5)))},
      {"forks of an end", field(6, field(4, many(3)))},
      {"workers of a refused fork", field(8, field(2, many(5)))},
      {"tensors of gradients", field(13, field(3, many(2)))},
      {"unreached tensors", field(13, field(5, std::string(2 * kCount, '\0')))},
      {"passes that are taken back", field(14, field(1, field(10, std::string(2 * kCount, 1))))},
      {"workers of a failed pass", field(17, field(2, many(5)))},
      {"lost workers", field(19, field(4, std::string(2 * kCount, '\0')))},
      {"workers of a goodbye", field(21, field(1, many(5)))},
      {"members of a view", field(23, many(2))},
      {"marks", field(26, many(2))},
      {"loans that are returned", field(28, field(1, std::string(2 * kCount, 1)))},
      {"tensors of a mark", field(26, field(2, field(2, std::string(2 * kCount, '\0'))))},
  };
}

TEST(DecodedWeight, FieldsOfTwoBytesDoNotBecomeHundredsEach) {
  for (const Attack& attack : attacks()) {
    SCOPED_TRACE(attack.name);
    FrameBody body;
    body.envelope = attack.envelope;
    EXPECT_NE(why_refused(body).find(kTooMuch), std::string::npos) << why_refused(body);
  }
}

TEST(DecodedWeight, NothingHidesBehindWhatCannotBeCounted) {
  // Goal: what the count does not go through is refused, for protobuf reads on behind it. Method:
  // eight MiB of tensors behind a group, which protobuf skips as an unknown field, and behind more
  // messages within messages than there are.
  const std::string tensors = field(4, field(3, times(4 << 20, field(2, ""))));
  std::string deep;
  for (int i = 0; i < 8; ++i) deep = field(7, deep);
  for (const std::string& first :
       {std::string("\xA3\x06\xA4\x06"), field(4, field(3, field(2, deep)))}) {
    FrameBody body;
    body.envelope = first + tensors;
    EXPECT_EQ(why_refused(body), "malformed message: its fields cannot be counted");
  }
}

TEST(DecodedWeight, TensorsWithoutElementsDoNotEither) {
  // Undefined ones: eight bytes each in the fixed layout of a call.
  const Message message{Call{.id = CallId{{Incarnation{1}, {1, 2}, 3}}}};
  std::string envelope = make_protobuf_codec()->encode(ready(message))->envelope;
  const uint64_t count = 1 << 20;
  envelope.replace(envelope.size() - 8, 8, reinterpret_cast<const char*>(&count), 8);
  FrameBody body;
  body.envelope = envelope + times(count, std::string("\0\2\0\0\0\0\0\0", 8));
  EXPECT_NE(why_refused(body).find(kTooMuch), std::string::npos) << why_refused(body);
}

// As many as an honest sender may have: none of them is refused.
#if !defined(REHEARSAL_ADDRESS_SANITIZER)
TEST(DecodedWeight, HonestMessagesAreNeverTooHeavy) {
  const auto codec = make_protobuf_codec();
  const CallId id{{Incarnation{1}, {1, 2}, 3}};
  Payload tensors;
  tensors.tensors = std::vector<at::Tensor>(400'000, at::ones({1}));
  Payload forks;
  for (uint64_t i = 0; i < 400'000; ++i)
    forks.forks.push_back({{{Incarnation{1}, {1, 2}, i}, WorkerId{1}, Incarnation{2}, i},
                           ForkId{{Incarnation{1}, {5, 6}, i}}});
  Marks marks{.pass = {}, .marks = {}};
  marks.pass.id.epoch = 1;
  for (uint32_t i = 0; i < 400'000; ++i)
    marks.marks.push_back({AutogradMessageId{{Incarnation{1}, {1, 2}, i}}, {i}});
  for (const Message& message :
       {Message{Call{.id = id, .arguments = tensors}}, Message{Call{.id = id, .arguments = forks}},
        Message{Item{.call = id, .value = tensors, .error = {}, .autograd = {}}},
        Message{Item{.call = id, .value = forks, .error = {}, .autograd = {}}}, Message{marks}}) {
    EXPECT_EQ(why_refused(*codec->encode(ready(message))), "accepted")
        << message_name(message.type());
  }
}

// As ValueWriter makes it, each with its byte among the values; none if that is refused.
std::optional<Payload> payload_of(uint64_t count, const at::Tensor& tensor) {
  Payload payload;
  payload.tensors.assign(count, tensor);
  payload.values.assign(count, '\0');
  try {
    ValueWriter(payload).finish();
    return payload;
  } catch (const BadValue&) {
    return std::nullopt;
  }
}

// The most that are not refused, to within a thousand.
uint64_t most_of(const at::Tensor& tensor) {
  uint64_t accepted = 1'000;
  uint64_t refused = 1 << 21;
  while (refused - accepted > 1'000) {
    const uint64_t middle = (accepted + refused) / 2;
    (payload_of(middle, tensor) ? accepted : refused) = middle;
  }
  return accepted;
}

// Every message that carries tensors.
std::vector<Message> carriers_of(const Payload& payload) {
  const CausalId place{Incarnation{1}, {1, 2}, 3};
  const CallId id{place};
  Gradients gradients{.pass = {},
                      .message = AutogradMessageId{place},
                      .gradients = payload,
                      .autograd = {},
                      .unreached = std::vector<uint32_t>(payload.tensors.size())};
  std::iota(gradients.unreached.begin(), gradients.unreached.end(), 0u);
  gradients.pass.id.epoch = 1;
  return {Message{Call{.id = id, .arguments = payload}},
          Message{Response{.id = id, .value = payload, .error = {}, .autograd = {}}},
          Message{Item{.call = id, .value = payload, .error = {}, .autograd = {}}},
          Message{End{.call = id, .items = 0, .error = Error{}, .value = payload, .exception = 1}},
          Message{std::move(gradients)}};
}

TEST(DecodedWeight, WhatASenderMayWriteNoReceiverFindsTooHeavy) {
  // Goal: a list of tensors that no sender has refused, however long, fences nobody and ends no
  // worker that calls itself. Method: of each kind the longest list, in every message that carries
  // tensors.
  const auto codec = make_protobuf_codec();
  const std::vector<at::Tensor> kinds = {at::Tensor(),
                                         at::empty({0}),
                                         at::ones({1}),
                                         at::scalar_tensor(1, at::kByte),
                                         at::ones({1, 1, 1, 1, 1, 1, 1, 1}),
                                         at::empty({0, int64_t{1} << 30}),
                                         at::ones({2, 2}).to_sparse()};
  for (const at::Tensor& tensor : kinds) {
    const uint64_t count = most_of(tensor);
    SCOPED_TRACE(std::to_string(count) + (tensor.defined() ? " of " + tensor.toString() : ""));
    EXPECT_GT(count, 50'000u);
    const std::optional<Payload> longest = payload_of(count, tensor);
    ASSERT_TRUE(longest);
    for (const Message& message : carriers_of(*longest))
      EXPECT_EQ(why_refused(*codec->encode(message)), "accepted") << message_name(message.type());
  }
}
#endif

}  // namespace
}  // namespace rehearsal
