#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"

// The proof by which the workers of `run --net tcp` know each other, as a user chooses it.
namespace rehearsal::command_line {
namespace {

constexpr const char* kRun = "run quickstart --net tcp --set size=tiny";

TEST(RunAuth, ThatIsNoneIsRefusedInOneLineBeforeAnyWorkerStarts) {
  for (const std::string wrong : {"nonsense", "secret:env=NOWHERE", "secret:fd=77",
                                  "certificates:cert=/nowhere,key=/nowhere,ca=/nowhere,x=y"}) {
    const ToolRun run = run_tool(kRun, "REHEARSAL_AUTH=" + wrong);
    EXPECT_EQ(run.status, 2) << wrong << ": " << run.out << run.err;
    EXPECT_EQ(run.err_lines().size(), 1u) << run.err;
    EXPECT_NE(run.err.find("--auth"), std::string::npos) << run.err;
  }
}

TEST(RunAuth, MayBeASecretBehindADescriptorWithEitherProtection) {
  const TemporaryFolder folder;
  const std::string file = folder.file("secret");
  std::ofstream(file) << "a secret of this test\n";
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  for (const std::string protection : {"", ",protection=mac"}) {
    const ToolRun run =
        run_tool(std::string(kRun) + " 9<" + file, "REHEARSAL_AUTH=secret:fd=9" + protection);
    EXPECT_EQ(run.status, 0) << run.out << run.err;
  }
}

}  // namespace
}  // namespace rehearsal::command_line
