#include "sim/world/dead_code.h"

#include <cstdlib>
#include <exception>
#include <utility>

#include "sim/world/sim_stack.h"

namespace rehearsal::sim {
namespace {

// std::terminate knows no cluster: those of a thread have it in common.
thread_local SimStack* running = nullptr;

// A handler is called without anything by which it could know the former one.
std::terminate_handler former = nullptr;

[[noreturn]] void end_dead_code() {
  if (running != nullptr && running->must_end()) running->abandon();
  if (former != nullptr) former();
  std::abort();
}

}  // namespace

RunningStack::RunningStack(SimStack& stack) : outer_(std::exchange(running, &stack)) {}
RunningStack::~RunningStack() { running = outer_; }

void let_dead_code_end() {
  static const bool once = [] {
    former = std::get_terminate();
    std::set_terminate(end_dead_code);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace rehearsal::sim
