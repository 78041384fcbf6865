#include "scenarios/text/corpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "command_line/wrong_use.h"
#include "tests/temporary_folder.h"

namespace rehearsal::text {
namespace {

using Words = std::vector<std::string>;

class TextFile {
 public:
  explicit TextFile(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  const std::string& path() const { return path_; }

 private:
  const TemporaryFolder folder_;
  const std::string path_ = folder_.file("text");
};

std::string refusal_of(const std::string& path) {
  try {
    read_corpus(path);
  } catch (const WrongUse& refusal) {
    return refusal.what();
  }
  return "accepted";
}

std::string numbered_words(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "w" + std::to_string(i) + " ";
  return text;
}

TEST(Corpus, WordsKeepInnerMarksAndPunctuationStandsAlone) {
  // Goal: the rules of a word. Method: one line with every case.
  EXPECT_EQ(words_of("Don't re-use: \"GPL-3\", v1.0 -- ok-"),
            (Words{"don't", "re-use", ":", "\"", "gpl-3", "\"", ",", "v1", ".", "0", "-", "-", "ok",
                   "-"}));
}

TEST(Corpus, WordsOutsideAsciiStayWhole) {
  // Goal: any UTF-8 text has words. Method: German, Greek and Chinese letters.
  EXPECT_EQ(words_of("Größe λόγος 世界!"), (Words{"größe", "λόγος", "世界", "!"}));
}

TEST(Corpus, EmptyLinesBecomeOneParagraphEnd) {
  // Goal: a paragraph ends once, whatever its white space. Method: one, two and three empty lines.
  EXPECT_EQ(words_of("\n\na\nb\n\nc \n \n\r\n\td"),
            (Words{"a", "b", kParagraphEnd, "c", kParagraphEnd, "d"}));
}

TEST(Corpus, EveryTenthStretchValidatesAndNothingIsLost) {
  // Goal: the division is exact. Method: words that tell their position.
  const Corpus corpus = corpus_of(numbered_words(1010), "numbers");
  ASSERT_EQ(corpus.validation.size(), 100u);
  EXPECT_EQ(corpus.validation.front(), "w450");
  EXPECT_EQ(corpus.validation[50], "w950");
  ASSERT_EQ(corpus.training.size(), 910u);
  EXPECT_EQ(corpus.training[449], "w449");
  EXPECT_EQ(corpus.training[450], "w500");
}

TEST(Corpus, DefaultTextIsThere) {
  // Goal: the default works on this system and is a text worth training on. Method: read it.
  const Corpus corpus = read_corpus(kDefaultTextFile);
  EXPECT_GT(corpus.training.size(), 5000u);
  EXPECT_GT(corpus.validation.size(), 500u);
}

TEST(Corpus, ByteOrderMarkIsNotAWord) {
  // Goal: files of other systems work. Method: the same text with and without the mark.
  const std::string text = numbered_words(kWordsMin);
  EXPECT_EQ(corpus_of("\xEF\xBB\xBF" + text, "marked").training, corpus_of(text, "plain").training);
}

TEST(Corpus, MissingFileIsNamed) {
  // Goal: one clear line. Method: a path that does not exist.
  EXPECT_EQ(
      refusal_of("/no/such/text"),
      "text file '/no/such/text' cannot be read: No such file or directory; name a UTF-8 text "
      "file with --set text=FILE");
}

TEST(Corpus, DirectoryIsRefused) {
  // Goal: a directory is not read as an empty file. Method: name one.
  EXPECT_EQ(refusal_of("/usr"), "text file '/usr' is a directory; name a UTF-8 text file");
}

TEST(Corpus, DeviceIsRefused) {
  // Goal: nobody reads for ever. Method: a device without an end.
  EXPECT_EQ(refusal_of("/dev/zero"),
            "text file '/dev/zero' cannot be read: it is no file: a pipe, a device or a socket; "
            "name a UTF-8 text file with --set text=FILE");
}

TEST(Corpus, EmptyFileIsRefused) {
  // Goal: no division by zero words later. Method: a file of no bytes.
  const TextFile file("");
  EXPECT_EQ(refusal_of(file.path()),
            "text file '" + file.path() + "' is empty; name a UTF-8 text file");
}

TEST(Corpus, ShortFileIsRefusedWithItsLength) {
  // Goal: a text without a validation part is refused. Method: one word too few, then enough.
  const TextFile file(numbered_words(kWordsMin - 1));
  EXPECT_EQ(refusal_of(file.path()),
            "text file '" + file.path() + "' has 499 words; name one with at least 500");
  EXPECT_EQ(corpus_of(numbered_words(kWordsMin), "enough").validation.size(), 50u);
}

TEST(Corpus, InvalidUtf8IsRefusedWithItsPosition) {
  // Goal: Latin-1 is not mistaken for words. Method: a lone byte behind eight good ones.
  const TextFile file(
      "Gr\xC3\xB6\xC3\x9F"
      "e \xE9t\xE9");
  EXPECT_EQ(refusal_of(file.path()), "text file '" + file.path() +
                                         "' is not UTF-8 (byte 8); convert it with iconv -t utf-8");
}

TEST(Corpus, Utf8IsJudgedAsTheStandardSays) {
  // Goal: RFC 3629 to the letter. Method: the edges of each row of its table.
  const Words valid = {
      "\x7F",         "\xC2\x80",     "\xDF\xBF",         "\xE0\xA0\x80",     "\xED\x9F\xBF",
      "\xEE\x80\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF3\xBF\xBF\xBF", "\xF4\x8F\xBF\xBF"};
  for (const std::string& text : valid) EXPECT_EQ(first_invalid_utf8(text), text.size());
  const Words invalid = {"\x80",
                         "\xBF",
                         "\xC0\x80",
                         "\xC1\xBF",
                         "\xC2",
                         "\xC2\x7F",
                         "\xE0\x9F\xBF",
                         "\xED\xA0\x80",
                         "\xE1\x80",
                         "\xE1\x80\xC0",
                         "\xF0\x8F\xBF\xBF",
                         "\xF4\x90\x80\x80",
                         "\xF5\x80\x80\x80",
                         "\xF1\x80\x80",
                         "\xFF"};
  for (const std::string& text : invalid) EXPECT_EQ(first_invalid_utf8("a" + text), 1u);
}

}  // namespace
}  // namespace rehearsal::text
