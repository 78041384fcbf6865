#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/frame.h"

// The form of tensors on the wire. Most are dense: sizes and one segment of elements. Others are a
// form: numbers, dense tensors as parts, and elements or none.
namespace rehearsal {

enum class TensorForm : uint8_t {
  dense,                  // elements, contiguous
  strided,                // elements as they lie in memory, without gaps; numbers: strides
  coo,                    // number: 1 if coalesced; parts: indices, values
  csr,                    // parts: compressed indices, plain indices, values
  csc,                    // the same
  bsr,                    // the same
  bsc,                    // the same
  quantized_per_tensor,   // elements; numbers: bits of the scale, zero point
  quantized_per_channel,  // elements; number: axis; parts: scales, zero points
};
inline constexpr TensorForm kLastTensorForm = TensorForm::quantized_per_channel;

// How much of everything a form has.
struct FormCounts {
  size_t numbers = 0;
  size_t parts = 0;
  bool has_elements = false;
};
[[nodiscard]] FormCounts counts_of(TensorForm form, size_t dimensions);

// Why a tensor on the CPU has no form; empty: it has one.
[[nodiscard]] std::string why_without_form(const at::Tensor& tensor);
// REQUIRES: it has one.
[[nodiscard]] TensorForm form_of(const at::Tensor& tensor);
[[nodiscard]] inline bool has_parts(const at::Tensor& tensor) {
  return tensor.layout() != c10::kStrided || tensor.is_quantized();
}

// A tensor taken apart. Shares its memory where it can.
struct TensorContent {
  std::vector<int64_t> numbers;
  std::vector<at::Tensor> parts;  // dense
  at::Tensor elements;            // contiguous; undefined: it has none of its own
};
[[nodiscard]] TensorContent content_of(const at::Tensor& tensor, TensorForm form);

// The facts in a message about a tensor that is not dense.
struct ReceivedForm {
  TensorForm form = TensorForm::dense;
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  c10::IntArrayRef sizes;
  c10::IntArrayRef numbers;
  std::vector<at::Tensor> parts;
  Segment elements;
};
// How many bytes its elements have; none: its sizes or its type cannot be.
[[nodiscard]] std::optional<uint64_t> element_bytes(const ReceivedForm& received);
// Puts it together; shares the segment. None: its numbers and parts do not fit each other. The
// contents of the parts are not looked at.
[[nodiscard]] std::optional<at::Tensor> put_together(ReceivedForm&& received);

// Why the contents of a tensor that was put together cannot be: indices out of range, say. Empty:
// they can. Looks at every index; no code of LibTorch may see the tensor before.
[[nodiscard]] std::string why_bad_contents(const at::Tensor& tensor);

// True if nothing keeps the tensor's memory alive: at::from_blob without a deleter.
[[nodiscard]] bool is_borrowed(const at::Tensor& tensor);

// The bytes of its elements as they are sent, and of a sparse tensor's indices. Copies nothing.
[[nodiscard]] uint64_t memory_bytes(const at::Tensor& tensor);

// The text of one of LibTorch's errors, without its backtrace.
[[nodiscard]] std::string first_line(const c10::Error& error);

// The strides by which a tensor arrives: in the order of these, each gap one element wide. None if
// elements overlap.
[[nodiscard]] std::optional<std::vector<int64_t>> narrowed_strides(c10::IntArrayRef sizes,
                                                                   c10::IntArrayRef strides);

}  // namespace rehearsal
