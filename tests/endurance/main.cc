// This binary is the tests, and each worker process that they start.
#include <gtest/gtest.h>
#include <malloc.h>

#include "tests/endurance/worker_process.h"

int main(int argc, char** argv) {
  if (const std::optional<int> status = rehearsal::endurance::run_as_worker()) return *status;
  // Threads come and go: with an arena for each, what is free is spread over all of them, and what
  // is resident grows for a long time although nothing is kept.
  mallopt(M_ARENA_MAX, 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
