#include "core/base/ids.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "core/base/execution.h"

namespace rehearsal {
namespace {

// Two ids can never be swapped silently.
template <class A, class B>
constexpr bool interchangeable = std::is_convertible_v<A, B> || std::is_convertible_v<B, A> ||
                                 std::is_assignable_v<A&, B> || std::is_assignable_v<B&, A>;
static_assert(!interchangeable<WorkerId, Incarnation>);
static_assert(!interchangeable<WorkerId, uint32_t>);
static_assert(!interchangeable<Incarnation, Seed>);
static_assert(!interchangeable<CallId, ForkId>);
static_assert(!interchangeable<AutogradContextId, AutogradMessageId>);
static_assert(!interchangeable<CallId, AutogradContextId>);
static_assert(!std::is_convertible_v<CausalId, CallId>);
static_assert(!interchangeable<RRefId, CausalId>);

CausalId id(uint64_t incarnation, uint64_t path, uint64_t ordinal) {
  return {{incarnation}, {path, path + 1}, ordinal};
}

TEST(Ids, EachPartOfACausalIdTellsTwoApart) {
  const std::vector<CausalId> all = {id(1, 1, 1), id(2, 1, 1), id(1, 2, 1), id(1, 1, 2)};
  EXPECT_EQ(std::set<CausalId>(all.begin(), all.end()).size(), all.size());
  std::unordered_set<size_t> hashes;
  for (const CausalId& one : all) hashes.insert(CausalIdHash{}(one));
  EXPECT_EQ(hashes.size(), all.size());
}

TEST(Ids, APlaceDoesNotDependOnTheIncarnation) {
  // The same point of the program in two lives: one place. Another ordinal or path: another.
  EXPECT_EQ(id(1, 5, 6).place(), id(2, 5, 6).place());
  EXPECT_NE(id(1, 5, 6).place(), id(1, 5, 7).place());
  EXPECT_NE(id(1, 5, 6).place(), id(1, 6, 6).place());
}

TEST(Ids, PlacesOfATreeOfExecutionsAreAllDifferent) {
  // Three generations of forty children each.
  std::set<Hash128> places;
  std::vector<CausalId> generation = {id(1, 0, 0)};
  for (int depth = 0; depth < 2; ++depth) {
    std::vector<CausalId> next;
    for (const CausalId& parent : generation)
      for (uint64_t ordinal = 0; ordinal < 40; ++ordinal)
        next.push_back({parent.incarnation, parent.place(), ordinal});
    for (const CausalId& child : next) EXPECT_TRUE(places.insert(child.place()).second);
    generation = std::move(next);
  }
  EXPECT_EQ(places.size(), 40u + 1600u);
}

TEST(Ids, TextIsShortAndTheSameInEveryLife) {
  EXPECT_EQ(to_string(id(1, 0x1234567800000000, 9)), "12345678#9");
  EXPECT_EQ(to_string(id(2, 0x1234567800000000, 9)), "12345678#9");
  std::ostringstream out;
  out << WorkerId{3} << ' ' << RRefId{.causal = id(1, 0, 2), .owner = {4}};
  EXPECT_EQ(out.str(), "3 rref(00000000#2 at 4)");
}

TEST(Ids, AnIncarnationSaysWhoseItIs) {
  // Goal: nobody takes another's life for its own. Method: the worker is read from each, also from
  // one whose other bits are drawn as zero.
  for (const uint32_t worker : {0u, 1u, 7u, 1048575u})
    for (const uint64_t drawn : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 44, UINT64_MAX}) {
      EXPECT_EQ(worker_of(incarnation_of({worker}, drawn)), WorkerId{worker});
      EXPECT_NE(incarnation_of({worker}, drawn).value >> kWorkerBits, 0u);
    }
  EXPECT_NE(incarnation_of({3}, 1), incarnation_of({3}, 2));
}

TEST(Ids, WhatOneWorkerMakesNeverHasThePathOfWhatAnotherOneMakes) {
  // Goal: an execution's path is its maker's. Method: two workers make the same id, but for whose
  // life it is; a later life of one has the path of the first.
  const CausalId one{incarnation_of({1}, 5), {4, 6}, 7};
  const CausalId other{incarnation_of({2}, 5), {4, 6}, 7};
  const CausalId later{incarnation_of({1}, 9), {4, 6}, 7};
  EXPECT_EQ(one.place(), other.place());
  EXPECT_NE(one.execution_path(), other.execution_path());
  EXPECT_EQ(one.execution_path().low % kWorkersMax, 1u);
  EXPECT_EQ(other.execution_path().low % kWorkersMax, 2u);
  EXPECT_EQ(one.execution_path(), later.execution_path());
}

TEST(Execution, NumbersWhatItMakesUnderThePathOfWhatStartedIt) {
  const CausalId start = id(3, 4, 5);
  Execution execution(start, "fn", Seed{7});
  const CausalId first = execution.next_id();
  const CausalId second = execution.next_id();
  EXPECT_EQ(first.incarnation, start.incarnation);
  EXPECT_EQ(first.path, start.execution_path());
  EXPECT_EQ(first.ordinal, 0u);
  EXPECT_EQ(second.ordinal, 1u);
  EXPECT_EQ(execution.label(), "fn");
}

TEST(Execution, ItsGeneratorSeedDependsOnTheSeedAndOnWhatStartedItOnly) {
  // Of an incarnation only the worker counts: another life of it draws the same numbers.
  const Execution one(id(3, 4, 5), "a", Seed{7});
  const Execution same_place(id(3 + kWorkersMax, 4, 5), "b", Seed{7});
  const Execution other_worker(id(9, 4, 5), "a", Seed{7});
  const Execution other_seed(id(3, 4, 5), "a", Seed{8});
  const Execution other_place(id(3, 4, 6), "a", Seed{7});
  EXPECT_EQ(one.generator_seed(), same_place.generator_seed());
  EXPECT_NE(one.generator_seed(), other_worker.generator_seed());
  EXPECT_NE(one.generator_seed(), other_seed.generator_seed());
  EXPECT_NE(one.generator_seed(), other_place.generator_seed());
}

}  // namespace
}  // namespace rehearsal
