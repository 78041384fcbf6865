#include "core/optim/optimizer_settings.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <array>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

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

// One kind of optimizer: how its options are sent, and how it is made from them.
struct Kind {
  std::string_view name;
  bool (*write)(const OptimizerOptions& options, std::vector<double>& numbers);
  std::unique_ptr<Optimizer> (*make)(const std::vector<double>& numbers,
                                     std::vector<at::Tensor> parameters);
};

template <class Made, class Options>
constexpr Kind kind(std::string_view name) {
  return {name,
          [](const OptimizerOptions& given, std::vector<double>& numbers) {
            const auto* const options = dynamic_cast<const Options*>(&given);
            if (options == nullptr) return false;
            Options copy = *options;
            visit(copy, [&](const auto& value) { numbers.push_back(static_cast<double>(value)); });
            return true;
          },
          [](const std::vector<double>& numbers,
             std::vector<at::Tensor> parameters) -> std::unique_ptr<Optimizer> {
            Options options = default_options<Options>();
            size_t next = 0;
            visit(options, [&](auto& value) {
              if (next == numbers.size())
                throw std::invalid_argument("an optimizer's settings are incomplete");
              value = static_cast<std::decay_t<decltype(value)>>(numbers[next++]);
            });
            return std::make_unique<Made>(std::move(parameters), std::move(options));
          }};
}

const std::array<Kind, 5>& kinds() {
  static constexpr std::array<Kind, 5> all = {
      kind<SGD, SGDOptions>("SGD"), kind<Adam, AdamOptions>("Adam"),
      kind<AdamW, AdamWOptions>("AdamW"), kind<Adagrad, AdagradOptions>("Adagrad"),
      kind<RMSprop, RMSpropOptions>("RMSprop")};
  return all;
}

}  // namespace

OptimizerSettings settings_of(const OptimizerOptions& options) {
  OptimizerSettings settings;
  for (const Kind& kind : kinds()) {
    if (!kind.write(options, settings.numbers)) continue;
    settings.kind = kind.name;
    return settings;
  }
  if (dynamic_cast<const LBFGSOptions*>(&options) != nullptr)
    throw std::invalid_argument(
        "LBFGS cannot be distributed: it computes the loss several times within one step");
  throw std::invalid_argument("these are the options of no optimizer that can be distributed");
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings,
                                          std::vector<at::Tensor> parameters) {
  for (const Kind& kind : kinds())
    if (kind.name == settings.kind) return kind.make(settings.numbers, std::move(parameters));
  throw std::invalid_argument("there is no optimizer named '" + settings.kind + "'");
}

}  // namespace rehearsal
