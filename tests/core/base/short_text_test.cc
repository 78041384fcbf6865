#include "core/base/short_text.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/user_code.h"

namespace rehearsal {
namespace {

constexpr size_t kSixtyFourMiB = 67'108'864;

std::string letters(size_t count) { return std::string(count, 'x'); }

TEST(ShortText, OfALongOneTheFirstBytesAreKeptAndTheOthersCounted) {
  // Goal: what is kept, and the exact words for the rest. Method: sizes around both limits.
  EXPECT_EQ(short_text(""), "");
  EXPECT_EQ(short_text(letters(kErrorTextMax)), letters(kErrorTextMax));
  EXPECT_EQ(short_text(letters(kErrorTextMax + 1)), letters(65'536) + "… and 8,193 bytes more");
  EXPECT_EQ(short_text(letters(kSixtyFourMiB)), letters(65'536) + "… and 67,043,328 bytes more");
  EXPECT_EQ(short_name(letters(4'096)), letters(4'096));
  EXPECT_EQ(short_name(letters(5'000)), letters(4'096) + "… and 904 bytes more");
  EXPECT_EQ(short_name(letters(5'096)), letters(4'096) + "… and 1,000 bytes more");
}

TEST(ShortText, NoCharacterIsCut) {
  // Goal: what is kept is UTF-8 if the text is. Method: characters of two bytes at odd places, and
  // bytes that are no text at all.
  std::string text = "x";
  for (int i = 0; i < 40'000; ++i) text += "ö";
  EXPECT_EQ(short_text(text), text.substr(0, 65'535) + "… and 14,466 bytes more");
  const std::string bytes(100'000, '\x80');
  EXPECT_EQ(short_text(bytes), bytes.substr(0, 65'536) + "… and 34,464 bytes more");
}

TEST(ShortText, WhatWasCutBeforeIsCutAsAWhole) {
  // Goal: the count is that of the text as it was thrown, however often it is cut. Method: a text
  // that was cut goes on, little and much longer; one that only looks as if it had been cut.
  const std::string once = short_text(letters(kSixtyFourMiB));
  EXPECT_EQ(short_text(once), once);
  EXPECT_EQ(short_text("worker 'a' has ended: " + once), "worker 'a' has ended: " + once);
  EXPECT_EQ(short_text(letters(10'000) + once), letters(65'536) + "… and 67,053,328 bytes more");
  EXPECT_EQ(short_text(letters(80'000) + "… and many bytes more"),
            letters(65'536) + "… and 14,487 bytes more");
  EXPECT_EQ(short_name(short_name(letters(5'000))), short_name(letters(5'000)));
}

TEST(ShortText, OfALongChainTheFirstWorkersAreKeptAndTheOthersCounted) {
  // Method: an error that passes through one more worker after it was cut, again and again.
  std::vector<std::string> chain;
  for (int i = 0; i < 100; ++i) chain.push_back("w" + std::to_string(i));
  EXPECT_EQ(short_chain(chain), chain);
  for (int more = 1; more <= 1'500; ++more) {
    chain.push_back("another");
    chain = short_chain(chain);
    ASSERT_EQ(chain.size(), kErrorChainMax + 1);
  }
  EXPECT_EQ(chain.front(), "w0");
  EXPECT_EQ(chain[99], "w99");
  EXPECT_EQ(chain.back(), "… and 1,500 more");
  EXPECT_EQ(short_chain({letters(5'000)}).front(), short_name(letters(5'000)));
}

TEST(ShortText, AnErrorIsShortenedInEveryField) {
  // Goal: nothing in it is long any more, and what is short stays. Method: all fields at once.
  Error error{.kind = ErrorKind::autograd,
              .text = letters(1'000'000),
              .worker = letters(10'000),
              .function = letters(10'001),
              .chain = {"a", letters(10'002)},
              .type = letters(10'003),
              .trace = letters(1'000'001)};
  shorten(error);
  EXPECT_EQ(error.kind, ErrorKind::autograd);
  EXPECT_EQ(error.text, short_text(letters(1'000'000)));
  EXPECT_EQ(error.worker, short_name(letters(10'000)));
  EXPECT_EQ(error.function, short_name(letters(10'001)));
  EXPECT_EQ(error.chain, (std::vector<std::string>{"a", short_name(letters(10'002))}));
  EXPECT_EQ(error.type, short_name(letters(10'003)));
  EXPECT_EQ(error.trace, short_text(letters(1'000'001)));
  const Error once = error;
  shorten(error);
  EXPECT_EQ(error, once);
}

TEST(ShortText, ABriefErrorSaysWhatHappenedInAKilobyteOrTwo) {
  Error error{.kind = ErrorKind::autograd,
              .text = letters(10'000),
              .worker = letters(10'000),
              .function = "f",
              .chain = {"a", letters(200), "c", "d", "e"},
              .type = "t",
              .trace = letters(1'000)};
  make_brief(error);
  EXPECT_EQ(error.kind, ErrorKind::autograd);
  EXPECT_EQ(error.text, letters(512) + "… and 9,488 bytes more");
  EXPECT_EQ(error.worker, letters(128) + "… and 9,872 bytes more");
  EXPECT_EQ(error.function, "f");
  EXPECT_EQ(error.chain,
            (std::vector<std::string>{"a", letters(128) + "… and 72 bytes more", "c", "d"}));
  EXPECT_EQ(error.type, "t");
  EXPECT_EQ(error.trace, "");
}

TEST(ShortText, OfWhatUserCodeThrowsTheTypeAndTheFirstBytesAreKept) {
  // Goal: the count is that of the exception's own text. Method: an exception of the standard
  // library's, one of LibTorch's, and an error that came from a call.
  const Error plain =
      run_user_code("w", "f", [] { throw std::runtime_error(letters(kSixtyFourMiB)); }).error();
  EXPECT_EQ(plain.text, "std::runtime_error: " + letters(65'536) + "… and 67,043,328 bytes more");
  const Error of_torch =
      run_user_code("w", "f", [] { TORCH_CHECK(false, letters(kSixtyFourMiB)); }).error();
  EXPECT_TRUE(of_torch.text.starts_with("c10::Error: xxx")) << of_torch.text.substr(0, 100);
  EXPECT_TRUE(of_torch.text.ends_with(" bytes more"));
  EXPECT_LE(of_torch.text.size(), kErrorTextMax);
  const Error passed_on = run_user_code("w", "f", [] {
                            throw RpcError({.kind = ErrorKind::timeout,
                                            .text = letters(kSixtyFourMiB),
                                            .function = letters(5'000)});
                          }).error();
  EXPECT_EQ(passed_on.text, short_text(letters(kSixtyFourMiB)));
  EXPECT_EQ(passed_on.function, short_name(letters(5'000)));
  EXPECT_EQ(passed_on.chain, std::vector<std::string>{"w"});
}

}  // namespace
}  // namespace rehearsal
