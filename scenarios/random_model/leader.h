#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/api/autograd_context.h"
#include "core/api/worker.h"
#include "scenarios/random_model/part.h"
#include "scenarios/random_model/reference.h"

namespace rehearsal::random_model {

// A result that is not that of one process. The text names node, operator and worker.
class WrongResult : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// An error that a worker may cause by being lost.
[[nodiscard]] bool is_loss(ErrorKind kind);

// Runs the model over all workers, once, in one autograd context: forward, then every pass.
class Attempt {
 public:
  // `on_failed_pass` is told why a pass failed that is then tried again.
  Attempt(const Worker& worker, const Model& model, const Reference& reference,
          std::function<void(const RpcError&)> on_failed_pass);

  // The gradients of all leaves after the last pass, in the order of nodes, on the CPU. Throws
  // WrongResult, or the RpcError of what failed for good. Parks.
  Outputs run();

 private:
  // The results of a node, at one place or at several.
  struct Held {
    std::optional<Future<Outputs>> coming;
    std::optional<Outputs> here;
    RRef<Outputs> there;
    std::optional<at::Tensor> loss_here;
    RRef<at::Tensor> loss_there;
  };

  // An output of a device, compared at the end: the host would wait for it.
  struct Unchecked {
    size_t node;
    size_t number;
    at::Tensor found;
  };

  void refer_to_leaves();
  void run_node(size_t index);
  void run_loss(size_t index);
  [[nodiscard]] Arguments arguments_of(const Node& node);
  Outputs tensors_of(size_t index);
  RRef<Outputs> reference_of(size_t index);
  at::Tensor loss_of(size_t index);
  RRef<at::Tensor> loss_reference_of(size_t index);
  void wait_for_all();
  void expect_outputs(size_t index, const Outputs& found);
  void expect_output(size_t index, size_t output, const at::Tensor& found) const;

  // Until it succeeds, or has failed too often.
  void run_pass(size_t index);
  void start_pass(size_t index, const BackwardOptions& options);
  void run_penalty(const BackwardOptions& options);
  Outputs gradients();

  const Worker& worker_;
  const Model& model_;
  const Reference& reference_;
  const std::function<void(const RpcError&)> on_failed_pass_;
  const AutogradContext context_;
  std::vector<RRef<Part>> parts_;
  std::vector<Held> held_;
  std::vector<Unchecked> unchecked_;
};

}  // namespace rehearsal::random_model
