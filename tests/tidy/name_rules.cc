// Prose: names of files and of members in comments and READMEs exist, and sentences have an actor.
#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "tests/tidy/rules.h"

namespace rehearsal::tidy {
namespace {

using std::string_view;

using Names = std::set<std::string, std::less<>>;

// Words that code, or the text of a literal, has.
void add_words(string_view text, Names& words) {
  for_each_word(text, [&words](string_view word, size_t) { words.emplace(word); });
}

// Everything but the comments is blank; the line ends stay.
std::string comments_of(const SourceText& source) {
  std::string comments(source.raw.size(), ' ');
  bool inside = false;
  for (size_t i = 0; i < source.raw.size(); ++i) {
    const bool starts = source.raw.compare(i, 2, "//") == 0 && source.code[i] == ' ' &&
                        source.strings[i] == ' ' && (i == 0 || source.raw[i - 1] != ':');
    inside = (inside || starts) && source.raw[i] != '\n';
    if (inside || source.raw[i] == '\n') comments[i] = source.raw[i];
  }
  return comments;
}

bool names_a_file(string_view word) {
  constexpr std::array<string_view, 6> kEnds = {".h", ".cc", ".proto", ".py", ".md", ".cmake"};
  return std::ranges::any_of(kEnds, [word](string_view end) {
    return word.ends_with(end) && word.size() > end.size() &&
           is_word(word[word.size() - end.size() - 1]);
  });
}

// The ends of all paths: `core/base/ids.h`, `base/ids.h` and `ids.h`.
Names ends_of(const std::vector<std::string>& files) {
  Names ends;
  for (const std::string& file : files)
    for (size_t at = 0; at != std::string::npos;) {
      ends.insert(file.substr(at));
      const size_t slash = file.find('/', at);
      at = slash == std::string::npos ? slash : slash + 1;
    }
  return ends;
}

struct Text {
  const std::string& path;
  string_view text;
};

void check_files(const Text& page, const Names& ends, Findings& findings) {
  for (size_t at = 0; at < page.text.size();) {
    size_t end = at;
    while (end < page.text.size() && (is_word(page.text[end]) ||
                                      string_view("./-").find(page.text[end]) != string_view::npos))
      ++end;
    string_view word = page.text.substr(at, end - at);
    while (word.ends_with('.') || word.ends_with('-')) word.remove_suffix(1);
    while (word.starts_with("../")) word.remove_prefix(3);
    const bool is_outside =
        at > 0 && string_view("<:*").find(page.text[at - 1]) != string_view::npos;
    if (!is_outside && names_a_file(word) && !ends.contains(word))
      findings.push_back(
          {page.path, line_of(page.text, at), "there is no file " + std::string(word)});
    at = end + 1;
  }
}

// `A::b` with a class of ours.
void check_members(const Text& page, const Names& words, Findings& findings) {
  for (size_t colons = page.text.find("::"); colons != string_view::npos;
       colons = page.text.find("::", colons + 2)) {
    size_t first = colons;
    while (first > 0 && is_word(page.text[first - 1])) --first;
    const string_view owner = page.text.substr(first, colons - first);
    const bool is_ours = !owner.empty() && std::isupper(static_cast<unsigned char>(owner[0])) != 0;
    if (!is_ours || (first > 0 && page.text[first - 1] == ':')) continue;
    size_t last = colons + 2;
    while (last < page.text.size() && is_word(page.text[last])) ++last;
    const string_view member = page.text.substr(colons + 2, last - colons - 2);
    if (words.contains(owner) &&
        (member.empty() || member.ends_with('_') || words.contains(member)))
      continue;
    findings.push_back({page.path, line_of(page.text, first),
                        "nothing is named " + std::string(owner) + "::" + std::string(member)});
  }
}

// `word` between back-ticks.
void check_quoted(const Text& page, const Names& words, Findings& findings) {
  for (size_t open = page.text.find('`'); open != string_view::npos;) {
    const size_t close = page.text.find('`', open + 1);
    if (close == string_view::npos) return;
    const string_view word = page.text.substr(open + 1, close - open - 1);
    const bool is_name = !word.empty() && std::ranges::all_of(word, is_word) &&
                         std::isdigit(static_cast<unsigned char>(word[0])) == 0;
    if (is_name && !words.contains(word))
      findings.push_back(
          {page.path, line_of(page.text, open), "nothing is named " + std::string(word)});
    open = page.text.find('`', close + 1);
  }
}

bool ends_sentence(string_view word) {
  return word.empty() || string_view(".:;!?").find(word.back()) != string_view::npos;
}

}  // namespace

Findings check_sentences(const SourceText& source) {
  constexpr std::array<string_view, 6> kNoActors = {"Who",  "Whom",    "Whose",
                                                    "What", "Whoever", "Whatever"};
  Findings findings;
  const std::string comments = comments_of(source);
  string_view before;  // the word
  int line = 0;
  for (const string_view text : lines_of(comments)) {
    ++line;
    size_t at = text.find_first_not_of(' ');
    if (at == string_view::npos) before = {};
    while (at < text.size()) {
      const size_t end = std::min(text.find(' ', at), text.size());
      const string_view word = text.substr(at, end - at);
      at = std::min(text.find_first_not_of(' ', end), text.size());
      if (word == "//") continue;
      if (ends_sentence(before) && std::ranges::find(kNoActors, word) != kNoActors.end() &&
          text.find('?') == string_view::npos)
        findings.push_back({source.path, line,
                            "a sentence begins with " + std::string(word) + ": name the actor"});
      before = word;
    }
  }
  return findings;
}

Findings check_names(const std::vector<SourceText>& sources, const std::vector<Page>& pages,
                     const std::vector<std::string>& files) {
  Names words;
  for (const SourceText& source : sources) {
    add_words(source.code, words);
    add_words(source.strings, words);
  }
  for (const Page& page : pages)
    if (!page.path.ends_with(".md")) add_words(page.text, words);
  const Names ends = ends_of(files);
  Findings findings;
  for (const SourceText& source : sources) {
    const std::string comments = comments_of(source);
    check_files({source.path, comments}, ends, findings);
    check_members({source.path, comments}, words, findings);
    check_quoted({source.path, comments}, words, findings);
  }
  for (const Page& page : pages) {
    if (!page.path.ends_with(".md")) continue;
    check_files({page.path, page.text}, ends, findings);
    check_members({page.path, page.text}, words, findings);
  }
  return findings;
}

}  // namespace rehearsal::tidy
