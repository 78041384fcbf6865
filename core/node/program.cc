#include "core/node/program.h"

#include <algorithm>
#include <stdexcept>

#include "core/autograd/autograd_context.h"
#include "core/optim/distributed_optimizer.h"

namespace rehearsal {

Program::Program(FunctionRegistry registry) {
  const bool complete = registry.position("rehearsal.backward").ok();  // of another Program
  if (!complete) {
    register_autograd(registry);
    register_optimizer(registry);
  }
  registry_ = std::make_shared<const FunctionRegistry>(std::move(registry));
}

Program& Program::worker(const std::string& name, Main main) {
  if (name.empty()) throw std::invalid_argument("a worker's name is empty");
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
