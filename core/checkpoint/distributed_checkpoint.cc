#include "core/api/distributed_checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "core/base/checkpoints.h"
#include "core/checkpoint/checkpoint_choice.h"
#include "core/checkpoint/checkpoint_members.h"
#include "core/checkpoint/checkpoint_orders.h"
#include "core/checkpoint/kept_tensors.h"
#include "core/checkpoint/plain_pickle.h"

namespace rehearsal {
namespace {

constexpr size_t kNameBytesMax = 90;

// More than the calls that any method makes. After each of them a main's numbers go on from the
// next multiple, whatever it took.
constexpr uint64_t kOrdinalsForMethod = uint64_t{1} << 20;

template <class T>
void wait_all(const std::vector<Future<T>>& futures) {
  MaybeError failure;
  for (const Future<T>& future : futures)
    if (Result<T> result = future.result(); !result.ok() && !failure) failure = result.error();
  if (failure) throw RpcError(std::move(*failure));
}

}  // namespace

struct DistributedCheckpoint::State {
  using KeepHere =
      std::function<void(const WorkerAccess&, const CheckpointOrder&, const std::string& name)>;
  using LoadHere = std::function<std::vector<std::string>(
      const WorkerAccess&, const CheckpointOrder&, const std::string& name)>;
  struct Local {
    std::string name;
    KeepHere keep;
    LoadHere load;
    bool needs_names = false;
  };

  State(const Worker& its_worker, std::string its_name, const Options& its_options)
      : worker(its_worker),
        calls(its_worker.with_timeout(Timeout::never())),
        name(std::move(its_name)),
        options(its_options),
        members(its_worker, its_options.members) {}

  // Throws std::invalid_argument if the name is taken; `given` is the user's.
  void claim(const std::string& unique, const std::string& given) {
    if (!names.insert(unique).second)
      throw std::invalid_argument("two things of checkpoint '" + name + "' are called '" + given +
                                  "'");
  }

  [[nodiscard]] CheckpointOrder order(const CheckpointTag& tag) const { return {name, tag}; }
  [[nodiscard]] Execution& main() const { return worker.caller()->strand()->running(); }

  // The number from which this main's calls go on after a method that begins now.
  [[nodiscard]] uint64_t numbers_after() const {
    return (main().next_ordinal() / kOrdinalsForMethod + 1) * kOrdinalsForMethod;
  }

  [[nodiscard]] std::vector<std::string> everybody() const;
  [[nodiscard]] CheckpointChoice choose() const;
  void open(const CheckpointChoice& choice) const;
  void close(const CheckpointChoice& choice) const;
  template <class Start>
  void order_all(const CheckpointChoice& choice, Start start) const;
  [[nodiscard]] std::vector<std::string> load_here(const Local& local,
                                                   const CheckpointOrder& order) const;
  [[nodiscard]] std::vector<std::string> load_all(const CheckpointOrder& order,
                                                  bool needs_names) const;
  void check_used(const CheckpointChoice& choice,
                  const std::vector<std::vector<std::string>>& taken) const;
  void go_on();
  void keep_all(const CheckpointOrder& order) const;
  void write(const CheckpointOrder& order);
  void finish();
  void tell_committed();

  const Worker worker;
  const Calls calls;  // without a time limit: a disk may be slow, and a lost worker ends them
  const std::string name;
  const Options options;
  const CheckpointMembers members;

  std::vector<CheckpointPart> parts;
  std::vector<Local> locals;
  std::set<std::string> names;
  std::vector<std::string> holders;   // all that have a part, in rank order, from resume() on
  uint64_t run = 0;                   // zero: not resumed yet
  uint64_t numbers = 0;               // this main's calls go on from here in the cut
  CheckpointTag latest;               // saved, or gone on from
  CheckpointTag unfinished;           // `latest`, while it may not be on all disks; else none
  CheckpointTag committed;            // all holders have it
  CheckpointTag told;                 // and know that
  std::vector<Future<Unit>> writing;  // the parts of `latest`, if this worker leads
};

// ---- the things that are saved -------------------------------------------------------

DistributedCheckpoint::DistributedCheckpoint(const Worker& worker, std::string name,
                                             Options options) {
  if (!is_checkpoint_name(name) || name.size() > kNameBytesMax)
    throw std::invalid_argument("'" + name +
                                "' cannot be the name of a checkpoint: letters, digits, '-', '_' "
                                "and '.' can, not first a '.', 90 at most");
  state_ = std::make_unique<State>(worker, std::move(name), options);
  add_value(
      "random numbers", [] { return at::detail::getDefaultCPUGenerator().get_state(); },
      [](const c10::IValue& saved) {
        at::Generator generator = at::detail::getDefaultCPUGenerator();
        generator.set_state(saved.toTensor());
      });
  value("calls", state_->numbers);
}

DistributedCheckpoint::DistributedCheckpoint(const Worker& worker, std::string name)
    : DistributedCheckpoint(worker, std::move(name), Options()) {}

DistributedCheckpoint::~DistributedCheckpoint() = default;

DistributedCheckpoint& DistributedCheckpoint::add(CheckpointPart part) {
  // An optimizer has a part at each owner of its parameters.
  const bool of_the_last = !state_->parts.empty() && state_->parts.back().name == part.name &&
                           state_->parts.back().owner != part.owner;
  if (!of_the_last) state_->claim(part.name, part.name);
  state_->parts.push_back(std::move(part));
  return *this;
}

DistributedCheckpoint& DistributedCheckpoint::add_local(const std::string& name,
                                                        State::KeepHere keep, State::LoadHere load,
                                                        bool needs_names) {
  // Another member may have something of this name, too.
  const std::string own = state_->worker.name() + ":" + name;
  state_->claim(own, name);
  state_->locals.push_back({own, std::move(keep), std::move(load), needs_names});
  return *this;
}

DistributedCheckpoint& DistributedCheckpoint::add_value(
    const std::string& name, std::function<c10::IValue()> keep,
    std::function<void(const c10::IValue&)> load) {
  return add_local(
      name,
      [keep = std::move(keep)](const WorkerAccess& here, const CheckpointOrder& order,
                               const std::string& piece) {
        at_desk(here, [&](CheckpointDesk& desk) {
          desk.keep(order, piece, [kept = keep()] { return kept; });
        });
      },
      [load = std::move(load)](const WorkerAccess& here, const CheckpointOrder& order,
                               const std::string& piece) -> std::vector<std::string> {
        if (!at_desk(here, [&](CheckpointDesk& desk) { return desk.goes_on(order); })) return {};
        load(find_pieces(here, order, {piece}).front());
        return {piece};
      });
}

DistributedCheckpoint& DistributedCheckpoint::module(const std::string& name,
                                                     std::shared_ptr<torch::nn::Module> module) {
  return add_local(
      name,
      [module](const WorkerAccess& here, const CheckpointOrder& order, const std::string& part) {
        keep_tensors(here, order, tensors_of(*module, part));
      },
      [module](const WorkerAccess& here, const CheckpointOrder& order, const std::string& part) {
        return load_tensors(here, order, tensors_of(*module, part));
      });
}

DistributedCheckpoint& DistributedCheckpoint::tensor(const std::string& name,
                                                     const RRef<at::Tensor>& tensor) {
  const WorkerInfo owner = tensor.owner();
  return add(
      {.name = name,
       .owner = owner,
       .keep =
           [owner, tensor](const Calls& calls, const CheckpointOrder& order,
                           const std::string& piece) {
             return calls.rpc_async(owner, &checkpoint_orders::keep_tensor, order, piece, tensor);
           },
       .load =
           [owner, tensor](const Calls& calls, const CheckpointOrder& order,
                           const std::string& piece) {
             return calls.rpc_async(owner, &checkpoint_orders::load_tensor, order, piece, tensor);
           }});
}

// Of a piece that cannot be taken, by whatever it is no value of, in one line.
std::vector<std::string> DistributedCheckpoint::State::load_here(
    const Local& local, const CheckpointOrder& order) const {
  try {
    return local.load(worker, order, local.name);
  } catch (const RpcError&) {
    throw;
  } catch (const std::exception& error) {
    fail_checkpoint(ErrorKind::storage,
                    "'" + local.name + "' of '" + name + "' cannot be taken: " + in_one_line(error),
                    worker.name());
  }
}

// ---- going on -------------------------------------------------------------------------

// The members, and all that have a part of something of theirs, in rank order.
std::vector<std::string> DistributedCheckpoint::State::everybody() const {
  std::set<std::string> named(members.names().begin(), members.names().end());
  const auto all = members.together<std::vector<std::string>>([this] {
    std::vector<std::string> owners;
    for (const CheckpointPart& part : parts) owners.push_back(part.owner.name);
    return owners;
  });
  for (const std::vector<std::string>& owners : all) named.insert(owners.begin(), owners.end());
  std::vector<std::string> ranked;
  for (const WorkerInfo& each : worker.workers())
    if (named.contains(each.name)) ranked.push_back(each.name);
  return ranked;
}

CheckpointChoice DistributedCheckpoint::State::choose() const {
  const AskHolders ask = [this](const std::vector<std::string>& workers) {
    std::vector<Future<HeldCheckpoints>> asked;
    const std::vector<WorkerInfo> known = worker.workers();
    for (const std::string& each : workers)
      if (std::ranges::find(known, each, &WorkerInfo::name) == known.end())
        fail_checkpoint(
            ErrorKind::storage,
            "'" + name + "' says that it was saved by '" + each + "', and there is no such worker",
            worker.name());
    for (const std::string& each : workers)
      asked.push_back(calls.rpc_async(each, &checkpoint_orders::held, name));
    std::vector<HeldCheckpoints> answers;
    for (const Future<HeldCheckpoints>& future : asked) answers.push_back(future.wait());
    return answers;
  };
  const auto choices = members.together<CheckpointChoice>([&] {
    return members.leads() ? choose_checkpoint(name, holders, ask, options.accept_loss)
                           : CheckpointChoice();
  });
  return choices.front();
}

// The leader calls all that have a part now, or had one in the cut that is gone on from.
template <class Start>
void DistributedCheckpoint::State::order_all(const CheckpointChoice& choice, Start start) const {
  std::set<std::string> all(holders.begin(), holders.end());
  all.insert(choice.holders.begin(), choice.holders.end());
  static_cast<void>(members.together<Unit>([&] {
    std::vector<Future<Unit>> calling;
    if (members.leads())
      for (const std::string& each : all) calling.push_back(start(each));
    wait_all(calling);
    return Unit{};
  }));
}

void DistributedCheckpoint::State::open(const CheckpointChoice& choice) const {
  const CheckpointOpening opening{
      .name = name, .run = choice.run, .from = choice.from, .directory = choice.directory};
  order_all(choice, [&](const std::string& each) {
    return calls.rpc_async(each, &checkpoint_orders::open, opening);
  });
}

void DistributedCheckpoint::State::close(const CheckpointChoice& choice) const {
  const CheckpointOrder order = this->order({.run = choice.run, .step = choice.from.step});
  order_all(choice, [&](const std::string& each) {
    return calls.rpc_async(each, &checkpoint_orders::close, order);
  });
}

std::vector<std::string> DistributedCheckpoint::State::load_all(const CheckpointOrder& order,
                                                                bool needs_names) const {
  std::vector<std::string> taken;
  const auto add = [&](const std::vector<std::string>& names) {
    taken.insert(taken.end(), names.begin(), names.end());
  };
  std::vector<Future<std::vector<std::string>>> loading;
  for (const CheckpointPart& part : parts)
    if (part.needs_names == needs_names) loading.push_back(part.load(calls, order, part.name));
  for (const auto& loaded : loading) add(loaded.wait());
  for (const Local& local : locals)
    if (local.needs_names == needs_names) add(load_here(local, order));
  return taken;
}

void DistributedCheckpoint::State::check_used(
    const CheckpointChoice& choice, const std::vector<std::vector<std::string>>& taken) const {
  if (options.allow_unused) return;
  std::set<std::string> used;
  for (const std::vector<std::string>& names : taken) used.insert(names.begin(), names.end());
  for (const CheckpointPlace& place : choice.directory)
    if (!used.contains(place.piece))
      fail_checkpoint(ErrorKind::storage,
                      "step " + std::to_string(choice.from.step) + " of '" + name + "' has '" +
                          place.piece +
                          "', which nothing here takes: name it, or set Options::allow_unused");
}

void DistributedCheckpoint::State::go_on() {
  holders = everybody();
  const CheckpointChoice choice = choose();
  open(choice);
  const CheckpointOrder order = this->order({.run = choice.run, .step = choice.from.step});
  std::vector<std::vector<std::string>> taken;
  for (const bool needs_names : {false, true})
    for (std::vector<std::string>& names :
         members.together<std::vector<std::string>>([&] { return load_all(order, needs_names); }))
      taken.push_back(std::move(names));
  close(choice);
  check_used(choice, taken);
  run = choice.run;
  latest = committed = told = choice.from;
}

int64_t DistributedCheckpoint::resume() {
  State& state = *state_;
  if (state.run > 0) throw std::logic_error("resume() is called once in a life");
  const at::NoGradGuard unrecorded;
  state.numbers = state.numbers_after();
  state.go_on();
  state.main().skip_to(state.numbers);
  return state.latest.step;
}

// ---- saving ---------------------------------------------------------------------------

void DistributedCheckpoint::State::keep_all(const CheckpointOrder& order) const {
  std::vector<Future<Unit>> keeping;
  for (const CheckpointPart& part : parts) keeping.push_back(part.keep(calls, order, part.name));
  for (const Local& local : locals) local.keep(worker, order, local.name);
  wait_all(keeping);
}

void DistributedCheckpoint::State::write(const CheckpointOrder& order) {
  if (members.leads())
    for (const std::string& each : holders)
      writing.push_back(
          calls.rpc_async(each, &checkpoint_orders::write, order, holders, committed));
  latest = unfinished = order.tag;
}

// The last cut is on all disks, unless that fails: then there is none.
void DistributedCheckpoint::State::finish() {
  const CheckpointTag tag = std::exchange(unfinished, {});
  static_cast<void>(members.together<Unit>([this] {
    wait_all(std::exchange(writing, {}));
    return Unit{};
  }));
  committed = std::max(committed, tag);
}

void DistributedCheckpoint::State::tell_committed() {
  if (!members.leads() || told == committed) return;
  std::vector<Future<Unit>> telling;
  for (const std::string& each : holders)
    telling.push_back(calls.rpc_async(each, &checkpoint_orders::commit, order(committed)));
  wait_all(telling);
}

void DistributedCheckpoint::save(int64_t step) {
  State& state = *state_;
  if (state.run == 0) throw std::logic_error("resume() comes before the first save");
  if (step <= state.latest.step)
    throw std::invalid_argument("step " + std::to_string(step) + " is not after step " +
                                std::to_string(state.latest.step) + ", which was saved before");
  const at::NoGradGuard unrecorded;
  state.numbers = state.numbers_after();
  const CheckpointOrder order = state.order({.run = state.run, .step = step});

  state.finish();  // All have come: nobody steps any more.
  const std::vector<int64_t> steps = state.members.together<int64_t>([step] { return step; });
  if (steps.front() != step)
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "'" + state.members.names().front() + "' saves step " +
                            std::to_string(steps.front()) + ", and this worker step " +
                            std::to_string(step),
                    .worker = state.worker.name()});
  static_cast<void>(state.members.together<Unit>([&] {
    state.keep_all(order);
    return Unit{};
  }));
  state.write(order);
  state.main().skip_to(state.numbers);
}

void DistributedCheckpoint::wait() {
  State& state = *state_;
  const at::NoGradGuard unrecorded;
  const uint64_t numbers = state.numbers_after();
  state.finish();
  static_cast<void>(state.members.together<Unit>([&] {
    state.tell_committed();
    return Unit{};
  }));
  state.told = state.committed;
  state.main().skip_to(numbers);
}

int64_t DistributedCheckpoint::committed() const { return state_->committed.step; }

}  // namespace rehearsal
