// Where a test may leave a file: no other process has the same path, so that two runs of the tests
// on one machine do not disturb each other. The test that makes the file removes it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace rehearsal {

inline std::string temporary_path(const std::string& name) {
  return testing::TempDir() + "rehearsal_" + std::to_string(getpid()) + "_" + name;
}

}  // namespace rehearsal
