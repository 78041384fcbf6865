#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/values/value.h"
#include "core/wire/message.h"
#include "core/wire/protobuf_codec.h"
#include "tests/core/wire/every_message.h"
#include "tests/core/wire/ready_message.h"

namespace rehearsal {
namespace {

// Draws from one seed: the same bytes on every machine.
class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(seed) {}
  uint64_t below(uint64_t bound) { return mix(seed_, ++count_) % bound; }

 private:
  const uint64_t seed_;
  uint64_t count_ = 0;
};

const CallId kCall{CausalId{{7}, {7, ~uint64_t{7}}, 7}};

// A body with one thing changed: bytes of the envelope, or its segments.
FrameBody mutated(const FrameBody& good, const FrameBody& other, Draws& draws) {
  FrameBody body = good;
  std::string& bytes = body.envelope;
  const uint64_t changes = 1 + draws.below(4);
  for (uint64_t i = 0; i < changes; ++i) {
    const uint64_t at = bytes.empty() ? 0 : draws.below(bytes.size());
    const auto byte = static_cast<char>(draws.below(256));
    switch (draws.below(8)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.insert(at, 1, byte);
        break;
      case 2:
        bytes.erase(at, 1 + draws.below(4));
        break;
      case 3:
        bytes += other.envelope.substr(draws.below(other.envelope.size() + 1));
        break;
      case 4: {
        if (body.segments.empty()) break;
        Segment& segment = body.segments[draws.below(body.segments.size())];
        segment.bytes -= std::min<uint64_t>(segment.bytes, 1 + draws.below(8));
        break;
      }
      case 5:
        body.segments.resize(draws.below(body.segments.size() + 1));
        break;
      case 6:
        body.segments.insert(body.segments.end(), other.segments.begin(), other.segments.end());
        break;
      default:
        if (!bytes.empty()) bytes[at] = byte;
    }
  }
  return body;
}

// As the functions that are called would, if what is in the tensors is accepted.
void read_tensors(Message& message) {
  Payload* payload = nullptr;
  if (auto* call = std::get_if<Call>(&message.content)) payload = &call->arguments;
  if (auto* response = std::get_if<Response>(&message.content)) payload = &response->value;
  if (auto* item = std::get_if<Item>(&message.content)) payload = &item->value;
  if (payload == nullptr) return;
  payload->values.assign(payload->tensors.size(), '\0');
  ValueReader reader(*payload);
  for (size_t left = payload->tensors.size(); left > 0; --left) {
    try {
      const at::Tensor tensor = reader.tensor();
      if (!tensor.defined() || tensor.numel() > 1000) continue;
      if (tensor.is_quantized()) (void)tensor.dequantize();
      (void)(tensor.layout() == c10::kStrided ? tensor.clone() : tensor.to_dense());
    } catch (const BadValue&) {
    }
  }
}

uint64_t memory_in_use() { return mallinfo2().uordblks; }

TEST(CodecFuzz, AHundredThousandMutatedAndRandomBodiesGiveAnErrorOrAMessage) {
  // Mutate every kind of message, and draw whole bodies; nothing may crash, throw or be kept.
  const std::unique_ptr<Codec> codec = make_protobuf_codec();
  std::vector<std::shared_ptr<const FrameBody>> good;
  for (const Message& message : every_message()) good.push_back(codec->encode(message));
  Draws draws(20260101);
  uint64_t accepted = 0;
  uint64_t before = 0;
  for (int round = 0; round < 100000; ++round) {
    if (round == 1000) before = memory_in_use();
    FrameBody body;
    if (round % 4 == 3) {
      for (uint64_t left = draws.below(120); left > 0; --left)
        body.envelope.push_back(static_cast<char>(draws.below(256)));
    } else {
      const FrameBody& first = *good[draws.below(good.size())];
      body = mutated(first, *good[draws.below(good.size())], draws);
    }
    Result<Message> decoded = codec->decode(body);
    if (!decoded.ok()) {
      EXPECT_EQ(decoded.error().kind, ErrorKind::protocol);
      continue;
    }
    ++accepted;
    if (round % 8 == 0) read_tensors(decoded.value());
    (void)causal_id_of(decoded.value());
    EXPECT_NE(decoded.value().type(), 0u);
  }
  EXPECT_GT(accepted, 1000u);
  EXPECT_LT(accepted, 99000u);
  EXPECT_LT(memory_in_use(), before + (4u << 20));
}

TEST(CodecFuzz, AcceptedBodiesEncodeAgain) {
  // An accepted body is a message like any other: encode it, decode it, compare the bytes.
  const std::unique_ptr<Codec> codec = make_protobuf_codec();
  std::vector<std::shared_ptr<const FrameBody>> good;
  for (const Message& message : every_message()) good.push_back(codec->encode(message));
  Draws draws(7);
  for (int round = 0; round < 20000; ++round) {
    const FrameBody& first = *good[draws.below(good.size())];
    Result<Message> decoded = codec->decode(mutated(first, first, draws));
    if (!decoded.ok()) continue;
    const auto once = codec->encode(ready(decoded.value()));
    Result<Message> again = codec->decode(*once);
    ASSERT_TRUE(again.ok()) << again.error().text;
    ASSERT_EQ(codec->encode(ready(again.value()))->envelope, once->envelope);
  }
}

// A body with this envelope and a segment of so many bytes, decoded.
Result<Message> decode_envelope(std::string envelope, uint64_t segment_bytes) {
  static const std::unique_ptr<Codec> codec = make_protobuf_codec();
  FrameBody body;
  body.envelope = std::move(envelope);
  if (segment_bytes > 0) {
    auto memory = std::make_shared<std::vector<std::byte>>(segment_bytes);
    body.segments.push_back({memory, memory->data(), segment_bytes, {}});
  }
  return codec->decode(body);
}

// The fields of a response before its tensors: form, flags, bytes of values, id, tensor count.
std::string response_fields(uint16_t flags, uint32_t value_bytes, uint64_t tensor_count) {
  std::string bytes(48, '\0');
  bytes[0] = 2;
  std::memcpy(bytes.data() + 2, &flags, sizeof flags);
  std::memcpy(bytes.data() + 4, &value_bytes, sizeof value_bytes);
  std::memcpy(bytes.data() + 40, &tensor_count, sizeof tensor_count);
  return bytes;
}

// A tensor's entry: type, flags, dimensions, sizes.
std::string tensor_entry(uint8_t type, uint8_t flags, const std::vector<int64_t>& sizes) {
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(type);
  bytes[1] = static_cast<char>(flags);
  bytes[2] = static_cast<char>(sizes.size());
  bytes.append(reinterpret_cast<const char*>(sizes.data()), sizes.size() * sizeof(int64_t));
  return bytes;
}

// A response with one tensor, and an item of a stream with the same one as protobuf.
Result<Message> decode_tensor(const std::string& entry, uint64_t segment_bytes) {
  return decode_envelope(response_fields(0, 0, 1) + entry, segment_bytes);
}
Result<Message> decode_protobuf_tensor(const std::string& entry, uint64_t segment_bytes) {
  const auto field = [](int number, const std::string& bytes) {
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
  };
  return decode_envelope(field(4, field(3, field(2, entry))), segment_bytes);  // Item, value.
}

TEST(CodecFuzz, EveryTypeNumberAndGradientFlagIsAnErrorOrATensor) {
  // Types 0 … 126 with one element, with and without requires_grad, for segments of 0 … 32 bytes,
  // in fixed fields and in protobuf: both say the same.
  uint64_t accepted = 0;
  for (char type = 0; type >= 0 && type < 127; ++type)
    for (const char gradient : {0, 1})
      for (const uint64_t bytes : {0, 1, 2, 4, 8, 16, 32}) {
        const std::string entry{0x08, type, 0x12, 0x01, 0x01, 0x18, gradient};
        Result<Message> first = decode_tensor(
            tensor_entry(static_cast<uint8_t>(type), static_cast<uint8_t>(gradient), {1}), bytes);
        Result<Message> second = decode_protobuf_tensor(entry, bytes);
        ASSERT_EQ(first.ok(), second.ok()) << int(type) << " " << bytes;
        if (first.ok()) {
          ++accepted;
          continue;
        }
        EXPECT_EQ(first.error().kind, ErrorKind::protocol);
        EXPECT_EQ(first.error().text, second.error().text);
      }
  EXPECT_GT(accepted, 20u);
}

TEST(CodecFuzz, EveryTruncationOfACallOrResponseIsAnError) {
  // Calls and responses with values, tensors and a rest, cut short anywhere before the rest; and
  // one byte longer than they say.
  const std::unique_ptr<Codec> codec = make_protobuf_codec();
  Payload plain = payload_of_every_form();
  plain.forks.clear();
  for (const Message& message :
       {Message{Call{.id = kCall, .arguments = plain, .time_left = Duration(5)}},
        Message{Response{kCall, plain, {}, {}}}}) {
    FrameBody body = *codec->encode(ready(message));
    const std::string whole = body.envelope;
    for (size_t size = 0; size < whole.size(); ++size) {
      body.envelope = whole.substr(0, size);
      ASSERT_FALSE(codec->decode(body).ok()) << size;
    }
    body.envelope = whole + '\0';
    ASSERT_FALSE(codec->decode(body).ok());
    body.envelope = whole;
    ASSERT_TRUE(codec->decode(body).ok());
  }
}

TEST(CodecFuzz, FixedFieldsThatCannotBeAreRefused) {
  // Unknown flags, more values or tensors than there are bytes, unknown kinds, negative times, a
  // rest that is none.
  const auto refused = [](const std::string& envelope) {
    const Result<Message> decoded = decode_envelope(envelope, 0);
    return decoded.ok() ? std::string("accepted") : decoded.error().text;
  };
  EXPECT_EQ(refused(response_fields(0, 0, 0)), "accepted");
  EXPECT_EQ(refused(response_fields(2, 0, 0)), "malformed message: unknown flags");
  EXPECT_EQ(refused(response_fields(0, 1, 0)), "malformed message: it ends too early");
  EXPECT_EQ(refused(response_fields(0, UINT32_MAX, 0)), "malformed message: it ends too early");
  EXPECT_EQ(refused(response_fields(0, 0, UINT64_MAX)),
            "malformed message: more tensors than bytes");
  EXPECT_EQ(refused(response_fields(0, 0, 0) + "x"), "malformed message: bytes behind its end");
  EXPECT_EQ(refused(response_fields(1, 0, 0) + "x"), "malformed message: its rest is no protobuf");
  EXPECT_EQ(refused(response_fields(1, 0, 0) + std::string("\x20\x01")),
            "malformed message: an exception without error");
  EXPECT_EQ(refused("\x32\x02\x28\x01"), "malformed message: an exception without error");
  EXPECT_EQ(refused(response_fields(0, 0, 1) + tensor_entry(6, 8, {1})),
            "malformed message: tensor flags");
  EXPECT_EQ(refused(response_fields(0, 0, 1) + tensor_entry(6, 4, {1})),
            "malformed message: a lent tensor that goes to no device");
  EXPECT_EQ(refused(response_fields(0, 0, 1) + tensor_entry(6, 2, {})), "accepted");
  const auto with_form = [](uint8_t form, const std::vector<int64_t>& sizes) {
    std::string entry = tensor_entry(6, 0, sizes);
    entry[4] = static_cast<char>(form);
    return response_fields(0, 0, 1) + entry;
  };
  EXPECT_EQ(refused(with_form(9, {})), "malformed message: tensor form");
  EXPECT_EQ(refused(with_form(1, {1})), "malformed message: it ends too early");
  EXPECT_EQ(refused(with_form(2, {1}) + std::string(8, '\0') + with_form(2, {1}).substr(48)),
            "malformed message: a part of a tensor that has parts");
  EXPECT_EQ(refused(with_form(7, {1}) + std::string(16, '\0')),
            "malformed message: tensor too large, or of a type that its form has not");
  EXPECT_EQ(refused(with_form(1, {0}) + std::string(8, '\1')),
            "malformed message: a tensor whose parts do not fit each other");

  const std::unique_ptr<Codec> codec = make_protobuf_codec();
  const std::string call = codec->encode(Message{Call{.id = kCall}})->envelope;
  std::string changed = call;
  changed[1] = 4;
  EXPECT_EQ(refused(changed), "malformed message: call kind");
  changed = call;
  changed[47] = static_cast<char>(0x80);  // the highest byte of the time left
  EXPECT_EQ(refused(changed), "malformed message: time left");
}

TEST(CodecFuzz, SizesThatOverflowAreRefused) {
  // 2^62 · 2^62, a negative size, huge dimensions beside a zero, and 65 dimensions.
  constexpr int64_t kHuge = int64_t{1} << 62;
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{kHuge, kHuge}, std::vector<int64_t>{-1}, std::vector<int64_t>{-1, 0},
        std::vector<int64_t>{0, kHuge, kHuge}, std::vector<int64_t>(65, 1)}) {
    const Result<Message> decoded = decode_tensor(tensor_entry(6, 0, sizes), 4);
    ASSERT_FALSE(decoded.ok());
    EXPECT_NE(decoded.error().text.find("tensor too large"), std::string::npos);
  }
}

TEST(CodecFuzz, SizesThatOverflowAreRefusedInProtobufToo) {
  // 2^62 · 2^62, a negative size, huge dimensions beside a zero, and 65 dimensions.
  const std::string two_to_62 = "\x80\x80\x80\x80\x80\x80\x80\x80\x40";
  const std::string minus_one = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  const auto sizes = [](const std::string& packed) {
    return std::string{0x08, 0x06, 0x12, static_cast<char>(packed.size())} + packed;
  };
  for (const std::string& packed :
       {two_to_62 + two_to_62, minus_one, minus_one + std::string(1, '\0'),
        std::string(1, '\0') + two_to_62 + two_to_62, std::string(65, '\x01')}) {
    Result<Message> decoded = decode_protobuf_tensor(sizes(packed), 4);
    ASSERT_FALSE(decoded.ok());
    EXPECT_NE(decoded.error().text.find("tensor too large"), std::string::npos);
  }
}

}  // namespace
}  // namespace rehearsal
