#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "core/values/payload.h"

// How values become a payload and come back out of it: what each `Value<T>` (value.h) is written
// with.
namespace rehearsal {

class DeviceMap;  // core/values/device_map.h

// Bytes do not fit the type they are read as. Becomes bad_arguments.
class BadValue : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// A field of a versioned struct that a newer program sent and this one does not know
// (value_structs.h).
struct UnknownField {
  std::string bytes;
  std::vector<at::Tensor> tensors;
  std::vector<std::shared_ptr<RRefHandle>> handles;
};
struct UnknownFields {
  std::vector<UnknownField> fields;
};

// One field of a versioned struct, whatever its type.
struct FieldAccess {
  void* field;
  void (*write)(class ValueWriter& writer, const void* field);
  void (*read)(class ValueReader& reader, void* field);
};

// How an error calls the map that says where a tensor on a device goes.
struct MapName {
  std::string_view map = "the device map for its receiver";
  std::string_view worker = {};  // whose name follows; empty: none
};

// How many structs, dictionaries and lists of any type may lie in each other.
inline constexpr int kNestingMax = 64;

// Appends values to a payload. Throws BadValue for what cannot be sent.
class ValueWriter {
 public:
  explicit ValueWriter(Payload& payload) : payload_(payload) {}
  // Writes a part of what `outer` writes into a payload of its own, as deep as `outer` is.
  ValueWriter(Payload& payload, const ValueWriter& outer)
      : payload_(payload), depth_(outer.depth_) {}

  void count(uint64_t number);             // LEB128
  void integer(int64_t number);            // zigzag
  void unsigned_integer(uint64_t number);  // the same bytes, up to 2^64 - 1
  void floating(double number);
  void text(std::string_view bytes);
  // Elements that nobody keeps alive (at::from_blob without a deleter) are copied here and now. The
  // elements of all others are shared until the message is acknowledged.
  void tensor(const at::Tensor& tensor);
  void handle(std::shared_ptr<RRefHandle> handle);
  void ivalue(const c10::IValue& value);
  // The bytes that another writer wrote, which has neither tensors nor references.
  void written(std::string_view bytes) { payload_.values.append(bytes); }
  // The fields one after another, each with its lengths, then those that were kept.
  void versioned(std::span<const FieldAccess> fields, const UnknownFields* kept);

  // Makes the payload ready to be sent: its tensors are taken apart here, where LibTorch may throw.
  // Throws BadValue if there is more than one message can hold, whichever message carries it, or
  // than its receiver would take; or if a tensor cannot be encoded. Tensors of devices go where the
  // payload's places say, else where `devices` says (device_map.h), whose errors call it
  // `name`; null: it has no entries.
  void finish(const DeviceMap* devices = nullptr, MapName name = {},
              const DeviceWay& lend = {}) const;

 private:
  friend class Nesting;
  void ivalue_list(const c10::IValue& value);
  void ivalue_dict(const c10::IValue& value);
  void type(const c10::Type& type);
  void place_tensors(const DeviceMap* devices, MapName name) const;
  void send_tensors(const DeviceMap* devices, MapName name, const DeviceWay& lend) const;

  Payload& payload_;
  int depth_ = 0;
};

// Takes values from a payload, in order; checks every byte. Throws BadValue. Each element of a
// sequence takes at least one byte, so that a count is bounded by what is left. But a byte may
// become much: what the values will hold in memory is counted before it is allocated (`hold`), and
// is bounded by Payload::decoded_bytes and kDecodedRatio.
class ValueReader {
 public:
  // That the allocator needs for each block of memory, about.
  static constexpr uint64_t kBlockBytes = 24;

  explicit ValueReader(Payload& payload);

  uint64_t count();
  uint64_t element_count();  // a count that the remaining bytes can hold
  bool boolean();
  int64_t integer();
  uint64_t unsigned_integer();
  double floating();
  std::string text();
  // Checks what its structure alone cannot say: that the indices of a sparse tensor are in range.
  at::Tensor tensor();
  std::shared_ptr<RRefHandle> handle();
  c10::IValue ivalue();
  // Reads as many fields as were sent; the others stay as they are. Those that are unknown go to
  // `unknown`; null: they are refused. `name` is the struct's, for errors.
  void versioned(std::string_view name, std::span<const FieldAccess> fields,
                 UnknownFields* unknown);

  // The values will hold `count` times so many bytes of memory more. Each Value<T> that allocates
  // says so, before it does. Throws BadValue beyond what the payload may hold.
  void hold(uint64_t count, uint64_t bytes) {
    uint64_t more;
    if (__builtin_mul_overflow(count, bytes, &more) || more > room_) [[unlikely]]
      refuse_size();
    room_ -= more;
  }
  // The same for one block of memory of `count` elements; none: there is no block.
  void hold_block(uint64_t count, uint64_t bytes) {
    if (count == 0) return;
    hold(1, kBlockBytes);
    hold(count, bytes);
  }

  // Throws unless all has been read.
  void finish() const;

  // For errors: the next argument of a call is read; what was wrong with it.
  void begin_argument() { ++argument_; }
  [[nodiscard]] BadValue in_argument(const BadValue& bad) const;

 private:
  friend class Nesting;
  // Where in the payload something lies or ends.
  struct Place {
    size_t value = 0;
    size_t tensor = 0;
    size_t handle = 0;
    bool operator==(const Place&) const = default;
  };

  c10::IValue ivalue_list(c10::TypePtr element_type);
  c10::IValue ivalue_dict(c10::TypePtr key_type, c10::TypePtr value_type);
  c10::TypePtr type();
  uint8_t byte();
  std::string_view take(uint64_t bytes);
  Place field_end();
  [[nodiscard]] uint64_t room_at_first() const {
    return payload_.decoded_bytes + kDecodedRatio * payload_.values.size();
  }
  [[noreturn]] void refuse_size() const;
  void field(const FieldAccess& access);
  UnknownField unknown_field();

  Payload& payload_;
  Place at_;
  Place end_;      // of the field that is read, or of all
  uint64_t room_;  // bytes of memory that the values may still hold
  int depth_ = 0;
  int argument_ = 0;
};

// While it lives, values are one level deeper. Throws BadValue beyond kNestingMax.
class Nesting {
 public:
  explicit Nesting(ValueWriter& writer) : Nesting(writer.depth_) {}
  explicit Nesting(ValueReader& reader) : Nesting(reader.depth_) {}
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  ~Nesting() { --depth_; }

 private:
  explicit Nesting(int& depth);
  int& depth_;
};

// The text that says what is on the wire. Types with equal texts can be sent for each other.
class WireSignature {
 public:
  WireSignature& operator+=(std::string_view text) {
    text_ += text;
    return *this;
  }
  WireSignature& operator+=(char letter) {
    text_ += letter;
    return *this;
  }

  // A struct may hold itself: false if this one is being written already; then a reference to it
  // has been written.
  [[nodiscard]] bool begin_struct(std::type_index type);
  void end_struct();

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::vector<std::type_index> open_;
};

template <class T>
struct Value;  // Undefined: this type cannot be sent.

template <class T>
concept Sendable = requires(ValueWriter& writer, ValueReader& reader, const T& value,
                            WireSignature& signature) {
  Value<T>::write(writer, value);
  { Value<T>::read(reader) } -> std::same_as<T>;
  Value<T>::sign(signature);
};

namespace detail {

// Says what to do where a value would have to be sent that cannot be; the type is in the compiler's
// next lines.
template <class T>
struct CheckedValue {
  static constexpr bool holds = Sendable<T>;
  static_assert(holds,
                "a value of this type cannot be sent: describe this struct's fields: add `friend "
                "void describe(T& value, auto&& fields) { fields(value.a, value.b); }` to it, with "
                "its name for T and its fields for a and b (core/values/value.h has the other "
                "ways); a result that need not be sent stays where it is if the call is `remote`");
};

}  // namespace detail

}  // namespace rehearsal
