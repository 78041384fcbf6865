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
  DeadlineId add(Instant when, Task task) { return add(when, Entry{.task = std::move(task)}); }
  // The same for one that may outlast those who wanted it: they do not say that they have given up.
  DeadlineId add_loose(Instant when, Task task) {
    return add(when, Entry{.task = std::move(task), .loose = true});
  }
  // The same two for time that the program itself lets pass, from now on.
  DeadlineId add_pause(Instant when, Task task) {
    return add(when, Entry{.task = std::move(task), .pause = time_until(when)});
  }
  DeadlineId add_loose_pause(Instant when, Task task) {
    return add(when, Entry{.task = std::move(task), .loose = true, .pause = time_until(when)});
  }
  void remove(const DeadlineId& id);
  void clear();
  [[nodiscard]] uint64_t size() const { return entries_.size(); }
  // Of them, those that may outlast whoever wanted them.
  [[nodiscard]] uint64_t loose_count() const;
  // How long it takes until the last of those pauses of the program is over that are at least so
  // long from beginning to end; zero: there is none.
  [[nodiscard]] Duration pause_left(Duration at_least) const;

 private:
  struct Entry {
    Task task;
    bool loose = false;
    Duration pause{};  // of the program, from beginning to end; zero: it is none
  };
  using Table = std::map<DeadlineId, Entry>;

  DeadlineId add(Instant when, Entry entry);
  [[nodiscard]] Duration time_until(Instant when) const { return when - strand_.runtime().now(); }
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
