#include "core/api/worker.h"

#include <torch/csrc/jit/serialization/pickle.h>

#include "core/base/checkpoints.h"

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

std::vector<WorkerInfo> Worker::members() const {
  std::vector<WorkerInfo> here;
  caller()->visit_strand("the members", [&] {
    for (const WorkerId id : node_.members()) here.push_back({caller()->names()[id.value], id});
  });
  return here;
}

void Worker::wait_for_worker(const std::string& name, Timeout timeout) const {
  const WorkerId worker = caller()->find(Target(name));
  Draft limit;
  limit.timeout = timeout;
  limit.deadline = caller()->strand()->running().deadline;
  const Duration left = caller()->time_left(limit);
  std::optional<Instant> deadline;
  if (left.count() > 0) deadline = now() + left;
  bool came = false;
  const Status status = caller()->strand()->wait(
      "worker '" + name + "' to come", {},
      [&](WaitHandle wait) { node_.await_member(worker, deadline, wait, came); });
  if (!status.ok()) throw RpcError(status.error());
  if (!came)
    throw RpcError({.kind = ErrorKind::timeout,
                    .text = "worker '" + name + "' has not come in time",
                    .worker = name});
}

const std::vector<std::string>& Worker::gathering(const std::vector<std::string>& workers) const {
  if (!node_.is_dynamic() || !workers.empty()) return workers;
  throw RpcError({.kind = ErrorKind::bad_arguments,
                  .text = "the group is dynamic: say which workers gather",
                  .worker = name()});
}

DebugInfo Worker::debug_info() const {
  DebugInfo info;
  caller()->visit_strand("the tables", [&] { info = node_.debug_info(); });
  return info;
}

Checkpoints& Worker::checkpoints(const std::string& name) const {
  (void)caller()->strand()->running();  // A killed worker changes nothing any more.
  const auto fail = [this](ErrorKind kind, std::string text) {
    throw RpcError({.kind = kind, .text = std::move(text), .worker = this->name()});
  };
  if (!is_checkpoint_name(name))
    fail(ErrorKind::bad_arguments, "'" + name +
                                       "' cannot be the name of a checkpoint: letters, digits, "
                                       "'-', '_' and '.' can, not first a '.', 100 at most");
  if (checkpoints_ == nullptr)
    fail(ErrorKind::storage,
         "this worker has no place for checkpoints: start it with a folder for them");
  return *checkpoints_;
}

void Worker::trace_checkpoint(EventKind kind, const std::string& name, uint64_t digest) const {
  caller()->strand()->post([strand = caller()->strand(), self = self_, kind, name, digest] {
    strand->trace().on_event({.kind = kind, .worker = self, .digest = digest, .text = name});
  });
}

void Worker::save_checkpoint(const std::string& name, const c10::IValue& value) const {
  Checkpoints& kept = checkpoints(name);
  const std::vector<char> pickled = torch::jit::pickle_save(value);
  const std::string bytes(pickled.begin(), pickled.end());
  kept.save(name, bytes).or_throw();
  trace_checkpoint(EventKind::checkpoint_saved, name, hash_bytes(bytes.data(), bytes.size()));
}

std::optional<c10::IValue> Worker::load_checkpoint(const std::string& name) const {
  Result<std::optional<std::string>> found = checkpoints(name).load(name);
  if (!found.ok()) throw RpcError(found.error());
  if (!found.value()) {
    trace_checkpoint(EventKind::checkpoint_loaded, name, 0);
    return std::nullopt;
  }
  const std::string& bytes = *found.value();
  trace_checkpoint(EventKind::checkpoint_loaded, name, hash_bytes(bytes.data(), bytes.size()));
  try {
    return torch::jit::pickle_load(std::vector<char>(bytes.begin(), bytes.end()));
  } catch (const std::exception& error) {
    throw RpcError({.kind = ErrorKind::storage,
                    .text = "checkpoint '" + name + "' cannot be read: " + error.what(),
                    .worker = this->name()});
  }
}

}  // namespace rehearsal
