#pragma once

#include <cstdint>
#include <map>

#include "core/base/ids.h"
#include "core/base/unique_function.h"

namespace rehearsal {

// The calls that are made through handles of order (Call::order), by handle, from when they arrive
// until they have ended: each may run when all have ended that arrived before it. They travel on
// one lane, and so arrive in the order in which they were made. Its destructor drops the calls that
// wait, unrun. On the strand.
class CallsInOrder {
 public:
  void arrived(const CausalId& order, const CausalId& call);

  // The call is ready to run: `start` does so, when it is its turn.
  void ready(const CausalId& order, const CausalId& call, Task start);

  // The start of the call, if it is ready and waits for its turn: whoever takes it does not wait.
  [[nodiscard]] Task take(const CausalId& order, const CausalId& call);

  // The call has ended, whether it has run or not. The one that follows it starts.
  void ended(const CausalId& order, const CausalId& call);

 private:
  struct Entry {
    CausalId call;
    Task start;  // null: not ready yet, or begun
  };
  struct Calls {
    std::map<uint64_t, Entry> by_number;   // those that have not ended, as they arrived
    std::map<CausalId, uint64_t> numbers;  // of these
    uint64_t next = 0;
  };
  std::map<CausalId, Calls> calls_;
};

}  // namespace rehearsal
