#include "core/fibers/default_generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/SequenceNumber.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>

#include <memory>
#include <utility>

namespace rehearsal::fibers {
namespace {

thread_local constinit Execution* running = nullptr;
thread_local constinit uint64_t next_node = 0;

at::Generator seeded_generator(uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

// A generator holds a mutex that LibTorch takes for each draw; only its making needs care here.
const at::Generator& generator_of(Execution& execution) {
  if (execution.generator == nullptr)
    execution.generator =
        std::make_shared<at::Generator>(seeded_generator(execution.generator_seed()));
  return *static_cast<const at::Generator*>(execution.generator.get());
}

// The generator of code that belongs to no execution. LibTorch seeds its own from the operating
// system; this one starts equal in every process.
const at::Generator& process_generator() {
  static const at::Generator generator = seeded_generator(c10::default_rng_seed_val);
  return generator;
}

}  // namespace

Execution* running_execution() { return running; }

uint64_t& next_node_of_running() { return next_node; }

ScopedExecution::ScopedExecution(Execution* execution)
    : before_(std::exchange(running, execution)) {
  if (running != nullptr) next_node = at::sequence_number::peek();
}

ScopedExecution::~ScopedExecution() {
  running = before_;
  if (running != nullptr) next_node = at::sequence_number::peek();
}

bool default_generator_is_ours() {
  Execution probe(CausalId{}, "default generator self-test", Seed{1});
  const ScopedExecution scope(&probe);
  const at::Tensor drawn = at::rand({4});
  return drawn.equal(at::rand({4}, seeded_generator(probe.generator_seed())));
}

}  // namespace rehearsal::fibers

namespace at::detail {

// libtorch_cpu calls this function through its procedure linkage table, so that the program's
// definition takes the place of its own.
const Generator& getDefaultCPUGenerator() {
  using namespace rehearsal;
  Execution* execution = fibers::running_execution();
  return execution != nullptr ? fibers::generator_of(*execution) : fibers::process_generator();
}

}  // namespace at::detail
