#include "sim/world/dead_code.h"

#include <cstdlib>
#include <exception>

#include "sim/world/sim_stack.h"

namespace rehearsal::sim {
namespace {

// A handler is called without anything by which it could know the former one.
std::terminate_handler former = nullptr;

[[noreturn]] void end_dead_code() {
  SimStack* const stack = SimStack::running();
  if (stack != nullptr && stack->must_end()) stack->abandon();
  if (former != nullptr) former();
  std::abort();
}

}  // namespace

void let_dead_code_end() {
  static const bool once = [] {
    former = std::get_terminate();
    std::set_terminate(end_dead_code);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace rehearsal::sim
