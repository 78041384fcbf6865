#include "core/base/printable.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/hostile_text.h"

namespace rehearsal {
namespace {

TEST(Printable, LeavesTextOfAnyLanguageAsItIs) {
  for (const std::string text : {"", "plain 'text' \\n", "größer", "日本語", "🙂", "\u00a0"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, WritesOutWhatATerminalOrALogWouldObey) {
  EXPECT_EQ(printable("a\nb\tc\r"), "a\\nb\\tc\\x0d");
  EXPECT_EQ(printable("\x1b[31mred\x07\x7f"), "\\x1b[31mred\\x07\\x7f");
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\u009b31m"), "\\xc2\\x9b31m");  // the same in one character
  EXPECT_EQ(printable("\u202etxt\u2028"), "\\xe2\\x80\\xaetxt\\xe2\\x80\\xa8");
  EXPECT_EQ(printable("a\u061cb"),
            "a\\xd8\\x9cb");  // a mark of Arabic, which turns what is near it
}

TEST(Printable, WritesOutWhatIsNoUtf8) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                    // cut short
  EXPECT_EQ(printable("\xc0\x8a"), "\\xc0\\x8a");           // a line break, written too long
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a pair
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
}

TEST(Printable, MayHaveSeveralLinesOrMarks) {
  EXPECT_EQ(printable_lines("a\nb\r\n\x1b"), "a\nb\\x0d\n\\x1b");
  std::string line = "x=";
  append_printable(line, "a\"b\\c\n", "\"\\");
  EXPECT_EQ(line, R"(x=a\"b\\c\n)");
}

TEST(Printable, IsWhatAnErrorSaysInItsOneLine) {
  const std::string& raw = kHostileText;
  const Error error{.kind = ErrorKind::remote_exception,
                    .text = raw,
                    .worker = raw,
                    .function = raw,
                    .chain = {raw, "b"}};
  const std::string shown(kHostileTextShown);
  EXPECT_EQ(to_string(error), "remote_exception at '" + shown + "' in " + shown + ": " + shown +
                                  " [through " + shown + " b]");
  EXPECT_EQ(RpcError(error).what(), to_string(error));
  EXPECT_EQ(RpcError(error).error().text, raw);  // what a program reads
  EXPECT_TRUE(is_plain(to_string(error)));
}

}  // namespace
}  // namespace rehearsal
