#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/device_lending.h"
#include "core/base/frame.h"
#include "core/base/node_strand.h"
#include "core/base/stream_set.h"
#include "core/values/borrowed.h"

// Tensors of devices on their way to another worker: by way of the host's memory, in which they
// lie as a tensor of the CPU does; or lent to a worker whose devices can read them where they are.
namespace rehearsal {

// On which device a tensor is, as a message says it: 0 is the CPU, n + 1 the device with number n.
using DeviceCode = uint8_t;

// Where a tensor of a message was at its sender, and where its receiver puts it.
struct TensorPlace {
  DeviceCode from = 0;
  DeviceCode to = 0;
  bool operator==(const TensorPlace&) const = default;
};

// How tensors of devices go to a worker: lent, or by the host, large ones in parts.
struct DeviceWay {
  std::shared_ptr<DeviceLending> lending;  // the lender's; null: nothing is lent
  WorkerId borrower;
  uint64_t copied_at_once = UINT64_MAX;  // the bytes of a part
};
[[nodiscard]] inline DeviceWay device_way(const NodeStrand& strand, WorkerId to) {
  return {strand.lending(), to, strand.devices().copied_at_once};
}

// The copies that one message needs: in the host's memory, or, to be lent, on the same device, so
// that what the program does to a tensor later reaches no borrower. They are made by the devices,
// meanwhile the host goes on: they may be read once `done` says so. The message keeps what is
// copied alive until then. Loans of a message that has not left end with this.
//
// A message with large tensors may leave once `begun` says so: its body says how far it is filled.
// That needs one stream that has made all its copies, and no loan, so that the rest takes no longer
// than copies take: a message that has begun to leave holds up those behind it.
class DeviceCopies {
 public:
  explicit DeviceCopies(DeviceWay way = {}) : way_(std::move(way)) {}
  ~DeviceCopies();
  DeviceCopies(DeviceCopies&&) = default;
  DeviceCopies& operator=(DeviceCopies&&) = delete;

  // Of the elements of a strided tensor: with its sizes and its order of dimensions, without gaps.
  // Behind all that the current stream of its device has been given. Off the strand.
  [[nodiscard]] at::Tensor to_host(const at::Tensor& tensor);
  // The same, on its own device, and lent; none: it goes by the host.
  [[nodiscard]] std::optional<Lent> to_lend(const at::Tensor& tensor);
  // No more comes. Whether there are any. Off the strand.
  bool close();

  // Whether all has been copied. Does not wait. On the strand.
  [[nodiscard]] bool done();
  // Whether the first part has, or all if there are none. The same.
  [[nodiscard]] bool begun();
  // The message leaves in this body, whose segments are the copies, in their order, and others. If
  // they were not done when last asked, the body says how far they are, as `done` finds it from
  // then on; if a device fails, it says so no more. On the strand.
  void leave_in(FrameBody& body);
  // Once it is done: the error of a device that has failed meanwhile; none: it has not.
  [[nodiscard]] const std::optional<std::string>& failure() const { return failure_; }

  // The message has left: its loans are those of whoever asks this. On the strand.
  [[nodiscard]] std::vector<LoanId> take_loans() { return std::exchange(loans_, {}); }

 private:
  // The first so many bytes of the elements at `begin`, and all that was copied before them.
  struct Part {
    const void* begin = nullptr;
    uint64_t bytes = 0;
    StreamMarks marks;
    uint64_t filled = 0;  // of the segments of the body, once there is one
  };
  // A copy of the elements in `memory`, behind the current stream of their device, which it gives.
  c10::Stream copy(const at::Tensor& source, const at::Tensor& memory);
  void copy_in_parts(const at::Tensor& source, const at::Tensor& host);
  // Looks how many of the first so many parts are copied. Throws c10::Error if a device has failed.
  void look_at_parts(size_t first);
  void end();

  DeviceWay way_;
  std::vector<LoanId> loans_;
  std::vector<c10::Stream> streams_;
  std::shared_ptr<const StreamMarks> marks_;  // null: it is done
  std::vector<Part> parts_;                   // in the order of copying
  size_t copied_ = 0;                         // of the parts
  std::shared_ptr<uint64_t> filled_;          // of the body that has left; null: none has
  std::optional<std::string> failure_;
};

// Puts received tensors where their places say, behind what the calling code has given to its
// current streams; their memory is of these. None: all stay where they are. Those that are lent are
// copied, and given back when they have been. Off the strand, before anything is recorded of them.
// Throws BadValue (value_io.h) for a device that is not here, for a tensor of a form that no device
// holds, and for one that cannot be borrowed.
void put_on_devices(std::vector<at::Tensor>& tensors, std::span<const TensorPlace> places,
                    AllBorrowed& borrowed, const NodeStrand& strand);

}  // namespace rehearsal
