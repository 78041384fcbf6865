#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "real_net/worker/placement.h"

namespace rehearsal::real {

// The store of c10d in which the workers of a run meet: served at an address, or a file. Keys are
// those of the run only. The exceptions of c10d pass through every method but `open`. Any thread.
class MeetingStore {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  // Serves the store if that falls to this worker, else waits for whoever does. Throws what c10d
  // throws; errors that have a better text are returned.
  [[nodiscard]] static Result<std::unique_ptr<MeetingStore>> open(
      const Placement& placement, const std::vector<std::string>& names, Instant deadline);
  ~MeetingStore();

  // Where it is, for people.
  [[nodiscard]] static std::string place(const Placement& placement);
  // Whether it is there: what c10d finds out itself it tells on standard error.
  [[nodiscard]] static bool reachable(const Placement& placement);
  // Whether it ends with the process of rank 0.
  [[nodiscard]] static bool served_by_worker(const Placement& placement);

  // Returns the sum; of a key that is not there, what is added.
  int64_t add(const std::string& key, int64_t value);
  void set(const std::string& key, const std::string& value);
  // REQUIRES: has({key}).
  [[nodiscard]] std::string get(const std::string& key);
  // All of them.
  [[nodiscard]] bool has(const std::vector<std::string>& keys);

 private:
  class Impl;
  explicit MeetingStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearsal::real
