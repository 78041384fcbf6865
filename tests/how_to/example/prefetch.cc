#include "prefetch.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

namespace prefetch {
namespace {

c10::Stream current_stream(torch::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

c10::Stream another_stream(torch::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

}  // namespace

Prefetcher::Prefetcher(std::vector<torch::Tensor> batches, torch::Device device)
    : batches_(std::move(batches)),
      device_(device),
      copies_(another_stream(device)),
      arrived_(device.type()) {
  fetch();
}

void Prefetcher::fetch() {
  ahead_ = torch::Tensor();
  if (fetched_ == batches_.size()) return;
  const c10::StreamGuard on_copies(copies_);
  ahead_ = batches_[fetched_++].to(device_, torch::kFloat, /*non_blocking=*/true);
  arrived_.record(copies_);
}

torch::Tensor Prefetcher::next_at_once() {
  torch::Tensor batch = ahead_;
  fetch();
  return batch;
}

torch::Tensor Prefetcher::next_in_order() {
  arrived_.block(current_stream(device_));
  torch::Tensor batch = ahead_;
  fetch();
  return batch;
}

torch::Tensor Prefetcher::next() {
  arrived_.block(current_stream(device_));
  torch::Tensor batch = ahead_;
  if (batch.defined()) batch.record_stream(current_stream(device_));
  fetch();
  return batch;
}

float sum_of_squares(Prefetcher& batches, Next next, torch::Device device) {
  torch::Tensor sum = torch::zeros({}, device);
  while (true) {
    const torch::Tensor batch = (batches.*next)();
    if (!batch.defined()) return sum.item<float>();
    sum += batch.pow(2).sum();
  }
}

}  // namespace prefetch
