#include "core/optim/libtorch_kinds.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <array>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace rehearsal {
namespace {

using namespace torch::optim;

// The fields of each kind of options, in the order in which they are sent.
void visit(SGDOptions& options, auto&& field) {
  field(options.lr());
  field(options.momentum());
  field(options.dampening());
  field(options.weight_decay());
  field(options.nesterov());
}

template <class Options>
requires std::is_same_v<Options, AdamOptions> || std::is_same_v<Options, AdamWOptions>
void visit(Options& options, auto&& field) {
  field(options.lr());
  field(std::get<0>(options.betas()));
  field(std::get<1>(options.betas()));
  field(options.eps());
  field(options.weight_decay());
  field(options.amsgrad());
}

void visit(AdagradOptions& options, auto&& field) {
  field(options.lr());
  field(options.lr_decay());
  field(options.weight_decay());
  field(options.initial_accumulator_value());
  field(options.eps());
}

void visit(RMSpropOptions& options, auto&& field) {
  field(options.lr());
  field(options.alpha());
  field(options.eps());
  field(options.weight_decay());
  field(options.momentum());
  field(options.centered());
}

// SGD has no default learning rate.
template <class Options>
Options default_options() {
  if constexpr (std::is_same_v<Options, SGDOptions>)
    return SGDOptions(0);
  else
    return Options();
}

// Options as numbers.
template <class Options>
struct NumberedOptions {
  static std::string write(const Options& options) {
    std::vector<double> numbers;
    Options copy = options;
    visit(copy, [&](const auto& value) { numbers.push_back(static_cast<double>(value)); });
    return detail::option_bytes(numbers);
  }
  static Options read(const std::string& bytes) {
    const auto numbers = detail::option_value<std::vector<double>>(bytes);
    Options options = default_options<Options>();
    size_t next = 0;
    visit(options, [&](auto& value) {
      if (next == numbers.size())
        throw std::invalid_argument("an optimizer's settings are incomplete");
      value = static_cast<std::decay_t<decltype(value)>>(numbers[next++]);
    });
    return options;
  }
};

template <class Made, class Options>
LibtorchKind named(const char* name) {
  static const OptimizerKindOf<Made, Options, NumberedOptions<Options>> kind;
  return {name, &kind};
}

std::array<LibtorchKind, 5> all_kinds() {
  return {named<SGD, SGDOptions>("SGD"), named<Adam, AdamOptions>("Adam"),
          named<AdamW, AdamWOptions>("AdamW"), named<Adagrad, AdagradOptions>("Adagrad"),
          named<RMSprop, RMSpropOptions>("RMSprop")};
}

}  // namespace

LibtorchKind libtorch_kind_of(const OptimizerOptions& options) {
  for (const LibtorchKind& known : all_kinds())
    if (known.kind->fits(options)) return known;
  if (dynamic_cast<const LBFGSOptions*>(&options) != nullptr)
    throw std::invalid_argument(
        "LBFGS cannot be distributed: it computes the loss several times within one step");
  throw std::invalid_argument(
      "these are the options of no optimizer of LibTorch that can be distributed: for one of the "
      "program's own there is make_distributed_optimizer");
}

const OptimizerKind& libtorch_kind_named(const std::string& name) {
  for (const LibtorchKind& known : all_kinds())
    if (known.name == name) return *known.kind;
  throw std::invalid_argument("there is no optimizer named '" + name + "'");
}

}  // namespace rehearsal
