#include "sim/device/host_view.h"

#include <ATen/ops/from_blob.h>

namespace rehearsal::sim::device {

at::Tensor host_view(const Machine& machine, const at::Tensor& tensor) {
  if (!is_simulated(tensor)) return tensor;
  void* data = tensor.numel() == 0 ? nullptr : machine.on_host(tensor.const_data_ptr());
  at::Tensor view = at::from_blob(data, tensor.sizes(), tensor.strides(),
                                  at::TensorOptions(at::kCPU).dtype(tensor.scalar_type()));
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
    view.unsafeGetTensorImpl()->set_wrapped_number(true);
  if (tensor.is_conj()) view._set_conj(true);
  if (tensor.is_neg()) view._set_neg(true);
  return view;
}

}  // namespace rehearsal::sim::device
