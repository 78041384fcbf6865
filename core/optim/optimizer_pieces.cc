#include "core/optim/optimizer_pieces.h"

#include <torch/optim/optimizer.h>

#include <optional>

#include "core/checkpoint/checkpoint_desk.h"
#include "core/checkpoint/plain_pickle.h"
#include "core/optim/archive_dictionary.h"

namespace rehearsal {
namespace {

// LibTorch's key of a parameter in an optimizer's archive.
std::string key_of(const at::Tensor& parameter) {
  return std::to_string(reinterpret_cast<size_t>(parameter.unsafeGetTensorImpl()));
}

// An optimizer as it was at one moment. Its archive is read when a piece is first asked for.
class SavedOptimizer {
 public:
  explicit SavedOptimizer(const torch::optim::Optimizer& optimizer)
      : archive_(archived([&](torch::serialize::OutputArchive& to) { optimizer.save(to); })) {}

  [[nodiscard]] c10::impl::GenericDict state_of(const at::Tensor& parameter) {
    if (!states_) states_ = whole().at("state").toGenericDict();
    const auto found = states_->find(key_of(parameter));
    return found == states_->end() ? any_dictionary() : found->value().toGenericDict();
  }
  [[nodiscard]] c10::impl::GenericDict whole() const { return as_dictionary(archive_); }

  // Whether it has written what it has.
  [[nodiscard]] bool complete(const torch::optim::Optimizer& optimizer) const {
    const c10::impl::GenericDict all = whole();
    const auto states = all.find("state");
    return states != all.end() && states->value().isGenericDict() && all.contains("param_groups") &&
           states->value().toGenericDict().size() == optimizer.state().size();
  }

 private:
  const std::string archive_;
  std::optional<c10::impl::GenericDict> states_;
};

[[noreturn]] void refuse_optimizer(const std::string& name, const std::string& why,
                                   const std::string& worker) {
  fail_checkpoint(ErrorKind::bad_arguments,
                  "optimizer '" + name + "' cannot be saved: " + why +
                      "; its class needs `save` and `load`, as torch::optim::SGD has them",
                  worker);
}

// An optimizer of the program's own may have no `save`, or one that fails.
std::shared_ptr<SavedOptimizer> saved(const torch::optim::Optimizer& optimizer,
                                      const std::string& name, const std::string& worker) {
  std::shared_ptr<SavedOptimizer> saved;
  try {
    saved = std::make_shared<SavedOptimizer>(optimizer);
  } catch (const c10::Error& error) {
    refuse_optimizer(name, in_one_line(error), worker);
  }
  return saved;
}

std::vector<std::string> piece_names(const WorkerAccess& here, const CheckpointOrder& order,
                                     const std::string& name,
                                     const std::vector<OptimizedTensor>& tensors) {
  return at_desk(here, [&](CheckpointDesk& desk) {
    std::vector<std::string> names;
    for (const OptimizedTensor& tensor : tensors)
      names.push_back(name + "/" + desk.name_of(order, tensor.named, name));
    return names;
  });
}

// Its tensors where the parameter is.
c10::impl::GenericDict on_device(const c10::impl::GenericDict& state, const c10::Device& device) {
  c10::impl::GenericDict moved = any_dictionary();
  for (const auto& entry : state)
    moved.insert(entry.key(), entry.value().isTensor()
                                  ? c10::IValue(entry.value().toTensor().to(device))
                                  : entry.value());
  return moved;
}

}  // namespace

void keep_optimizer(const WorkerAccess& here, const CheckpointOrder& order, const std::string& name,
                    const torch::optim::Optimizer& optimizer,
                    const std::vector<OptimizedTensor>& tensors) {
  const std::vector<std::string> names = piece_names(here, order, name, tensors);
  const auto saved = rehearsal::saved(optimizer, name, here.name());
  at_desk(here, [&](CheckpointDesk& desk) {
    for (size_t i = 0; i < tensors.size(); ++i)
      desk.keep(order, names[i], [saved, parameter = tensors[i].optimized] {
        return on_device(saved->state_of(parameter), c10::kCPU);
      });
  });
}

std::vector<std::string> load_optimizer(const WorkerAccess& here, const CheckpointOrder& order,
                                        const std::string& name, torch::optim::Optimizer& optimizer,
                                        const std::vector<OptimizedTensor>& tensors) {
  const std::vector<std::string> names = piece_names(here, order, name, tensors);
  const auto present = rehearsal::saved(optimizer, name, here.name());
  if (!present->complete(optimizer))
    refuse_optimizer(name, "it does not write what it has", here.name());
  if (!at_desk(here, [&](CheckpointDesk& desk) { return desk.goes_on(order); })) return {};

  const std::vector<c10::IValue> pieces = find_pieces(here, order, names);
  c10::impl::GenericDict states = any_dictionary();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!pieces[i].isGenericDict())
      fail_checkpoint(ErrorKind::storage, "'" + names[i] + "' is no state of an optimizer",
                      here.name());
    const c10::impl::GenericDict state = pieces[i].toGenericDict();
    if (state.empty()) continue;
    states.insert(key_of(tensors[i].optimized), on_device(state, tensors[i].optimized.device()));
  }
  c10::impl::GenericDict whole = present->whole();
  whole.insert_or_assign("state", states);
  try {
    read_archive(as_archive(whole),
                 [&](torch::serialize::InputArchive& from) { optimizer.load(from); });
  } catch (const std::exception& error) {
    fail_checkpoint(ErrorKind::storage,
                    "optimizer '" + name + "' cannot be loaded: " + in_one_line(error),
                    here.name());
  }
  return names;
}

std::vector<OptimizedTensor> tensors_of(const torch::optim::Optimizer& optimizer) {
  std::vector<OptimizedTensor> tensors;
  for (const torch::optim::OptimizerParamGroup& group : optimizer.param_groups())
    for (const at::Tensor& parameter : group.params()) tensors.push_back({parameter, parameter});
  return tensors;
}

}  // namespace rehearsal
