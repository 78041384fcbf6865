#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "real_net/auth/seal.h"
#include "real_net/worker/patience.h"
#include "real_net/worker/placement.h"

namespace rehearsal::real {

// A text in the store was not written by a member of this group.
class ForeignText : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The store of c10d in which the workers of a run meet: served at an address, or a file. Keys are
// those of one run only. A store that does not answer throws, after a while, as c10d does for every
// failure: so does every method but `open` and the static ones. A text that is read must have been
// written under the group's seal: else ForeignText is thrown, which says what to do. Any thread.
class MeetingStore {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  // Serves the store if that falls to this worker, else waits for whoever does, for as long as
  // `patience` lasts, and tells it what for. The error says what is there instead: nobody, a name
  // that is not known, a program that is silent or another one.
  [[nodiscard]] static Result<std::unique_ptr<MeetingStore>> open(
      const Placement& placement, const std::vector<std::string>& names, const Seal& seal,
      Patience& patience);
  // Ends its part in the store, in some seconds at most: a file that another keeps locked for
  // longer is left as it is.
  ~MeetingStore();

  // Where it is, for people.
  [[nodiscard]] static std::string place(const Placement& placement);
  // Whether it is there: what c10d finds out itself it tells on standard error.
  [[nodiscard]] static bool reachable(const Placement& placement);
  // Whether it ends with the process of rank 0.
  [[nodiscard]] static bool served_by_worker(const Placement& placement);

  // No call lasts longer than until the deadline of `patience`, which is told if one takes long.
  // Null, as after `open`: than some seconds. It outlives the store, or is replaced before.
  void set_patience(Patience* patience) { patience_ = patience; }

  // The same store, with the keys of another run.
  [[nodiscard]] std::unique_ptr<MeetingStore> of_run(const std::string& run) const;

  // Returns the sum; of a key that is not there, what is added.
  int64_t add(const std::string& key, int64_t value);
  void set(const std::string& key, const std::string& value);
  // Sets a key that is not there. Returns what it is then.
  std::string set_if_missing(const std::string& key, const std::string& value);
  // Whether it was there.
  bool erase(const std::string& key);
  // REQUIRES: has({key}).
  [[nodiscard]] std::string get(const std::string& key);
  // All of them.
  [[nodiscard]] bool has(const std::vector<std::string>& keys);

  // The words of a worker that serves the store to all that come, of whatever run.
  void announce(const std::string& text);
  [[nodiscard]] std::optional<std::string> announced();

 private:
  class Impl;
  MeetingStore(std::shared_ptr<const Impl> impl, Patience* patience);
  template <class Value, class Call>
  Value bounded(Call call) const;

  std::shared_ptr<const Impl> impl_;
  Patience* patience_;
};

}  // namespace rehearsal::real
