#include "core/autograd/gradient_slots.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "core/base/check.h"

namespace rehearsal {
namespace {

using torch::autograd::InputBuffer;
using torch::autograd::Node;

// LibTorch 2.8 added the consumer to the parameters.
template <class Buffer>
void add_to(Buffer& buffer, size_t position, at::Tensor gradient,
            const std::optional<c10::Stream>& producer, const std::optional<c10::Stream>& consumer,
            Node* node) {
  if constexpr (requires { buffer.add(position, std::move(gradient), producer, consumer, node); })
    buffer.add(position, std::move(gradient), producer, consumer, node);
  else
    buffer.add(position, std::move(gradient), producer, consumer);
}

// In which the code that evaluates a node gives work on this gradient.
c10::Stream current_stream_of(const at::Tensor& gradient) {
  return c10::impl::VirtualGuardImpl(gradient.device().type()).getStream(gradient.device());
}

// Makes `consumer` wait until it may read the buffer, and of a gradient that is on another device
// than its node's stream the current stream there. Older versions wait in `add` itself.
template <class Buffer>
void wait_until_ready(const Buffer& buffer, const c10::Stream& consumer) {
  if constexpr (requires { buffer.ready_events; }) {
    const auto wait = [&buffer](size_t i, const c10::Stream& reader) {
      if (buffer.ready_streams[i] && *buffer.ready_streams[i] == reader) return;
      reader.wait(*buffer.ready_events[i]);
    };
    for (size_t i = 0; i < buffer.buffer.size(); ++i) {
      const at::Tensor& gradient = buffer.buffer[i];
      if (!gradient.defined() || !buffer.ready_events[i]) continue;
      wait(i, consumer);
      if (!gradient.device().is_cpu() && gradient.device() != consumer.device())
        wait(i, current_stream_of(gradient));
    }
  }
}

}  // namespace

GradientSlots::GradientSlots(const GraphPlan& plan)
    : plan_(plan), sums_(plan.slot_count()), folded_(plan.slot_count()) {}

void GradientSlots::add(const PlannedEdge& edge, at::Tensor gradient,
                        const std::optional<c10::Stream>& producer) {
  uint32_t& folded = folded_[edge.slot];
  REHEARSAL_CHECK(edge.rank >= folded, edge.slot, edge.rank, folded);
  if (edge.rank > folded) {
    const bool fresh =
        early_.try_emplace({edge.slot, edge.rank}, std::move(gradient), producer).second;
    REHEARSAL_CHECK(fresh, edge.slot, edge.rank);
    return;
  }
  fold(edge, std::move(gradient), producer);
  ++folded;
  while (!early_.empty()) {
    const auto next = early_.find({edge.slot, folded});
    if (next == early_.end()) return;
    const Early early = std::move(early_.extract(next).mapped());
    fold(edge, early.gradient, early.producer);
    ++folded;
  }
}

void GradientSlots::fold(const PlannedEdge& edge, at::Tensor gradient,
                         const std::optional<c10::Stream>& producer) {
  if (!gradient.defined()) return;
  const PlannedNode& node = plan_.nodes()[edge.node];
  if (node.on_device) return fold_on_device(edge, std::move(gradient), producer);
  at::Tensor& sum = sums_[edge.slot];
  if (!sum.defined()) {
    sum = std::move(gradient);
    return;
  }
  if (!adder_) adder_.emplace(1);
  adder_->buffer[0] = std::move(sum);
  add_to(*adder_, 0, std::move(gradient), std::nullopt, std::nullopt, node.node);
  sum = std::move(adder_->buffer[0]);
}

void GradientSlots::fold_on_device(const PlannedEdge& edge, at::Tensor gradient,
                                   const std::optional<c10::Stream>& producer) {
  const PlannedNode& node = plan_.nodes()[edge.node];
  InputBuffer& buffer = device_buffers_.try_emplace(edge.node, node.slot_count).first->second;
  add_to(buffer, edge.slot - node.first_slot, std::move(gradient), producer, node.node->stream(),
         node.node);
}

torch::autograd::variable_list GradientSlots::take(uint32_t index,
                                                   const std::optional<c10::Stream>& consumer) {
  const PlannedNode& node = plan_.nodes()[index];
  if (node.on_device) {
    const auto found = device_buffers_.find(index);
    if (found == device_buffers_.end()) return torch::autograd::variable_list(node.slot_count);
    auto entry = device_buffers_.extract(found);
    if (consumer) wait_until_ready(entry.mapped(), *consumer);
    return std::move(entry.mapped().buffer);
  }
  torch::autograd::variable_list inputs;
  inputs.reserve(node.slot_count);
  for (uint32_t i = 0; i < node.slot_count; ++i)
    inputs.push_back(std::move(sums_[node.first_slot + i]));
  return inputs;
}

}  // namespace rehearsal
