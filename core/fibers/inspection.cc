#include "core/fibers/inspection.h"

#include <algorithm>
#include <cstdio>

namespace rehearsal::fibers {
namespace {

// One list for each thread; the latest run is the last.
std::vector<const Inspected*>& runs() {
  thread_local std::vector<const Inspected*> runs;
  return runs;
}

// The answer that a debugger reads.
const char* keep(std::string text) {
  thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

std::string without_breaks(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text;
}

std::string line_of(const StackView& stack) {
  std::string line;
  for (const std::string& part : {stack.worker, stack.label, stack.state})
    line += without_breaks(part) + "\t";
  if (stack.suspended_at != nullptr && stack.suspended_at->values[0] != 0) {
    for (const uint64_t value : stack.suspended_at->values) {
      std::array<char, 20> hex{};
      std::snprintf(hex.data(), hex.size(), "%llx ", static_cast<unsigned long long>(value));
      line += hex.data();
    }
  }
  return line + "\n";
}

}  // namespace

Inspection::Inspection(const Inspected& run) : run_(run) { runs().push_back(&run); }

Inspection::~Inspection() {
  const auto found = std::find(runs().rbegin(), runs().rend(), &run_);
  if (found != runs().rend()) runs().erase(std::next(found).base());
}

}  // namespace rehearsal::fibers

extern "C" {

[[gnu::used]] volatile uint64_t rehearsal_stop_at = 0;

[[gnu::used, gnu::noinline]] void rehearsal_stopped(uint64_t event) {
  // An optimizer that sees a function without effects would leave out its calls.
  asm volatile("" ::"r"(event));
}

// Text for people; empty: no run of this thread.
[[gnu::used]] const char* rehearsal_debug_workers() {
  using namespace rehearsal::fibers;
  return keep(runs().empty() ? std::string() : runs().back()->describe_workers());
}

// A line for each stack: worker, label and state, each followed by a tab, and of a parked one its
// SavedRegisters, hexadecimal.
[[gnu::used]] const char* rehearsal_debug_stacks() {
  using namespace rehearsal::fibers;
  std::string text;
  if (!runs().empty())
    for (const StackView& stack : runs().back()->stacks()) text += line_of(stack);
  return keep(std::move(text));
}
}
