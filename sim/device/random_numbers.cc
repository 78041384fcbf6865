#include "sim/device/random_numbers.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

namespace rehearsal::sim::device {

uint64_t draw_seed(const at::Generator& generator) {
  auto* of_cpu = at::check_generator<at::CPUGeneratorImpl>(generator);
  const std::scoped_lock lock(of_cpu->mutex_);
  return of_cpu->random64();
}

at::Generator seeded_generator(uint64_t seed) { return at::detail::createCPUGenerator(seed); }

KeepRandomNumbers::KeepRandomNumbers() : generator_(at::detail::getDefaultCPUGenerator()) {
  const std::scoped_lock lock(generator_.mutex());
  state_ = generator_.get_state();
}

KeepRandomNumbers::~KeepRandomNumbers() {
  const std::scoped_lock lock(generator_.mutex());
  generator_.set_state(state_);
}

SeededRandomNumbers::SeededRandomNumbers(uint64_t seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  generator.set_current_seed(seed);
}

}  // namespace rehearsal::sim::device
