#pragma once

#include <mutex>
#include <string>

#include "core/base/checkpoints.h"

namespace rehearsal::real {

// The checkpoints of one worker as files FOLDER/WORKER/NAME.pt. A save writes a file of a name of
// its own, has it on disk, and gives it the name: who reads sees the old one or the new one. Any
// thread.
//
// No process has the folder for itself. A worker that was given up may still run, or stand still,
// while its next life saves: a lock would keep the living one waiting for the other. Without it
// each file is still whole, and the last to be renamed stays. A part of a cut says of which cut it
// is, so a part that an earlier life has put in the place of another is not taken for that
// (core/checkpoint), and a cut needs all members of its own run. A file that is being written is
// locked, alone, so that a later life sees which ones were left by processes that have ended.
class CheckpointFiles final : public Checkpoints {
 public:
  // Makes the folders at the first save, and removes what ended processes have left unfinished.
  // Empty folder: every call fails and says what to do.
  CheckpointFiles(const std::string& folder, const std::string& worker);

  Status save(const std::string& name, const std::string& bytes) override;
  Result<std::optional<std::string>> load(const std::string& name) override;

 private:
  [[nodiscard]] Status prepare();

  const std::string folder_;  // of this worker; empty: none
  std::mutex saving_;
  bool prepared_ = false;  // the folders are on disk, and those that ended have left nothing
};

}  // namespace rehearsal::real
