#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/values/value.h"

namespace rehearsal {

// One class of optimizers: how its options are sent, and how one is made. Constant, and the same at
// all workers.
class OptimizerKind {
 public:
  OptimizerKind() = default;
  virtual ~OptimizerKind() = default;
  OptimizerKind(const OptimizerKind&) = delete;
  OptimizerKind& operator=(const OptimizerKind&) = delete;

  [[nodiscard]] virtual bool fits(const torch::optim::OptimizerOptions& options) const = 0;

  // Options as bytes, and back. Of options that fit; throws std::invalid_argument for others.
  [[nodiscard]] virtual std::string write(const torch::optim::OptimizerOptions& options) const = 0;
  [[nodiscard]] virtual std::unique_ptr<torch::optim::OptimizerOptions> read(
      const std::string& bytes) const = 0;

  // Throws what the optimizer's own constructor throws.
  [[nodiscard]] virtual std::unique_ptr<torch::optim::Optimizer> make(
      const std::vector<torch::optim::OptimizerParamGroup>& groups,
      const torch::optim::OptimizerOptions& defaults) const = 0;
};

namespace detail {

template <class T>
std::string option_bytes(const T& value) {
  Payload payload;
  ValueWriter writer(payload);
  Value<T>::write(writer, value);
  if (!payload.tensors.empty() || !payload.handles.empty())
    throw std::invalid_argument("an optimizer's options hold neither tensors nor references");
  return std::move(payload.values);
}

template <class T>
T option_value(const std::string& bytes) {
  Payload payload;
  payload.values = bytes;
  ValueReader reader(payload);
  T value = Value<T>::read(reader);
  reader.finish();
  return value;
}

// Options that describe their fields.
template <class Options>
struct DescribedOptions {
  static std::string write(const Options& options) { return option_bytes(options); }
  static Options read(const std::string& bytes) { return option_value<Options>(bytes); }
};

}  // namespace detail

// `Made` has a constructor that takes groups of parameters and an Options for those groups that
// have none, as LibTorch's optimizers have.
template <class Made, class Options, class Bytes = detail::DescribedOptions<Options>>
class OptimizerKindOf final : public OptimizerKind {
 public:
  bool fits(const torch::optim::OptimizerOptions& options) const override {
    return typeid(options) == typeid(Options);
  }
  std::string write(const torch::optim::OptimizerOptions& options) const override {
    return Bytes::write(checked(options));
  }
  std::unique_ptr<torch::optim::OptimizerOptions> read(const std::string& bytes) const override {
    return std::make_unique<Options>(Bytes::read(bytes));
  }
  std::unique_ptr<torch::optim::Optimizer> make(
      const std::vector<torch::optim::OptimizerParamGroup>& groups,
      const torch::optim::OptimizerOptions& defaults) const override {
    return std::make_unique<Made>(groups, checked(defaults));
  }

 private:
  const Options& checked(const torch::optim::OptimizerOptions& options) const {
    if (!fits(options))
      throw std::invalid_argument("the options of a group are those of another optimizer");
    return static_cast<const Options&>(options);
  }
};

// A kind as an owner knows it.
struct OptimizerKindAt {
  const OptimizerKind* kind = nullptr;
};

}  // namespace rehearsal
