#include "core/values/protobuf_value.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/wire/messages.pb.h"
#include "tests/core/values/value_round_trip.h"

namespace rehearsal {
namespace {

using google::protobuf::Struct;
using NamePart = google::protobuf::UninterpretedOption::NamePart;  // has required fields

static_assert(Sendable<Struct>);
static_assert(Sendable<std::vector<std::optional<wire::Error>>>);
static_assert(!Sendable<google::protobuf::Message>);
static_assert(!Sendable<google::protobuf::MessageLite>);

Struct some_struct() {
  Struct value;
  for (const char* name : {"c", "a", "b", "d", "e"})
    (*value.mutable_fields())[name].set_string_value(std::string("value of ") + name);
  return value;
}

TEST(ProtobufValue, MessagesComeBack) {
  const auto back = read<Struct>(written(some_struct()));
  EXPECT_EQ(back.fields_size(), 5);
  EXPECT_EQ(back.fields().at("d").string_value(), "value of d");
  wire::Error lite;
  lite.set_text("text");
  using Errors = std::vector<std::pair<std::string, wire::Error>>;
  EXPECT_EQ(read<Errors>(written(Errors{{"one", lite}})).at(0).second.text(), "text");
  EXPECT_EQ(read<wire::Error>(written(wire::Error())).text(), "");
}

TEST(ProtobufValue, EqualMessagesHaveEqualBytes) {
  // Maps are written in the order of their keys.
  Struct other;
  for (const char* name : {"e", "d", "c", "b", "a"})
    (*other.mutable_fields())[name].set_string_value(std::string("value of ") + name);
  EXPECT_EQ(written(other).values, written(some_struct()).values);
}

TEST(ProtobufValue, TheSignatureIsTheMessagesName) {
  EXPECT_EQ(signature_of<Struct>(), "message google.protobuf.Struct");
  EXPECT_EQ(signature_of<std::vector<wire::Error>>(), "[message rehearsal.wire.Error]");
}

TEST(ProtobufValue, AMessageWithoutARequiredFieldIsRefusedOnBothSides) {
  NamePart part;
  part.set_name_part("name");
  EXPECT_EQ(refusal_to_write(part),
            "a message 'google.protobuf.UninterpretedOption.NamePart' without its required fields "
            "(is_extension) cannot be sent");
  EXPECT_EQ(refusal<NamePart>(written(part.SerializePartialAsString())),
            "bytes that are no message 'google.protobuf.UninterpretedOption.NamePart'");
  part.set_is_extension(true);
  EXPECT_EQ(read<NamePart>(written(part)).name_part(), "name");
}

TEST(ProtobufValue, BytesThatAreNoMessageAreRefused) {
  EXPECT_EQ(refusal<Struct>("\x02\x0a\x05"), "bytes that are no message 'google.protobuf.Struct'");
  EXPECT_EQ(refusal<Struct>("\x02\x0a"), "the values end too early");
}

TEST(ProtobufValue, AMessageLargerThanAnEnvelopeIsRefused) {
  wire::Error large;
  large.set_text(std::string(65 << 20, 'x'));
  EXPECT_NE(refusal_to_write(large).find("is too large: large data travels in tensors"),
            std::string::npos);
}

TEST(ProtobufValue, EveryTruncationAndEveryChangedByteIsAnErrorOrAValue) {
  // Text that is no UTF-8 is refused too; protobuf says so on standard error each time.
  google::protobuf::LogSilencer silence;
  expect_only_bad_values(some_struct());
  NamePart part;
  part.set_name_part("name");
  part.set_is_extension(true);
  expect_only_bad_values(part);
}

}  // namespace
}  // namespace rehearsal
