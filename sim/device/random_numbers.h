#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace rehearsal::sim::device {

// Kernels that draw random numbers run in an order that the simulator draws. So that their numbers
// do not depend on it, each has a seed of its own, from when it was given to its stream.

// The next seed of a generator of the CPU.
[[nodiscard]] uint64_t draw_seed(const at::Generator& generator);

// A generator of the CPU that begins with the seed.
[[nodiscard]] at::Generator seeded_generator(uint64_t seed);

// While it lives LibTorch's default generator goes on from where it is; afterwards it is where it
// was.
class KeepRandomNumbers {
 public:
  KeepRandomNumbers();
  ~KeepRandomNumbers();
  KeepRandomNumbers(const KeepRandomNumbers&) = delete;
  KeepRandomNumbers& operator=(const KeepRandomNumbers&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

// The same, and meanwhile it goes on from a seed.
class SeededRandomNumbers {
 public:
  explicit SeededRandomNumbers(uint64_t seed);

 private:
  KeepRandomNumbers keep_;
};

}  // namespace rehearsal::sim::device
