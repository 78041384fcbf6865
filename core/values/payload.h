#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/values/borrowed.h"
#include "core/values/device_copies.h"
#include "core/values/sent_tensor.h"

namespace rehearsal {

class RRefHandle;  // core/api/rref_handle.h

// A fork of a remote reference on its way from parent to child.
struct Fork {
  RRefId rref;
  ForkId id;
  bool owner_is_parent = false;  // then it is registered already
};

// A payload that is read may hold so many bytes of memory for each byte of `values`, and so many
// beside that (PeerLimits::decoded_bytes, core/base/peer_limits.h): an empty list has two bytes
// and takes a hundred.
inline constexpr uint64_t kDecodedRatio = 16;
inline constexpr uint64_t kDecodedBytes = uint64_t{64} << 20;

// The memory that a receiver counts, before it reads them, for a tensor in a message of protobuf,
// and for each byte of a list of numbers: about what they take (core/wire/decoded_weight.h).
inline constexpr uint64_t kTensorFieldWeight = 512;
inline constexpr uint64_t kNumberByteWeight = 40;

// Of a payload with tensors that are on devices, or go there.
struct DeviceTensors {
  std::vector<TensorPlace> places;  // of each tensor
  std::shared_ptr<DeviceCopies>
      copies;            // not to be sent before these are done; null: there are none
  AllBorrowed borrowed;  // of a received message: the lent ones of its tensors are placeholders
};

// Encoded values: small ones as bytes, tensors and remote references beside them. The bytes name
// both by their position.
struct Payload {
  std::string values;
  std::vector<at::Tensor> tensors;
  std::vector<SentTensor>
      sent;  // the same as they are sent: made off the strand; none when received
  std::shared_ptr<DeviceTensors> devices;            // null: all are on the CPU, and stay there
  std::vector<std::shared_ptr<RRefHandle>> handles;  // never cross the network: forks do
  std::vector<Fork> forks;                           // one for each handle, once prepared
  uint64_t decoded_bytes = kDecodedBytes;            // see kDecodedRatio
  uint64_t decoded = 0;                              // bytes that its values have taken, once read

  [[nodiscard]] DeviceTensors& on_devices() {
    if (devices == nullptr) devices = std::make_shared<DeviceTensors>();
    return *devices;
  }
  // None: all are on the CPU, and stay there.
  [[nodiscard]] std::span<const TensorPlace> places() const {
    if (devices == nullptr) return {};
    return devices->places;
  }
};

// Of a payload that is ready to be sent.
[[nodiscard]] std::vector<CarriedTensor> carried_tensors(const Payload& payload);

// Puts the tensors of a received payload where they belong: see device_copies.h.
inline void put_on_devices(Payload& payload, const NodeStrand& strand) {
  if (payload.devices == nullptr) return;
  put_on_devices(payload.tensors, payload.devices->places, payload.devices->borrowed, strand);
}

// Of a tensor that is sent.
inline constexpr size_t kDimensionsMax = 64;

// The bytes of a dense tensor's elements; none if it is beyond what can be sent. Zero-size tensors
// are held to the same limits in their other dimensions.
[[nodiscard]] std::optional<uint64_t> tensor_bytes(c10::IntArrayRef sizes, uint64_t element_bytes);

// With its call's place, the origin of the path of a payload's forks.
inline constexpr uint64_t kArgumentForks = 1;
inline constexpr uint64_t kResultForks = 2;
inline constexpr uint64_t kItemForks = 3;  // and the position of a stream's value more

}  // namespace rehearsal
