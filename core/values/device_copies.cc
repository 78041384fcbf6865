#include "core/values/device_copies.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "core/values/tensor_form.h"
#include "core/values/value_io.h"

namespace rehearsal {

at::Tensor DeviceCopies::to_host(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const at::Tensor source = tensor.detach();
  const c10::Device device = source.device();
  const at::Tensor host =
      at::empty_like(source, source.options().device(at::kCPU).pinned_memory(true));
  host.copy_(source, /*non_blocking=*/true);
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  source.record_stream(stream);  // Its memory may be of another one, as what a state gave away.
  if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end())
    streams_.push_back(stream);
  return host;
}

bool DeviceCopies::close() {
  if (!streams_.empty()) marks_ = std::make_shared<const StreamMarks>(streams_);
  return marks_ != nullptr;
}

bool DeviceCopies::done() {
  if (marks_ == nullptr) return true;
  try {
    if (!marks_->reached()) return false;
  } catch (const c10::Error& error) {
    failure_ = first_line(error);
  }
  marks_.reset();
  return true;
}

namespace {

// The host would wait for the device to copy other memory.
at::Tensor pinned(const at::Tensor& tensor) {
  if (tensor.numel() == 0 || tensor.is_pinned()) return tensor;
  return at::empty_like(tensor, tensor.options().pinned_memory(true)).copy_(tensor);
}

at::Tensor on_device(const at::Tensor& tensor, c10::Device device) {
  if (has_parts(tensor))
    throw BadValue("a sparse or quantized tensor cannot be put on " + device.str());
  const at::NoGradGuard no_grad;
  const at::Tensor from = pinned(tensor.detach());
  at::Tensor moved = from.to(device, /*non_blocking=*/true);
  return moved.set_requires_grad(tensor.requires_grad());
}

}  // namespace

void put_on_devices(std::vector<at::Tensor>& tensors, const std::vector<TensorPlace>& places,
                    const DevicesHere& devices) {
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].to == 0 || !tensors[i].defined()) continue;
    const int number = places[i].to - 1;
    if (number >= devices.count)
      throw BadValue("a tensor came for device " + std::to_string(number) + ": this worker has " +
                     std::to_string(devices.count));
    tensors[i] = on_device(tensors[i], devices.at(number));
  }
}

}  // namespace rehearsal
