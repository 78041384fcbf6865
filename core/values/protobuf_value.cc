#include "core/values/protobuf_value.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstdint>

#include "core/base/frame.h"

namespace rehearsal::detail {

void write_message(ValueWriter& writer, const google::protobuf::MessageLite& message) {
  if (!message.IsInitialized())
    throw BadValue("a message '" + message.GetTypeName() + "' without its required fields (" +
                   message.InitializationErrorString() + ") cannot be sent");
  if (message.ByteSizeLong() > kEnvelopeBytesMax)
    throw BadValue("a message '" + message.GetTypeName() + "' of " +
                   std::to_string(message.ByteSizeLong()) +
                   " bytes is too large: large data travels in tensors; " +
                   std::to_string(kEnvelopeBytesMax) + " are allowed in a message");
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);  // maps
    message.SerializeWithCachedSizes(&out);
  }
  writer.text(bytes);
}

void read_message(ValueReader& reader, google::protobuf::MessageLite& message) {
  if (message.ParsePartialFromString(reader.text()) && message.IsInitialized()) return;
  throw BadValue("bytes that are no message '" + message.GetTypeName() + "'");
}

}  // namespace rehearsal::detail
