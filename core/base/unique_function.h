#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "core/base/check.h"

namespace rehearsal {

template <class Signature>
class UniqueFunction;

// The tag that a closure gives, by a `tag() const` of its own, to be told from others of its type;
// else zero.
template <class F>
[[nodiscard]] uint64_t tag_of(const F& closure) {
  if constexpr (requires {
                  { closure.tag() } -> std::same_as<uint64_t>;
                })
    return closure.tag();
  else
    return 0;
}

// A callable that owns what it captured and can only be moved. Small closures (64 bytes) are kept
// inside, without an allocation. Calling an empty one is a bug.
template <class R, class... Arguments>
class UniqueFunction<R(Arguments...)> {
 public:
  UniqueFunction() = default;
  UniqueFunction(std::nullptr_t) {}

  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, UniqueFunction> &&
           std::is_invocable_r_v<R, std::decay_t<F>&, Arguments...>) UniqueFunction(F&& body) {
    using Body = std::decay_t<F>;
    if constexpr (fits<Body>()) {
      new (storage_) Body(std::forward<F>(body));
      operations_ = &kInside<Body>;
    } else {
      new (storage_) Body*(new Body(std::forward<F>(body)));
      operations_ = &kOutside<Body>;
    }
  }

  UniqueFunction(UniqueFunction&& other) noexcept { take(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this == &other) return *this;
    reset();
    take(other);
    return *this;
  }
  UniqueFunction(const UniqueFunction&) = delete;
  UniqueFunction& operator=(const UniqueFunction&) = delete;
  ~UniqueFunction() { reset(); }

  explicit operator bool() const { return operations_ != nullptr; }

  // Names the type of the closure within this process; null if empty.
  [[nodiscard]] const void* type() const { return operations_; }

  // Tells the closure from others of its type; see tag_of.
  [[nodiscard]] uint64_t tag() const {
    return operations_ == nullptr ? 0 : operations_->tag(storage_);
  }

  R operator()(Arguments... arguments) {
    REHEARSAL_CHECK(operations_ != nullptr);
    return operations_->call(storage_, std::forward<Arguments>(arguments)...);
  }

 private:
  static constexpr size_t kInsideBytes = 64;
  struct Operations {
    R (*call)(void*, Arguments&&...);
    void (*move)(void* from, void* to);
    void (*destroy)(void*);
    uint64_t (*tag)(const void*);
  };

  template <class Body>
  static constexpr bool fits() {
    return sizeof(Body) <= kInsideBytes && alignof(Body) <= alignof(std::max_align_t) &&
           std::is_nothrow_move_constructible_v<Body>;
  }

  template <class Body>
  static constexpr Operations kInside{
      [](void* at, Arguments&&... arguments) -> R {
        return (*static_cast<Body*>(at))(std::forward<Arguments>(arguments)...);
      },
      [](void* from, void* to) {
        new (to) Body(std::move(*static_cast<Body*>(from)));
        static_cast<Body*>(from)->~Body();
      },
      [](void* at) { static_cast<Body*>(at)->~Body(); },
      [](const void* at) { return tag_of(*static_cast<const Body*>(at)); }};

  template <class Body>
  static constexpr Operations kOutside{
      [](void* at, Arguments&&... arguments) -> R {
        return (**static_cast<Body**>(at))(std::forward<Arguments>(arguments)...);
      },
      [](void* from, void* to) { new (to) Body*(*static_cast<Body**>(from)); },
      [](void* at) { delete *static_cast<Body**>(at); },
      [](const void* at) { return tag_of(**static_cast<Body* const*>(at)); }};

  void take(UniqueFunction& other) noexcept {
    if (other.operations_ == nullptr) return;
    other.operations_->move(other.storage_, storage_);
    operations_ = std::exchange(other.operations_, nullptr);
  }
  void reset() {
    if (operations_ != nullptr) std::exchange(operations_, nullptr)->destroy(storage_);
  }

  alignas(std::max_align_t) std::byte storage_[kInsideBytes];
  const Operations* operations_ = nullptr;
};

using Task = UniqueFunction<void()>;

// A closure with a tag.
template <class F>
class Tagged {
 public:
  Tagged(uint64_t tag, F body) : tag_(tag), body_(std::move(body)) {}
  void operator()() { body_(); }
  [[nodiscard]] uint64_t tag() const { return tag_; }

 private:
  uint64_t tag_;
  F body_;
};

}  // namespace rehearsal
