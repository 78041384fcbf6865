#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"

namespace rehearsal::random_model {

// The computation of one node. All take tensors of 2×3 elements and give such, except where noted.
enum class Operator : uint8_t {
  parameter,  // a leaf of its worker
  table,      // a leaf of 4×3 elements, for `look_up` only
  add,
  subtract,
  multiply,
  blend,  // times a matrix
  outer,  // a·bᵀ, times a matrix
  activation,
  where,                // of each element one of two
  rearrange,            // gives a view, with strides of its own
  in_place,             // changes what it received, and views of it
  half_differentiable,  // a function of its own, with an undefined gradient for its second input
  two_outputs,          // the same with two results, of which one may stay unused
  checkpoint,           // runs forward again in its backward
  look_up,              // rows of a table
  without_grad,         // under a NoGradGuard
  detached,             // its first input is detached
  with_indices,         // has a second output without gradient
  enlarge,              // has a second output that travels on the large lane
  shrink,               // of such an output
  loss,                 // a number
};

[[nodiscard]] std::string_view name_of(Operator op);

// How an input comes to its node, and from where.
struct Input {
  size_t node = 0;
  size_t output = 0;
  bool by_reference = false;  // fetched by the node's worker; else an argument of the call
  bool apart = false;         // fetched asynchronously; by its owner as if it were another's
};

// How a node is called by the leader's main.
enum class Way : uint8_t { here, sync, async, remote };

struct Node {
  Operator op = Operator::parameter;
  uint32_t worker = 0;
  at::ScalarType type = at::kDouble;
  std::vector<Input> inputs;
  Way way = Way::sync;
  std::vector<uint32_t> via;  // workers through which call and result travel
  uint64_t word = 0;          // draws variants of the operator
  size_t island = 0;          // nodes of different islands have parameters in common only
  at::Tensor content;         // of a leaf; else a factor
  at::Tensor matrix;
};

enum class Start : uint8_t { here, at_owner, of_several, served };

// A backward pass. Its roots are losses, or the penalty: of all gradients that the context has by
// then, which an earlier pass has recorded (create_graph).
struct Pass {
  std::vector<size_t> losses;  // nodes; none: the penalty
  Start start = Start::here;
  uint32_t worker = 0;        // of `served`
  bool retain_graph = false;  // with it a pass that fails is tried again in the same context
  bool create_graph = false;
  bool hasty = false;  // first with a deadline that it may miss
};

// A model: a graph of nodes, and the passes over it. In an *exact* one all numbers are whole and
// so small that no sum is rounded, whatever its order. In any other, a value that is no leaf gets
// at most two contributions to its gradient, whose order does not matter, but for the first output
// of one node, the *hub*, which may get three.
struct Model {
  uint32_t workers = 0;
  bool exact = false;
  bool fast = false;       // everything is used: passes in mode FAST
  bool records = false;    // some pass is recorded: operators must be differentiable twice
  bool leads_all = false;  // the leader has met the owners of all leaves in the context
  bool sparse = true;      // look_ups may give sparse gradients; no device holds one
  bool hurries = false;    // the first pass does not wait for results that it does not need
  std::optional<size_t> hub;
  std::vector<Node> nodes;  // inputs come before what uses them
  std::vector<Pass> passes;
};

[[nodiscard]] inline bool is_leaf(const Node& node) {
  return node.op == Operator::parameter || node.op == Operator::table;
}

// The leaves of one worker, in order.
[[nodiscard]] std::vector<size_t> leaves_of(const Model& model, uint32_t worker);

// As the program names it: the first is the leader.
[[nodiscard]] std::string worker_name(uint32_t worker);

// For people: "node 7 (multiply, Float, at worker2)".
[[nodiscard]] std::string text_of(const Model& model, size_t node);

struct Size {
  uint32_t workers = 2;
  size_t nodes = 1;   // beside leaves and losses
  size_t passes = 1;  // beside that over the penalty
};

// The model that this seed means. A node depends on the seed and on those before it only.
[[nodiscard]] Model draw_model(Seed seed, const Size& size);

}  // namespace rehearsal::random_model
