#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"

namespace rehearsal::random_training {

// How a layer comes to be at its owner.
enum class Origin : uint8_t { constructor, factory, sequential };

// How a layer is called for its output.
enum class Form : uint8_t {
  forward,
  async,
  remote,  // fetched afterwards
  method,  // by another method, which gives the same
  method_async,
  method_remote,
  layer,  // as a layer of a local model
};

// How the gradients of one context are computed.
enum class PassForm : uint8_t {
  here,
  twice,  // the graph is kept, and gone over again
  two_roots,
  at_owner,      // from a loss that lives elsewhere
  by_reference,  // the same, through the reference
  of_several,    // from two such losses
  served,        // by a function that is called in the context
};

enum class OptimizerName : uint8_t { sgd, momentum, adam, adamw, adagrad, rmsprop, own };

// How gradients are bounded before a step.
enum class Bound : uint8_t { none, norm, value };

// How a replica of the head gets its gradients, and has them averaged.
enum class HeadForm : uint8_t { leaf, context, served };

struct Layer {
  Origin origin = Origin::constructor;
  int64_t seed = 0;
  std::array<std::string, 2> owners;  // in each half of the training
};

// One batch, and how it comes through the layers and back.
struct Pass {
  std::vector<Form> forms;  // along the step's chain
  PassForm form = PassForm::here;
  // Calls are recorded as the execution's; else each goes through the context.
  bool is_recorded = false;
  bool is_fast = false;
  uint64_t word = 0;  // draws the batch
};

struct Step {
  std::vector<Pass> passes;         // each in a context of its own
  std::vector<size_t> chain;        // the layers, one behind the other; one may come twice
  std::vector<bool> is_evaluating;  // the layers that compute as in use, not as in training
  // The sum of all contexts is stepped with; else the last one is its last term.
  bool adds_up = false;
  Bound bound = Bound::none;
  bool overflows = false;  // no owner steps
  bool lowers_rate = false;
  bool saves = false;    // all trainers do, afterwards
  int64_t patience = 0;  // microseconds for the first attempt; zero: it has the time of any call
  std::vector<HeadForm> heads;  // by trainer
};

constexpr double kDefaultScale = 65'536;  // of a scaler that is given no options

// A training: a chain of layers at owners, which the first trainer steps, and behind it a head, of
// which each trainer has a replica. The same of a seed wherever it is drawn.
struct Plan {
  size_t trainers = 1;
  size_t owners = 1;
  std::vector<Layer> layers;
  std::vector<Step> steps;
  OptimizerName optimizer = OptimizerName::sgd;
  bool is_grouped = false;            // the first layer's parameters have options of their own
  std::optional<double> scale;        // of the losses, at first: a power of two
  std::optional<size_t> moves_after;  // so many steps all is made anew from the checkpoint
  size_t overrun = 0;                 // so many steps further have been made then, for nothing
  uint64_t bucket_bytes = 1;
  int64_t head_seed = 0;
};

struct Size {
  size_t trainers = 1;
  size_t owners = 1;
  size_t layers = 1;
  size_t steps = 1;
};

[[nodiscard]] Plan draw_plan(Seed seed, const Size& size);

[[nodiscard]] std::string trainer_name(size_t number);
[[nodiscard]] std::string owner_name(size_t number);
[[nodiscard]] std::vector<std::string> trainers_of(const Plan& plan);

}  // namespace rehearsal::random_training
