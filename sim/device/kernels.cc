#include <ATen/EmptyTensor.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>

#include <cstring>
#include <optional>
#include <utility>

#include "sim/device/backend.h"
#include "sim/device/give_kernel.h"
#include "sim/device/pinned_memory.h"
#include "sim/device/selection.h"

// The operators that make tensors, copy them, look at them in another way, or say something to the
// allocator: what every device of LibTorch has itself. And convolutions, which LibTorch asks each
// device for under names of their own.
namespace rehearsal::sim::device {
namespace {

using OptionalType = std::optional<at::ScalarType>;
using OptionalLayout = std::optional<at::Layout>;
using OptionalDevice = std::optional<c10::Device>;

c10::DeviceIndex index_of(const OptionalDevice& device) {
  return device && device->has_index() ? device->index() : selection().device;
}

// Memory for the current stream of a device, as LibTorch asks for it.
class MemoryOf final : public c10::Allocator {
 public:
  explicit MemoryOf(c10::DeviceIndex device) : device_(device) {}
  c10::DataPtr allocate(size_t bytes) override {
    return current_machine().allocate(current_stream(device_), bytes);
  }
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK(false, "simulated devices copy tensors, not bare memory");
  }

 private:
  c10::DeviceIndex device_;
};

// A storage remembers its allocator for as long as it lives, so there is one of each for ever.
c10::Allocator* memory_of(c10::DeviceIndex device) {
  static auto* all = [] {
    auto* made = new std::vector<MemoryOf>;
    for (c10::DeviceIndex i = 0; i < SimulatedDevices::kCountMax; ++i) made->emplace_back(i);
    return made;
  }();
  TORCH_CHECK(0 <= device && device < current_machine().count(),
              "there is no device sim:", int{device}, ": there are ", current_machine().count(),
              ", from sim:0");
  return &(*all)[static_cast<size_t>(device)];
}

constexpr c10::DispatchKeySet kKeys{c10::DispatchKey::PrivateUse1};

at::Tensor empty_memory_format(c10::SymIntArrayRef sizes, OptionalType type, OptionalLayout,
                               OptionalDevice device, std::optional<bool>,
                               std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(sizes), memory_of(index_of(device)),
                                   kKeys, c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, OptionalType type,
                         OptionalLayout, OptionalDevice device, std::optional<bool>) {
  return at::detail::empty_strided_generic(
      C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), memory_of(index_of(device)),
      kKeys, c10::dtype_or_default(type));
}

void copy_on(StreamQueue& stream, const at::Tensor& from, const at::Tensor& to) {
  Machine& machine = current_machine();
  give_kernel(machine, stream,
              {.name = "aten::copy_",
               .reads = {from},
               .writes = {to},
               .run = [from_view = host_view(machine, from), to_view = host_view(machine, to)] {
                 to_view.copy_(from_view);
               }});
}

// Between devices: a copy runs on a stream of the one it comes from, behind what the other's stream
// has to do, and before what that one does next. So does LibTorch's for CUDA.
void copy_across(const at::Tensor& from, const at::Tensor& to) {
  Machine& machine = current_machine();
  StreamQueue& source = current_stream(from.get_device());
  StreamQueue& target = current_stream(to.get_device());
  machine.wait(source, machine.record(target));
  copy_on(source, from, to);
  machine.wait(target, machine.record(source));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (is_simulated(from) && is_simulated(to)) {
    if (from.device() == to.device())
      copy_on(current_stream(to.get_device()), from, to);
    else
      copy_across(from, to);
    return to;
  }
  StreamQueue& stream = current_stream(is_simulated(from) ? from.get_device() : to.get_device());
  if (is_simulated(to)) {
    const bool reads_later = non_blocking && is_pinned(from.const_data_ptr());
    copy_on(stream, reads_later || !non_blocking ? from : from.clone(), to);
  } else {
    if (non_blocking && to.is_contiguous() && to.numel() > 0)
      std::memset(to.mutable_data_ptr(), kPoison, to.nbytes());
    copy_on(stream, from, to);
  }
  if (!non_blocking) current_machine().synchronize(stream);
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar local_scalar(const at::Tensor& tensor) {
  Machine& machine = current_machine();
  at::Scalar value;
  run_kernel(machine, current_stream(tensor.get_device()),
             {.name = "aten::item",
              .reads = {tensor},
              .run = [&value, view = host_view(machine, tensor)] { value = view.item(); }});
  return value;
}

at::Tensor view(const at::Tensor& tensor, c10::SymIntArrayRef sizes) {
  return at::native::view(tensor, C10_AS_INTARRAYREF_SLOW(sizes));
}

at::Tensor as_strided(const at::Tensor& tensor, c10::SymIntArrayRef sizes,
                      c10::SymIntArrayRef strides, std::optional<c10::SymInt> offset) {
  return at::native::as_strided_tensorimpl(
      tensor, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides),
      offset ? std::optional(offset->expect_int()) : std::nullopt);
}

at::Tensor reshape_alias(const at::Tensor& tensor, c10::SymIntArrayRef sizes,
                         c10::SymIntArrayRef strides) {
  return at::native::_reshape_alias(tensor, C10_AS_INTARRAYREF_SLOW(sizes),
                                    C10_AS_INTARRAYREF_SLOW(strides));
}

// More memory for a tensor, with what it holds.
void grow(const at::Tensor& tensor, size_t bytes) {
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  const auto kept = static_cast<int64_t>(storage->nbytes());
  const at::TensorOptions options = at::TensorOptions(tensor.device()).dtype(at::kByte);
  at::Tensor larger = at::empty({static_cast<int64_t>(bytes)}, options);
  if (kept > 0) {
    at::Tensor old = at::empty({0}, options);
    old.set_(tensor.storage(), 0, {kept}, {1});
    larger.narrow(0, 0, kept).copy_(old, /*non_blocking=*/true);
  }
  storage->set_data_ptr(larger.storage().unsafeGetStorageImpl()->set_data_ptr(
      c10::DataPtr(nullptr, tensor.device())));
  storage->set_nbytes(bytes);
}

const at::Tensor& resize(const at::Tensor& tensor, c10::SymIntArrayRef symbolic_sizes,
                         std::optional<at::MemoryFormat> format) {
  const at::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(symbolic_sizes);
  const size_t bytes = at::detail::computeStorageNbytesContiguous(
      sizes, tensor.element_size(), static_cast<size_t>(tensor.storage_offset()));
  if (bytes > tensor.storage().nbytes()) grow(tensor, bytes);
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  if (format && *format != at::MemoryFormat::Preserve)
    tensor.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  return tensor;
}

at::Tensor& set_storage(at::Tensor& tensor, at::Storage storage, c10::SymInt offset,
                        c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides) {
  return at::native::set_storage_cpu_(tensor, std::move(storage), offset.expect_int(),
                                      C10_AS_INTARRAYREF_SLOW(sizes),
                                      C10_AS_INTARRAYREF_SLOW(strides));
}

at::Tensor& set_whole_storage(at::Tensor& tensor, at::Storage storage) {
  return at::native::set_(tensor, std::move(storage));
}

at::Tensor& set_tensor(at::Tensor& tensor, const at::Tensor& other) {
  return at::native::set_tensor_(tensor, other);
}

void record_stream(at::Tensor& tensor, at::Stream stream) {
  if (tensor.storage().nbytes() == 0) return;
  Machine& machine = current_machine();
  machine.use_on(tensor.storage().data(), machine.stream(stream.device_index(), stream.id()));
}

// So that `module.to("sim:0")` can replace what the parameters hold.
bool may_become(const at::Tensor& tensor, const at::Tensor& other) {
  const auto is_dense = [](const at::Tensor& t) {
    return t.layout() == at::kStrided && (t.device().is_cpu() || is_simulated(t));
  };
  return is_dense(tensor) && is_dense(other);
}

int64_t attention_by_small_operators(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                     const std::optional<at::Tensor>&, double, bool,
                                     std::optional<double>, bool) {
  return 0;  // at::SDPBackend::math
}

struct Convolution {
  std::vector<int64_t> stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;

  Convolution(c10::SymIntArrayRef strides, c10::SymIntArrayRef paddings,
              c10::SymIntArrayRef dilations, bool is_transposed,
              c10::SymIntArrayRef output_paddings, const c10::SymInt& group_count)
      : stride(C10_AS_INTARRAYREF_SLOW(strides).vec()),
        padding(C10_AS_INTARRAYREF_SLOW(paddings).vec()),
        dilation(C10_AS_INTARRAYREF_SLOW(dilations).vec()),
        output_padding(C10_AS_INTARRAYREF_SLOW(output_paddings).vec()),
        transposed(is_transposed),
        groups(group_count.expect_int()) {}

  [[nodiscard]] std::vector<int64_t> sizes_of_result(const at::Tensor& input,
                                                     const at::Tensor& weight) const {
    if (!transposed)
      return at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
    return at::native::conv_input_size(input.sizes(), weight.sizes(), padding, output_padding,
                                       stride, dilation, groups);
  }
};

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, c10::SymIntArrayRef stride,
                       c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                       c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  Machine& machine = current_machine();
  const Convolution c(stride, padding, dilation, transposed, output_padding, groups);
  at::Tensor result = at::empty(c.sizes_of_result(input, weight), input.options());
  const at::Tensor added = bias.value_or(at::Tensor());
  give_kernel(
      machine, current_stream(input.get_device()),
      {.name = "aten::convolution",
       .reads = {input, weight, added},
       .writes = {result},
       .run = [c, input_view = host_view(machine, input), weight_view = host_view(machine, weight),
               bias_view = host_view(machine, added), to = host_view(machine, result)] {
         to.copy_(at::convolution(
             input_view, weight_view, bias_view.defined() ? std::optional(bias_view) : std::nullopt,
             c.stride, c.padding, c.dilation, c.transposed, c.output_padding, c.groups));
       }});
  return result;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
    c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
    bool transposed, c10::SymIntArrayRef output_padding, c10::SymInt groups,
    std::array<bool, 3> wanted) {
  Machine& machine = current_machine();
  const Convolution c(stride, padding, dilation, transposed, output_padding, groups);
  const std::vector<int64_t> bias_sizes{gradient.size(1)};
  std::vector<at::Tensor> results{
      wanted[0] ? at::empty_like(input) : at::Tensor(),
      wanted[1] ? at::empty_like(weight) : at::Tensor(),
      wanted[2] ? at::empty(bias_sizes, gradient.options()) : at::Tensor()};
  std::vector<at::Tensor> views;
  for (const at::Tensor& result : results) views.push_back(host_view(machine, result));
  give_kernel(
      machine, current_stream(input.get_device()),
      {.name = "aten::convolution_backward",
       .reads = {gradient, input, weight},
       .writes = results,
       .run = [c, wanted, bias_sizes, views, gradient_view = host_view(machine, gradient),
               input_view = host_view(machine, input), weight_view = host_view(machine, weight)] {
         const auto [of_input, of_weight, of_bias] = at::convolution_backward(
             gradient_view, input_view, weight_view, bias_sizes, c.stride, c.padding, c.dilation,
             c.transposed, c.output_padding, c.groups, wanted);
         if (wanted[0]) views[0].copy_(of_input);
         if (wanted[1]) views[1].copy_(of_weight);
         if (wanted[2]) views[2].copy_(of_bias);
       }});
  return {results[0], results[1], results[2]};
}

}  // namespace

void install_kernels(torch::Library& library) {
  library.impl("empty.memory_format", empty_memory_format);
  library.impl("empty_strided", empty_strided);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("_local_scalar_dense", local_scalar);
  library.impl("view", view);
  library.impl("as_strided", as_strided);
  library.impl("_reshape_alias", reshape_alias);
  library.impl("unfold", at::native::unfold);
  library.impl("resize_", resize);
  library.impl("set_.source_Storage", set_whole_storage);
  library.impl("set_.source_Storage_storage_offset", set_storage);
  library.impl("set_.source_Tensor", set_tensor);
  library.impl("record_stream", record_stream);
  library.impl("_has_compatible_shallow_copy_type", may_become);
  library.impl("_fused_sdp_choice", attention_by_small_operators);
  library.impl("convolution_overrideable", convolution);
  library.impl("convolution_backward_overrideable", convolution_backward);
}

}  // namespace rehearsal::sim::device
