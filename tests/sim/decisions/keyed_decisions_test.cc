#include "sim/decisions/keyed_decisions.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <stdexcept>

namespace rehearsal::sim {
namespace {

Key numbered(uint64_t number) {
  return {.kind = DecisionKind::latency, .subject = {{1}, 0}, .object = {{0}, 0}, .number = number};
}

TEST(KeyedDecisions, AChoiceDependsOnSeedAndKeyOnly) {
  KeyedDecisions forward(Seed{3}, {});
  KeyedDecisions backward(Seed{3}, {});
  std::vector<uint64_t> one;
  std::vector<uint64_t> other;
  for (uint64_t i = 0; i < 100; ++i) one.push_back(forward.choose(numbered(i), 1000));
  for (uint64_t i = 100; i-- > 0;) other.push_back(backward.choose(numbered(i), 1000));
  EXPECT_TRUE(std::equal(one.begin(), one.end(), other.rbegin()));
  KeyedDecisions another(Seed{4}, {});
  EXPECT_NE(one[0] * 1000 + one[1],
            another.choose(numbered(0), 1000) * 1000 + another.choose(numbered(1), 1000));
}

TEST(KeyedDecisions, ChoicesAreSpreadEvenly) {
  KeyedDecisions decisions(Seed{9}, {});
  std::vector<int> hits(7);
  for (uint64_t i = 0; i < 70'000; ++i) ++hits[decisions.choose(numbered(i), 7)];
  for (const int count : hits) EXPECT_NEAR(count, 10'000, 400);
}

// Goal: one decision can be changed, and no other moves.
TEST(KeyedDecisions, AnOverrideChangesItsKeyAlone) {
  KeyedDecisions plain(Seed{3}, {});
  KeyedDecisions changed(Seed{3}, {{numbered(5), 42}, {numbered(6), 1042}});
  for (uint64_t i = 0; i < 20; ++i) {
    const uint64_t before = plain.choose(numbered(i), 1000);
    const uint64_t after = changed.choose(numbered(i), 1000);
    EXPECT_EQ(after, i == 5 || i == 6 ? 42 : before) << i;
  }
  EXPECT_TRUE(changed.absent().empty());
}

TEST(KeyedDecisions, OverridesThatNeverComeUpAreReported) {
  KeyedDecisions decisions(Seed{3}, {{numbered(5), 1}, {numbered(6), 1}});
  (void)decisions.choose(numbered(5), 2);
  EXPECT_EQ(decisions.absent(), std::vector<Key>{numbered(6)});
  EXPECT_EQ(decisions.draws(), 1u);
}

// Goal: a run that ends its process leaves what it has chosen.
TEST(KeyedDecisions, WhatIsChosenIsWrittenAtOnce) {
  KeyedDecisions decisions(Seed{3}, {{numbered(5), 7}, {numbered(6), 8}}, Otherwise::benign,
                           /*record=*/true);
  (void)decisions.choose(numbered(5), 10);
  std::ostringstream lines;
  decisions.write_lines_to(&lines);
  EXPECT_EQ(lines.str(), "latency:1.0>0.0#5.0=7\n");
  (void)decisions.choose(numbered(4), 10);  // benign
  (void)decisions.choose(numbered(6), 10);
  (void)decisions.choose(numbered(6), 10);
  decisions.note({.kind = DecisionKind::hold, .number = 2}, 1);
  decisions.note({.kind = DecisionKind::hold, .number = 2}, 2);
  EXPECT_EQ(lines.str(),
            "latency:1.0>0.0#5.0=7\nlatency:1.0>0.0#6.0=8\nhold:#2.0=1\nhold:#2.0=2\n");
}

TEST(KeyedDecisions, AnOverrideIsReadBackFromItsText) {
  const Override override{numbered(5), 77};
  EXPECT_EQ(to_string(override), "latency:1.0>0.0#5.0=77");
  const Override parsed = parse_override(to_string(override));
  EXPECT_EQ(parsed.key, override.key);
  EXPECT_EQ(parsed.value, 77u);
  for (const char* text : {"", "cut:1.0>0.0#7.0", "cut:1.0>0.0#7.0=", "cut:1.0>0.0#7.0=x", "a=1"})
    EXPECT_THROW((void)parse_override(text), std::invalid_argument) << text;
}

TEST(KeyedDecisions, ARedrawChangesAboutOneInSoManyAndTheLastOneThatHasTheKeyCounts) {
  KeyedDecisions base(Seed{5}, {});
  KeyedDecisions once(Seed{5}, {}, Otherwise::drawn, false, {{.salt = 77, .one_in = 10}});
  KeyedDecisions twice(Seed{5}, {}, Otherwise::drawn, false,
                       {{.salt = 77, .one_in = 10}, {.salt = 78, .one_in = 10}});
  KeyedDecisions all(Seed{6}, {}, Otherwise::drawn, false, {{.salt = 78, .one_in = 1}});
  int changed = 0;
  int changed_again = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    const Key key{.kind = DecisionKind::latency, .number = i};
    const uint64_t before = base.choose(key, net_fake::kMillion);
    const uint64_t after = once.choose(key, net_fake::kMillion);
    const uint64_t last = twice.choose(key, net_fake::kMillion);
    changed += before != after ? 1 : 0;
    if (last == after) continue;
    ++changed_again;
    EXPECT_EQ(last, all.choose(key, net_fake::kMillion));
  }
  EXPECT_NEAR(changed, 1000, 180);  // Six standard deviations.
  EXPECT_NEAR(changed_again, 1000, 180);
}

TEST(KeyedDecisions, ARedrawTakesMoreOfTheKindsOfWhichARunHasFew) {
  KeyedDecisions base(Seed{5}, {});
  KeyedDecisions redrawn(Seed{5}, {}, Otherwise::drawn, false, {{.salt = 3, .one_in = 1'000'000}});
  int changed = 0;
  for (uint64_t i = 0; i < 3200; ++i) {
    const Key swarm{.kind = DecisionKind::swarm, .number = i};
    changed +=
        base.choose(swarm, net_fake::kMillion) != redrawn.choose(swarm, net_fake::kMillion) ? 1 : 0;
  }
  EXPECT_NEAR(changed, 100, 59);
}

TEST(KeyedDecisions, ARedrawIsReadBackAsItWasWritten) {
  EXPECT_EQ(to_string(parse_redraw("77/400")), "77/400");
  for (const char* wrong : {"", "77", "77/", "/4", "77/0", "77/4x", "a/4"})
    EXPECT_THROW(static_cast<void>(parse_redraw(wrong)), std::invalid_argument) << wrong;
}

TEST(KeyedDecisions, AHoldIsNeverDrawn) {
  const Key key{.kind = DecisionKind::hold, .number = 1};
  KeyedDecisions drawn(Seed{5}, {});
  EXPECT_EQ(drawn.choose(key, 1000), 0u);
  KeyedDecisions given(Seed{5}, {{key, 7}});
  EXPECT_EQ(given.choose(key, 1000), 7u);
  EXPECT_TRUE(given.gives(DecisionKind::hold));
  EXPECT_FALSE(given.gives(DecisionKind::pick));
}

}  // namespace
}  // namespace rehearsal::sim
