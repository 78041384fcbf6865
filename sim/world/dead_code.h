#pragma once

namespace rehearsal::sim {

class SimStack;

// While it lives, this thread runs the code of that stack. They may be nested.
class RunningStack {
 public:
  explicit RunningStack(SimStack& stack);
  ~RunningStack();
  RunningStack(const RunningStack&) = delete;
  RunningStack& operator=(const RunningStack&) = delete;

 private:
  SimStack* const outer_;
};

// From now on std::terminate ends, of code whose simulated worker was killed or whose run has
// failed, that code only: its stack is left as it is. Such code unwinds by an exception, and a
// destructor on its way that calls somebody, which it does not live to see answered, lets another
// one out. A process that is killed runs no destructor. All other code ends the process, as before.
void let_dead_code_end();

}  // namespace rehearsal::sim
