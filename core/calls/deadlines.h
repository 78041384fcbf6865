#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "core/api/deadline_id.h"
#include "core/base/node_strand.h"
#include "core/base/spare_nodes.h"

namespace rehearsal {

// The deadlines of a node: one timer of the Runtime for all of them. On the strand.
class Deadlines {
 public:
  explicit Deadlines(NodeStrand& strand) : strand_(strand) {}

  // Runs `task` on the strand at `when`, unless removed. Equal instants run in the order added.
  DeadlineId add(Instant when, Task task);
  void remove(const DeadlineId& id);
  void clear();
  [[nodiscard]] uint64_t size() const { return tasks_.size(); }

 private:
  void arm();
  void expire();

  NodeStrand& strand_;
  std::map<DeadlineId, Task> tasks_;
  SpareNodes<std::map<DeadlineId, Task>> spare_;
  uint64_t next_number_ = 1;
  bool armed_ = false;
  Instant armed_for_{};
  TimerId timer_{};
};

}  // namespace rehearsal
