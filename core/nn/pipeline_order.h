#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/api/pipeline.h"
#include "core/base/ids.h"

namespace rehearsal {

// The shape of a pipeline, as its schedule needs it.
struct PipelineShape {
  std::vector<WorkerId> owners;              // by stage
  std::vector<std::vector<size_t>> sources;  // by stage: the stages whose outputs it takes
  uint32_t micro_batches = 1;
};

// The order in which each worker's actions run. Any shape has one in which no worker waits for
// ever: it is that of a simulated run in which a forward pass takes one unit of time and a backward
// pass two, and a worker that is free takes
// - fill_drain (GPipe, Huang et al., 2019): the forward pass of the first micro-batch that can run;
//   a stage runs backward passes once it has run all its forward passes;
// - one_f_one_b (PipeDream-Flush, Narayanan et al., 2021): a backward pass if one can run, else a
//   forward pass, of the deepest stage first; a stage begins no further micro-batch while as many
//   of its own are under way as stages lie between it and the end, itself included.
// Where the stages are dealt to the workers in turn, several to each, and the micro-batches are a
// multiple of the workers, one_f_one_b is the interleaved schedule (Narayanan et al., 2021)
// instead, whose bubble is smaller by the number of stages on a worker.
//
// zero_bubble is one_f_one_b with backward passes that are divided (ZB-H1 of Qi et al., 2023):
// behind each comes work on the weights of an earlier one, which nobody else waits for. On p
// workers with one stage each and m ≥ p micro-batches, if the three passes take the same time, a
// step takes 3m + p − 1 of them, where 1F1B takes 3(m + p − 1), and a worker keeps the activations
// of p micro-batches.
[[nodiscard]] std::map<WorkerId, std::vector<PipelineAction>> pipeline_orders(
    const PipelineShape& shape, PipelineSchedule schedule);

}  // namespace rehearsal
