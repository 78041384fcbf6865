// The bits of a run are those of the processor's kernels too: these tests ask for those that every
// processor has, so that one file of pins holds on all.
#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("ATEN_CPU_CAPABILITY", "default", 1);
  setenv("MKL_CBWR", "COMPATIBLE", 1);
  setenv("ONEDNN_MAX_CPU_ISA", "SSE41", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
