#include "scenarios/text/corpus.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "command_line/wrong_use.h"
#include "core/base/regular_file.h"

namespace rehearsal::text {
namespace {

constexpr uint64_t kBytesMax = uint64_t{1} << 28;

struct Utf8Lead {
  size_t length = 0;  // 0: no character starts with this byte
  unsigned char second_min = 0x80;
  unsigned char second_max = 0xBF;
};

Utf8Lead utf8_lead(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte >= 0xC2 && byte <= 0xDF) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {};
}

bool is_space(unsigned char byte) { return byte <= ' ' || byte == 0x7F; }

bool is_letter(unsigned char byte) {
  return byte >= 0x80 || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9');
}

char lower(char byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
}

bool joins(std::string_view text, size_t at) {
  return (text[at] == '\'' || text[at] == '-') && at + 1 < text.size() && is_letter(text[at + 1]);
}

std::string read_bytes(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw WrongUse("text file '" + path + "' is a directory; name a UTF-8 text file");
  }
  Result<std::string> bytes = read_regular(path, kBytesMax);
  if (!bytes.ok()) {
    throw WrongUse("text file '" + path + "' cannot be read: " + bytes.error().text +
                   "; name a UTF-8 text file with --set text=FILE");
  }
  return std::move(bytes).value();
}

}  // namespace

size_t first_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const auto byte = [&](size_t offset) { return static_cast<unsigned char>(text[at + offset]); };
    const Utf8Lead lead = utf8_lead(byte(0));
    if (lead.length == 0 || at + lead.length > text.size()) return at;
    if (lead.length > 1 && (byte(1) < lead.second_min || byte(1) > lead.second_max)) return at;
    for (size_t i = 2; i < lead.length; ++i) {
      if (byte(i) < 0x80 || byte(i) > 0xBF) return at;
    }
    at += lead.length;
  }
  return at;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  int newlines = 0;
  size_t at = 0;
  while (at < text.size()) {
    if (is_space(text[at])) {
      if (text[at] == '\n' && ++newlines == 2 && !words.empty()) words.emplace_back(kParagraphEnd);
      ++at;
      continue;
    }
    newlines = 0;
    std::string word(1, lower(text[at]));
    if (is_letter(text[at++])) {
      while (at < text.size() && (is_letter(text[at]) || joins(text, at))) {
        word.push_back(lower(text[at++]));
      }
    }
    words.push_back(std::move(word));
  }
  return words;
}

Corpus corpus_of(std::string_view text, const std::string& name) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.empty()) throw WrongUse("text file '" + name + "' is empty; name a UTF-8 text file");
  const size_t invalid = first_invalid_utf8(text);
  if (invalid < text.size()) {
    throw WrongUse("text file '" + name + "' is not UTF-8 (byte " + std::to_string(invalid) +
                   "); convert it with iconv -t utf-8");
  }
  const std::vector<std::string> words = words_of(text);
  if (words.size() < kWordsMin) {
    throw WrongUse("text file '" + name + "' has " + std::to_string(words.size()) +
                   " words; name one with at least " + std::to_string(kWordsMin));
  }
  Corpus corpus;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t stretch = i / kStretchWords;
    const bool validates = stretch % kStretchesPerValidation == kStretchesPerValidation - 1;
    (validates ? corpus.validation : corpus.training).push_back(words[i]);
  }
  return corpus;
}

Corpus read_corpus(const std::string& path) { return corpus_of(read_bytes(path), path); }

}  // namespace rehearsal::text
