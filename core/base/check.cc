#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

#include "core/base/printable.h"

namespace rehearsal {

void check_failed(const char* condition, const std::string& values,
                  const std::source_location& where) {
  std::fprintf(stderr, "%s:%u: check failed: %s%s%s (in %s)\n", where.file_name(), where.line(),
               condition, values.empty() ? "" : " with", printable(values).c_str(),
               where.function_name());
  std::fflush(stderr);
  std::abort();
}

}  // namespace rehearsal
