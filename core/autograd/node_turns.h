#pragma once

#include <torch/csrc/autograd/function.h>

#include <unordered_map>

#include "core/base/monitor.h"

namespace rehearsal {

// Which nodes of the graph are being evaluated: a node by one pass at a time. On the strand.
class NodeTurns {
 public:
  // Runs `entered` now, or once whoever is inside has left. Each entry is left once.
  void enter(const torch::autograd::Node& node, Task entered) {
    Turn& turn = turns_[&node];
    ++turn.wanted;
    turn.monitor.enter(std::move(entered));
  }

  void leave(const torch::autograd::Node& node) {
    const auto found = turns_.find(&node);
    REHEARSAL_CHECK(found != turns_.end());
    --found->second.wanted;
    if (found->second.wanted == 0) {
      turns_.erase(found);
      return;
    }
    found->second.monitor.leave();
  }

  void clear() { turns_.clear(); }
  [[nodiscard]] size_t size() const { return turns_.size(); }

 private:
  struct Turn {
    Monitor monitor;
    size_t wanted = 0;  // by who is inside and those that wait
  };
  std::unordered_map<const torch::autograd::Node*, Turn> turns_;  // look-up only
};

}  // namespace rehearsal
