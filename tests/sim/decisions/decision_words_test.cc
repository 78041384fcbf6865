#include "sim/decisions/decision_words.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace rehearsal::sim {
namespace {

const std::vector<std::string> kNames = {"server", "trainer0", "trainer1"};

std::string words_of(const char* text) { return in_words(parse_override(text), kNames); }

TEST(DecisionWords, SayWhatHappensToWhom) {
  EXPECT_EQ(words_of("cut:1.0>0.0#7.0=1"), "trainer0→server: the link is cut at message 7");
  EXPECT_EQ(words_of("cut:1.1>0.0#7.2=1"),
            "trainer0 in life 2→server: the link is cut at message 7, sent again (2)");
  EXPECT_EQ(words_of("latency:0.0>2.0#68719476739.0=5"),
            "server→trainer1: bare frame 3 takes longer (5)");
  EXPECT_EQ(words_of("crash_victim:#0.0=2"), "crash 0 is of trainer1");
  EXPECT_EQ(words_of("hold:1.0>0.0#4.0=1"), "trainer0→server: arrival 5 lets 1 other go first");
  EXPECT_EQ(words_of("hold:1.2#0.2=3"), "trainer0: step 1 of stack 3 lets 3 others go first");
  EXPECT_EQ(words_of("hold:2.0#0.3=3"), "trainer1: timer event 1 lets 3 others go first");
}

TEST(DecisionWords, EveryKindHasSome) {
  for (size_t kind = 0; kind < net_fake::kDecisionKinds; ++kind)
    EXPECT_FALSE(in_words({{.kind = static_cast<DecisionKind>(kind)}, 1}, kNames).empty()) << kind;
}

TEST(DecisionNames, StandForNumbersAndAreReadBack) {
  for (const auto& [numbered, named] :
       {std::pair{"cut:1.0>0.0#7.0=1", "cut:trainer0.0>server.0#7.0=1"},
        std::pair{"swarm:#3.0=1", "swarm:#3.0=1"},
        std::pair{"start:2.1@1f-2a#0.0=5", "start:trainer1.1@1f-2a#0.0=5"},
        std::pair{"hold:9.0#0.3=3", "hold:9.0#0.3=3"}}) {
    EXPECT_EQ(with_names(numbered, kNames), named);
    EXPECT_EQ(with_numbers(named, kNames), numbered);
  }
  EXPECT_EQ(with_names("nonsense", kNames), "nonsense");
  EXPECT_EQ(with_names("cut:0.0>1.0#7.0=1", {"a b", "c>d"}), "cut:0.0>1.0#7.0=1");
}

TEST(DecisionNames, AWorkerThatIsNotThereIsNamed) {
  try {
    static_cast<void>(with_numbers("cut:ps.0>trainer0.0#7.0=1", kNames));
    FAIL() << "nothing was thrown";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "'cut:ps.0>trainer0.0#7.0=1': the program has no worker 'ps'");
  }
}

}  // namespace
}  // namespace rehearsal::sim
