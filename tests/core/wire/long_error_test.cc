// Errors whose texts nobody has bounded before they are written into a message.
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "core/base/frame.h"
#include "core/base/short_text.h"
#include "core/values/value_io.h"
#include "core/wire/message.h"
#include "core/wire/protobuf_codec.h"

namespace rehearsal {
namespace {

const CausalId kLongErrorId{{1}, {2, 3}, 4};

Error long_error() {
  return {.kind = ErrorKind::remote_exception,
          .text = std::string(3'000'000, 't'),
          .worker = std::string(100'000, 'w'),
          .function = std::string(100'000, 'f'),
          .chain = std::vector<std::string>(2'000, std::string(5'000, 'c')),
          .type = std::string(100'000, 'y'),
          .trace = std::string(3'000'000, 'r')};
}

std::vector<Message> messages_with(const Error& error) {
  PassName pass;
  pass.id.epoch = 1;
  const CallId call{kLongErrorId};
  return {Message{Response{.id = call, .value = {}, .error = error, .autograd = {}}},
          Message{Item{.call = call, .value = {}, .error = error, .autograd = {}}},
          Message{End{.call = call, .items = 1, .error = error}},
          Message{ForkConfirm{.fork = ForkId{kLongErrorId}, .error = error}},
          Message{PassFinished{.pass = pass, .error = error}},
          Message{PassFailed{.pass = pass, .error = error}},
          Message{Goodbye{.error = error}}};
}

// Null: it has none.
const Error* error_in(const Message& message) {
  return std::visit(
      [](const auto& content) -> const Error* {
        if constexpr (requires { content.error->kind; })
          return content.error ? &*content.error : nullptr;
        else if constexpr (requires { content.error.kind; })
          return &content.error;
        else
          return nullptr;
      },
      message.content);
}

TEST(LongErrors, AreShortInEveryMessage) {
  // Goal: an error takes a bounded part of any message, and arrives as it would have been if it had
  // been shortened before. Method: one that is long in all its fields, in each message that has
  // one.
  Error expected = long_error();
  shorten(expected);
  const auto codec = make_protobuf_codec();
  for (const Message& message : messages_with(long_error())) {
    SCOPED_TRACE(message_name(message.type()));
    const auto body = codec->encode(message);
    EXPECT_LT(body->envelope.size(), kErrorBytesMax + 1'000);
    const Result<Message> decoded = codec->decode(*body);
    ASSERT_TRUE(decoded.ok()) << decoded.error().text;
    const Error* const error = error_in(decoded.value());
    ASSERT_NE(error, nullptr);
    EXPECT_TRUE(*error == expected);
  }
}

// A field of a protobuf message that holds `bytes`.
std::string field(uint32_t number, const std::string& bytes) {
  std::string text;
  const auto append = [&text](uint64_t varint) {
    for (; varint >= 0x80; varint >>= 7) text += static_cast<char>((varint & 0x7f) | 0x80);
    text += static_cast<char>(varint);
  };
  append(uint64_t{number} << 3 | 2);
  append(bytes.size());
  return text + bytes;
}

TEST(LongErrors, ThatNobodyHasShortenedAreRefused) {
  // Goal: no peer makes a worker keep what no honest worker sends. Method: a second copy of a
  // field, which protobuf merges with the first; just short enough, and longer.
  constexpr uint32_t kGoodbye = 21;
  constexpr uint32_t kErrorOfGoodbye = 1;
  constexpr uint32_t kTextOfError = 2;
  const auto codec = make_protobuf_codec();
  const auto decoded = [&](size_t bytes) {
    FrameBody body = *codec->encode(Message{Goodbye{.error = {.text = "short"}}});
    body.envelope +=
        field(kGoodbye, field(kErrorOfGoodbye, field(kTextOfError, std::string(bytes, 't'))));
    return codec->decode(body);
  };
  const Result<Message> short_enough = decoded(kErrorBytesMax - 100);
  ASSERT_TRUE(short_enough.ok()) << short_enough.error().text;
  EXPECT_EQ(error_in(short_enough.value())->text.size(), kErrorBytesMax - 100);
  const Result<Message> too_long = decoded(kErrorBytesMax + 100);
  ASSERT_FALSE(too_long.ok());
  EXPECT_NE(too_long.error().text.find("an error that nobody has shortened"), std::string::npos)
      << too_long.error().text;
}

TEST(LongErrors, FitBesideTheLargestValue) {
  // Goal: an exception of a registered type, which travels as a value beside its error, fits one
  // frame. Method: as many bytes as ValueWriter lets pass, and an error that is long in all fields.
  Payload largest;
  largest.values.resize(kEnvelopeBytesMax - (1 << 20));
  ValueWriter(largest).finish();
  const auto codec = make_protobuf_codec();
  const CallId call{kLongErrorId};
  for (const Message& message :
       {Message{Response{
            .id = call, .value = largest, .error = long_error(), .autograd = {}, .exception = 1}},
        Message{End{
            .call = call, .items = 1, .error = long_error(), .value = largest, .exception = 1}}}) {
    const auto body = codec->encode(message);
    EXPECT_LE(body->envelope.size(), kEnvelopeBytesMax);
    EXPECT_TRUE(codec->decode(*body).ok());
  }
  largest.values += 'x';
  EXPECT_THROW(ValueWriter(largest).finish(), BadValue);
}

}  // namespace
}  // namespace rehearsal
