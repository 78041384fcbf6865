#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/api/calls.h"
#include "core/values/value.h"

// The things that a DistributedCheckpoint is made of, and how they are asked for.
namespace rehearsal {

// A cut: the run that made it, from 1, and its step. A run begins with each resume().
struct CheckpointTag {
  uint64_t run = 0;
  int64_t step = 0;
  auto operator<=>(const CheckpointTag&) const = default;
  friend void describe(CheckpointTag& tag, auto&& fields) { fields(tag.run, tag.step); }
};

// A request about one cut. One of an earlier run than the worker has heard of is refused.
struct CheckpointOrder {
  std::string name;
  CheckpointTag tag;
  friend void describe(CheckpointOrder& order, auto&& fields) { fields(order.name, order.tag); }
};

// Something that has pieces at one worker. The calls to its owner are made when `keep` and `load`
// are called; `load` gives the names of the pieces that were taken.
struct CheckpointPart {
  std::string name;
  bool needs_names = false;  // it is loaded when all tensors have their names
  WorkerInfo owner;
  std::function<Future<Unit>(const Calls&, const CheckpointOrder&, const std::string& name)> keep;
  std::function<Future<std::vector<std::string>>(const Calls&, const CheckpointOrder&,
                                                 const std::string& name)>
      load;
};

namespace detail {

template <class T>
concept plain_piece = std::is_same_v<T, bool> || std::is_integral_v<T> ||
    std::is_floating_point_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, at::Tensor>;

// Bytes and tensors of a value that is sent as an argument.
[[nodiscard]] c10::IValue payload_piece(Payload payload);
// Throws RpcError (storage) for a piece that is none.
[[nodiscard]] Payload piece_payload(const c10::IValue& piece);

template <class T>
c10::IValue to_piece(const T& value) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    return value.detach().to(c10::kCPU, value.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<int64_t>(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(value);
  } else {
    Payload payload;
    ValueWriter writer(payload);
    Value<T>::write(writer, value);
    return payload_piece(std::move(payload));
  }
}

template <class T>
T from_piece(const c10::IValue& piece) {
  if constexpr (plain_piece<T> && std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(piece.toInt());
    else
      return static_cast<T>(piece.toDouble());
  } else if constexpr (plain_piece<T>) {
    return piece.to<T>();
  } else {
    Payload payload = piece_payload(piece);
    ValueReader reader(payload);
    T value = Value<T>::read(reader);
    reader.finish();
    return value;
  }
}

}  // namespace detail

}  // namespace rehearsal
