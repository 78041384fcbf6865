#include "core/nn/pipeline_order.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>

#include "core/base/check.h"

namespace rehearsal {
namespace {

constexpr uint64_t kForwardTime = 1;
constexpr uint64_t kBackwardTime = 2;

// How many stages lie between each one and the end, itself included.
std::vector<uint32_t> depths_to_end(const PipelineShape& shape) {
  std::vector<uint32_t> depths(shape.owners.size(), 1);
  for (size_t stage = depths.size(); stage-- > 0;)
    for (const size_t source : shape.sources[stage])
      depths[source] = std::max(depths[source], depths[stage] + 1);
  return depths;
}

// The run that gives the orders.
class Run {
 public:
  Run(const PipelineShape& shape, PipelineSchedule schedule)
      : shape_(shape),
        schedule_(schedule),
        stages_(shape.owners.size()),
        users_(stages_.size()),
        limits_(depths_to_end(shape)) {
    for (uint32_t stage = 0; stage < stages_.size(); ++stage) {
      stages_[stage].forward_ends.resize(shape.micro_batches);
      stages_[stage].backward_ends.resize(shape.micro_batches);
      for (const size_t source : shape.sources[stage]) users_[source].push_back(stage);
    }
  }

  std::map<WorkerId, std::vector<PipelineAction>> orders() {
    std::map<WorkerId, uint64_t> free_at;
    for (const WorkerId owner : shape_.owners) free_at[owner] = 0;
    size_t left = 2 * stages_.size() * shape_.micro_batches;
    for (now_ = 0; left > 0; ++now_)
      for (auto& [worker, free] : free_at) {
        if (free > now_) continue;
        const std::optional<PipelineAction> action = choose(worker);
        if (!action) continue;
        free = begin(*action);
        orders_[worker].push_back(*action);
        --left;
      }
    return std::move(orders_);
  }

 private:
  struct Stage {
    uint32_t forwards = 0;  // begun, in the order of micro-batches
    uint32_t backwards = 0;
    std::vector<std::optional<uint64_t>> forward_ends;
    std::vector<std::optional<uint64_t>> backward_ends;
  };

  [[nodiscard]] bool over(const std::optional<uint64_t>& end) const { return end && *end <= now_; }

  [[nodiscard]] bool can_forward(uint32_t number) const {
    const Stage& stage = stages_[number];
    const uint32_t next = stage.forwards;
    if (next == shape_.micro_batches) return false;
    if (schedule_ != PipelineSchedule::fill_drain &&
        stage.forwards - stage.backwards >= limits_[number])
      return false;
    return std::ranges::all_of(shape_.sources[number], [&](size_t source) {
      return over(stages_[source].forward_ends[next]);
    });
  }

  [[nodiscard]] bool can_backward(uint32_t number) const {
    const Stage& stage = stages_[number];
    const uint32_t next = stage.backwards;
    if (next == shape_.micro_batches || !over(stage.forward_ends[next])) return false;
    if (schedule_ == PipelineSchedule::fill_drain && stage.forwards < shape_.micro_batches)
      return false;
    return std::ranges::all_of(
        users_[number], [&](uint32_t user) { return over(stages_[user].backward_ends[next]); });
  }

  [[nodiscard]] std::optional<PipelineAction> choose(WorkerId worker) const {
    for (const PipelinePass pass : {PipelinePass::backward, PipelinePass::forward})
      for (auto number = static_cast<uint32_t>(stages_.size()); number-- > 0;) {
        if (shape_.owners[number] != worker) continue;
        const Stage& stage = stages_[number];
        if (pass == PipelinePass::backward ? can_backward(number) : can_forward(number))
          return PipelineAction{pass, number,
                                pass == PipelinePass::backward ? stage.backwards : stage.forwards};
      }
    return std::nullopt;
  }

  // When it ends.
  uint64_t begin(const PipelineAction& action) {
    Stage& stage = stages_[action.stage];
    const bool is_backward = action.pass == PipelinePass::backward;
    const uint64_t end = now_ + (is_backward ? kBackwardTime : kForwardTime);
    if (is_backward)
      stage.backward_ends[stage.backwards++] = end;
    else
      stage.forward_ends[stage.forwards++] = end;
    return end;
  }

  const PipelineShape& shape_;
  const PipelineSchedule schedule_;
  std::vector<Stage> stages_;
  std::vector<std::vector<uint32_t>> users_;
  const std::vector<uint32_t> limits_;
  std::map<WorkerId, std::vector<PipelineAction>> orders_;
  uint64_t now_ = 0;
};

// How many workers the stages are dealt to in turn, several to each; none if they are not.
std::optional<uint32_t> dealt_to(const PipelineShape& shape) {
  const std::set<WorkerId> workers(shape.owners.begin(), shape.owners.end());
  const size_t count = workers.size();
  const size_t stages = shape.owners.size();
  if (stages == count || stages % count != 0 || shape.micro_batches % count != 0)
    return std::nullopt;
  for (size_t stage = 0; stage + count < stages; ++stage)
    if (shape.owners[stage] != shape.owners[stage + count]) return std::nullopt;
  const std::set<WorkerId> first(shape.owners.begin(), shape.owners.begin() + count);
  if (first.size() != count) return std::nullopt;
  return static_cast<uint32_t>(count);
}

// Each worker goes through its stages in rounds of as many micro-batches as there are workers.
std::map<WorkerId, std::vector<PipelineAction>> interleaved_orders(const PipelineShape& shape,
                                                                   uint32_t workers) {
  const auto rounds = static_cast<uint32_t>(shape.owners.size()) / workers;
  const uint32_t count = shape.micro_batches * rounds;  // of each worker's forward passes
  std::map<WorkerId, std::vector<PipelineAction>> orders;
  for (uint32_t rank = 0; rank < workers; ++rank) {
    const auto action = [&](bool is_backward, uint32_t number) {
      const uint32_t round = number / workers % rounds;
      const uint32_t stage = (is_backward ? rounds - 1 - round : round) * workers + rank;
      return PipelineAction{is_backward ? PipelinePass::backward : PipelinePass::forward, stage,
                            number / (workers * rounds) * workers + number % workers};
    };
    const uint32_t early = std::min(count, (workers - rank - 1) * 2 + (rounds - 1) * workers);
    std::vector<PipelineAction>& order = orders[shape.owners[rank]];
    for (uint32_t number = 0; number < count + early; ++number) {
      if (number < count) order.push_back(action(false, number));
      if (number >= early) order.push_back(action(true, number - early));
    }
  }
  return orders;
}

// Behind each backward pass comes the work on weights of the one that was so many before it as
// stages lie in front of the worker's first one; the rest last.
void add_weights(const PipelineShape& shape,
                 std::map<WorkerId, std::vector<PipelineAction>>& orders) {
  const std::vector<uint32_t> depths = depths_to_end(shape);
  std::map<WorkerId, uint32_t> first;  // the depth of a worker's first stage
  for (size_t stage = 0; stage < depths.size(); ++stage)
    first[shape.owners[stage]] = std::max(first[shape.owners[stage]], depths[stage]);
  const uint32_t deepest = *std::ranges::max_element(depths);
  for (auto& [worker, order] : orders) {
    const uint32_t lag = deepest - first[worker];
    std::vector<PipelineAction> with_weights;
    std::deque<PipelineAction> late;
    const auto take_late = [&](size_t keep) {
      for (; late.size() > keep; late.pop_front()) with_weights.push_back(late.front());
    };
    for (const PipelineAction& action : order) {
      with_weights.push_back(action);
      if (action.pass != PipelinePass::backward) continue;
      late.push_back({PipelinePass::weights, action.stage, action.micro_batch});
      take_late(lag);
    }
    take_late(0);
    order = std::move(with_weights);
  }
}

// Those of the passes forward and backward.
std::map<WorkerId, std::vector<PipelineAction>> undivided_orders(const PipelineShape& shape,
                                                                 PipelineSchedule schedule) {
  if (schedule != PipelineSchedule::fill_drain)
    if (const auto workers = dealt_to(shape)) return interleaved_orders(shape, *workers);
  return Run(shape, schedule).orders();
}

}  // namespace

std::map<WorkerId, std::vector<PipelineAction>> pipeline_orders(const PipelineShape& shape,
                                                                PipelineSchedule schedule) {
  REHEARSAL_CHECK(shape.owners.size() == shape.sources.size());
  auto orders = undivided_orders(shape, schedule);
  if (schedule == PipelineSchedule::zero_bubble) add_weights(shape, orders);
  return orders;
}

}  // namespace rehearsal
