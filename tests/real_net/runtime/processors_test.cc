#include "real_net/runtime/processors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/temporary_folder.h"

namespace rehearsal::real {
namespace {

// The files in which the kernel tells of a process's control groups, made up.
class Groups : public testing::Test {
 protected:
  void member_of(const std::string& lines) { std::ofstream(files_.own) << lines; }
  void write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(files_.mount) / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  const TemporaryFolder folder_;
  const ControlGroupFiles files_{.own = folder_.file("cgroup"), .mount = folder_.file("groups")};
};

TEST_F(Groups, OfVersionTwoTheLeastQuotaUpToTheRootCounts) {
  member_of("0::/jobs/one\n");
  EXPECT_TRUE(std::isinf(processor_quota(files_)));
  write("jobs/one/cpu.max", "max 100000\n");
  EXPECT_TRUE(std::isinf(processor_quota(files_)));
  write("jobs/cpu.max", "50000 100000\n");
  EXPECT_EQ(processor_quota(files_), 0.5);
  write("jobs/one/cpu.max", "20000 100000\n");
  EXPECT_EQ(processor_quota(files_), 0.2);
  EXPECT_EQ(usable_processors(files_), 0.2);
}

TEST_F(Groups, InAContainerTheMountIsTheGroup) {
  member_of("0::/\n");
  write("cpu.max", "150000 100000\n");
  EXPECT_EQ(processor_quota(files_), 1.5);
}

TEST_F(Groups, OfVersionOneTheControllerOfProcessorsCounts) {
  member_of("5:memory:/jobs\n4:cpu,cpuacct:/jobs\n");
  write("memory/jobs/cpu.cfs_quota_us", "1000\n");
  write("memory/jobs/cpu.cfs_period_us", "100000\n");
  write("cpu,cpuacct/jobs/cpu.cfs_period_us", "100000\n");
  write("cpu,cpuacct/jobs/cpu.cfs_quota_us", "-1\n");
  EXPECT_TRUE(std::isinf(processor_quota(files_)));
  write("cpu,cpuacct/jobs/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(processor_quota(files_), 2.0);
}

TEST_F(Groups, TextsThatMakeNoSenseAreNoQuota) {
  for (const char* text : {"", "many", "0 0", "-5 100000", "100000", "1e999 1"}) {
    member_of("0::/\nnonsense\n1:cpu\n");
    write("cpu.max", text);
    EXPECT_GE(processor_quota(files_), 1.0) << text;
  }
  EXPECT_GT(usable_processors({.own = "/nowhere", .mount = "/nowhere"}), 0.0);
}

}  // namespace
}  // namespace rehearsal::real
