#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/code_wait.h"
#include "core/base/error.h"
#include "core/base/runtime.h"
#include "core/base/trace.h"
#include "core/base/wait_view.h"

namespace rehearsal {

// Names a wait for as long as it lasts; afterwards it names nothing, also when its place is used
// again.
struct WaitId {
  uint32_t slot = UINT32_MAX;
  uint64_t generation = 0;
};

// One wait of one stack. Lives on that stack.
struct Wait {
  Waiter waiter;
  Execution* execution = nullptr;
  std::string_view what;  // what is waited for, for people
  CausalId id;            // the same, by name
  MaybeError failure;
  CodeWait* code = nullptr;  // in a primitive of the program's, of which it then says what it is
  Instant since{};           // of such a wait
  bool shielded = false;     // it lasts when nobody waits for its execution any more
  // Ends it then, with this error, if it is no wait in a primitive; null: it lasts.
  UniqueFunction<void(const Error&)>* given_up = nullptr;
};

// All waits of a node, so that each can be ended when the node is. An execution gives up its
// monitor while it is parked, and is woken when it has it again. On the strand.
class WaitTable {
 public:
  WaitTable(Runtime& runtime, Trace& trace, WorkerId self)
      : runtime_(runtime), trace_(trace), self_(self) {}

  // The stack of `wait` parks, or is about to. It stays until `end` or `fail_all`.
  [[nodiscard]] WaitId begin(Wait& wait);

  // False once the wait has ended, for whatever reason.
  [[nodiscard]] bool lasts(WaitId id) const;

  // Ends it; nothing if it has ended already.
  void end(WaitId id);

  // Ends it with this error, without regard to monitors; nothing if it has ended already, or lasts
  // until it is woken.
  void fail(WaitId id, const Error& error);

  // The same of every wait, in the order of their slots.
  void fail_all(const Error& error);

  // The same of those in primitives whose execution this is, and that are not shielded. Others that
  // end when they are given up do so.
  void give_up(const Execution& execution, const Error& error);

  // Forgets every wait without ending it: their stacks are unwound by the Runtime.
  void forget_all();

  [[nodiscard]] uint64_t size() const;
  // Those in primitives of the program's.
  [[nodiscard]] uint64_t code_waits() const { return code_waits_; }
  // Whether an execution that has entered this monitor waits for something.
  [[nodiscard]] bool has_entered(const Monitor& monitor) const;
  [[nodiscard]] std::vector<WaitViews::Stack> views() const;

 private:
  struct Slot {
    Wait* wait = nullptr;
    uint64_t generation = 0;
  };
  [[nodiscard]] Wait* release(WaitId id);
  [[nodiscard]] WaitViews::Stack view(const Wait& wait) const;
  void wake(Wait& wait);

  Runtime& runtime_;
  Trace& trace_;
  const WorkerId self_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  uint64_t code_waits_ = 0;
};

}  // namespace rehearsal
