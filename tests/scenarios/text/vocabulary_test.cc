#include "scenarios/text/vocabulary.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rehearsal::text {
namespace {

TEST(Vocabulary, NumbersGoByCountThenByBytes) {
  // Goal: numbers depend on the words alone. Method: counts 3, 2, 2, 1.
  const Vocabulary vocabulary({"b", "c", "a", "c", "b", "c", "z"});
  ASSERT_EQ(vocabulary.size(), 5);
  EXPECT_EQ(vocabulary.word(0), "c");
  EXPECT_EQ(vocabulary.word(1), "b");
  EXPECT_EQ(vocabulary.word(2), "a");
  EXPECT_EQ(vocabulary.word(3), "z");
  EXPECT_EQ(vocabulary.word(4), kUnknown);
  EXPECT_EQ(vocabulary.ids({"a", "c", "new"}), (std::vector<int64_t>{2, 0, 4}));
}

TEST(Vocabulary, RareWordsAreUnknownTogether) {
  // Goal: words below the count share one number, ranked by their sum. Method: three singles.
  const Vocabulary vocabulary({"a", "a", "x", "y", "z"}, 2);
  ASSERT_EQ(vocabulary.size(), 2);
  EXPECT_EQ(vocabulary.word(0), kUnknown);
  EXPECT_EQ(vocabulary.id("x"), 0);
  EXPECT_EQ(vocabulary.id("a"), 1);
}

TEST(Unigram, PerplexityOfEqualWordsIsTheirNumber) {
  // Goal: the known closed form. Method: four words, each once.
  EXPECT_NEAR(unigram_perplexity({0, 1, 2, 3}, {2, 1}, 4), 4.0, 1e-12);
}

TEST(Unigram, CountsPlusOneGiveTheProbabilities) {
  // Goal: the smoothing that the header names. Method: probabilities 4/6, 1/6 and 1/6 by hand.
  EXPECT_NEAR(unigram_perplexity({0, 0, 0}, {0, 1}, 3), std::sqrt(6.0 / 4.0 * 6.0), 1e-12);
}

}  // namespace
}  // namespace rehearsal::text
