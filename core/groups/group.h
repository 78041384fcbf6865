#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "core/base/unique_function.h"
#include "core/wire/message.h"

namespace rehearsal {

// The rest of the node, as its group asks and tells it. On the strand.
class NodeView {
 public:
  virtual ~NodeView() = default;

  // Nothing runs, waits or is unacknowledged, references aside (phase 0) or included (phase 1).
  [[nodiscard]] virtual bool quiet(uint32_t phase) const = 0;
  // All that keeps it from being quiet, for people: "2 calls, 1 reference". Empty: nothing.
  [[nodiscard]] virtual std::string left() const = 0;
  // Releases the references that are left.
  virtual void release_references() = 0;
  // After that: others work on, and what they have this worker hold is kept.
  virtual void keep_references() = 0;
  // Fails at once what is called from now on: the others have been told that this worker goes.
  virtual void refuse_calls() = 0;
  // Messages handled so far, those of the shutdown itself aside.
  [[nodiscard]] virtual uint64_t activity() const = 0;

  // ---- for dynamic groups ----

  // `peer`, which leaves, has been told that nothing more is asked of it.
  virtual void ask_nothing_more(WorkerId peer) = 0;
  // Whether a call to `peer` or a creation there is not answered.
  [[nodiscard]] virtual bool asked(WorkerId peer) const = 0;
  // Whether anything is awaited of it: that, a fork's confirmation or a pass.
  [[nodiscard]] virtual bool awaits(WorkerId peer) const = 0;
  // All that this worker holds of others is released, and acknowledged.
  [[nodiscard]] virtual bool holds_nothing() const = 0;
};

// The workers that belong together: how they come together, and how they part. On the strand.
class Group {
 public:
  virtual ~Group() = default;

  // `done` when this worker has joined, or why it cannot.
  virtual void join(Duration timeout, UniqueFunction<void(Status)> done) = 0;

  // The worker's main has ended. `done` when it may go, or why it has to although somebody is busy.
  virtual void shut_down(Duration timeout, UniqueFunction<void(Status)> done) = 0;

  virtual void on_peer_joined(WorkerId peer, uint32_t life) = 0;
  virtual void on_peer_fenced(WorkerId peer, const Error& why) = 0;
  virtual void on_hello_refused(WorkerId peer, const Error& why) = 0;
  // Whether this peer may have ended in good order without our having been told yet.
  [[nodiscard]] virtual bool may_have_left(WorkerId peer) const = 0;

  // Handles a message that makes the group; false if it is none of this kind of group.
  virtual bool on_message(WorkerId from, const Message& message) = 0;

  // Whether calls of others can come: not when all have ended, and this worker goes.
  [[nodiscard]] virtual bool takes_calls() const { return true; }

  // Something that the end depends on may have changed. Cheap while nobody waits for it.
  virtual void progressed() = 0;

  // Some time has passed.
  virtual void on_tick() = 0;

  // A link to `peer` stands, be it once more.
  virtual void on_link(WorkerId peer) = 0;

  // Ends whatever waits.
  virtual void fail(const Error& why) = 0;

  // Why `newcomer` comes too late, if it does.
  [[nodiscard]] virtual MaybeError refuses(const std::string& newcomer) const = 0;

  // The workers that are here now, this one too, in rank order.
  [[nodiscard]] virtual std::vector<WorkerId> members() const = 0;

  // Runs `here` when `worker` is a member and a link to it stands, at once if that is so: of a
  // worker whose process has ended the next life is meant, not the one that is not missed yet.
  // The number by which the task can be forgotten, unless it has run.
  virtual uint64_t when_here(WorkerId worker, UniqueFunction<void()> here) = 0;
  virtual void forget_task(uint64_t number) = 0;

  // Of the tasks given to `when_here`, those that wait.
  [[nodiscard]] virtual uint64_t awaited_members() const = 0;

  // The waits in here, for people: a line each.
  [[nodiscard]] virtual std::string describe() const = 0;
};

// Adds a worker, and what is said of it, to a list for people: "'a' (never met), 'b' (silent)".
inline void add_to_list(std::string& list, const std::string& worker, const std::string& remark) {
  list += (list.empty() ? "'" : ", '") + worker + "'";
  if (!remark.empty()) list += " (" + remark + ")";
}

// The tasks that wait for a worker to come. On the strand.
class Arrivals {
 public:
  uint64_t add(WorkerId worker, UniqueFunction<void()> here) {
    waiting_.push_back({++number_, worker, std::move(here)});
    return number_;
  }
  void forget(uint64_t number) {
    std::erase_if(waiting_, [number](const Task& task) { return task.number == number; });
  }
  void arrived(WorkerId worker) {
    std::vector<UniqueFunction<void()>> due;
    for (Task& task : waiting_)
      if (task.worker == worker) due.push_back(std::move(task.here));
    std::erase_if(waiting_, [worker](const Task& task) { return task.worker == worker; });
    for (auto& here : due) here();
  }
  void clear() { waiting_.clear(); }
  [[nodiscard]] uint64_t size() const { return waiting_.size(); }

 private:
  struct Task {
    uint64_t number = 0;
    WorkerId worker;
    UniqueFunction<void()> here;
  };
  std::vector<Task> waiting_;
  uint64_t number_ = 0;
};

}  // namespace rehearsal
