// The training of a net in shards: through a pipeline, and in one process.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/api/pipeline.h"
#include "core/api/worker.h"
#include "scenarios/pipeline/shard.h"

namespace rehearsal::pipeline {

struct Settings {
  int64_t stages = 2;
  int64_t workers = 2;  // the stages are dealt to them in turn
  int64_t blocks = 2;   // of each stage
  int64_t channels = 1;
  int64_t classes = 1;
  int64_t side = 1;  // of a picture
  int64_t steps = 1;
  int64_t micro_batches = 1;
  int64_t rows = 1;     // of a micro-batch
  int64_t pass_ms = 0;  // how long a stage rests in each pass
  double learning_rate = 0.1;
  double momentum = 0;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int devices =
      0;  // of each worker, which the stages are dealt to in turn; 0: they compute on CPUs
  uint64_t seed = 0;
};

// The losses of all steps, and the parameters behind the last, by stage.
struct Trained {
  std::vector<double> losses;
  std::vector<std::vector<at::Tensor>> parameters;
};

// Called after each step, with its number and its loss.
using OnStep = std::function<void(int64_t number, double loss, const PipelineStep& step)>;

// By the workers named "worker0" and on; the calling worker leads. Parks. Throws RpcError.
[[nodiscard]] Trained train_in_stages(const Worker& worker, const Settings& settings,
                                      const OnStep& on_step);

// The same in this process, with LibTorch's own pass and optimizer.
[[nodiscard]] Trained train_alone(const Settings& settings);

}  // namespace rehearsal::pipeline
