#include "core/values/tensor_form.h"

#include <ATen/Functions.h>
#include <ATen/quantized/Quantizer.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "core/values/payload.h"

namespace rehearsal {
namespace {

// The dimensions from the smallest stride to the largest. Where strides are equal, those of size 1
// come first: they fit anywhere.
std::vector<size_t> from_inner_to_outer(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t one, size_t other) {
    if (strides[one] != strides[other]) return strides[one] < strides[other];
    return sizes[one] == 1 && sizes[other] != 1;
  });
  return order;
}

// Makes room for so many elements at such a distance; false: no number holds the extent.
bool grow(int64_t& extent, int64_t size, int64_t stride) {
  int64_t more;
  return !__builtin_mul_overflow(size - 1, stride, &more) &&
         !__builtin_add_overflow(extent, more, &extent);
}

// The distance of the last element from the first.
int64_t extent_of(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  int64_t extent = 0;
  for (size_t i = 0; i < sizes.size(); ++i) extent += (sizes[i] - 1) * strides[i];
  return extent;
}

bool is_one_of(c10::ScalarType type, std::initializer_list<c10::ScalarType> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

std::optional<TensorForm> form_of(c10::Layout layout) {
  switch (layout) {
    case c10::kSparse:
      return TensorForm::coo;
    case c10::kSparseCsr:
      return TensorForm::csr;
    case c10::kSparseCsc:
      return TensorForm::csc;
    case c10::kSparseBsr:
      return TensorForm::bsr;
    case c10::kSparseBsc:
      return TensorForm::bsc;
    default:
      return std::nullopt;
  }
}

c10::Layout layout_of(TensorForm form) {
  switch (form) {
    case TensorForm::csr:
      return c10::kSparseCsr;
    case TensorForm::csc:
      return c10::kSparseCsc;
    case TensorForm::bsr:
      return c10::kSparseBsr;
    case TensorForm::bsc:
      return c10::kSparseBsc;
    default:
      return c10::kSparse;
  }
}

bool is_quantized(TensorForm form) {
  return form == TensorForm::quantized_per_tensor || form == TensorForm::quantized_per_channel;
}

// Sizes of a sparse tensor, whose elements are not all there.
bool can_be_counted(c10::IntArrayRef sizes) {
  if (sizes.size() > kDimensionsMax) return false;
  int64_t count = 1;
  for (const int64_t size : sizes)
    if (size < 0 || __builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count)) return false;
  return count <= std::numeric_limits<int64_t>::max() / 2;
}

// Not of less than a byte.
bool is_whole_quantized(c10::ScalarType type) {
  return is_one_of(type, {c10::kQInt8, c10::kQUInt8, c10::kQInt32});
}

// The only one that LibTorch itself quantises with zero points that are no whole numbers.
constexpr c10::ScalarType kFloatQParamsType = c10::kQUInt8;

// The elements of a quantised type are whole numbers, of which its zero point is one.
bool fits_quantized(int64_t zero_point, c10::ScalarType dtype) {
  if (dtype == c10::kQInt8) return zero_point >= INT8_MIN && zero_point <= INT8_MAX;
  if (dtype == c10::kQUInt8) return zero_point >= 0 && zero_point <= UINT8_MAX;
  return zero_point >= INT32_MIN && zero_point <= INT32_MAX;
}

std::pair<at::Tensor, at::Tensor> indices_of_compressed(const at::Tensor& tensor) {
  const bool by_rows = tensor.layout() == c10::kSparseCsr || tensor.layout() == c10::kSparseBsr;
  if (by_rows) return {tensor.crow_indices(), tensor.col_indices()};
  return {tensor.ccol_indices(), tensor.row_indices()};
}

// Of a tensor that is not strided. Contiguous ones are not copied.
std::vector<at::Tensor> sparse_parts_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach();
  if (plain.layout() == c10::kSparse)
    return {plain._indices().contiguous(), plain._values().contiguous()};
  const auto [compressed, others] = indices_of_compressed(plain);
  return {compressed.contiguous(), others.contiguous(), plain.values().contiguous()};
}

// A tensor means more than its elements, and would arrive meaning less.
std::string why_elements_say_too_little(const at::Tensor& tensor) {
  if (tensor.has_names())
    return "a tensor whose dimensions have names cannot be sent: send it without them "
           "(rename(std::nullopt)), and name them again where it arrives";
  constexpr uint64_t kOnlyLevel = 0;  // LibTorch has no other.
  if (tensor._fw_grad(kOnlyLevel).defined())
    return "a dual tensor cannot be sent: send its primal and its tangent (at::_unpack_dual)";
  return {};
}

// A tensor over a segment, or over any memory that an owner keeps.
at::Tensor over(const Segment& elements, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                c10::ScalarType dtype) {
  return at::from_blob(
      elements.data, sizes, strides, [owner = elements.owner](void*) {}, at::TensorOptions(dtype));
}

}  // namespace

std::optional<std::vector<int64_t>> narrowed_strides(c10::IntArrayRef sizes,
                                                     c10::IntArrayRef strides) {
  std::vector<int64_t> narrowed(sizes.size());
  int64_t extent = 0;           // of the dimensions so far, as they lie
  int64_t narrowed_extent = 0;  // and narrowed
  for (const size_t i : from_inner_to_outer(sizes, strides)) {
    const bool has_gap = sizes[i] > 1 && strides[i] > extent + 1;
    if (sizes[i] > 1 && strides[i] <= extent) return std::nullopt;
    narrowed[i] = narrowed_extent + (has_gap ? 2 : 1);
    if (!grow(extent, sizes[i], strides[i]) || !grow(narrowed_extent, sizes[i], narrowed[i]))
      return std::nullopt;
  }
  return narrowed;
}

// ---- taking apart --------------------------------------------------------------

FormCounts counts_of(TensorForm form, size_t dimensions) {
  switch (form) {
    case TensorForm::dense:
      return {.has_elements = true};
    case TensorForm::strided:
      return {.numbers = dimensions, .has_elements = true};
    case TensorForm::coo:
      return {.numbers = 1, .parts = 2};
    case TensorForm::csr:
    case TensorForm::csc:
    case TensorForm::bsr:
    case TensorForm::bsc:
      return {.parts = 3};
    case TensorForm::quantized_per_tensor:
      return {.numbers = 2, .has_elements = true};
    case TensorForm::quantized_per_channel:
      return {.numbers = 1, .parts = 2, .has_elements = true};
  }
  return {};
}

std::string why_without_form(const at::Tensor& tensor) {
  if (tensor.is_nested()) return "a nested tensor cannot be sent: send its parts (unbind)";
  if (std::string why = why_elements_say_too_little(tensor); !why.empty()) return why;
  if (tensor.layout() != c10::kStrided) {
    if (!form_of(tensor.layout()))
      return "a tensor of layout " + c10::str(tensor.layout()) +
             " cannot be sent: make it dense (to_dense)";
    if (!can_be_counted(tensor.sizes()))
      return "a sparse tensor of more than 64 dimensions or 2^62 elements cannot be sent";
    return {};
  }
  if (!tensor_bytes(tensor.sizes(), tensor.element_size()))
    return "a tensor of more than 64 dimensions or 2^40 bytes cannot be sent";
  if (tensor._is_zerotensor()) return {};
  if (!tensor.has_storage()) return "a tensor without storage cannot be sent: clone it";
  if (tensor.numel() > 0 && tensor.storage().data() == nullptr)
    return "a tensor whose storage has been freed cannot be sent";
  if (!tensor.is_quantized()) return {};
  if (!is_whole_quantized(tensor.scalar_type()))
    return "a quantized tensor of type " + std::string(c10::toString(tensor.scalar_type())) +
           " cannot be sent: dequantize it";
  if (tensor.qscheme() == c10::kPerTensorAffine)
    return fits_quantized(tensor.q_zero_point(), tensor.scalar_type())
               ? ""
               : "a quantized tensor whose zero point its type does not hold cannot be sent";
  if (tensor.qscheme() == c10::kPerChannelAffine) return {};
  if (tensor.qscheme() == c10::kPerChannelAffineFloatQParams &&
      tensor.scalar_type() == kFloatQParamsType)
    return {};
  return "a tensor quantized as " + c10::toString(tensor.qscheme()) +
         " cannot be sent: dequantize it";
}

TensorForm form_of(const at::Tensor& tensor) {
  if (has_parts(tensor)) {
    if (!tensor.is_quantized()) return *form_of(tensor.layout());
    return tensor.qscheme() == c10::kPerTensorAffine ? TensorForm::quantized_per_tensor
                                                     : TensorForm::quantized_per_channel;
  }
  if (tensor.is_contiguous()) [[likely]]
    return TensorForm::dense;
  return narrowed_strides(tensor.sizes(), tensor.strides()) ? TensorForm::strided
                                                            : TensorForm::dense;
}

TensorContent content_of(const at::Tensor& tensor, TensorForm form) {
  if (!counts_of(form, 0).has_elements)
    return {.numbers = form == TensorForm::coo ? std::vector<int64_t>{tensor.is_coalesced()}
                                               : std::vector<int64_t>(),
            .parts = sparse_parts_of(tensor),
            .elements = {}};
  switch (form) {
    case TensorForm::strided: {
      std::vector<size_t> order = from_inner_to_outer(tensor.sizes(), tensor.strides());
      const std::vector<int64_t> outer_first(order.rbegin(), order.rend());
      return {.numbers = *narrowed_strides(tensor.sizes(), tensor.strides()),
              .parts = {},
              .elements = tensor.detach().permute(outer_first)};
    }
    case TensorForm::quantized_per_tensor:
      return {.numbers = {std::bit_cast<int64_t>(tensor.q_scale()), tensor.q_zero_point()},
              .parts = {},
              .elements = tensor.contiguous()};
    case TensorForm::quantized_per_channel:
      return {.numbers = {tensor.q_per_channel_axis()},
              .parts = {tensor.q_per_channel_scales().contiguous(),
                        tensor.q_per_channel_zero_points().contiguous()},
              .elements = tensor.contiguous()};
    default:
      return {.numbers = {}, .parts = {}, .elements = tensor};
  }
}

bool is_borrowed(const at::Tensor& tensor) {
  if (tensor.layout() != c10::kStrided) {
    const std::vector<at::Tensor> parts = sparse_parts_of(tensor);
    return std::any_of(parts.begin(), parts.end(), is_borrowed);
  }
  if (tensor._is_zerotensor() || tensor.numel() == 0) return false;
  return tensor.storage().data_ptr().get_context() == nullptr;
}

uint64_t memory_bytes(const at::Tensor& tensor) {
  if (tensor.layout() == c10::kStrided) return tensor.nbytes();
  const at::Tensor plain = tensor.detach();
  if (plain.layout() == c10::kSparse) return plain._indices().nbytes() + plain._values().nbytes();
  const auto [compressed, others] = indices_of_compressed(plain);
  return compressed.nbytes() + others.nbytes() + plain.values().nbytes();
}

std::string first_line(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

// ---- putting together ----------------------------------------------------------

namespace {

// Copies elements that lie without gaps to where they lie with them.
Segment with_gaps(const ReceivedForm& received, uint64_t element_size) {
  constexpr std::align_val_t kAlignment{64};
  const uint64_t bytes = (extent_of(received.sizes, received.numbers) + 1) * element_size;
  std::shared_ptr<void> memory(::operator new(bytes, kAlignment),
                               [](void* elements) { ::operator delete(elements, kAlignment); });
  std::memset(memory.get(), 0, bytes);
  auto* const data = static_cast<std::byte*>(memory.get());
  const Segment wide{.owner = std::move(memory), .data = data, .bytes = bytes};
  std::vector<int64_t> packed(received.sizes.size());
  int64_t next = 1;
  for (const size_t i : from_inner_to_outer(received.sizes, received.numbers)) {
    packed[i] = next;
    next *= received.sizes[i];
  }
  // As bytes: no element is interpreted.
  const c10::ScalarType word = element_size == 1   ? c10::kByte
                               : element_size == 2 ? c10::kShort
                               : element_size == 4 ? c10::kInt
                               : element_size == 8 ? c10::kLong
                                                   : c10::kComplexDouble;
  over(wide, received.sizes, received.numbers, word)
      .copy_(over(received.elements, received.sizes, packed, word));
  return wide;
}

std::optional<at::Tensor> strided(const ReceivedForm& received) {
  for (const int64_t stride : received.numbers)
    if (stride < 1) return std::nullopt;
  const auto narrowed = narrowed_strides(received.sizes, received.numbers);
  if (!narrowed || received.numbers != c10::IntArrayRef(*narrowed)) return std::nullopt;
  const uint64_t element_size = c10::elementSize(received.dtype);
  const bool has_gaps =
      (extent_of(received.sizes, *narrowed) + 1) * element_size != received.elements.bytes;
  const Segment elements = has_gaps ? with_gaps(received, element_size) : received.elements;
  return over(elements, received.sizes, received.numbers, received.dtype);
}

std::optional<at::Tensor> coo(const ReceivedForm& received) {
  const at::Tensor& indices = received.parts[0];
  const at::Tensor& values = received.parts[1];
  const int64_t coalesced = received.numbers[0];
  if (coalesced < 0 || coalesced > 1) return std::nullopt;
  if (indices.scalar_type() != c10::kLong || indices.dim() != 2 || values.dim() < 1)
    return std::nullopt;
  const size_t sparse_dimensions = indices.size(0);
  if (sparse_dimensions > received.sizes.size() || values.size(0) != indices.size(1) ||
      values.sizes().slice(1) != received.sizes.slice(sparse_dimensions))
    return std::nullopt;
  return at::_sparse_coo_tensor_unsafe(indices, values, received.sizes,
                                       at::TensorOptions(received.dtype).layout(c10::kSparse),
                                       coalesced == 1);
}

// Dimensions of a compressed tensor: batches, two that are sparse, then dense ones. Values have
// those of the batches, one for all elements of a batch, two of a block if there are blocks, and
// the dense ones.
bool fits_compressed(const ReceivedForm& received) {
  const at::Tensor& compressed = received.parts[0];
  const at::Tensor& plain = received.parts[1];
  const at::Tensor& values = received.parts[2];
  const c10::ScalarType index_type = compressed.scalar_type();
  if (!is_one_of(index_type, {c10::kInt, c10::kLong}) || plain.scalar_type() != index_type)
    return false;
  const bool has_blocks = received.form == TensorForm::bsr || received.form == TensorForm::bsc;
  const int64_t batches = compressed.dim() - 1;
  const int64_t dense = values.dim() - 1 - batches - (has_blocks ? 2 : 0);
  if (batches < 0 || dense < 0 || plain.dim() != batches + 1) return false;
  if (static_cast<int64_t>(received.sizes.size()) != batches + 2 + dense) return false;
  const c10::IntArrayRef batch_sizes = received.sizes.slice(0, batches);
  if (compressed.sizes().slice(0, batches) != batch_sizes ||
      plain.sizes() != values.sizes().slice(0, batches + 1) ||
      plain.sizes().slice(0, batches) != batch_sizes ||
      values.sizes().slice(values.dim() - dense) != received.sizes.slice(batches + 2))
    return false;
  const bool by_rows = received.form == TensorForm::csr || received.form == TensorForm::bsr;
  int64_t lines[2] = {received.sizes[batches], received.sizes[batches + 1]};
  for (int i = 0; has_blocks && i < 2; ++i) {
    const int64_t block = values.size(batches + 1 + i);
    if (block < 1 || lines[i] % block != 0) return false;
    lines[i] /= block;
  }
  return compressed.size(batches) == lines[by_rows ? 0 : 1] + 1;
}

std::optional<at::Tensor> compressed(const ReceivedForm& received) {
  if (!fits_compressed(received)) return std::nullopt;
  return at::_sparse_compressed_tensor_unsafe(
      received.parts[0], received.parts[1], received.parts[2], received.sizes,
      at::TensorOptions(received.dtype).layout(layout_of(received.form)));
}

std::optional<at::Tensor> quantized(const ReceivedForm& received) {
  const auto deleter = [owner = received.elements.owner](void*) {};
  const at::TensorOptions options(received.dtype);
  if (received.form == TensorForm::quantized_per_tensor) {
    const auto scale = std::bit_cast<double>(received.numbers[0]);
    if (!fits_quantized(received.numbers[1], received.dtype)) return std::nullopt;
    at::Tensor tensor = at::from_blob_quantized_per_tensor_affine(
        received.elements.data, received.sizes, deleter, 1, received.numbers[1], options);
    // It takes the scale as a float only.
    at::set_quantizer_(
        tensor, at::make_per_tensor_affine_quantizer(scale, received.numbers[1], received.dtype));
    return tensor;
  }
  const int64_t axis = received.numbers[0];
  if (axis < 0 || axis >= static_cast<int64_t>(received.sizes.size())) return std::nullopt;
  const at::Tensor& scales = received.parts[0];
  const at::Tensor& zero_points = received.parts[1];
  const std::vector<int64_t> channels{received.sizes[axis]};
  const bool whole =
      scales.scalar_type() == c10::kDouble && zero_points.scalar_type() == c10::kLong;
  const bool floating = scales.scalar_type() == c10::kFloat &&
                        zero_points.scalar_type() == c10::kFloat &&
                        received.dtype == kFloatQParamsType;
  if (scales.sizes() != channels || zero_points.sizes() != channels || (!whole && !floating))
    return std::nullopt;
  return at::from_blob_quantized_per_channel_affine(received.elements.data, received.sizes, deleter,
                                                    scales, zero_points, axis, options);
}

}  // namespace

std::optional<uint64_t> element_bytes(const ReceivedForm& received) {
  if (c10::isQIntType(received.dtype) != is_quantized(received.form)) return std::nullopt;
  if (is_quantized(received.form) && !is_whole_quantized(received.dtype)) return std::nullopt;
  if (!counts_of(received.form, 0).has_elements)
    return can_be_counted(received.sizes) ? std::optional<uint64_t>(0) : std::nullopt;
  return tensor_bytes(received.sizes, c10::elementSize(received.dtype));
}

std::optional<at::Tensor> put_together(ReceivedForm&& received) try {
  for (const at::Tensor& part : received.parts)
    if (!part.defined() || part.layout() != c10::kStrided || part.requires_grad())
      return std::nullopt;
  switch (received.form) {
    case TensorForm::dense:
      return std::nullopt;
    case TensorForm::strided:
      if (received.elements.bytes == 0) return std::nullopt;
      return strided(received);
    case TensorForm::quantized_per_tensor:
    case TensorForm::quantized_per_channel:
      return quantized(received);
    default:
      if (received.parts.back().scalar_type() != received.dtype) return std::nullopt;
      return received.form == TensorForm::coo ? coo(received) : compressed(received);
  }
} catch (const c10::Error&) {
  return std::nullopt;  // LibTorch knows a reason of its own.
}

std::string why_bad_contents(const at::Tensor& tensor) try {
  if (!tensor.defined() || !has_parts(tensor)) return {};
  if (tensor.is_quantized()) {
    if (tensor.qscheme() != c10::kPerChannelAffine) return {};
    const at::Tensor points = tensor.q_per_channel_zero_points();
    for (int64_t i = 0; i < points.numel(); ++i)
      if (!fits_quantized(points.const_data_ptr<int64_t>()[i], tensor.scalar_type()))
        return "a quantized tensor whose zero points its type does not hold";
    return {};
  }
  const std::vector<at::Tensor> parts = sparse_parts_of(tensor);
  if (tensor.layout() == c10::kSparse)
    at::_validate_sparse_coo_tensor_args(parts[0], parts[1], tensor.sizes(), tensor.is_coalesced());
  else
    at::_validate_sparse_compressed_tensor_args(parts[0], parts[1], parts[2], tensor.sizes(),
                                                tensor.layout());
  return {};
} catch (const c10::Error& error) {
  return "a sparse tensor that cannot be: " + first_line(error);
}

}  // namespace rehearsal
