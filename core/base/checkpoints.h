#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"

namespace rehearsal {

// The memory of a worker across its lives: named pieces of bytes, as on its machine's disk. User
// stacks call it, off the strand, from any thread, one at a time for each name.
class Checkpoints {
 public:
  virtual ~Checkpoints() = default;

  // Replaces what was saved under `name`, as a whole or not at all. If it has answered well, the
  // bytes are kept, even if the process or the machine stops right after.
  virtual Status save(const std::string& name, const std::string& bytes) = 0;

  // The bytes last saved under `name`, in this life or an earlier one; nothing if none were.
  virtual Result<std::optional<std::string>> load(const std::string& name) = 0;
};

// Letters, digits, '-', '_' and '.', not first a '.', at most 100 of them: a name of a file
// anywhere.
[[nodiscard]] bool is_checkpoint_name(const std::string& name);

}  // namespace rehearsal
