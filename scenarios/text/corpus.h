// A text as words, divided into a part to train on and a part to validate on.
//
// A word is a run of letters, digits and any character outside ASCII, with apostrophes and hyphens
// inside it kept; every other visible character is a word of its own; an empty line becomes the
// word `kParagraphEnd`. ASCII letters are made lower case. Any UTF-8 text works, in any language
// that separates its words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearsal::text {

// A file that the package base-files installs on every Debian and Ubuntu system.
inline constexpr const char* kDefaultTextFile = "/usr/share/common-licenses/GPL-3";

inline constexpr const char* kParagraphEnd = "<end>";

// Validation takes one stretch of this many words in every `kStretchesPerValidation` of them.
inline constexpr int kStretchWords = 50;
inline constexpr int kStretchesPerValidation = 10;

// The fewest words a corpus may have: with fewer there is nothing to validate on.
inline constexpr int kWordsMin = kStretchWords * kStretchesPerValidation;

struct Corpus {
  std::vector<std::string> training;
  std::vector<std::string> validation;
};

// Reads a whole file and divides it. Throws WrongUse, with a message that names the file, if it
// cannot be read, is empty, is not UTF-8 or has fewer than `kWordsMin` words.
Corpus read_corpus(const std::string& path);

// The same for a text in memory; `name` is what an error calls it.
Corpus corpus_of(std::string_view text, const std::string& name);

// The words of a text, in order.
std::vector<std::string> words_of(std::string_view text);

// The position of the first byte that is not part of well-formed UTF-8 (RFC 3629: no overlong
// forms, no surrogates, nothing above U+10FFFF), or `text.size()` if there is none.
size_t first_invalid_utf8(std::string_view text);

}  // namespace rehearsal::text
