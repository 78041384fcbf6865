#include "record/stack_mark.h"

namespace rehearsal::record {
namespace {

// Of the thread and not of a runtime: code that runs knows nothing else to ask by.
thread_local constinit StackMark* current = nullptr;

}  // namespace

StackMark* current_mark() { return current; }
void set_current_mark(StackMark* mark) { current = mark; }

}  // namespace rehearsal::record
