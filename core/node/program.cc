#include "core/api/program.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "core/api/autograd_context.h"
#include "core/api/distributed_checkpoint.h"
#include "core/api/distributed_optimizer.h"
#include "core/api/gather.h"
#include "core/api/pipeline.h"
#include "core/api/process_group.h"
#include "core/api/published.h"
#include "core/base/symbols.h"
#include "core/base/transport.h"

namespace rehearsal {
namespace {

constexpr size_t kWorkerNameMax = 127;

// So much a worker can say of its device maps when a link is made, and so much of its functions.
// The rest of its greeting is shorter than a page.
constexpr size_t kDevicesTextMax = size_t{64} << 10;
constexpr size_t kFunctionsTextMax = kGreetingMax - kDevicesTextMax - 4096;

bool is_worker_name(const std::string& name) {
  constexpr std::string_view allowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_:";
  return !name.empty() && name.size() <= kWorkerNameMax &&
         name.find_first_not_of(allowed) == std::string::npos;
}

}  // namespace

Program::Program(FunctionRegistry registry) {
  const bool complete = registry.position("rehearsal.backward").ok();  // of another Program
  if (!complete) {
    register_autograd(registry);
    register_optimizer(registry);
    register_pipeline(registry);
    register_gatherings(registry);
    register_published(registry);
    register_process_groups(registry);
    register_checkpoints(registry);
    register_optimizer_checkpoints(registry);
  }
  const size_t bytes = registry.describe().size();
  if (bytes > kFunctionsTextMax)
    throw std::invalid_argument("the names and signatures of all functions have " +
                                std::to_string(bytes) + " bytes, where " +
                                std::to_string(kFunctionsTextMax) + " are allowed");
  registry_ = std::make_shared<const FunctionRegistry>(std::move(registry));
}

Program& Program::worker(const std::string& name, Main main) {
  if (!is_worker_name(name))
    throw std::invalid_argument("'" + name + "' cannot be a worker's name: letters, digits, '-', " +
                                "'_' and ':' can, " + std::to_string(kWorkerNameMax) + " at most");
  const bool taken = std::any_of(members_.begin(), members_.end(),
                                 [&](const Member& member) { return member.name == name; });
  if (taken) throw std::invalid_argument("two workers are named '" + name + "'");
  last_declared_ = members_.size();
  members_.push_back({name, std::move(main), {checkpoint_state()}});
  return *this;
}

Program& Program::worker(const std::string& name, Main main, Count count) {
  const size_t first = members_.size();
  for (uint32_t i = 0; i < count.value; ++i) worker(name + std::to_string(i), main);
  last_declared_ = first;
  return *this;
}

Program& Program::add_state(const StateMaker& maker) {
  const std::string type = demangled(maker.type.name());
  if (members_.empty())
    throw std::invalid_argument("a state of type " + type + " comes after the worker that has it");
  for (size_t i = last_declared_; i < members_.size(); ++i) {
    std::vector<StateMaker>& states = members_[i].states;
    const bool taken = std::any_of(states.begin(), states.end(), [&](const StateMaker& other) {
      return other.type == maker.type;
    });
    if (taken)
      throw std::invalid_argument("worker '" + members_[i].name + "' has a state of type " + type +
                                  " already");
    states.push_back(maker);
  }
  return *this;
}

Program& Program::device_map(const std::string& peer, const DeviceMap& map) {
  if (members_.empty())
    throw std::invalid_argument("a device map comes after the worker that has it");
  for (size_t i = last_declared_; i < members_.size(); ++i)
    for (const auto& [from, to] : map.entries()) members_[i].device_maps[peer].add(from, to);
  const WorkerDevices all{.maps = members_.back().device_maps};
  if (to_text(all).size() > kDevicesTextMax)
    throw std::invalid_argument("the device maps of worker '" + members_.back().name +
                                "' have too many entries");
  return *this;
}

Program& Program::devices(std::vector<DeviceNumber> used) {
  if (members_.empty()) throw std::invalid_argument("devices come after the worker that has them");
  for (size_t i = last_declared_; i < members_.size(); ++i) members_[i].devices = used;
  return *this;
}

Program& Program::recovering(uint32_t restarts_max) {
  if (members_.empty())
    throw std::invalid_argument("recovering() comes after the worker that shall recover");
  for (size_t i = last_declared_; i < members_.size(); ++i) members_[i].restarts_max = restarts_max;
  return *this;
}

Program Program::with_mains(const std::function<Main(const Member&)>& make) const {
  Program other = *this;
  for (size_t i = 0; i < members_.size(); ++i) other.members_[i].main = make(members_[i]);
  return other;
}

std::vector<std::string> Program::names() const {
  std::vector<std::string> names;
  for (const Member& member : members_) names.push_back(member.name);
  return names;
}

}  // namespace rehearsal
