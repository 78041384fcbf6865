#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/result.h"

namespace rehearsal {

template <class T>
class RRef;

// Whether a T dies without code of a user's: its destructor calls nobody, and throws nothing. All
// other values end as executions of their own (NodeStrand::end_life).
template <class T>
inline constexpr bool kDiesQuietly = std::is_trivially_destructible_v<T>;
template <>
inline constexpr bool kDiesQuietly<std::string> = true;
template <>
inline constexpr bool kDiesQuietly<at::Tensor> = true;
template <>
inline constexpr bool kDiesQuietly<c10::IValue> = true;
template <class T>
inline constexpr bool kDiesQuietly<RRef<T>> = true;
template <class T>
inline constexpr bool kDiesQuietly<Result<T>> = kDiesQuietly<T>;
template <class T>
inline constexpr bool kDiesQuietly<std::optional<T>> = kDiesQuietly<T>;
template <class T>
inline constexpr bool kDiesQuietly<std::vector<T>> = kDiesQuietly<T>;
template <class T, size_t count>
inline constexpr bool kDiesQuietly<std::array<T, count>> = kDiesQuietly<T>;
template <class T>
inline constexpr bool kDiesQuietly<std::set<T>> = kDiesQuietly<T>;
template <class K, class T>
inline constexpr bool kDiesQuietly<std::map<K, T>> = kDiesQuietly<K>&& kDiesQuietly<T>;
template <class K, class T>
inline constexpr bool kDiesQuietly<std::unordered_map<K, T>> = kDiesQuietly<K>&& kDiesQuietly<T>;
template <class A, class B>
inline constexpr bool kDiesQuietly<std::pair<A, B>> = kDiesQuietly<A>&& kDiesQuietly<B>;
template <class... T>
inline constexpr bool kDiesQuietly<std::tuple<T...>> = (kDiesQuietly<T> && ...);
template <class... T>
inline constexpr bool kDiesQuietly<std::variant<T...>> = (kDiesQuietly<T> && ...);

// The label of the execution that destroys values of this type: "~Session". Lives for ever.
[[nodiscard]] std::string make_death_label(const std::type_info& type);
template <class T>
[[nodiscard]] std::string_view death_label() {
  static const std::string label = make_death_label(typeid(T));
  return label;
}

}  // namespace rehearsal
