#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "sim/strategies/strategy.h"

namespace rehearsal::sim {
namespace {

std::string why(const std::string& text) {
  try {
    static_cast<void>(parse_strategy(text));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing is wrong";
}

TEST(StrategyText, IsReadBackAsItWasWritten) {
  for (const char* text : {"timed-swarm", "random-walk", "pct", "pct:d=3,k=480", "pct:k=7", "pos",
                           "delays", "delays:bound=2,k=100", "delays:skip=17.40.40", "urw",
                           "urw:s0.1=12,x1.3=7/s0.1,t2.0=5", "surw:l0.1=3,n0.2=4,r0.0=1"})
    EXPECT_EQ(to_string(parse_strategy(text)), text);
}

TEST(StrategyText, HoldsWhatItSays) {
  const StrategySettings pct = parse_strategy("pct:k=480,d=3");
  EXPECT_EQ(pct.kind, StrategyKind::pct);
  EXPECT_EQ(pct.depth, 3u);
  EXPECT_EQ(pct.length, 480u);
  const StrategySettings urw = parse_strategy("urw:s0.1=12,x1.3=7/s0.1");
  ASSERT_EQ(urw.counts.size(), 2u);
  EXPECT_EQ(urw.counts[0].events, 12u);
  EXPECT_EQ(urw.counts[1].chain, (net_fake::Chain{net_fake::Chain::Kind::stack, 1, 3}));
  EXPECT_EQ(urw.counts[1].parent, urw.counts[0].chain);
}

TEST(StrategyText, SaysWhatIsWrong) {
  EXPECT_EQ(why("best"), "'best': there is no such strategy");
  EXPECT_EQ(why("pos:d=1"), "'pos:d=1': 'd=1' is not known; pos takes nothing");
  EXPECT_EQ(why("pct:x=1"),
            "'pct:x=1': 'x=1' is not known; pct takes d and k, for example pct:d=3,k=480");
  EXPECT_EQ(why("pct:"), "'pct:': '' is not known; pct takes d and k, for example pct:d=3,k=480");
  EXPECT_EQ(why("pct:d=0"), "'pct:d=0': d is a whole number from 1 to 20");
  EXPECT_EQ(why("pct:d=2,d=2"), "'pct:d=2,d=2': d is given twice");
  EXPECT_EQ(why("pct:k=4x"), "'pct:k=4x': k is a whole number from 1 to 1000000000");
  EXPECT_EQ(why("delays:skip=4.2"),
            "'delays:skip=4.2': the steps of skip are in order, the smallest first");
  EXPECT_EQ(why("urw:q0.1=2"),
            "'urw:q0.1=2': 'q0.1=2' is no count; write it like s0.1=12 or s0.1=12/x0.3");
  EXPECT_EQ(why("urw:x0.1=2/s0.0"), "'urw:x0.1=2/s0.0': s0.0 is not counted in front of x0.1");
  EXPECT_EQ(why("urw:x0.1=2,x0.1=2"), "'urw:x0.1=2,x0.1=2': x0.1 is counted twice");
}

}  // namespace
}  // namespace rehearsal::sim
