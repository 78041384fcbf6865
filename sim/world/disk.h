#pragma once

#include <map>
#include <string>

#include "core/base/checkpoints.h"

namespace rehearsal::sim {

// The disk of one simulated machine: what a worker has saved is there in its later lives, until the
// disk is lost. Takes no virtual time.
class Disk final : public Checkpoints {
 public:
  Status save(const std::string& name, const std::string& bytes) override {
    pieces_[name] = bytes;
    return Unit{};
  }
  Result<std::optional<std::string>> load(const std::string& name) override {
    const auto found = pieces_.find(name);
    if (found == pieces_.end()) return std::optional<std::string>{};
    return std::optional<std::string>(found->second);
  }

  void lose() { pieces_.clear(); }

 private:
  std::map<std::string, std::string> pieces_;
};

}  // namespace rehearsal::sim
