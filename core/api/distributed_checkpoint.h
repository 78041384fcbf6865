#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/api/checkpoint_parts.h"
#include "core/api/remote_module.h"
#include "core/api/worker.h"

namespace torch::optim {
class LRScheduler;
class Optimizer;
}  // namespace torch::optim

namespace rehearsal {

class DistributedGradScaler;
class DistributedOptimizer;

// The state of a training as one consistent cut, on the disks of the workers where it is: each
// keeps what lives there, the parameters of its modules, its optimizers' part, its main's random
// state. After a crash of anybody, new lives go on from the last complete cut, and end with the
// bits of a training that never crashed.
//
//   RemoteModule<Net> net(worker, "ps", 64);
//   DistributedOptimizer optimizer(worker, net.remote_parameters(), torch::optim::AdamOptions());
//   int64_t position = 0;
//   DistributedCheckpoint checkpoint(worker, "training");
//   checkpoint.module("net", net).optimizer("adam", optimizer).value("position", position);
//   for (int64_t step = checkpoint.resume(); step < kSteps;) {
//     train(net, optimizer, position);
//     if (++step % 100 == 0) checkpoint.save(step);  // written beside the next steps
//   }
//   checkpoint.wait();
//
// Everything has a name, by which it is found again, at whatever worker it is then: a checkpoint
// loads onto another number of owners, as long as those that hold its files are there. A
// parameter is called "net.first.weight"; an optimizer's state for it "adam/net.first.weight".
//
// Each worker has at most three files for a checkpoint, NAME.0, NAME.1 and NAME.head: two cuts, of
// which one is always complete, and what is known of them. `torch.load(file, weights_only=True)`
// of Python reads them: {"run", "step", "holders", "pieces": {name: tensor or dictionary}}.
//
// Random numbers: the main's generator is part of the cut, and so is the number from which its next
// call's random stream follows, at itself and at those it calls. Both hold for a new life of a main
// that makes the same calls before it resumes.
//
// One execution at a time uses it: a main. All methods below "training" park, and throw RpcError:
// of kind storage if a disk fails or has lost its part, peer_lost if a worker is lost.
class DistributedCheckpoint {
 public:
  struct Options {
    // The workers whose mains train together. Each makes a DistributedCheckpoint with these, and
    // calls resume, save and wait as often as the others, with the same steps. None named: this
    // worker alone. All whose steps change what is saved must be among them.
    std::vector<std::string> members;
    // A complete cut of which a worker has lost its files is passed over: for an older one, or for
    // the beginning. Else resume() says so and fails.
    bool accept_loss = false;
    // The cut may have pieces that nothing here takes: fine-tuning of a part, say.
    bool allow_unused = false;
  };

  // `name`: letters, digits, '-', '_' and '.', at most 90. Throws std::invalid_argument for another
  // one, and if this worker is none of the members. Never parks.
  DistributedCheckpoint(const Worker& worker, std::string name, Options options);
  DistributedCheckpoint(const Worker& worker, std::string name);
  ~DistributedCheckpoint();
  DistributedCheckpoint(const DistributedCheckpoint&) = delete;
  DistributedCheckpoint& operator=(const DistributedCheckpoint&) = delete;

  // ---- the things that are saved, before the first resume(). A thing that is given by reference
  // must live as long as this object. A name that is given twice is a std::invalid_argument ----

  // Parameters and buffers of a module that lives elsewhere, or here.
  template <ModuleLike T>
  DistributedCheckpoint& module(const std::string& name, const RemoteModule<T>& module) {
    return add(
        {.name = name,
         .owner = module.owner(),
         .keep =
             [module](const Calls& calls, const CheckpointOrder& order, const std::string& part) {
               return module.with(calls).rpc_async(&ServedModule<ModuleOf<T>>::keep_for_checkpoint,
                                                   order, part);
             },
         .load =
             [module](const Calls& calls, const CheckpointOrder& order, const std::string& part) {
               return module.with(calls).rpc_async(&ServedModule<ModuleOf<T>>::load_from_checkpoint,
                                                   order, part);
             }});
  }
  DistributedCheckpoint& module(const std::string& name, std::shared_ptr<torch::nn::Module> module);

  // A tensor that has a reference, such as a parameter.
  DistributedCheckpoint& tensor(const std::string& name, const RRef<at::Tensor>& tensor);

  // An optimizer: each owner's part, and the options of its groups. Throws RpcError, when it is
  // resumed, for a parameter that is part of nothing that any member saves, and for an optimizer of
  // the program's own without torch::optim::Optimizer's `save` and `load`. Save after a step, not
  // between `accumulate` and a step.
  DistributedCheckpoint& optimizer(const std::string& name, DistributedOptimizer& optimizer);
  DistributedCheckpoint& optimizer(const std::string& name, torch::optim::Optimizer& optimizer);

  // How often it has stepped. Not a ReduceLROnPlateauScheduler, which shows its state to nobody.
  DistributedCheckpoint& scheduler(const std::string& name, torch::optim::LRScheduler& scheduler);

  DistributedCheckpoint& scaler(const std::string& name, DistributedGradScaler& scaler);

  // A value of this main: a position in the data, a best score, a reward's average. Numbers, texts
  // and tensors (elements, sizes and strides) are readable in Python; what describes its fields is
  // kept as bytes.
  template <class T>
  DistributedCheckpoint& value(const std::string& name, T& value) {
    return add_value(
        name, [&value] { return detail::to_piece(value); },
        [&value](const c10::IValue& piece) { value = detail::from_piece<T>(piece); });
  }

  // ---- training ----

  // Finds the last step of which every worker has its part, and puts everything back as it was
  // then. A worker that saved a later one goes back. The step; zero if nothing complete was saved:
  // then nothing is changed. Once in a life, before the first save.
  [[nodiscard]] int64_t resume();

  // Copies everything as it is now, `step` steps having been done, and goes on while the workers
  // write it. An earlier save that failed fails here. `step` is more than that of the last save.
  void save(int64_t step);

  // Until what was saved last is on every disk, and all know it.
  void wait();

  // The last step that is known to be on every disk; zero: none.
  [[nodiscard]] int64_t committed() const;

 private:
  DistributedCheckpoint& add(CheckpointPart part);
  DistributedCheckpoint& add_value(const std::string& name, std::function<c10::IValue()> keep,
                                   std::function<void(const c10::IValue&)> load);

  // Something that has pieces at this worker.
  DistributedCheckpoint& add_local(
      const std::string& name,
      std::function<void(const WorkerAccess&, const CheckpointOrder&, const std::string& name)>
          keep,
      std::function<std::vector<std::string>(const WorkerAccess&, const CheckpointOrder&,
                                             const std::string& name)>
          load,
      bool needs_names = false);

  struct State;
  std::unique_ptr<State> state_;
};

// The functions that every program has, and the state of each of its workers.
class FunctionRegistry;
void register_checkpoints(FunctionRegistry& registry);
void register_optimizer_checkpoints(FunctionRegistry& registry);
[[nodiscard]] StateMaker checkpoint_state();

}  // namespace rehearsal
