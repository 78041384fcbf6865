#pragma once

#include <gtest/gtest.h>

#include "tests/core/checkpoint/small_training.h"

namespace rehearsal::testing {

// A crash of each worker at each `stride`-th of its events: the training ends with the bits of one
// that never crashed.
inline void expect_the_same_bits_after_crashes(uint64_t stride) {
  using sim::Cluster;
  constexpr Seed kSeed{7};
  TrainingEnd reference;
  const Program undisturbed = training_program({}, reference);
  const auto workers = Cluster(kSeed, undisturbed).run().workers;
  for (uint32_t victim = 0; victim < workers.size(); ++victim) {
    ASSERT_GT(workers[victim].decisions, 50u);
    int went_on = 0;
    for (uint64_t moment = 1 + victim % stride; moment < workers[victim].decisions;
         moment += stride) {
      SCOPED_TRACE(workers[victim].name + " crashes at event " + std::to_string(moment));
      sim::ClusterOptions options;
      options.restart = sim::Restart::checkpoint;
      options.crash_points = {{WorkerId{victim}, moment}};
      TrainingEnd end;
      const Program program = training_program({}, end);
      Cluster cluster(kSeed, program, options);
      const auto& report = cluster.run();
      std::string ends;
      for (const auto& worker : report.workers)
        ends += worker.name + ", life " + std::to_string(worker.lives) + ": " +
                (worker.error ? worker.error->text : "ended well") + "\n";
      ASSERT_EQ(difference(reference, end), "") << ends;
      went_on += end.resumed_at > 0 ? 1 : 0;
    }
    EXPECT_GT(went_on, static_cast<int>(20 / stride)) << workers[victim].name;
  }
}

}  // namespace rehearsal::testing
