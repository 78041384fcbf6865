#pragma once

#include <memory>
#include <optional>

#include "core/api/draft.h"
#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/unique_function.h"
#include "core/functions/function.h"

namespace rehearsal {

class Execution;
class Mutants;
class RRefHandle;
class WaitHandle;

// The one way by which typed code makes, asks and releases references: all behind it may change
// without it. On the strand, unless said otherwise.
class ReferencePort {
 public:
  virtual ~ReferencePort() = default;

  // ---- what users do; off the strand ----

  // Issues the draft's call; its result becomes the value of the reference returned. Never parks.
  [[nodiscard]] virtual std::shared_ptr<RRefHandle> create(Draft&& draft) = 0;

  // A reference to a value that is here.
  [[nodiscard]] virtual std::shared_ptr<RRefHandle> own(HeldValue value) = 0;

  // ---- what handles ask ----

  virtual void release(const RRefId& id, const std::optional<ForkId>& fork) = 0;
  [[nodiscard]] virtual bool confirmed_by_owner(const RRefHandle& handle) const = 0;
  // The owner's value, when it is there.
  virtual void local_value(const RRefId& id, UniqueFunction<void(Result<HeldValue>)> done) = 0;
  // Ends the wait of `execution` when it is in the owner's monitor, which it gives up while it
  // parks, as methods do. False: it is in it already, and must not leave it.
  [[nodiscard]] virtual bool enter_monitor(const RRefId& id, Execution* execution,
                                           const WaitHandle& wait) = 0;
  virtual void leave_monitor(const RRefId& id, Execution* execution) = 0;

  [[nodiscard]] virtual const Mutants& mutants() const = 0;
};

}  // namespace rehearsal
