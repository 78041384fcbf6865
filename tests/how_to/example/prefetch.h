// Batches that are copied to a device while it computes with the one before.
#pragma once

#include <c10/core/Event.h>
#include <torch/torch.h>

#include <vector>

namespace prefetch {

class Prefetcher {
 public:
  // `batches` are on the host, best in pinned memory; `device` is any that has streams.
  Prefetcher(std::vector<torch::Tensor> batches, torch::Device device);

  // The next batch, for the current stream of the device; undefined behind the last. The second and
  // the third are how one comes to the first.
  torch::Tensor next();
  torch::Tensor next_in_order();
  torch::Tensor next_at_once();

 private:
  void fetch();

  std::vector<torch::Tensor> batches_;
  torch::Device device_;
  c10::Stream copies_;
  c10::Event arrived_;
  size_t fetched_ = 0;
  torch::Tensor ahead_;
};

using Next = torch::Tensor (Prefetcher::*)();

// The sum of the squares of all numbers in all batches.
float sum_of_squares(Prefetcher& batches, Next next, torch::Device device);

}  // namespace prefetch
