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

// As a member writes its word (CheckpointMembers::together).
struct SaidWord {
  bool failed = false;
  uint8_t kind = 0;
  std::string text;
  std::string worker;
  int64_t value = 0;
  friend void describe(SaidWord& word, auto&& fields) {
    fields(word.failed, word.kind, word.text, word.worker, word.value);
  }
};

TEST(CheckpointMembers, AFailureOfNoKnownKindIsItsMembersFault) {
  // Goal: no word of a member ends another one. Method: a member that writes its word by hand: with
  // the last kind that there is, and with each end of those that there are not.
  for (const int kind :
       {static_cast<int>(kLastErrorKind), static_cast<int>(kLastErrorKind) + 1, 255}) {
    MaybeError heard;
    Program program{FunctionRegistry()};
    program.worker("a", [&heard](Worker& worker) {
      try {
        (void)CheckpointMembers(worker, kTogether).together<int64_t>([] { return int64_t{1}; });
      } catch (const RpcError& error) {
        heard = error.error();
      }
    });
    program.worker("b", [kind](Worker& worker) {
      const SaidWord word{
          .failed = true, .kind = static_cast<uint8_t>(kind), .text = "no", .worker = "c"};
      (void)worker.all_gather(word, kTogether, Timeout::never());
    });
    sim::Cluster(Seed{1}, program, {.faults = sim::FaultLevel::none}).run();
    ASSERT_TRUE(heard);
    const bool is_known = kind == static_cast<int>(kLastErrorKind);
    EXPECT_EQ(heard->kind, is_known ? kLastErrorKind : ErrorKind::protocol);
    EXPECT_EQ(heard->worker, is_known ? "c" : "b");
    EXPECT_EQ(heard->text, is_known ? "no"
                                    : "it gives a failure of kind " + std::to_string(kind) +
                                          ", which there is not, to those that save together");
  }
}

}  // namespace
}  // namespace rehearsal::testing
