#include "core/fibers/refusal.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/fibers/default_generator.h"

namespace rehearsal::fibers {

void refuse(std::string_view what, std::string_view why) noexcept {
  const Execution* const running = running_execution();
  const std::string who = running == nullptr ? "code" : "'" + std::string(running->label()) + "'";
  std::fprintf(stderr, "rehearsal: %s uses %.*s: %.*s\n", who.c_str(),
               static_cast<int>(what.size()), what.data(), static_cast<int>(why.size()),
               why.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace rehearsal::fibers
