#include "tests/core/checkpoint/crash_sweep.h"

namespace rehearsal::testing {
namespace {

TEST(Resume, AfterACrashOfAnybodyAnywhereItEndsWithTheSameBits) {
  // Goal: no moment is special. Method: a crash of each worker at each of its events.
  expect_the_same_bits_after_crashes(1);
}

}  // namespace
}  // namespace rehearsal::testing
