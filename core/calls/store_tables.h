#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/future.h"
#include "core/base/peer_limits.h"
#include "core/session/session_options.h"

namespace rehearsal {

// A store that is open: the life of the worker where it lies, and its name there.
struct StoreName {
  uint64_t life = 0;
  std::string name;
  friend void describe(StoreName& store, auto&& fields) { fields(store.life, store.name); }
};

// The keys and values of the stores that lie at this worker (core/collectives/store_table.h), by
// name. A store is used by those who have opened it, and ends when all of them are lost. Each peer
// has the limits below; this worker's own part has none.
//
// Errors: bad_arguments where the asker has not opened the store, peer_lost where it was in another
// life of this worker, overloaded at a limit. On the strand.
class StoreTables {
 public:
  // Of each peer: stores that it has opened, the bytes of a name, and keys that it was the last to
  // set, with the bytes of these and their values together.
  static constexpr uint64_t kStoresMax = 1024;
  static constexpr size_t kNameMax = 4096;
  static constexpr uint64_t kKeysMax = uint64_t{1} << 16;
  static constexpr uint64_t kBytesMax = uint64_t{64} << 20;

  StoreTables(const SessionOptions& options, NodeStrand& strand)
      : options_(options), strand_(strand) {}

  // The store of that name, which is empty if nobody has it open. Error:
  // bad_arguments for a name that is too long.
  [[nodiscard]] Result<StoreName> open(WorkerId who, const std::string& name);

  [[nodiscard]] Status set(WorkerId who, const StoreName& store, const std::string& key,
                           const std::string& value);
  // Becomes `desired` if it is `expected`, or if there is none and `expected` is empty. The value
  // that there is then; `expected` if there is none.
  [[nodiscard]] Result<std::string> compare_set(WorkerId who, const StoreName& store,
                                                const std::string& key, const std::string& expected,
                                                const std::string& desired);
  // A number, as decimal digits; none counts as zero. Returns the sum. Error: bad_arguments if the
  // value is no number, or the sum is none of 64 bits; the value stays.
  [[nodiscard]] Result<int64_t> add(WorkerId who, const StoreName& store, const std::string& key,
                                    int64_t amount);
  // Whether there was such a key.
  [[nodiscard]] Result<bool> erase(WorkerId who, const StoreName& store, const std::string& key);
  [[nodiscard]] Result<bool> has_all(WorkerId who, const StoreName& store,
                                     const std::vector<std::string>& keys) const;
  [[nodiscard]] Result<std::vector<std::string>> keys(WorkerId who, const StoreName& store) const;
  [[nodiscard]] Result<int64_t> count(WorkerId who, const StoreName& store) const;
  // Completes `found` with the value as soon as there is one. `asker`: the execution of the call
  // that asks; when it is given up nobody waits any more.
  void when_there(WorkerId who, const StoreName& store, const std::string& key, Execution& asker,
                  const std::shared_ptr<FutureState<std::string>>& found);

  void on_peer_fenced(WorkerId peer);
  // Drops everything: the node ends.
  void clear();

  [[nodiscard]] uint64_t size() const { return stores_.size(); }
  // Keys that wait to be set, of all stores.
  [[nodiscard]] uint64_t awaited() const;

 private:
  struct Held {
    WorkerId setter;
    std::string value;
  };
  using Waiting = std::map<uint64_t, std::shared_ptr<FutureState<std::string>>>;  // as they came
  struct Store {
    std::set<WorkerId> users;
    std::map<std::string, Held> values;
    std::map<std::string, Waiting> waiting;  // by key
  };
  // Of the keys that a worker was the last to set.
  struct Share {
    uint64_t keys = 0;
    uint64_t bytes = 0;
  };

  [[nodiscard]] Error error(ErrorKind kind, std::string text) const;
  [[nodiscard]] MaybeError why_unusable(WorkerId who, const StoreName& store) const;
  [[nodiscard]] Status put(WorkerId who, Store& table, const std::string& key,
                           const std::string& value);
  void give_back(const std::string& key, const Held& held);
  void forget(const std::string& name, const std::string& key, uint64_t number);

  const SessionOptions& options_;
  NodeStrand& strand_;
  std::map<std::string, Store> stores_;
  PeerTally opened_;
  std::map<WorkerId, Share> shares_;
  uint64_t asked_ = 0;  // so many have waited
  std::shared_ptr<const bool> lives_ = std::make_shared<const bool>(true);
};

}  // namespace rehearsal
