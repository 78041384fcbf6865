#include "tests/core/checkpoint/crash_sweep.h"
#include "tests/effort.h"

namespace rehearsal::testing {
namespace {

TEST(Resume, AfterACrashOfAnybodyItEndsWithTheSameBits) {
  // Goal: a training that crashed and goes on ends with the bits of one that never did. Method: a
  // crash of each worker at each thirtieth of its events; tests/scenarios/resume has all of them.
  expect_the_same_bits_after_crashes(every(30));
}

}  // namespace
}  // namespace rehearsal::testing
