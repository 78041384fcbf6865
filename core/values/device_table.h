#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/values/device_map.h"

namespace rehearsal {

// The device maps between one worker and the others: its own, and those that its peers told when
// they met it.
class DeviceTable {
 public:
  // `names` are those of all workers, by id.
  DeviceTable(std::vector<std::string> names, WorkerId self, WorkerDevices own);

  // Why this worker's own maps cannot be; none: they can, as far as it knows by itself.
  [[nodiscard]] const std::optional<std::string>& own_mistake() const { return own_mistake_; }
  // Why the maps between `peer`, which has these devices, and this worker cannot be, or those of
  // `peer` with anybody, as far as they show by themselves. Both workers say the same.
  [[nodiscard]] std::optional<std::string> mistake_with(WorkerId peer,
                                                        const WorkerDevices& theirs) const;

  // A peer has told its devices; they are those of its latest life. REQUIRES: no mistake. On the
  // strand.
  void learn(WorkerId peer, const WorkerDevices& theirs);

  // For what is sent to a worker; null: there is no map. Any thread.
  [[nodiscard]] const DeviceMap* to(WorkerId worker) const { return to_[worker.value]; }
  // For what answers calls of a worker; null: it has no map for us. On the strand.
  [[nodiscard]] std::shared_ptr<const DeviceMap> answers(WorkerId worker) const {
    return answers_[worker.value];
  }

 private:
  [[nodiscard]] std::optional<std::string> mistake_of(const std::string& name,
                                                      const WorkerDevices& devices) const;

  const std::vector<std::string> names_;
  const WorkerId self_;
  const WorkerDevices own_;
  std::vector<const DeviceMap*> to_;
  std::vector<std::shared_ptr<const DeviceMap>> answers_;
  std::optional<std::string> own_mistake_;
};

}  // namespace rehearsal
