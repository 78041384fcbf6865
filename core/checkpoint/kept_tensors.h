#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "core/api/checkpoint_parts.h"
#include "core/api/worker_access.h"

namespace torch::nn {
class Module;
}  // namespace torch::nn

// Tensors of this worker in a cut. All park, and throw RpcError.
namespace rehearsal {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Copies them.
void keep_tensors(const WorkerAccess& here, const CheckpointOrder& order,
                  const NamedTensors& tensors);

// From here on in this run they have these names. If the run goes on from a cut, changes them in
// place to what was saved. The names of the pieces taken. Throws of kind storage, before anything
// is changed, for a piece that is no tensor of the same shape.
std::vector<std::string> load_tensors(const WorkerAccess& here, const CheckpointOrder& order,
                                      const NamedTensors& tensors);

// Parameters and buffers, those that are defined: "name.first.weight".
[[nodiscard]] NamedTensors tensors_of(const torch::nn::Module& module, const std::string& name);

}  // namespace rehearsal
