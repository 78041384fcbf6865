#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/base/stream_set.h"
#include "core/base/time.h"
#include "core/base/unique_function.h"

namespace rehearsal {

class Monitor;
class NodeStrand;

// The autograd context that something is recorded in; null: none. Never changed once made.
using RecordedIn = std::shared_ptr<const ContextName>;

// One run of user code: a worker's main, a call being served, a continuation, a backward walk, or
// a thread that the user brought. It numbers what it makes. An execution runs on one stack at a
// time, and only that stack touches its counters; its other members belong to the node's strand.
class Execution {
 public:
  // `started_by` is what started it: its `execution_path()` becomes the execution's path. `label`
  // names it for people (a function's name); it must outlive the execution.
  Execution(const CausalId& started_by, std::string_view label, Seed seed)
      : started_by_(started_by),
        path_(started_by.execution_path()),
        stream_(path_),
        label_(label),
        seed_(seed),
        incarnation_(started_by.incarnation) {}

  // Its node's; null in tests without one. Set before it runs.
  NodeStrand* strand = nullptr;

  // How deeply it is nested in calls: zero for mains and threads. Its calls are one deeper.
  uint32_t depth = 0;

  // When whoever waits for it gives up: what it calls has no more time than that, while it is not
  // shielded (call_bounds.h).
  std::optional<Instant> deadline;

  // While a Shield lives: when it ends what it calls. Touched only by the stack that runs it.
  std::optional<Instant> shielded_until;

  // Its code gives its work on devices to these streams, unless it chooses others; null: to those
  // of its thread. Set before it runs.
  Streams streams;

  // Its calls are recorded in this context, but for those that name another. Set before it runs;
  // then touched only by the stack that runs it.
  RecordedIn context;

  // Its code may not park, though its stack could; what is to die on the stack afterwards may.
  // Touched only by the stack that runs it.
  bool never_parks = false;

  // Told, on its stack, which exception its code has let out where none may leave, as from a
  // destructor: its stack is left as it is, and it has ended. Empty: the process ends. Once; set
  // before it runs.
  UniqueFunction<void(const std::exception_ptr& thrown)> when_terminated;
  // For whoever owns its stack. False: nobody is to be told.
  [[nodiscard]] bool terminated_by(const std::exception_ptr& thrown) {
    if (never_parks || !when_terminated) return false;
    std::exchange(when_terminated, nullptr)(thrown);
    return true;
  }

  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  // The next causal id. Take two of them in two statements: their order is part of the program.
  // It has the incarnation of the node that runs the execution.
  [[nodiscard]] CausalId next_id() { return {incarnation_, path_, next_ordinal_++}; }

  // The ordinal of the next causal id, and another one for it, not an earlier one: those between
  // are never used. An execution that goes on where one of an earlier life was saved skips there.
  [[nodiscard]] uint64_t next_ordinal() const { return next_ordinal_; }
  void skip_to(uint64_t ordinal) { next_ordinal_ = std::max(next_ordinal_, ordinal); }

  // The incarnation of the node; that of what started it unless set.
  void set_incarnation(Incarnation incarnation) { incarnation_ = incarnation; }

  [[nodiscard]] const CausalId& started_by() const { return started_by_; }
  [[nodiscard]] const Hash128& path() const { return path_; }
  [[nodiscard]] std::string_view label() const { return label_; }

  // The seed of this execution's stream of random numbers: depends on what started it, never on
  // when it runs, and not on how many lives its worker has had: for what a later life starts has
  // the path as its stream that it would have had in the first.
  [[nodiscard]] uint64_t generator_seed() const {
    return mix(seed_.value, stream_.low ^ stream_.high);
  }
  [[nodiscard]] const Hash128& stream() const { return stream_; }
  // The stream of what `made`, an id of this execution, starts; none: that of its path.
  [[nodiscard]] std::optional<Hash128> stream_of(const CausalId& made) const {
    if (stream_ == path_) return std::nullopt;
    return CausalId{made.incarnation, stream_, made.ordinal}.execution_path();
  }
  // Before it draws.
  void set_stream(const std::optional<Hash128>& stream) {
    if (stream) stream_ = *stream;
  }

  // LibTorch's generator of this execution, made at its first draw by whoever supplies LibTorch's
  // default generator. Touched only by the stack that runs the execution.
  std::shared_ptr<void> generator;

  // The monitor that this execution has entered, if any, and gives up while it parks. Belongs to
  // the strand.
  std::shared_ptr<Monitor> monitor;

  // The monitors that it keeps while it parks, and what the last of them guards, for people. Belong
  // to the strand.
  uint32_t monitors_kept = 0;
  std::string_view kept_for;

  // Whether whoever waits for it has given up, and what runs when that is known. Belong to the
  // strand.
  bool given_up = false;
  std::vector<Task> when_given_up;
  // The same, where nobody else may wait for it: its waits in primitives end at once.
  bool waits_end = false;

  // Of the primitives' queues: the one in which it woke somebody last, and has waited nowhere
  // since; and the one whose lock a condition takes back for it. Touched only by the stack that
  // runs it.
  const void* woke_in = nullptr;
  const void* retakes = nullptr;

  // So often it has given way since it waited last. Touched only by the stack that runs it.
  uint32_t gave_way = 0;

 private:
  const CausalId started_by_;
  const Hash128 path_;
  Hash128 stream_;
  const std::string_view label_;
  const Seed seed_;
  uint64_t next_ordinal_ = 0;
  Incarnation incarnation_;
};

}  // namespace rehearsal
