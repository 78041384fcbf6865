#pragma once

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/node_strand.h"
#include "core/base/user_code.h"
#include "core/values/value.h"

namespace rehearsal {

// A type that can be registered as an exception type: a class that derives publicly from
// std::exception, is not final, and can be made anew from its text, from nothing, or both.
template <class E>
concept ThrowableType =
    std::is_convertible_v<E*, const std::exception*> && !std::is_final_v<E> &&
    !std::is_convertible_v<E*, const RpcError*> &&
    (std::constructible_from<E, const std::string&> || std::constructible_from<E, const char*> ||
     (std::default_initializable<E> && Described<E>));

namespace detail {

// An exception made anew at who called: from its text if it takes one, then field by field.
template <ThrowableType E>
class Rethrown final : public E, public CalledError {
 public:
  Rethrown(const std::string& text, ValueReader& fields,
           const Error& error) requires std::constructible_from<E, const std::string&>
      : E(text), CalledError(error) {
    read(fields);
  }
  Rethrown(const std::string& text, ValueReader& fields,
           const Error& error) requires(!std::constructible_from<E, const std::string&> &&
                                        std::constructible_from<E, const char*>)
      : E(text.c_str()), CalledError(error) {
    read(fields);
  }
  Rethrown(const std::string&, ValueReader& fields,
           const Error& error) requires(!std::constructible_from<E, const std::string&> &&
                                        !std::constructible_from<E, const char*>)
      : E(), CalledError(error) {
    read(fields);
  }

 private:
  void read(ValueReader& reader) {
    if constexpr (Described<E>) describe(static_cast<E&>(*this), ReadFields{reader});
    reader.finish();
  }
};

template <class E>
void write_fields(const E& thrown, ValueWriter& writer) {
  writer.text(thrown.what());
  if constexpr (Described<E>)
    // describe takes its object as it is filled; writing only reads the fields.
    describe(const_cast<E&>(thrown), WriteFields{writer});
}

// The types of the fields, in order, without an object: `describe` may not look at them.
template <class E>
std::string sign_fields() {
  WireSignature signature;
  if constexpr (Described<E>) {
    if constexpr (std::default_initializable<E>) {
      E thrown;
      describe(thrown, SignFields{signature});
    } else {
      E thrown("");
      describe(thrown, SignFields{signature});
    }
  }
  return signature.text();
}

}  // namespace detail

// A registered exception type.
struct ExceptionType {
  std::string name;
  std::string fields;  // their wire signature
  std::type_index type{typeid(void)};
  uint32_t position = 0;  // among all, in the order of registration
  bool (*matches)(const std::exception& thrown) = nullptr;
  // A handler of this type takes what `thrower` throws, and `throw_pointer` throws a null pointer
  // to it: so that two types are compared without an object of either.
  bool (*handles)(void (*thrower)()) = nullptr;
  void (*throw_pointer)() = nullptr;
  void (*write)(const std::exception& thrown, ValueWriter& writer) = nullptr;
  // A Rethrown; what the type's own code throws instead passes.
  std::exception_ptr (*make)(ValueReader& reader, const Error& error) = nullptr;
};

// The exception types that a program has registered.
class ExceptionTypes {
 public:
  // Throws std::invalid_argument if the type or the name is taken.
  template <ThrowableType E>
  void add(const std::string& name) {
    ExceptionType entry;
    entry.name = name;
    entry.fields = detail::sign_fields<E>();
    entry.type = typeid(E);
    entry.matches = [](const std::exception& thrown) {
      return dynamic_cast<const E*>(&thrown) != nullptr;
    };
    entry.throw_pointer = [] { throw static_cast<E*>(nullptr); };
    entry.handles = [](void (*thrower)()) {
      try {
        thrower();
      } catch (const E*) {
        return true;
      } catch (const void*) {
      }
      return false;
    };
    entry.write = [](const std::exception& thrown, ValueWriter& writer) {
      detail::write_fields(dynamic_cast<const E&>(thrown), writer);
    };
    entry.make = [](ValueReader& reader, const Error& error) -> std::exception_ptr {
      const std::string text = reader.text();
      try {
        throw detail::Rethrown<E>(text, reader, error);  // Made in place: never copied.
      } catch (const detail::Rethrown<E>&) {
        return std::current_exception();
      }
    };
    insert(std::move(entry));
  }

  // The most derived registered type that `thrown` is; null if it is none.
  [[nodiscard]] std::shared_ptr<const ExceptionType> find(const std::exception& thrown) const;
  // By its position; null if there is none.
  [[nodiscard]] std::shared_ptr<const ExceptionType> at(uint32_t position) const;

  // A text with a line for each, in the order of registration.
  [[nodiscard]] std::string describe() const;

 private:
  void insert(ExceptionType entry);

  std::vector<std::shared_ptr<const ExceptionType>> in_order_;
  std::vector<std::shared_ptr<const ExceptionType>> derived_first_;
};

// An exception as it travels: its type, its text and its fields. Immutable.
class EncodedException final : public CarriedException {
 public:
  EncodedException(std::shared_ptr<NodeStrand> strand, std::shared_ptr<const ExceptionType> type,
                   Payload payload)
      : strand_(std::move(strand)), type_(std::move(type)), payload_(std::move(payload)) {}
  ~EncodedException() override;
  EncodedException(const EncodedException&) = delete;
  EncodedException& operator=(const EncodedException&) = delete;

  [[nodiscard]] std::exception_ptr made_for(const Error& error) const override;

  [[nodiscard]] uint32_t position() const { return type_->position; }
  // To be sent on: without the forks that brought it here.
  [[nodiscard]] const Payload& payload() const { return payload_; }

 private:
  const std::shared_ptr<NodeStrand> strand_;
  const std::shared_ptr<const ExceptionType> type_;
  Payload payload_;
};

// Encodes exceptions of registered types, and notes where exceptions were thrown if it is to.
class ExceptionEncoder final : public ExceptionHook {
 public:
  // Told of each exception that has become an error; may be null.
  using Witness = std::function<void(const Error&)>;

  ExceptionEncoder(NodeStrand& strand, const ExceptionTypes& types, bool traces, Witness witness)
      : strand_(strand), types_(types), traces_(traces), witness_(std::move(witness)) {}

  void complete(Error& error, const std::exception& thrown,
                std::string_view function) const override;

  // The exception that came with an answer; null if there is no such type.
  [[nodiscard]] std::shared_ptr<const EncodedException> received(uint32_t position,
                                                                 Payload payload) const;

 private:
  void encode(Error& error, const std::exception& thrown) const;

  NodeStrand& strand_;
  const ExceptionTypes& types_;
  const bool traces_;
  const Witness witness_;
};

}  // namespace rehearsal
