#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "core/base/hash.h"

// Ids are distinct types: two of them can never be swapped silently.
namespace rehearsal {

template <class Tag, class Representation>
struct Id {
  Representation value{};
  auto operator<=>(const Id&) const = default;
};

template <class Tag, class Representation>
std::ostream& operator<<(std::ostream& out, const Id<Tag, Representation>& id) {
  return out << id.value;
}

// A worker's rank: 0 … world size − 1.
using WorkerId = Id<struct WorkerTag, uint32_t>;

// One life of a worker. Fresh at each init, never zero; two lives never share one. It says whose it
// is: its lowest bits are the worker's id, so that nobody can take another's for its own.
using Incarnation = Id<struct IncarnationTag, uint64_t>;

inline constexpr uint32_t kWorkerBits = 20;
inline constexpr uint64_t kWorkersMax = uint64_t{1} << kWorkerBits;

// Of `worker`; the others of its bits are the lower ones of `drawn`, or one if these are all zero.
[[nodiscard]] constexpr Incarnation incarnation_of(WorkerId worker, uint64_t drawn) {
  const uint64_t life = drawn << kWorkerBits;
  return {(life == 0 ? kWorkersMax : life) | worker.value};
}
[[nodiscard]] constexpr WorkerId worker_of(Incarnation incarnation) {
  return {static_cast<uint32_t>(incarnation.value % kWorkersMax)};
}

// A worker has at most so many lives, which are numbered from 0. One that says it is in a later
// life is refused: so sums of lives, and what is counted by them, stay small numbers.
inline constexpr uint32_t kLivesMax = uint32_t{1} << 16;

// The origin of every random stream of a run.
using Seed = Id<struct SeedTag, uint64_t>;

// Where in the program a thing was made: `path` hashes the ordinals from a main to the execution
// that made it, `ordinal` is its number there. Without the incarnation it is the same in every
// schedule: keys, random streams and orders of sums use `place()` only.
struct CausalId {
  Incarnation incarnation;
  Hash128 path;
  uint64_t ordinal = 0;

  auto operator<=>(const CausalId&) const = default;

  // Its identity without the incarnation.
  [[nodiscard]] Hash128 place() const { return mix(path, ordinal); }
  // The path of the execution that this thing starts. The lowest bits say which worker has made the
  // thing: so nobody, whatever ids it makes up, gives its own executions the paths of others'.
  [[nodiscard]] Hash128 execution_path() const {
    const Hash128 at = place();
    return {at.high, (at.low - at.low % kWorkersMax) | worker_of(incarnation).value};
  }
};

std::ostream& operator<<(std::ostream& out, const CausalId& id);
[[nodiscard]] std::string to_string(const CausalId& id);

struct CallId : CausalId {};
struct ForkId : CausalId {};
struct AutogradContextId : CausalId {};
struct AutogradMessageId : CausalId {};

// An autograd context, and the worker that made it.
struct ContextName {
  AutogradContextId id;
  WorkerId creator;
  bool operator==(const ContextName&) const = default;
};

// Names a value and its owner. `counter` is dense for each (creator incarnation, owner), from 0:
// it tells the owner whether the id is to come, alive or gone.
struct RRefId {
  CausalId causal;
  WorkerId owner;
  Incarnation owner_incarnation;
  uint64_t counter = 0;
  auto operator<=>(const RRefId&) const = default;
};

std::ostream& operator<<(std::ostream& out, const RRefId& id);

// For look-up tables only: the order of such a table is never used.
struct CausalIdHash {
  size_t operator()(const CausalId& id) const {
    return mix(id.path.low ^ id.incarnation.value, id.ordinal);
  }
};

}  // namespace rehearsal

template <class Tag, class Representation>
struct std::hash<rehearsal::Id<Tag, Representation>> {
  size_t operator()(const rehearsal::Id<Tag, Representation>& id) const {
    return rehearsal::mix(static_cast<uint64_t>(id.value));
  }
};
