#include "core/checkpoint/checkpoint_members.h"

#include <algorithm>
#include <stdexcept>

namespace rehearsal {

CheckpointMembers::CheckpointMembers(const Worker& worker, const std::vector<std::string>& names)
    : worker_(worker) {
  if (names.empty()) names_.push_back(worker.name());
  for (const WorkerInfo& each : worker.workers())
    if (std::find(names.begin(), names.end(), each.name) != names.end())
      names_.push_back(each.name);
  for (const std::string& name : names)
    if (std::find(names_.begin(), names_.end(), name) == names_.end())
      throw std::invalid_argument("the program has no worker '" + name + "'");
  if (std::find(names_.begin(), names_.end(), worker.name()) == names_.end())
    throw std::invalid_argument("worker '" + worker.name() +
                                "' is none of those that save together");
}

void CheckpointMembers::throw_failure_of(const std::string& member, uint8_t kind,
                                         const std::string& text, const std::string& worker) {
  if (kind > static_cast<uint8_t>(kLastErrorKind))
    throw RpcError({.kind = ErrorKind::protocol,
                    .text = "it gives a failure of kind " + std::to_string(kind) +
                            ", which there is not, to those that save together",
                    .worker = member});
  throw RpcError({.kind = static_cast<ErrorKind>(kind),
                  .text = text,
                  .worker = worker.empty() ? member : worker});
}

}  // namespace rehearsal
