#pragma once

#include <google/protobuf/message_lite.h>

#include <concepts>
#include <string>

#include "core/values/value.h"

// Messages of protobuf as values: of every class that protoc generates, and of those with
// `optimize_for = LITE_RUNTIME`. The signature has the message's name only, so programs with
// different versions of it talk to each other as far as protobuf lets them. A message without a
// required field cannot be sent, and bytes that are no such message are refused (bad_arguments).
// Equal messages are written as equal bytes by one program.
namespace rehearsal {

namespace detail {
void write_message(ValueWriter& writer, const google::protobuf::MessageLite& message);
void read_message(ValueReader& reader, google::protobuf::MessageLite& message);
}  // namespace detail

template <std::derived_from<google::protobuf::MessageLite> T>
requires std::default_initializable<T>
struct Value<T> {
  static void write(ValueWriter& writer, const T& message) {
    detail::write_message(writer, message);
  }
  static T read(ValueReader& reader) {
    T message;
    detail::read_message(reader, message);
    return message;
  }
  static void sign(WireSignature& signature) {
    signature += "message ";
    signature += T().GetTypeName();
  }
};

}  // namespace rehearsal
