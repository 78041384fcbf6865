#include "core/api/worker_access.h"

#include <torch/csrc/jit/serialization/pickle.h>

#include "core/checkpoint/kept_pieces.h"
#include "core/checkpoint/plain_pickle.h"
#include "core/values/tensor_form.h"

namespace rehearsal {

std::vector<WorkerInfo> WorkerAccess::workers() const {
  std::vector<WorkerInfo> all;
  const std::vector<std::string>& names = caller()->names();
  for (uint32_t id = 0; id < names.size(); ++id) all.push_back({names[id], WorkerId{id}});
  return all;
}

WorkerInfo WorkerAccess::worker_info(const std::string& name) const {
  return {name, caller()->find(Target(name))};
}

c10::Device WorkerAccess::device(int number) const {
  const DevicesHere& here = caller()->strand()->devices();
  if (0 <= number && number < here.count) return here.at(number);
  throw RpcError({.kind = ErrorKind::bad_arguments,
                  .text = "there is no device " + std::to_string(number) + ": worker '" + name() +
                          "' has " + std::to_string(here.count) + " beside the CPU",
                  .worker = name()});
}

std::vector<WorkerInfo> WorkerAccess::members() const {
  std::vector<WorkerInfo> here;
  caller()->visit_strand("the members", [&] {
    for (const WorkerId id : caller()->node().members())
      here.push_back({caller()->names()[id.value], id});
  });
  return here;
}

void WorkerAccess::wait_for_worker(const std::string& name, Timeout timeout) const {
  (void)caller()->await_worker(caller()->find(Target(name)), timeout);
}

Duration WorkerAccess::rpc_timeout() const {
  Duration timeout{};
  caller()->visit_strand("the default time-out", [&] { timeout = caller()->rpc_timeout(); });
  return timeout;
}

void WorkerAccess::set_default_timeout(Timeout timeout) const {
  caller()->visit_strand("the default time-out", [&] {
    caller()->set_rpc_timeout(timeout.or_default(caller()->rpc_timeout()));
  });
}

DebugInfo WorkerAccess::debug_info() const {
  DebugInfo info;
  caller()->visit_strand("the tables", [&] { info = caller()->node().debug_info(); });
  return info;
}

namespace {

std::string pickled(const c10::IValue& value, const std::string& worker) try {
  const std::vector<char> bytes = torch::jit::pickle_save(value);
  std::string file(bytes.begin(), bytes.end());
  check_pickle(file);
  return file;
} catch (const c10::Error& error) {
  throw RpcError({.kind = ErrorKind::bad_arguments,
                  .text = "the value cannot be pickled: " + first_line(error),
                  .worker = worker,
                  .function = "save_checkpoint"});
}

}  // namespace

void WorkerAccess::save_checkpoint(const std::string& name, const c10::IValue& value) const {
  save_piece(*caller(), name, pickled(value, this->name()));
}

std::optional<c10::IValue> WorkerAccess::load_checkpoint(const std::string& name) const {
  const std::optional<std::string> bytes = load_piece(*caller(), name);
  if (!bytes) return std::nullopt;
  try {
    return unpickle(*bytes);
  } catch (const std::exception& error) {
    throw RpcError({.kind = ErrorKind::storage,
                    .text = "checkpoint '" + name + "' cannot be read: " + in_one_line(error),
                    .worker = this->name()});
  }
}

}  // namespace rehearsal
