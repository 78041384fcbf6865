#include "core/api/program.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "core/api/autograd_context.h"
#include "core/api/distributed_optimizer.h"
#include "core/api/gather.h"

namespace rehearsal {
namespace {

constexpr size_t kWorkerNameMax = 127;

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
    register_gatherings(registry);
  }
  registry_ = std::make_shared<const FunctionRegistry>(std::move(registry));
}

Program& Program::worker(const std::string& name, Main main) {
  if (!is_worker_name(name))
    throw std::invalid_argument("'" + name + "' cannot be a worker's name: letters, digits, '-', " +
                                "'_' and ':' can, " + std::to_string(kWorkerNameMax) + " at most");
  const bool taken = std::any_of(members_.begin(), members_.end(),
                                 [&](const Member& member) { return member.name == name; });
  if (taken) throw std::invalid_argument("two workers are named '" + name + "'");
  members_.push_back({name, std::move(main)});
  return *this;
}

Program& Program::worker(const std::string& name, Main main, Count count) {
  for (uint32_t i = 0; i < count.value; ++i) worker(name + std::to_string(i), main);
  return *this;
}

std::vector<std::string> Program::names() const {
  std::vector<std::string> names;
  for (const Member& member : members_) names.push_back(member.name);
  return names;
}

}  // namespace rehearsal
