#include "command_line/version.h"

#include <torch/version.h>

#include "core/base/mutants.h"

namespace rehearsal::command_line {

std::string version_text(const std::string& program) {
  const std::string of = program == "rehearsal" ? "" : program + ", ";
  return of + "rehearsal " + REHEARSAL_VERSION + ", LibTorch " + TORCH_VERSION +
         (kHasMutants ? ", with mutants\n" : "\n");
}

}  // namespace rehearsal::command_line
