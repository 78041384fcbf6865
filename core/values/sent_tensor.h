#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/DimVector.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/frame.h"
#include "core/values/device_copies.h"
#include "core/values/tensor_form.h"

namespace rehearsal {

// The facts in a message about a tensor beside its sizes, numbers, parts and segment.
struct TensorEntry {
  uint32_t dtype = 0;
  bool requires_grad = false;
  bool undefined = false;
  TensorForm form = TensorForm::dense;
  TensorPlace place;
  // Its segment holds the number of a loan, 8 bytes, and the ticket, in place of elements.
  bool lent = false;
};

// A tensor as it goes onto the wire. Nothing of LibTorch is asked any more to send it.
struct SentTensor {
  TensorEntry entry;
  c10::DimVector sizes;
  std::vector<int64_t> numbers;
  std::vector<SentTensor> parts;  // dense; their segments come before its own
  Segment elements;               // no bytes: it has none of its own
  // Of a tensor whose elements it shares: how often it had been changed in place; none: it shares
  // none, or nobody counts that, as for inference tensors.
  std::optional<uint32_t> version;
};

// A tensor that was made ready to be sent, with its version as in SentTensor.
struct CarriedTensor {
  at::Tensor tensor;
  std::optional<uint32_t> version = std::nullopt;
  // Whether it is no longer what was to be sent.
  [[nodiscard]] bool has_changed() const;
};

// Elements are shared if they are contiguous and many, else copied. Runs LibTorch's code: off the
// strand. Throws BadValue (value_io.h) for what cannot be sent: it has no form, is more than a
// frame holds, or there is no memory for the copy. Nothing is copied before all of it is known to
// fit. A tensor of a device is copied by `copies`, and may be sent when that is done. `places`: of
// each tensor, or none where all are on the CPU and stay there.
[[nodiscard]] std::vector<SentTensor> sent_tensors(const std::vector<at::Tensor>& tensors,
                                                   std::span<const TensorPlace> places,
                                                   DeviceCopies& copies);

// One that is lent: only its sizes, type and `requires_grad` are of the tensor.
[[nodiscard]] SentTensor sent_as_loan(const at::Tensor& tensor, const Lent& lent);

// The bytes of all elements.
[[nodiscard]] uint64_t sent_bytes(const std::vector<SentTensor>& tensors);

}  // namespace rehearsal
