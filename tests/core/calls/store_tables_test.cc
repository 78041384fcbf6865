// Stores of one worker, as others use them.
#include "core/calls/store_tables.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/core/base/node_strand_fixture.h"

namespace rehearsal {
namespace {

constexpr WorkerId kSelf{0};
constexpr WorkerId kOne{1};
constexpr WorkerId kTwo{2};

class StoreTablesTest : public NodeStrandFixture {
 protected:
  StoreName opened(WorkerId who, const std::string& name) {
    return tables_.open(who, name).or_throw();
  }
  // The kind of the error, if it is one.
  template <class T>
  static std::optional<ErrorKind> kind_of(const Result<T>& result) {
    return result.ok() ? std::nullopt : std::optional(Result<T>(result).error().kind);
  }
  Status set(WorkerId who, const StoreName& store, const std::string& key,
             const std::string& value) {
    std::optional<Status> status;
    on_strand([&] { status = tables_.set(who, store, key, value); });
    return *status;
  }
  void fence(WorkerId peer) {
    on_strand([&] { tables_.on_peer_fenced(peer); });
  }
  std::vector<std::string> keys(WorkerId who, const StoreName& store) {
    return tables_.keys(who, store).or_throw();
  }

  const SessionOptions options_{.self = kSelf, .incarnation = {100}, .names = {"w", "b", "c"}};
  StoreTables tables_{options_, *strand_};
};

TEST_F(StoreTablesTest, AWorkerMaySetSoManyKeysAndSoManyBytes) {
  // Goal: both limits are exact, for each worker alone, over all of its stores. Method: a store
  // full of keys; a value as large as may be; others go on.
  const StoreName many = opened(kOne, "many");
  const StoreName more = opened(kOne, "more");
  opened(kTwo, "many");
  for (uint64_t i = 0; i < StoreTables::kKeysMax; ++i)
    ASSERT_TRUE(set(kOne, many, std::to_string(i), "").ok());
  EXPECT_EQ(kind_of(set(kOne, more, "x", "")), ErrorKind::overloaded);
  EXPECT_TRUE(set(kOne, many, "7", "again").ok());
  EXPECT_EQ(keys(kOne, more), std::vector<std::string>());
  // Another one sets a key, which is its own from then on; one is erased.
  EXPECT_TRUE(set(kTwo, many, "7", "c").ok());
  EXPECT_TRUE(set(kOne, more, "x", "").ok());
  EXPECT_EQ(kind_of(set(kOne, more, "y", "")), ErrorKind::overloaded);
  EXPECT_TRUE(tables_.erase(kTwo, many, "8").or_throw());
  EXPECT_TRUE(set(kOne, more, "y", "").ok());
  const uint64_t left = StoreTables::kBytesMax - 2;  // beside "7" and "c"
  EXPECT_EQ(kind_of(set(kTwo, many, "z", std::string(left, 'z'))), ErrorKind::overloaded);
  EXPECT_TRUE(set(kTwo, many, "z", std::string(left - 1, 'z')).ok());
  EXPECT_EQ(kind_of(set(kTwo, many, "7", "cc")), ErrorKind::overloaded);
  opened(kSelf, "many");
  EXPECT_TRUE(set(kSelf, many, "own", std::string(StoreTables::kBytesMax + 1, 'x')).ok());
}

TEST_F(StoreTablesTest, AWorkerMayOpenSoManyStoresOfShortNames) {
  for (uint64_t i = 0; i < StoreTables::kStoresMax; ++i) opened(kOne, std::to_string(i));
  EXPECT_EQ(kind_of(tables_.open(kOne, "one more")), ErrorKind::overloaded);
  EXPECT_EQ(opened(kOne, "7").name, "7");
  EXPECT_EQ(opened(kTwo, "one more").life, 100u);
  EXPECT_EQ(tables_.size(), StoreTables::kStoresMax + 1);
  EXPECT_EQ(kind_of(tables_.open(kTwo, std::string(StoreTables::kNameMax + 1, 'n'))),
            ErrorKind::bad_arguments);
  EXPECT_TRUE(tables_.open(kTwo, std::string(StoreTables::kNameMax, 'n')).ok());
}

TEST_F(StoreTablesTest, NothingStaysOfAWorkerThatIsLostButWhatOthersUse) {
  // Goal: its own stores end, and count no more; one that another has opened stays, with its keys,
  // and ends with that other one.
  const StoreName own = opened(kOne, "own");
  const StoreName shared = opened(kOne, "shared");
  opened(kTwo, "shared");
  EXPECT_TRUE(set(kOne, own, "a", std::string(StoreTables::kBytesMax - 7, 'a')).ok());
  EXPECT_TRUE(set(kOne, shared, "b", "value").ok());
  EXPECT_EQ(kind_of(set(kOne, shared, "c", "")), ErrorKind::overloaded);
  fence(kOne);
  EXPECT_EQ(tables_.size(), 1u);
  EXPECT_EQ(keys(kTwo, shared), std::vector<std::string>{"b"});
  // Its next life has opened nothing.
  EXPECT_EQ(kind_of(set(kOne, shared, "c", "")), ErrorKind::bad_arguments);
  opened(kOne, "shared");
  EXPECT_TRUE(set(kOne, shared, "c", std::string(StoreTables::kBytesMax - 7, 'c')).ok());
  EXPECT_EQ(kind_of(set(kOne, shared, "d", "")), ErrorKind::overloaded);
  fence(kTwo);
  EXPECT_EQ(tables_.size(), 1u);
  fence(kOne);
  EXPECT_EQ(tables_.size(), 0u);
  EXPECT_EQ(keys(kOne, opened(kOne, "shared")), std::vector<std::string>());
}

TEST_F(StoreTablesTest, ASumThatIsNoNumberOf64BitsIsRefusedAndTheValueStays) {
  const StoreName store = opened(kOne, "numbers");
  EXPECT_EQ(tables_.add(kOne, store, "n", INT64_MAX).or_throw(), INT64_MAX);
  EXPECT_EQ(kind_of(tables_.add(kOne, store, "n", 1)), ErrorKind::bad_arguments);
  EXPECT_EQ(tables_.add(kOne, store, "n", -1).or_throw(), INT64_MAX - 1);
  EXPECT_EQ(tables_.add(kOne, store, "m", INT64_MIN).or_throw(), INT64_MIN);
  EXPECT_EQ(kind_of(tables_.add(kOne, store, "m", -1)), ErrorKind::bad_arguments);
  EXPECT_EQ(tables_.add(kOne, store, "m", 0).or_throw(), INT64_MIN);
}

TEST_F(StoreTablesTest, AStoreOfAFormerLifeIsNotTakenForOneOfThis) {
  const StoreName store = opened(kOne, "store");
  const StoreName former{99, "store"};
  EXPECT_TRUE(tables_.has_all(kOne, store, {}).or_throw());
  EXPECT_EQ(kind_of(tables_.has_all(kOne, former, {})), ErrorKind::peer_lost);
  EXPECT_EQ(kind_of(tables_.has_all(kTwo, store, {})), ErrorKind::bad_arguments);
}

TEST_F(StoreTablesTest, WhoGivesUpWaitsNoMore) {
  // Goal: a key that nobody sets holds nothing of those who have given up. Method: two wait for it,
  // one gives up, then it is set.
  const StoreName store = opened(kOne, "store");
  const auto asker = strand_->make_execution(CausalId{{9}, {3, 4}, 0}, "asker");
  std::vector<std::shared_ptr<FutureState<std::string>>> found;
  for (int i = 0; i < 2; ++i) {
    found.push_back(std::make_shared<FutureState<std::string>>(strand_, CausalId{}));
    on_strand([&] { tables_.when_there(kOne, store, "key", *asker, found.back()); });
  }
  ASSERT_EQ(asker->when_given_up.size(), 2u);
  on_strand([&] { asker->when_given_up[0](); });
  EXPECT_EQ(Future<std::string>(found[0]).result().error().kind, ErrorKind::cancelled);
  EXPECT_EQ(tables_.awaited(), 1u);
  EXPECT_TRUE(set(kOne, store, "key", "value").ok());
  EXPECT_EQ(Future<std::string>(found[1]).result().value(), "value");
  EXPECT_EQ(tables_.awaited(), 0u);
  on_strand([&] { asker->when_given_up[1](); });
}

}  // namespace
}  // namespace rehearsal
