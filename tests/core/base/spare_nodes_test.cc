#include "core/base/spare_nodes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <unordered_map>

#include "core/base/hash.h"

namespace rehearsal {
namespace {

// Adds and erases drawn keys beside a map that keeps no nodes; both must stay equal.
template <class Map>
void compare_with_plain_map() {
  Map map;
  Map expected;
  SpareNodes<Map> spare;
  for (uint64_t step = 0; step < 20'000; ++step) {
    const uint64_t key = mix(step) % 200;
    if (mix(step, 1) % 2 == 0) {
      const auto [place, fresh] = spare.add(map, key);
      EXPECT_EQ(fresh, expected.try_emplace(key, step).second);
      EXPECT_EQ(place->first, key);
      if (fresh) place->second = step;
    } else if (const auto found = map.find(key); found != map.end()) {
      spare.erase(map, found);
      EXPECT_EQ(expected.erase(key), 1u);
    } else {
      EXPECT_FALSE(expected.contains(key));
    }
    ASSERT_EQ(map.size(), expected.size());
  }
  EXPECT_EQ(map, expected);
}

TEST(SpareNodes, AMapIsWhatItWouldBeWithoutThem) {
  compare_with_plain_map<std::map<uint64_t, uint64_t>>();
  compare_with_plain_map<std::unordered_map<uint64_t, uint64_t>>();
}

TEST(SpareNodes, ANodeIsUsedAgain) {
  // The entry that comes after an erased one lies where that one lay.
  std::map<int, int> map;
  SpareNodes<std::map<int, int>> spare;
  const int* const place = &spare.add_last(map, 1)->second;
  spare.erase(map, map.begin());
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(&spare.add_last(map, 2)->second, place);
  EXPECT_EQ(map.begin()->first, 2);
  // Also where the key is not the last.
  spare.add_last(map, 0)->second = 7;
  EXPECT_EQ(map.begin()->second, 7);
}

TEST(SpareNodes, AKeyThatIsThereStaysAndItsSpareNodeToo) {
  std::map<int, int> map;
  SpareNodes<std::map<int, int>> spare;
  spare.add(map, 1).first->second = 10;
  spare.add(map, 2);
  spare.erase(map, map.find(2));
  const auto [place, fresh] = spare.add(map, 1);
  EXPECT_FALSE(fresh);
  EXPECT_EQ(place->second, 10);
  EXPECT_TRUE(spare.add(map, 3).second);
}

}  // namespace
}  // namespace rehearsal
