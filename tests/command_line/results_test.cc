#include "command_line/results.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace rehearsal {
namespace {

TEST(Results, DigestIsOfNamesAndBitsWhateverTheOrder) {
  // Goal: simulator and processes give one digest. Method: one list in two orders and two parts.
  const at::Tensor first = at::arange(6).view({2, 3});
  const at::Tensor second = at::full({1}, 0.5);
  Results together;
  together.tensor("first", first);
  together.tensor("second", second);
  Results one;
  one.tensor("second", second);
  Results other;
  other.tensor("first", first);
  one.merge(other);
  EXPECT_EQ(one.digest(), together.digest());
  Results renamed;
  renamed.tensor("first", second);
  renamed.tensor("second", first);
  EXPECT_NE(renamed.digest(), together.digest());
}

TEST(Results, DigestSeesEveryBitTypeAndShape) {
  // Goal: equal digests mean equal tensors. Method: near misses of one tensor.
  const at::Tensor zeros = at::zeros({2, 2});
  const std::string digest = digest_of(zeros).digest;
  EXPECT_NE(digest_of(-zeros).digest, digest);
  EXPECT_NE(digest_of(at::zeros({4})).digest, digest);
  EXPECT_NE(digest_of(at::zeros({2, 2}, at::kInt)).digest, digest);
  EXPECT_NE(digest_of(at::zeros({0})).digest, digest_of(at::zeros({0, 1})).digest);
  EXPECT_EQ(digest_of(at::zeros({2, 4}).slice(1, 0, 4, 2)).digest, digest);
  EXPECT_EQ(digest_of(at::zeros({})).shape, std::vector<int64_t>{});
}

TEST(Results, NameIsDeclaredOnce) {
  // Goal: two workers cannot overwrite each other's result. Method: the same name again.
  Results results;
  results.number("loss", 1);
  EXPECT_THROW(results.number("loss", 1), std::invalid_argument);
  Results other;
  other.number("loss", 2);
  EXPECT_THROW(results.merge(other), std::invalid_argument);
}

TEST(Results, OfALaterLifeTakeThePlaceOfThoseOfAnEarlierOne) {
  // Goal: a worker that comes back reports again, and what it had reported before is gone; another
  // worker's result stays, and its name is taken. Method: two workers, the first in two lives.
  Results results;
  Results::Declarer running{.worker = 0, .life = 0};
  results.set_declarer([&running] { return std::optional(running); });
  results.number("loss", 1);
  results.number("first", 1);
  results.tensor("weight", at::zeros({2}));
  running = {.worker = 1, .life = 0};
  results.number("other", 5);
  EXPECT_THROW(results.number("loss", 5), std::invalid_argument);
  running = {.worker = 0, .life = 2};
  results.number("loss", 3);
  results.tensor("weight", at::ones({2}));
  EXPECT_EQ(results.numbers(), (std::map<std::string, double>{{"loss", 3}, {"other", 5}}));
  EXPECT_EQ(results.tensors().at("weight"), digest_of(at::ones({2})));
  EXPECT_THROW(results.number("loss", 3), std::invalid_argument);
  EXPECT_THROW(results.number("other", 3), std::invalid_argument);
}

}  // namespace
}  // namespace rehearsal
