#include "core/node/worker.h"

namespace rehearsal {

std::vector<WorkerInfo> Worker::workers() const {
  std::vector<WorkerInfo> all;
  const std::vector<std::string>& names = caller()->names();
  for (uint32_t id = 0; id < names.size(); ++id) all.push_back({names[id], WorkerId{id}});
  return all;
}

WorkerInfo Worker::worker_info(const std::string& name) const {
  return {name, caller()->find(Target(name))};
}

}  // namespace rehearsal
