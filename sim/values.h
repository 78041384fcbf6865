#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/base/time.h"
#include "core/base/value_view.h"
#include "core/node/node.h"

namespace rehearsal::sim {

// A value that references own at a worker, or the worker's state (Program::state). Good until the
// function that was given it returns.
template <class T>
struct OwnedValue {
  const T& value;
  std::string_view worker;
  CausalId id;  // of its reference; a state has none
  // A method of it, or a body of `with_state`, has begun and not ended: it waits for something, or
  // is about to go on.
  bool busy = false;

  const T& operator*() const { return value; }
  const T* operator->() const { return &value; }
};

// The values that references own at the workers of a cluster, and the workers' states, between two
// of the cluster's events, to be looked at. No code of the program runs meanwhile. A value is as
// its last method left it, at the method's end or where that waits for something: as a call that
// came now would find it. So is a state, which functions may also change outside of `with_state`.
class Values {
 public:
  struct Place {
    std::string_view worker;
    const Node* node = nullptr;  // null: the worker is not there
  };
  // The workers by rank; all outlive this.
  Values(std::vector<Place> places, Instant now) : places_(std::move(places)), now_(now) {}

  // Those of exactly the type T, of one worker or, without a name, of all: by worker, its state
  // first, then in the order of their references' ids, which is the same in every run of a seed. T
  // is what a reference is to: `Account` for an RRef<Account>, `std::shared_ptr<Account>` if its
  // function returns one; and what `state<T>` names. A value is there once its constructor has
  // returned, until its last reference is gone, its worker has crashed or the run's end lets go of
  // it; a state until the group shuts down. Throws std::invalid_argument if there is no worker of
  // that name.
  template <class T>
  [[nodiscard]] std::vector<OwnedValue<T>> of(std::string_view worker = {}) const {
    std::vector<OwnedValue<T>> found;
    for (const Place& place : places_of(worker)) {
      if (place.node == nullptr) continue;
      for (const ValueView& view : place.node->values(typeid(T)))
        found.push_back({*static_cast<const T*>(view.value), place.worker, view.id, view.busy});
    }
    return found;
  }

  // In virtual time.
  [[nodiscard]] Instant now() const { return now_; }

 private:
  [[nodiscard]] std::vector<Place> places_of(std::string_view worker) const;

  const std::vector<Place> places_;
  const Instant now_;
};

// Says how the values contradict what must always hold of them; nothing if they do not. It must
// change nothing and draw no random numbers. An exception that it throws is a contradiction, too.
using Invariant = std::function<std::optional<std::string>(const Values& values)>;

struct NamedInvariant {
  std::string name;  // by which a failure names it
  Invariant broken;
};

}  // namespace rehearsal::sim
