#pragma once

#include <utility>
#include <vector>

#include "record/item.h"

namespace rehearsal::record {

// The owner of the code on the calling thread, as a RecordingRuntime sees it: the code posts and
// reads in its name. Lives on the stack that it marks, or on the strand's.
struct StackMark {
  const void* runtime = nullptr;  // the one that it belongs to
  Source source;
  bool on_strand = false;
  std::vector<Reading> readings;  // that no task of this stack has taken along yet
  StackMark* below = nullptr;     // of the code that has the thread when this stack parks or ends
};

// The innermost mark of the calling thread; null if there is none.
[[nodiscard]] StackMark* current_mark();
// Set when a parked stack goes on: other code of its thread has set another one meanwhile.
void set_current_mark(StackMark* mark);

// Makes `mark` the current one for the guard's life.
class ScopedMark {
 public:
  explicit ScopedMark(StackMark& mark) : mark_(mark) {
    mark.below = current_mark();
    set_current_mark(&mark);
  }
  ~ScopedMark() { set_current_mark(mark_.below); }
  ScopedMark(const ScopedMark&) = delete;
  ScopedMark& operator=(const ScopedMark&) = delete;

 private:
  StackMark& mark_;
};

}  // namespace rehearsal::record
