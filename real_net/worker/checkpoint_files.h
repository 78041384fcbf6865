#pragma once

#include <mutex>
#include <string>

#include "core/base/checkpoints.h"

namespace rehearsal::real {

// The checkpoints of one worker as files FOLDER/WORKER/NAME.pt. A save writes another file, has it
// on disk, and gives it the name: who reads sees the old one or the new one. Any thread.
class CheckpointFiles final : public Checkpoints {
 public:
  // Makes the folders at the first save. Empty folder: every call fails and says what to do.
  CheckpointFiles(const std::string& folder, const std::string& worker);

  Status save(const std::string& name, const std::string& bytes) override;
  Result<std::optional<std::string>> load(const std::string& name) override;

 private:
  const std::string folder_;  // of this worker; empty: none
  std::mutex saving_;         // two saves of one name would write into one file
};

}  // namespace rehearsal::real
