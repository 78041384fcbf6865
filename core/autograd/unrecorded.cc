#include "core/autograd/unrecorded.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "core/base/error.h"

namespace rehearsal {
namespace {

// Stands where LibTorch keeps what runs after a leaf's `.grad` was written, and does nothing there:
// unlike other hooks it is not replaced when a user registers one.
class UnrecordedMark final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit UnrecordedMark(std::shared_ptr<const std::string> how) : how_(std::move(how)) {}
  void operator()(const torch::autograd::Variable&) override {}
  [[nodiscard]] const std::string& how() const { return *how_; }

 private:
  const std::shared_ptr<const std::string> how_;
};

}  // namespace

void mark_as_unrecorded(const at::Tensor& leaf, std::shared_ptr<const std::string> how) {
  torch::autograd::impl::set_post_acc_grad_hooks(leaf,
                                                 std::make_unique<UnrecordedMark>(std::move(how)));
}

const std::string* how_it_came(const at::Tensor& leaf) {
  const auto* mark =
      dynamic_cast<const UnrecordedMark*>(torch::autograd::impl::post_acc_grad_hooks(leaf).get());
  return mark == nullptr ? nullptr : &mark->how();
}

void refuse_unrecorded(const at::Tensor& leaf) {
  const std::string* const how = how_it_came(leaf);
  if (how == nullptr) return;
  throw RpcError(
      {.kind = ErrorKind::autograd,
       .text = "gradients would be lost: the pass reached " + *how +
               ". Make that call in the context of the pass, while a Recording of it "
               "lives (context.record()) and in no shielded scope, or through it; or use "
               "tensor.detach().requires_grad_() if it is to be a leaf of its own",
       .worker = {},
       .function = "backward",
       .chain = {}});
}

}  // namespace rehearsal
