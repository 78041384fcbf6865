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
  DeadlineId add(Instant when, Task task) { return add(when, {std::move(task), false}); }
  // The same for one that may outlast those who wanted it: they do not say that they have given up.
  DeadlineId add_loose(Instant when, Task task) { return add(when, {std::move(task), true}); }
  void remove(const DeadlineId& id);
  void clear();
  [[nodiscard]] uint64_t size() const { return entries_.size(); }
  // Of them, those that may outlast whoever wanted them.
  [[nodiscard]] uint64_t loose_count() const;

 private:
  struct Entry {
    Task task;
    bool loose = false;
  };
  using Table = std::map<DeadlineId, Entry>;

  DeadlineId add(Instant when, Entry entry);
  void arm();
  void expire();

  NodeStrand& strand_;
  Table entries_;
  SpareNodes<Table> spare_;
  uint64_t next_number_ = 1;
  bool armed_ = false;
  Instant armed_for_{};
  TimerId timer_{};
};

}  // namespace rehearsal
