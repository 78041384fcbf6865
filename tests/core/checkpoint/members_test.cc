// Workers that save together, one of which fails.
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/api/worker.h"
#include "core/checkpoint/checkpoint_members.h"
#include "sim/cluster.h"

namespace rehearsal::testing {
namespace {

const std::vector<std::string> kTogether = {"a", "b"};
// More than a message takes.
constexpr size_t kLongText = 70'000'000;

TEST(CheckpointMembers, HearOfAFailureHoweverLongItsTextIs) {
  // Goal: what one throws reaches all. Method: exceptions of LibTorch's kind and the library's,
  // with a text that no message takes.
  for (const bool of_library : {false, true}) {
    std::map<std::string, Error> heard;
    const auto main = [&](Worker& worker) {
      const CheckpointMembers members(worker, kTogether);
      try {
        members.together<int64_t>([&]() -> int64_t {
          if (worker.name() == "a") return 1;
          if (of_library)
            throw RpcError(
                {.kind = ErrorKind::storage, .text = std::string(kLongText, 'x'), .worker = "b"});
          throw std::runtime_error(std::string(kLongText, 'x'));
        });
      } catch (const RpcError& error) {
        heard[std::string(worker.name())] = error.error();
      }
    };
    Program program{FunctionRegistry()};
    program.worker("a", main).worker("b", main);
    sim::Cluster(Seed{1}, program, {.faults = sim::FaultLevel::none}).run();
    ASSERT_EQ(heard.size(), 2u);
    EXPECT_TRUE(heard["a"] == heard["b"]);
    EXPECT_EQ(heard["a"].worker, "b");
    EXPECT_EQ(heard["a"].kind, of_library ? ErrorKind::storage : ErrorKind::remote_exception);
    EXPECT_EQ(heard["a"].text, short_text(std::string(kLongText, 'x')));
  }
}

}  // namespace
}  // namespace rehearsal::testing
