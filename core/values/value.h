#pragma once

#include <string>

#include "core/base/result.h"
#include "core/values/value_containers.h"
#include "core/values/value_io.h"
#include "core/values/value_numbers.h"
#include "core/values/value_structs.h"
#include "core/values/value_torch.h"

// The values that can be sent. `Value<T>` says how a T becomes bytes, tensors and remote
// references, and back. A user's struct is a value if it describes its fields by a hidden friend:
//
//   struct Batch {
//     std::string text;
//     std::vector<int64_t> ids;
//     friend void describe(Batch& batch, auto&& fields) { fields(batch.text, batch.ids); }
//   };
//
// It must be default-constructible; reading fills its fields in the order given. value_structs.h
// says how programs with different versions of a struct talk to each other.
//
// A type that has no fields to describe, or should be sent in another way, gets a Value of its own.
// It may use those of other types, and so itself again:
//
//   template <>
//   struct rehearsal::Value<Path> {
//     static void write(ValueWriter& writer, const Path& path) {
//       Value<std::string>::write(writer, path.text());
//     }
//     static Path read(ValueReader& reader) { return Path(Value<std::string>::read(reader)); }
//     static void sign(WireSignature& signature) { signature += "Path"; }
//   };
//
// `read` throws BadValue for bytes that are no such value, and must take what `write` gave, no byte
// more; one that calls itself holds a Nesting while it does, and one that allocates more than the
// values that it reads says so first (ValueReader::hold). `sign` says what is on the wire,
// equally at all workers. A part of a value can be sent if it is:
//
// - a number, an enum or a length of time                        (value_numbers.h)
// - a container of the standard library                          (value_containers.h)
// - a struct that describes its fields                           (value_structs.h)
// - a tensor, an IValue, a list or dictionary of LibTorch        (value_torch.h)
// - a message of protobuf              (protobuf_value.h, which this header does not include)
// - an RRef<T>                                                   (core/api/rref.h)
//
// A value that cannot be read fails its call alone, with bad_arguments.
namespace rehearsal {

// Text or bytes.
template <>
struct Value<std::string> {
  static void write(ValueWriter& writer, const std::string& text) { writer.text(text); }
  static std::string read(ValueReader& reader) { return reader.text(); }
  static void sign(WireSignature& signature) { signature += "bytes"; }
};

template <>
struct Value<Unit> {
  static void write(ValueWriter& writer, Unit) { writer.count(0); }
  static Unit read(ValueReader& reader) {
    if (reader.count() != 0) throw BadValue("not the unit value");
    return {};
  }
  static void sign(WireSignature& signature) { signature += "unit"; }
};

}  // namespace rehearsal
