#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/device_lending.h"
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

// The lender, by its lending, and the borrower. Null: nothing is lent.
struct LendTo {
  std::shared_ptr<DeviceLending> lending;
  WorkerId borrower;
};

// The copies that one message needs: in the host's memory, or, to be lent, on the same device, so
// that what the program does to a tensor later reaches no borrower. They are made by the devices,
// meanwhile the host goes on: they may be read once `done` says so. The message keeps what is
// copied alive until then. Loans of a message that has not left end with this.
class DeviceCopies {
 public:
  explicit DeviceCopies(LendTo lend = {}) : lend_(std::move(lend)) {}
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
  // Once it is done: the error of a device that has failed meanwhile; none: it has not.
  [[nodiscard]] const std::optional<std::string>& failure() const { return failure_; }

  // The message has left: its loans are those of whoever asks this. On the strand.
  [[nodiscard]] std::vector<LoanId> take_loans() { return std::exchange(loans_, {}); }

 private:
  // A copy of the elements in `memory`, behind the current stream of their device.
  void copy(const at::Tensor& source, const at::Tensor& memory);

  LendTo lend_;
  std::vector<LoanId> loans_;
  std::vector<c10::Stream> streams_;
  std::shared_ptr<const StreamMarks> marks_;  // null: it is done
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
