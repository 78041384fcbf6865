#include "training.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace training {
namespace {

using rehearsal::ErrorKind;
using rehearsal::RpcError;
using rehearsal::RRef;
using rehearsal::Worker;

constexpr int64_t kSize = 4;
constexpr auto kPatience = std::chrono::seconds(1);

at::Tensor gradient_of(int64_t step) { return at::full({kSize}, static_cast<double>(step)); }

void check_updates(const RRef<Model>& model) {
  const int64_t updates = model.rpc_sync(&Model::updates);
  if (updates != kSteps)
    throw std::logic_error(std::to_string(updates) + " updates in " + std::to_string(kSteps) +
                           " steps");
}

// A server that does not answer in time is asked again.
template <class Method, class... Arguments>
void insist(const Worker& worker, const RRef<Model>& model, Method method,
            const Arguments&... arguments) {
  while (true) {
    try {
      worker.with_timeout(kPatience).rpc_sync(model, method, arguments...);
      return;
    } catch (const RpcError& error) {
      if (error.kind() != ErrorKind::timeout) throw;
    }
  }
}

}  // namespace

Model::Model(int64_t size) : weights_(at::zeros({size})) {}

int64_t Model::push(const at::Tensor& gradient) {
  weights_ -= 0.1 * gradient;
  return ++updates_;
}

int64_t Model::push_once(int64_t step, const at::Tensor& gradient) {
  return step < updates_ ? updates_ : push(gradient);
}

void trainer(Worker& worker) {
  const auto model = worker.remote<Model>("server", kSize);
  for (int64_t step = 0; step < kSteps; ++step)
    insist(worker, model, &Model::push, gradient_of(step));
  check_updates(model);
}

void mended_trainer(Worker& worker) {
  const auto model = worker.remote<Model>("server", kSize);
  for (int64_t step = 0; step < kSteps; ++step)
    insist(worker, model, &Model::push_once, step, gradient_of(step));
  check_updates(model);
}

rehearsal::Program program(rehearsal::Program::Main trainer) {
  rehearsal::FunctionRegistry registry;
  registry.type<Model>("Model")
      .constructor<int64_t>()
      .method("push", &Model::push)
      .method("push_once", &Model::push_once)
      .method("updates", &Model::updates);
  rehearsal::Program program(std::move(registry));
  program.worker("server", [](Worker&) {}).worker("trainer", std::move(trainer));
  return program;
}

}  // namespace training
