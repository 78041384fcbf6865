#pragma once

#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/api/pass_gate.h"
#include "core/autograd/graph_plan.h"

namespace rehearsal {

// The gates of a walk: which are open, and the work that is held back behind each.
//
// While the flow of a section runs, a node that leads to leaves only is held back whole. One that
// leads elsewhere, too, is evaluated for what leads elsewhere; its inputs are kept for the rest, if
// it can be evaluated in parts (node_evaluation.h). All that is held runs as the section's second
// part. Gradients that a section waits for from other workers run on whole when they come.
class GatedSections {
 public:
  // A node that was evaluated for some of its edges.
  struct Kept {
    torch::autograd::variable_list inputs;
    std::vector<bool> flowing;      // those edges
    std::vector<int64_t> versions;  // of the inputs
  };

  // `plan` outlives it.
  explicit GatedSections(const GraphPlan& plan);

  [[nodiscard]] bool empty() const { return gates_.empty(); }

  // True for a gate where the walk has to rest.
  [[nodiscard]] bool is_closed(uint32_t node) const;
  [[nodiscard]] PassGate& gate(uint32_t node) const;

  // The flow behind a gate begins, and holds back what the gate says, unless `whole`; and ends for
  // now, because no node is ready.
  void begin_flow(uint32_t gate, bool whole);
  void pause_flow() { running_.reset(); }

  // Whether a node that is ready has to wait for the second part; it is kept for it then.
  [[nodiscard]] bool hold_back(uint32_t node);

  // Which of the node's edges lead elsewhere than to leaves, if it is evaluated in parts now; else
  // empty.
  [[nodiscard]] std::vector<bool> flowing_edges(uint32_t node) const;
  // The inputs of such a node, which are needed again for its other edges.
  void keep(uint32_t node, torch::autograd::variable_list inputs, std::vector<bool> flowing);
  // Throws RpcError (autograd) if somebody has changed the inputs in place since.
  [[nodiscard]] std::optional<Kept> take_kept(uint32_t node);

  // Sections of which every input is `settled`, each once: their flow has ended.
  [[nodiscard]] std::vector<uint32_t> end_flows(const std::vector<bool>& settled);
  [[nodiscard]] bool holds_work(uint32_t gate) const { return !gates_.at(gate).held.empty(); }
  // The nodes held back, which are ready.
  [[nodiscard]] std::vector<uint32_t> take_held(uint32_t gate);

 private:
  struct Gate {
    bool open = false;
    bool ended = false;  // its flow
    std::vector<uint32_t> held;
  };

  void find_flowing();
  [[nodiscard]] std::span<const PlannedEdge> edges_of(uint32_t node) const;

  const GraphPlan& plan_;
  std::map<uint32_t, Gate> gates_;   // by node
  std::vector<bool> flows_;          // for each node, if a gate holds leaves back: leads elsewhere
  std::map<uint32_t, Kept> kept_;    // by node
  std::optional<uint32_t> running_;  // the gate whose flow runs, if it holds leaves back
};

}  // namespace rehearsal
