#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>
#include <vector>

#include "sim/device/backend.h"

// LibTorch asks every device but the CPU for recurrent cells in one kernel. Here they are made of
// small operators, whose gradients are recorded as those of the CPU's are.
namespace rehearsal::sim::device {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

at::Tensor with_bias(const at::Tensor& gates, const OptionalTensor& bias) {
  return bias && bias->defined() ? gates.add(*bias) : gates;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates,
                                                         const at::Tensor& hidden_gates,
                                                         const at::Tensor& cell,
                                                         const OptionalTensor& input_bias,
                                                         const OptionalTensor& hidden_bias) {
  const at::Tensor gates =
      with_bias(input_gates, input_bias).add(with_bias(hidden_gates, hidden_bias));
  const std::vector<at::Tensor> parts = gates.chunk(4, 1);
  const at::Tensor in = parts[0].sigmoid(), forget = parts[1].sigmoid();
  const at::Tensor update = parts[2].tanh(), out = parts[3].sigmoid();
  at::Tensor next = forget.mul(cell).add(in.mul(update));
  at::Tensor hidden = out.mul(next.tanh());
  return {std::move(hidden), std::move(next), gates};
}

std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& input_gates,
                                            const at::Tensor& hidden_gates,
                                            const at::Tensor& hidden,
                                            const OptionalTensor& input_bias,
                                            const OptionalTensor& hidden_bias) {
  const std::vector<at::Tensor> in = with_bias(input_gates, input_bias).chunk(3, 1);
  const std::vector<at::Tensor> past = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const at::Tensor reset = past[0].add(in[0]).sigmoid();
  const at::Tensor update = past[1].add(in[1]).sigmoid();
  const at::Tensor fresh = in[2].add(past[2].mul(reset)).tanh();
  return {hidden.sub(fresh).mul(update).add(fresh), fresh};
}

}  // namespace

void install_recurrent_cells(torch::Library& library) {
  library.impl("_thnn_fused_lstm_cell", lstm_cell);
  library.impl("_thnn_fused_gru_cell", gru_cell);
}

}  // namespace rehearsal::sim::device
