#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

// A debugger may ask this process what it does; rehearsal-gdb.py is the other half. It has no way
// to an object but by a symbol: so the runs of a thread are kept in a thread_local list, and it
// calls the functions at the end of inspection.cc, on the thread that it has stopped. They read
// what the stopped code may be in the middle of changing.
namespace rehearsal::fibers {

// The place at which a stack's code goes on, and the registers that it finds there: unwinding
// begins with them. Of x86-64; elsewhere the place is 0, for unknown.
struct SavedRegisters {
  static constexpr size_t kCount = 8;  // rip, rsp, rbp, rbx, r12, r13, r14, r15
  std::array<uint64_t, kCount> values{};
};

// Of the calling function at this place. Inlined, so that it is that function's own frame.
[[gnu::always_inline]] inline void save_registers(SavedRegisters& registers) {
#if defined(__x86_64__)
  asm volatile(
      "leaq 0(%%rip), %%rax\n\t"
      "movq %%rax, 0(%0)\n\t"
      "movq %%rsp, 8(%0)\n\t"
      "movq %%rbp, 16(%0)\n\t"
      "movq %%rbx, 24(%0)\n\t"
      "movq %%r12, 32(%0)\n\t"
      "movq %%r13, 40(%0)\n\t"
      "movq %%r14, 48(%0)\n\t"
      "movq %%r15, 56(%0)"
      :
      : "r"(registers.values.data())
      : "rax", "memory");
#else
  registers.values[0] = 0;
#endif
}

// One stack of a run, as a debugger shows it.
struct StackView {
  std::string worker;
  std::string label;                             // of what it executes
  std::string state;                             // "waits for Model.push at server", "runs", …
  const SavedRegisters* suspended_at = nullptr;  // null: it is no parked one
};

// A run that a debugger may look into, as long as it lives.
class Inspected {
 public:
  // A line for each worker, then what time it is.
  [[nodiscard]] virtual std::string describe_workers() const = 0;
  [[nodiscard]] virtual std::vector<StackView> stacks() const = 0;

 protected:
  ~Inspected() = default;
};

// Shows a run to the debugger for as long as this lives. Made and destroyed by one thread; of
// several the latest is shown.
class Inspection {
 public:
  explicit Inspection(const Inspected& run);
  ~Inspection();
  Inspection(const Inspection&) = delete;
  Inspection& operator=(const Inspection&) = delete;

 private:
  const Inspected& run_;
};

}  // namespace rehearsal::fibers

extern "C" {
// The event that the debugger wants to stop at; 0, as it stays without one: none.
extern volatile uint64_t rehearsal_stop_at;
// Has a breakpoint then.
void rehearsal_stopped(uint64_t event);
}

namespace rehearsal::fibers {

// Event `number` of a run, from 1, is happening.
inline void inspect_event(uint64_t number) {
  if (number == rehearsal_stop_at) rehearsal_stopped(number);
}

}  // namespace rehearsal::fibers
