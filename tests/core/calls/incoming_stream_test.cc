#include "core/calls/incoming_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace rehearsal {
namespace {

Answer value(uint64_t number) {
  Answer answer;
  answer.value.values = std::to_string(number);
  return answer;
}

// The given items, in words: values, "end", or an error's text.
struct Reader {
  std::vector<std::string> got;
  ValueTaker taker() {
    return [this](NextValue&& next) {
      if (!next.ok())
        got.push_back(next.error().text);
      else if (next.value())
        got.push_back(next.value()->value.values);
      else
        got.push_back("end");
    };
  }
};

Error error(const std::string& text) { return {.kind = ErrorKind::peer_lost, .text = text}; }

TEST(IncomingStream, GivesValuesInOrderWhateverTheOrderOfTheirArrival) {
  // Goal: four values and the end, in every order. Method: all 120, with as many takers waiting.
  std::vector<uint64_t> order(5);
  std::iota(order.begin(), order.end(), 0);
  int orders = 0;
  do {
    IncomingStream stream(4);
    Reader reader;
    for (int i = 0; i < 5; ++i) stream.take(reader.taker());
    for (const uint64_t next : order) {
      EXPECT_FALSE(stream.outcome().has_value());
      if (next == 4) {
        ASSERT_TRUE(stream.note_end(4, {}));
      } else {
        ASSERT_TRUE(stream.note(next));
        stream.put(next, value(next), {});
      }
      stream.hand_on();
    }
    ASSERT_TRUE(stream.outcome().has_value());
    EXPECT_TRUE(stream.outcome()->ok());
    EXPECT_TRUE(stream.finish(Unit{}).empty());
    EXPECT_EQ(reader.got, (std::vector<std::string>{"0", "1", "2", "3", "end"}));
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 120);
}

TEST(IncomingStream, RefusesWhatCannotBe) {
  // Beyond the credit, twice, behind the end; an end that comes twice, too early or too late.
  IncomingStream stream(3);
  EXPECT_FALSE(stream.note(3));
  EXPECT_TRUE(stream.note(1));
  EXPECT_FALSE(stream.note(1));
  EXPECT_FALSE(stream.note_end(1, {}));
  EXPECT_FALSE(stream.note_end(4, {}));
  EXPECT_TRUE(stream.note_end(2, {}));
  EXPECT_FALSE(stream.note_end(2, {}));
  EXPECT_FALSE(stream.note(2));
  EXPECT_TRUE(stream.note(0));
}

TEST(IncomingStream, GivesCreditInHalvesOfWhatWasTaken) {
  IncomingStream stream(4);
  Reader reader;
  for (uint64_t next = 0; next < 4; ++next) {
    ASSERT_TRUE(stream.note(next));
    stream.put(next, value(next), {});
  }
  EXPECT_EQ(stream.more_credit(), 0u);
  std::vector<uint64_t> credits;
  for (int i = 0; i < 4; ++i) {
    stream.take(reader.taker());
    credits.push_back(stream.more_credit());
  }
  EXPECT_EQ(credits, (std::vector<uint64_t>{0, 6, 0, 8}));
  EXPECT_TRUE(stream.note(7));
  EXPECT_FALSE(stream.note(8));
  // With the smallest credit every value is paid for; after the end none is.
  IncomingStream narrow(1);
  ASSERT_TRUE(narrow.note(0));
  narrow.put(0, value(0), {});
  narrow.take(reader.taker());
  EXPECT_EQ(narrow.more_credit(), 2u);
  ASSERT_TRUE(narrow.note_end(1, {}));
  EXPECT_EQ(narrow.more_credit(), 0u);
}

TEST(IncomingStream, EndsAtAValueThatCannotBeHad) {
  // The values before it are given, those behind it are not.
  IncomingStream stream(4);
  Reader reader;
  for (const uint64_t next : {2u, 1u}) {
    ASSERT_TRUE(stream.note(next));
    stream.put(next, next == 1 ? Result<Answer>(error("refused")) : Result<Answer>(value(next)),
               {});
    EXPECT_FALSE(stream.outcome().has_value());
  }
  ASSERT_TRUE(stream.note(0));
  stream.put(0, value(0), {});
  ASSERT_TRUE(stream.outcome().has_value());
  EXPECT_EQ(stream.outcome()->error().text, "refused");
  EXPECT_EQ(stream.finish(*stream.outcome()).size(), 1u);
  for (int i = 0; i < 3; ++i) stream.take(reader.taker());
  EXPECT_EQ(reader.got, (std::vector<std::string>{"0", "refused", "refused"}));
}

TEST(IncomingStream, GivesWhatIsInOrderAndThenWhyNothingMoreComes) {
  // A value is missing when the peer is lost; one taker waits already, one asks later.
  IncomingStream stream(8);
  Reader reader;
  for (const uint64_t next : {0u, 1u, 3u}) {
    ASSERT_TRUE(stream.note(next));
    stream.put(next, value(next), {});
  }
  EXPECT_EQ(stream.finish(error("lost")).size(), 1u);
  for (int i = 0; i < 4; ++i) stream.take(reader.taker());
  EXPECT_EQ(reader.got, (std::vector<std::string>{"0", "1", "lost", "lost"}));
  EXPECT_EQ(stream.more_credit(), 0u);
}

TEST(IncomingStream, TheErrorOfItsFunctionComesBehindAllValues) {
  IncomingStream stream(2);
  Reader reader;
  stream.take(reader.taker());
  stream.take(reader.taker());
  ASSERT_TRUE(stream.note_end(1, error("thrown")));
  EXPECT_FALSE(stream.outcome().has_value());
  ASSERT_TRUE(stream.note(0));
  stream.put(0, value(0), {});
  stream.hand_on();
  EXPECT_EQ(reader.got, std::vector<std::string>{"0"});
  EXPECT_TRUE(stream.finish(*stream.outcome()).empty());
  EXPECT_EQ(reader.got, (std::vector<std::string>{"0", "thrown"}));
}

}  // namespace
}  // namespace rehearsal
