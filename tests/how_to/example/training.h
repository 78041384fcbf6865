// A program as you may have it: a server with a model, and a trainer that pushes gradients to it.
#pragma once

#include <ATen/core/Tensor.h>
#include <rehearsal/program.h>
#include <rehearsal/worker.h>

#include <cstdint>

namespace training {

inline constexpr int64_t kSteps = 10;

struct Model {  // lives on the server
  explicit Model(int64_t size);
  // Returns how often the weights have been updated.
  int64_t push(const at::Tensor& gradient);
  // The same, but a step that is there already is not applied again.
  int64_t push_once(int64_t step, const at::Tensor& gradient);
  int64_t updates() const { return updates_; }
  const at::Tensor& weights() const { return weights_; }

 private:
  at::Tensor weights_;
  int64_t updates_ = 0;
};

// Throws std::logic_error if the model has not seen every step once.
void trainer(rehearsal::Worker& worker);
void mended_trainer(rehearsal::Worker& worker);

// "server" and "trainer"; the same program in production and in a test.
rehearsal::Program program(rehearsal::Program::Main trainer);

}  // namespace training
