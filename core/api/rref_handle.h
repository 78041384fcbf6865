#pragma once

#include <memory>
#include <optional>

#include "core/api/caller.h"
#include "core/api/reference_port.h"
#include "core/base/ids.h"
#include "core/base/node_strand.h"
#include "core/base/stream_set.h"

namespace rehearsal {

// The part that all copies of one RRef<T> share: either a UserRRef (its fork at the owner) or a
// handle of an owner's value. When the last copy dies it posts its release. May outlive its node.
class RRefHandle {
 public:
  // `fork` names the UserRRef; none: the owner's own handle.
  RRefHandle(std::shared_ptr<const Caller> caller, ReferencePort* references, RRefId id,
             std::optional<ForkId> fork)
      : caller_(std::move(caller)), references_(references), id_(id), fork_(fork) {}
  ~RRefHandle();
  RRefHandle(const RRefHandle&) = delete;
  RRefHandle& operator=(const RRefHandle&) = delete;

  // The counter of a created reference is set on the strand when its creation is issued; the rest
  // is there from the start.
  [[nodiscard]] const RRefId& id() const { return id_; }
  void set_counter(const RRefId& issued) {
    id_.owner_incarnation = issued.owner_incarnation;
    id_.counter = issued.counter;
  }

  [[nodiscard]] const std::optional<ForkId>& fork() const { return fork_; }
  [[nodiscard]] bool is_owner() const { return !fork_.has_value(); }
  [[nodiscard]] const std::shared_ptr<const Caller>& caller() const { return caller_; }

  // The question whether the value is there; null while nobody has asked. On the strand.
  [[nodiscard]] const std::shared_ptr<FutureState<Unit>>& created() const { return created_; }
  void set_created(std::shared_ptr<FutureState<Unit>> created) { created_ = std::move(created); }

  // Code of this worker reads the value itself, which lives in these streams: they come after what
  // the code that lets the last copy go has given to devices. On the strand.
  void set_value_streams(const Streams& streams) const { value_streams_ = streams; }

  // To be used on the strand, while it is open.
  [[nodiscard]] ReferencePort& references() const { return *references_; }

 private:
  const std::shared_ptr<const Caller> caller_;
  ReferencePort* const references_;
  RRefId id_;
  const std::optional<ForkId> fork_;
  std::shared_ptr<FutureState<Unit>> created_;
  mutable Streams value_streams_;  // null: nothing has read the value, or there are no devices
};

}  // namespace rehearsal
