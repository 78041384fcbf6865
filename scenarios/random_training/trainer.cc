#include "scenarios/random_training/trainer.h"

#include <algorithm>
#include <optional>
#include <string>

#include "scenarios/random_training/chain_training.h"
#include "scenarios/random_training/head_replica.h"
#include "scenarios/random_training/wrong_result.h"

namespace rehearsal::random_training {
namespace {

// A half of the steps, with everything made anew. Those before them come from the checkpoint.
class Half {
 public:
  Half(const Worker& worker, const Plan& plan, const Alone& alone, size_t half)
      : worker_(worker), plan_(plan), alone_(alone), head_(worker, plan) {
    if (worker.name() == trainer_name(0)) chain_.emplace(worker, plan, alone, half);
    // A disk that is lost costs steps, and no bit.
    checkpoint_.emplace(
        worker, "training",
        DistributedCheckpoint::Options{.members = trainers_of(plan), .accept_loss = true});
    worker.state<HeadDesk>().replica = &head_;
  }
  ~Half() { worker_.state<HeadDesk>().replica = nullptr; }
  Half(const Half&) = delete;
  Half& operator=(const Half&) = delete;

  // To the end of the half and so many steps beyond it, which are not saved, from where the
  // training was saved: after `begin` steps, or more if an earlier life of this worker has saved
  // them. How many have been made at the end of the half.
  size_t run(size_t begin, size_t end, size_t beyond) {
    if (chain_) chain_->add_to(*checkpoint_);
    head_.add_to(*checkpoint_);
    const auto first = static_cast<size_t>(checkpoint_->resume());
    expect(first >= begin && first <= plan_.steps.size(),
           "a training that was saved has gone back");
    expect(first == 0 || plan_.steps[first - 1].saves, "a training that was not saved goes on");
    size_t saved = first;
    const size_t last = std::min(std::max(first, end) + beyond, plan_.steps.size());
    for (size_t step = first; step < last; ++step) {
      if (chain_) chain_->step(step, head_.head());
      head_.step(step);
      expect_same({head_.head().weight, head_.head().bias}, alone_.steps[step].head, "the head");
      if (!plan_.steps[step].saves || step >= end) continue;
      saved = step + 1;
      checkpoint_->save(static_cast<int64_t>(saved));
    }
    if (saved > first) checkpoint_->wait();
    expect(checkpoint_->committed() == static_cast<int64_t>(saved),
           "a save that is not known to be complete");
    if (chain_) chain_->look_around();
    return std::max(first, end);
  }

 private:
  const Worker& worker_;
  const Plan& plan_;
  const Alone& alone_;
  HeadReplica head_;
  std::optional<ChainTraining> chain_;
  std::optional<DistributedCheckpoint> checkpoint_;
};

}  // namespace

void train(const Worker& worker, const Plan& plan, Reporter& reporter) {
  const Alone alone = train_alone(plan);
  const size_t steps = plan.steps.size();
  const size_t middle = plan.moves_after.value_or(steps);
  const size_t reached =
      Half(worker, plan, alone, 0).run(0, middle, std::min(plan.overrun, steps - middle));
  if (middle < steps) Half(worker, plan, alone, 1).run(reached, steps, 0);
  worker.barrier(trainers_of(plan));
  if (worker.name() == trainer_name(0)) {
    reporter.results.number("steps like those of one process", static_cast<double>(steps));
    for (size_t i = 0; i < alone.steps.back().chain.size(); ++i)
      reporter.results.tensor("parameter " + std::to_string(i), alone.steps.back().chain[i]);
  }
}

}  // namespace rehearsal::random_training
