#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/result.h"
#include "core/base/unique_function.h"

namespace torch::autograd {
struct Node;
}

namespace rehearsal {

// The work behind a gate comes in one part, or in two.
enum class GatePart : uint8_t {
  flow,    // what leads to the inputs of the section; all work, if nothing is held back
  leaves,  // what leads to leaves only, and was held back
};

// Decides when a backward pass may work on a section of its graph. The pass rests meanwhile: no
// stack is held, and it goes on wherever else it can.
class PassGate {
 public:
  virtual ~PassGate() = default;

  // Whether work that leads to leaves only is held back, as a part of its own. Any thread.
  [[nodiscard]] virtual bool holds_leaves() const = 0;

  // The pass has come to this part: `open` is called once, on the strand, when it may go on, or
  // with why it never may. Any thread; never parks.
  virtual void ask(GatePart part, UniqueFunction<void(Status)> open) = 0;

  // The part has ended, or there is nothing to do for it; perhaps told without `ask`. Any thread;
  // never parks.
  virtual void end(GatePart part) = 0;
};

// The forward pass of a section: what is computed from what `enter` returns, up to what `leave` is
// given.
class GatedSection {
 public:
  explicit GatedSection(std::shared_ptr<PassGate> gate) : gate_(std::move(gate)) {}

  // The same values, for the section alone.
  [[nodiscard]] at::Tensor enter(const at::Tensor& input);

  // The same values, for all others; once. The output that needs no gradient as it is: then there
  // is nothing to do in a backward pass, and the gate hears so.
  [[nodiscard]] at::Tensor leave(const at::Tensor& output);

 private:
  const std::shared_ptr<PassGate> gate_;
  std::vector<std::shared_ptr<torch::autograd::Node>> inputs_;  // those that take part
};

}  // namespace rehearsal
