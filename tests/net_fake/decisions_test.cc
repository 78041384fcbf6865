#include "net_fake/decisions.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/net_fake/fake_world.h"

namespace rehearsal::net_fake {
namespace {

std::vector<Key> sample_keys() {
  return {
      {.kind = DecisionKind::latency, .subject = {{1}, 0}, .object = {{0}, 2}, .number = 7},
      {.kind = DecisionKind::cut,
       .subject = {{1}, 0},
       .object = {{0}, 2},
       .number = 7,
       .occurrence = 3},
      {.kind = DecisionKind::resume,
       .subject = {{4}, 1},
       .place = {0xabcdef, 0x12},
       .occurrence = 9},
      {.kind = DecisionKind::swarm, .number = 11},
      {.kind = DecisionKind::timer, .subject = {{0}, 0}, .number = 0},
      {.kind = DecisionKind::restart, .number = UINT32_MAX},
  };
}

// Goal: a key's text names it completely, since overrides and reports are written with it.
TEST(Decisions, AKeyIsReadBackFromItsText) {
  for (const Key& key : sample_keys()) {
    const auto parsed = parse_key(to_string(key));
    ASSERT_TRUE(parsed.has_value()) << to_string(key);
    EXPECT_EQ(*parsed, key) << to_string(key);
  }
  EXPECT_EQ(to_string(sample_keys()[1]), "cut:1.0>0.2#7.3");
}

TEST(Decisions, EveryKindHasAName) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kDecisionKinds; ++i) names.insert(name_of(static_cast<DecisionKind>(i)));
  EXPECT_EQ(names.size(), kDecisionKinds);
  EXPECT_FALSE(names.contains(""));
}

TEST(Decisions, WrongTextIsNoKey) {
  for (const char* text : {"", "cut", "cut:", "cut:1.0", "cut:1.0>0#1.0", "cut:1.0>0.0#1",
                           "nonsense:1.0#1.0", "cut:1.0>0.0#1.0x", "resume:1.0@12#0.0"})
    EXPECT_FALSE(parse_key(text).has_value()) << text;
}

// Goal: no part of a key is left out of its hash.
TEST(Decisions, EveryPartOfAKeyChangesItsHash) {
  const Key key{.kind = DecisionKind::latency,
                .subject = {{1}, 1},
                .object = {{2}, 1},
                .place = {1, 1},
                .number = 1,
                .occurrence = 1};
  std::vector<Key> others(9, key);
  others[0].kind = DecisionKind::cut;
  others[1].subject.worker.value = 3;
  others[2].subject.life = 0;
  others[3].object.worker.value = 3;
  others[4].object.life = 0;
  others[5].place.high = 2;
  others[6].place.low = 2;
  others[7].number = 2;
  others[8].occurrence = 2;
  std::set<uint64_t> hashes{hash_of(Seed{1}, key), hash_of(Seed{2}, key)};
  for (const Key& other : others) hashes.insert(hash_of(Seed{1}, other));
  EXPECT_EQ(hashes.size(), 11u);
}

// Goal: probabilities come out, and choice 0 never means a fault.
TEST(Decisions, ThingsHappenAsOftenAsTheirProbabilitySays) {
  ToyDecisions decisions;
  int happened = 0;
  for (uint64_t i = 0; i < 20'000; ++i)
    happened += happens(decisions, {.kind = DecisionKind::cut, .number = i}, 50'000) ? 1 : 0;
  EXPECT_NEAR(happened, 1000, 120);
  decisions.answers[DecisionKind::cut] = [](const Key&, uint64_t) { return 0; };
  EXPECT_FALSE(happens(decisions, {.kind = DecisionKind::cut}, kMillion - 1));
  EXPECT_TRUE(happens(decisions, {.kind = DecisionKind::cut}, kMillion));
  EXPECT_FALSE(happens(decisions, {.kind = DecisionKind::cut}, 0));
}

}  // namespace
}  // namespace rehearsal::net_fake
