#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/flat_hash_map.h>
#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "core/autograd/node_makers.h"
#include "core/autograd/send_rpc_backward.h"

namespace rehearsal {

// Note [Canonical sums]
// When several contributions to one input of a node are added, their order decides the last bits.
// It must not depend on which gradient message came first or on which thread ran what. So:
//   1. the gradients of local roots, in the order in which the roots were given;
//   2. what send functions contribute, latest autograd message id first;
//   3. what other nodes contribute, by the execution that made the node, latest causal id first
//      (nodes of unknown maker last), and within one execution by descending sequence number;
//   4. several contributions of one node, by ascending output.
// Ids are compared without the incarnation. For a graph that one execution made this is the order
// of LibTorch's engine, except where a node has a higher number than the one that feeds it.
//
// The same order, with leaves and receive functions before everything, decides which ready node a
// walk evaluates first, so that hooks run in the same order in every schedule in which the same
// gradients are there.

// The role of a node in a walk.
enum class NodeRole : uint8_t {
  ordinary,
  leaf,     // AccumulateGrad: its gradient is collected
  send,     // a SendRpcBackward of the pass: a gradient message starts it
  receive,  // a RecvRpcBackward: its gradients leave this worker
  gate,     // a GateBackward: the walk rests in front of it until it may go on
  input,    // a SectionInputBackward: where the section behind a gate ends
};

struct PlannedNode {
  torch::autograd::Node* node = nullptr;
  uint64_t sequence = 0;    // within its group: higher is first
  uint32_t group = 0;       // lower is first
  uint32_t first_edge = 0;  // of next_edges(), one planned edge each
  uint32_t edge_count = 0;
  uint32_t first_slot = 0;  // of its inputs, one slot each
  uint32_t slot_count = 0;
  uint32_t dependencies = 0;  // contributions that it waits for, defined or not
  NodeRole role = NodeRole::ordinary;
  bool on_device = false;  // has inputs on an accelerator, hence a stream
};

// Where one contribution goes.
struct PlannedEdge {
  static constexpr uint32_t kNowhere = std::numeric_limits<uint32_t>::max();

  uint32_t node = kNowhere;  // index of a PlannedNode, or kNowhere for an output nobody wants
  uint32_t slot = 0;
  uint32_t rank = 0;  // its place in the canonical sum of the slot, from 0
};

// A local root: where a backward pass starts, and with which gradient.
struct WalkRoot {
  torch::autograd::Edge edge;
  at::Tensor gradient;
};

// The part of one worker's autograd graph that a pass reaches from its local roots and its send
// functions, numbered in the order of discovery, which depends on the graph only. Owns what keeps
// the graph alive. Immutable once made; the graph is only read.
class GraphPlan {
 public:
  // `sends` are those that will get gradients in this pass, each once, in any order.
  GraphPlan(const std::vector<WalkRoot>& roots, std::vector<std::shared_ptr<SendRpcBackward>> sends,
            const MakerTable& makers);

  [[nodiscard]] const std::vector<PlannedNode>& nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<PlannedEdge>& edges() const { return edges_; }
  [[nodiscard]] uint32_t slot_count() const { return slot_count_; }

  // One for each root, in the order given.
  [[nodiscard]] const std::vector<PlannedEdge>& root_edges() const { return root_edges_; }

  // The send functions, latest message first. They are the nodes 0 … size − 1.
  [[nodiscard]] const std::vector<std::shared_ptr<SendRpcBackward>>& sends() const {
    return sends_;
  }

  // The index of a send function of this plan; none for any other.
  [[nodiscard]] std::optional<uint32_t> find(const SendRpcBackward& send) const;

  // True if node `first` comes before node `second`.
  [[nodiscard]] bool before(uint32_t first, uint32_t second) const;

 private:
  struct Contribution;
  class MakerGroups;

  void explore(const MakerTable& makers);
  uint32_t discover(torch::autograd::Node* node);
  PlannedEdge plan_edge(const torch::autograd::Edge& edge);
  void rank_contributions();

  std::vector<std::shared_ptr<SendRpcBackward>> sends_;
  std::vector<std::shared_ptr<torch::autograd::Node>> root_nodes_;
  ska::flat_hash_map<const torch::autograd::Node*, uint32_t> indices_;
  std::vector<PlannedNode> nodes_;
  std::vector<PlannedEdge> edges_;
  std::vector<PlannedEdge> root_edges_;
  uint32_t slot_count_ = 0;
};

}  // namespace rehearsal
