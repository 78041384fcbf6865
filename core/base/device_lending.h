#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/ids.h"
#include "core/base/result.h"

// The way by which devices of one worker read memory of another one's devices, so that a tensor
// goes from device to device without the host: between workers of one process, or of one machine.
namespace rehearsal {

// A loan's number among all of its lender.
using LoanId = uint64_t;

// A tensor that was lent: by the ticket the borrower's DeviceLending finds it.
struct Lent {
  LoanId loan = 0;
  std::string ticket;
};
inline constexpr size_t kTicketBytesMax = 1024;
// Tensors of fewer bytes go by the host, unless a lending is told otherwise: a loan takes a message
// more.
inline constexpr uint64_t kLendFrom = uint64_t{64} << 10;

// All that one worker lends to others and borrows from them. Thread-safe where its runtime is
// threaded; outlives its node.
class DeviceLending {
 public:
  virtual ~DeviceLending() = default;

  // By this text a peer knows whether it can borrow from here: told when the two meet. Without ';'
  // and line ends; never empty.
  [[nodiscard]] virtual std::string place() const = 0;
  // A peer has met us and said its place; empty: it neither lends nor borrows. On the strand.
  virtual void meet(WorkerId peer, const std::string& place) = 0;
  // Whether that worker can borrow a tensor of so many bytes, and had better. Off the strand.
  [[nodiscard]] virtual bool lends(WorkerId to, uint64_t bytes) const = 0;

  // Lends a tensor on a device here, dense and without gaps, to a worker to whom it `lends`, and
  // keeps it until the loan ends. Nobody writes to it from now on. None: such memory cannot be
  // lent. Off the strand.
  [[nodiscard]] virtual std::optional<Lent> lend(WorkerId to, const at::Tensor& tensor) = 0;
  // The borrower has copied it, or never will. Gives the tensor back, to be destroyed where that
  // fits. A loan that never ends lasts as long as the process. Any thread.
  [[nodiscard]] virtual at::Tensor end(LoanId loan) = 0;

  // The elements that a peer has lent by this ticket, for a copy to the device `to`: whoever lends
  // has seen that they were written. They are there until the loan ends. Off the strand. The error:
  // the ticket names nothing that is lent, of another size, or the device cannot reach it.
  [[nodiscard]] virtual Result<at::Tensor> borrow(std::string_view ticket, c10::IntArrayRef sizes,
                                                  c10::ScalarType dtype, c10::Device to) = 0;
};

}  // namespace rehearsal
