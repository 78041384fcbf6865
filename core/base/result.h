#pragma once

#include <type_traits>
#include <utility>
#include <variant>

#include "core/base/check.h"
#include "core/base/error.h"

namespace rehearsal {

// The value of nothing: what a function returns that returns void.
struct Unit {
  bool operator==(const Unit&) const = default;
};

// A value or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() & {
    REHEARSAL_CHECK(ok(), error().text);
    return std::get<0>(state_);
  }
  [[nodiscard]] const T& value() const& {
    REHEARSAL_CHECK(ok(), error().text);
    return std::get<0>(state_);
  }
  [[nodiscard]] T&& value() && { return std::move(this->value()); }

  [[nodiscard]] Error& error() & { return std::get<1>(state_); }
  [[nodiscard]] const Error& error() const& { return std::get<1>(state_); }

  // The value, or the error thrown as RpcError.
  T or_throw() && {
    if (!ok()) throw RpcError(std::move(error()));
    return std::get<0>(std::move(state_));
  }

 private:
  std::variant<T, Error> state_;
};

using Status = Result<Unit>;

}  // namespace rehearsal
