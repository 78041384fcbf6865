// LibTorch takes square roots by MKL, whose kernel for every processor starts from the processor's
// own approximation: with MKL_CBWR=COMPATIBLE one root in six is not the nearest number, and is
// another one on another processor. Optimizers take many roots. These tests take the nearest
// number.
#include <ATen/Dispatch.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <cmath>

namespace rehearsal {
namespace {

at::Tensor nearest_sqrt(const at::Tensor& of) {
  at::Tensor root = at::empty_like(of, at::MemoryFormat::Contiguous).copy_(of);
  AT_DISPATCH_FLOATING_TYPES(root.scalar_type(), "nearest_sqrt", [&] {
    scalar_t* elements = root.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < root.numel(); ++i) elements[i] = std::sqrt(elements[i]);
  });
  return root;
}

at::Tensor& nearest_sqrt_in_place(at::Tensor& of) { return of.copy_(nearest_sqrt(of)); }

at::Tensor& nearest_sqrt_into(const at::Tensor& of, at::Tensor& out) {
  return out.resize_(of.sizes()).copy_(nearest_sqrt(of));
}

TORCH_LIBRARY_IMPL(aten, CPU, library) {
  library.impl("sqrt", &nearest_sqrt);
  library.impl("sqrt_", &nearest_sqrt_in_place);
  library.impl("sqrt.out", &nearest_sqrt_into);
}

}  // namespace
}  // namespace rehearsal
