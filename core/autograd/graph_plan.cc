#include "core/autograd/graph_plan.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <tuple>
#include <typeinfo>
#include <unordered_map>
#include <utility>

#include "core/autograd/gate_backward.h"
#include "core/autograd/recv_rpc_backward.h"
#include "core/base/check.h"

namespace rehearsal {
namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::Node;

// Groups of the order; those of known makers come between, those of the unknown maker are last.
constexpr uint32_t kSinks = 0;
constexpr uint32_t kRoots = 1;
constexpr uint32_t kSends = 2;
constexpr uint32_t kFirstMaker = 3;

NodeRole role_of(Node* node) {
  if (!node->next_edges().empty()) {
    const Node& inner = *node;
    const std::type_info& type = typeid(inner);
    if (type == typeid(GateBackward)) return NodeRole::gate;
    return type == typeid(SectionInputBackward) ? NodeRole::input : NodeRole::ordinary;
  }
  if (dynamic_cast<AccumulateGrad*>(node) != nullptr) return NodeRole::leaf;
  if (dynamic_cast<RecvRpcBackward*>(node) != nullptr) return NodeRole::receive;
  return NodeRole::ordinary;
}

// Made with the graph, in the order of the forward pass.
bool has_maker(NodeRole role) {
  return role == NodeRole::ordinary || role == NodeRole::gate || role == NodeRole::input;
}

bool on_device(const Node& node) {
  for (uint32_t i = 0; i < node.num_inputs(); ++i)
    if (node.input_metadata(i).device().type() != at::kCPU) return true;
  return false;
}

}  // namespace

// Numbers the makers of nodes in the order in which they are met, then ranks them.
class GraphPlan::MakerGroups {
 public:
  explicit MakerGroups(const MakerTable& table) : table_(table) {}

  // A preliminary group, which `final_group` turns into the final one.
  uint32_t meet(const Node& node) {
    if (table_.empty()) return kUnknown;
    const uint64_t thread = node.thread_id();
    const uint64_t number = node.sequence_nr();
    if (last_run_ == nullptr || last_thread_ != thread || !last_run_->holds(number)) {
      last_run_ = table_.find(thread, number);
      last_thread_ = thread;
      if (last_run_ != nullptr) last_group_ = number_of(last_run_->maker);
    }
    return last_run_ == nullptr ? kUnknown : last_group_;
  }

  void rank() {
    std::vector<uint32_t> order(makers_.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [this](uint32_t first, uint32_t second) {
      return sums_before(makers_[first], makers_[second]);
    });
    ranks_.resize(order.size());
    for (uint32_t place = 0; place < order.size(); ++place) ranks_[order[place]] = place;
  }

  [[nodiscard]] uint32_t final_group(uint32_t met) const {
    const auto makers = static_cast<uint32_t>(makers_.size());
    return kFirstMaker + (met == kUnknown ? makers : ranks_[met]);
  }

 private:
  static constexpr uint32_t kUnknown = std::numeric_limits<uint32_t>::max();

  uint32_t number_of(const CausalId& maker) {
    const auto [at, fresh] = numbers_.emplace(maker, static_cast<uint32_t>(makers_.size()));
    if (fresh) makers_.push_back(maker);
    return at->second;
  }

  const MakerTable& table_;
  const NodeRun* last_run_ = nullptr;
  uint64_t last_thread_ = 0;
  uint32_t last_group_ = 0;
  std::vector<CausalId> makers_;
  std::vector<uint32_t> ranks_;
  std::unordered_map<CausalId, uint32_t, CausalIdHash> numbers_;
};

// One of several contributions to a slot, with what decides its place in the sum.
struct GraphPlan::Contribution {
  PlannedEdge* edge;
  uint32_t group;
  uint64_t sequence;
  uint32_t producer;
  uint32_t output;

  bool operator<(const Contribution& other) const {
    return std::tie(edge->slot, group, other.sequence, producer, output) <
           std::tie(other.edge->slot, other.group, sequence, other.producer, other.output);
  }
};

GraphPlan::GraphPlan(const std::vector<WalkRoot>& roots,
                     std::vector<std::shared_ptr<SendRpcBackward>> sends, const MakerTable& makers)
    : sends_(std::move(sends)) {
  nodes_.reserve(32);
  edges_.reserve(64);
  std::sort(sends_.begin(), sends_.end(), [](const auto& first, const auto& second) {
    return sums_before(first->route().message, second->route().message);
  });
  for (const auto& send : sends_) {
    const uint32_t index = discover(send.get());
    REHEARSAL_CHECK(index + 1 == nodes_.size(), send->route().message);
    nodes_[index].role = NodeRole::send;
    ++nodes_[index].dependencies;
  }
  for (const WalkRoot& root : roots) {
    REHEARSAL_CHECK(root.edge.is_valid());
    root_nodes_.push_back(root.edge.function);
    root_edges_.push_back(plan_edge(root.edge));
  }
  explore(makers);
  rank_contributions();
}

// The list of nodes found is at the same time the queue of those to explore.
void GraphPlan::explore(const MakerTable& makers) {
  MakerGroups groups(makers);
  for (uint32_t index = 0; index < nodes_.size(); ++index) {
    Node* const node = nodes_[index].node;
    const NodeRole role = nodes_[index].role;
    nodes_[index].first_edge = static_cast<uint32_t>(edges_.size());
    nodes_[index].edge_count = node->num_outputs();
    if (has_maker(role)) {
      nodes_[index].group = groups.meet(*node);
      nodes_[index].sequence = node->sequence_nr();
    } else if (role == NodeRole::send) {
      nodes_[index].group = kSends;
      nodes_[index].sequence = sends_.size() - index;
    }
    for (const torch::autograd::Edge& edge : node->next_edges()) edges_.push_back(plan_edge(edge));
  }
  groups.rank();
  for (PlannedNode& planned : nodes_)
    if (has_maker(planned.role)) planned.group = groups.final_group(planned.group);
}

uint32_t GraphPlan::discover(Node* node) {
  const auto [at, fresh] = indices_.emplace(node, static_cast<uint32_t>(nodes_.size()));
  if (!fresh) return at->second;
  PlannedNode& planned = nodes_.emplace_back();
  planned.node = node;
  planned.group = kSinks;
  planned.role = role_of(node);
  planned.on_device = on_device(*node);
  planned.first_slot = slot_count_;
  planned.slot_count = node->num_inputs();
  slot_count_ += planned.slot_count;
  return at->second;
}

PlannedEdge GraphPlan::plan_edge(const torch::autograd::Edge& edge) {
  if (!edge.is_valid()) return {};
  const uint32_t target = discover(edge.function.get());
  REHEARSAL_CHECK(edge.input_nr < nodes_[target].slot_count, edge.function->name(), edge.input_nr);
  ++nodes_[target].dependencies;
  return {target, nodes_[target].first_slot + edge.input_nr, 0};
}

void GraphPlan::rank_contributions() {
  std::vector<uint32_t> counts(slot_count_);
  uint32_t shared = 0;
  const auto count = [&](const std::vector<PlannedEdge>& edges) {
    for (const PlannedEdge& edge : edges)
      if (edge.node != PlannedEdge::kNowhere) shared += ++counts[edge.slot] > 1;
  };
  count(root_edges_);
  count(edges_);
  if (shared == 0) return;

  std::vector<Contribution> contributions;
  contributions.reserve(size_t{2} * shared);
  const auto add = [&](PlannedEdge& edge, uint32_t producer, uint32_t output, uint32_t group,
                       uint64_t sequence) {
    if (edge.node == PlannedEdge::kNowhere || counts[edge.slot] < 2) return;
    contributions.push_back({&edge, group, sequence, producer, output});
  };
  for (uint32_t i = 0; i < root_edges_.size(); ++i) add(root_edges_[i], i, 0, kRoots, 0);
  for (uint32_t index = 0; index < nodes_.size(); ++index) {
    const PlannedNode& planned = nodes_[index];
    for (uint32_t i = 0; i < planned.edge_count; ++i)
      add(edges_[planned.first_edge + i], index, i, planned.group, planned.sequence);
  }
  std::sort(contributions.begin(), contributions.end());
  for (size_t i = 1; i < contributions.size(); ++i)
    if (contributions[i].edge->slot == contributions[i - 1].edge->slot)
      contributions[i].edge->rank = contributions[i - 1].edge->rank + 1;
}

std::optional<uint32_t> GraphPlan::find(const SendRpcBackward& send) const {
  const auto found = indices_.find(&send);
  if (found == indices_.end()) return std::nullopt;
  return found->second;
}

bool GraphPlan::before(uint32_t first, uint32_t second) const {
  const PlannedNode& a = nodes_[first];
  const PlannedNode& b = nodes_[second];
  if (a.group != b.group) return a.group < b.group;
  if (a.sequence != b.sequence) return a.sequence > b.sequence;
  return first < second;
}

}  // namespace rehearsal
