#pragma once

#include <optional>
#include <utility>

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

  Result(T value) : value_(std::in_place, std::move(value)) {}
  Result(Error error) : error_(std::move(error)) {}

  [[nodiscard]] bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() & {
    REHEARSAL_CHECK(ok(), error().text);
    return *value_;
  }
  [[nodiscard]] const T& value() const& {
    REHEARSAL_CHECK(ok(), error().text);
    return *value_;
  }
  [[nodiscard]] T&& value() && { return std::move(this->value()); }

  // Of one that is not ok.
  [[nodiscard]] Error& error() & {
    REHEARSAL_CHECK(!ok());
    return *error_;
  }
  [[nodiscard]] const Error& error() const& {
    REHEARSAL_CHECK(!ok());
    return *error_;
  }

  // The value, or the error thrown (throw_error).
  T or_throw() && {
    if (!ok()) [[unlikely]]
      throw_error(std::move(error()));
    return *std::move(value_);
  }

 private:
  std::optional<T> value_;
  MaybeError error_;  // exactly if there is no value
};

using Status = Result<Unit>;

}  // namespace rehearsal
