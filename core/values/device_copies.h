#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/stream_set.h"

// Tensors of devices on their way to another worker: by way of the host's memory, in which they
// lie as a tensor of the CPU does.
namespace rehearsal {

// On which device a tensor is, as a message says it: 0 is the CPU, n + 1 the device with number n.
using DeviceCode = uint8_t;

// Where a tensor of a message was at its sender, and where its receiver puts it.
struct TensorPlace {
  DeviceCode from = 0;
  DeviceCode to = 0;
  bool operator==(const TensorPlace&) const = default;
};

// The copies in the host's memory that one message needs. They are made by the devices, meanwhile
// the host goes on: what `to_host` returns may be read once `done` says so. The message keeps what
// is copied alive until then.
class DeviceCopies {
 public:
  // Of the elements of a strided tensor: with its sizes and its order of dimensions, without gaps.
  // Behind all that the current stream of its device has been given. Off the strand.
  [[nodiscard]] at::Tensor to_host(const at::Tensor& tensor);
  // No more comes. Whether there are any. Off the strand.
  bool close();

  // Whether all has been copied. Does not wait. On the strand.
  [[nodiscard]] bool done();
  // Once it is done: the error of a device that has failed meanwhile; none: it has not.
  [[nodiscard]] const std::optional<std::string>& failure() const { return failure_; }

 private:
  std::vector<c10::Stream> streams_;
  std::shared_ptr<const StreamMarks> marks_;  // null: it is done
  std::optional<std::string> failure_;
};

// Puts received tensors where their places say, behind what the calling code has given to its
// current streams; their memory is of these. None: all stay where they are. Off the strand, before
// anything is recorded of them. Throws BadValue (value_io.h) for a device that is not here, and
// for a tensor of a form that no device holds.
void put_on_devices(std::vector<at::Tensor>& tensors, const std::vector<TensorPlace>& places,
                    const DevicesHere& devices);

}  // namespace rehearsal
