#include "tests/tidy/source_text.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <utility>

namespace rehearsal::tidy {
namespace {

// Copies `raw` into the views, one literal, comment or character at a time.
class Scanner {
 public:
  explicit Scanner(SourceText& source) : source_(source), raw_(source.raw) {
    source_.code = blank(raw_);
    source_.strings = source_.code;
  }

  void run() {
    while (at_ < raw_.size()) step();
  }

 private:
  static std::string blank(std::string_view text) {
    std::string result(text);
    for (char& c : result)
      if (c != '\n') c = ' ';
    return result;
  }

  bool here(std::string_view text) const { return raw_.compare(at_, text.size(), text) == 0; }

  void step() {
    if (here("//")) {
      skip_to(raw_.find('\n', at_));
    } else if (here("/*")) {
      skip_to(raw_.find("*/", at_ + 2), 2);
    } else if (raw_[at_] == '#' && first_in_line()) {
      preprocessor_line();
    } else if (here("R\"") && (at_ == 0 || !is_word(raw_[at_ - 1]))) {
      raw_string();
    } else if (raw_[at_] == '"') {
      literal('"');
    } else if (raw_[at_] == '\'' && (at_ == 0 || !is_word(raw_[at_ - 1]))) {
      literal('\'');  // After a word character it separates digits.
    } else {
      source_.code[at_] = raw_[at_];
      ++at_;
    }
  }

  bool first_in_line() const {
    const size_t before = raw_.find_last_not_of(" \t", at_ == 0 ? 0 : at_ - 1);
    return at_ == 0 || before == std::string::npos || raw_[before] == '\n';
  }

  void skip_to(size_t end, size_t past = 0) {
    at_ = end == std::string::npos ? raw_.size() : end + past;
  }

  void preprocessor_line() {
    size_t end = raw_.find('\n', at_);
    while (end != std::string::npos && raw_[end - 1] == '\\') end = raw_.find('\n', end + 1);
    skip_to(end);
  }

  void raw_string() {
    const size_t open = raw_.find('(', at_);
    if (open == std::string::npos) return skip_to(open);
    const std::string close = ")" + raw_.substr(at_ + 2, open - at_ - 2) + "\"";
    const size_t end = std::min(raw_.find(close, open), raw_.size());
    keep_string(open + 1, end);
    skip_to(end, std::min(close.size(), raw_.size() - end));
  }

  void literal(char quote) {
    size_t end = at_ + 1;
    while (end < raw_.size() && raw_[end] != quote && raw_[end] != '\n')
      end += raw_[end] == '\\' ? 2 : 1;
    end = std::min(end, raw_.size());
    source_.code[at_] = quote;
    if (end < raw_.size()) source_.code[end] = raw_[end];
    if (quote == '"') keep_string(at_ + 1, end);
    at_ = end + 1;
  }

  void keep_string(size_t begin, size_t end) {
    std::copy(raw_.begin() + static_cast<ptrdiff_t>(begin),
              raw_.begin() + static_cast<ptrdiff_t>(end),
              source_.strings.begin() + static_cast<ptrdiff_t>(begin));
  }

  SourceText& source_;
  const std::string& raw_;
  size_t at_ = 0;
};

enum class Brace { scope, function, initializer };

// Drops `template <…>` from the front, whose `class` would look like that of a type.
std::string without_template_heads(std::string head) {
  static const std::regex start(R"(\btemplate\s*<)");
  std::smatch match;
  while (std::regex_search(head, match, start)) {
    auto end = static_cast<size_t>(match.position() + match.length());
    for (int depth = 1; end < head.size() && depth > 0; ++end)
      depth += head[end] == '<' ? 1 : head[end] == '>' ? -1 : 0;
    head.erase(static_cast<size_t>(match.position()), end - static_cast<size_t>(match.position()));
  }
  return head;
}

// The kind of scope that a brace outside functions opens, from the text since the last `;` or
// brace.
Brace kind_of_brace(std::string head) {
  head = without_template_heads(std::move(head));
  static const std::regex scope(R"(\b(namespace|class|struct|union|enum|extern)\b)");
  static const std::regex body_start(R"((\)|\}|\bconst|\bnoexcept|\boverride|\bfinal|\btry)\s*$)");
  static const std::regex argument_start(R"([(,=]\s*$)");
  static const std::regex result_type(R"(\)[\w\s]*->)");
  static const std::regex constructor(R"(\)[\w\s]*:[^:])");
  const size_t parameters = head.find('(');
  std::smatch match;
  if (std::regex_search(head, match, scope) &&
      (parameters == std::string::npos || static_cast<size_t>(match.position()) < parameters ||
       head.find("requires") < parameters))
    return Brace::scope;
  if (parameters == std::string::npos || std::regex_search(head, argument_start))
    return Brace::initializer;
  if (std::regex_search(head, body_start) || std::regex_search(head, result_type))
    return Brace::function;
  return std::regex_search(head, constructor) ? Brace::initializer : Brace::function;
}

std::string name_of_function(const std::string& head) {
  static const std::regex name(R"(([\w:~]+(?:\s*\([^()]*\))?)\s*\()");
  std::smatch match;
  const std::string plain = without_template_heads(head);
  return std::regex_search(plain, match, name) ? match[1].str() : "a function";
}

size_t closing_brace(const std::string& code, size_t open) {
  int depth = 0;
  for (size_t at = open; at < code.size(); ++at) {
    if (code[at] == '{') ++depth;
    if (code[at] == '}' && --depth == 0) return at;
  }
  return code.size() - 1;
}

}  // namespace

SourceText parse_source(std::string path, std::string raw) {
  SourceText source{std::move(path), std::move(raw), {}, {}};
  Scanner(source).run();
  return source;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

void for_each_word(std::string_view text, const WordVisitor& visit) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t start = at;
    while (at < text.size() && is_word(text[at])) ++at;
    if (at > start)
      visit(text.substr(start, at - start), start);
    else
      ++at;
  }
}

int line_of(std::string_view text, size_t position) {
  const std::string_view before = text.substr(0, position);
  return 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
}

std::vector<Include> includes_of(const SourceText& source) {
  static const std::regex pattern(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  std::vector<Include> includes;
  int line = 0;
  for (const std::string_view text : lines_of(source.raw)) {
    ++line;
    std::cmatch match;
    if (std::regex_search(text.begin(), text.end(), match, pattern))
      includes.push_back({.line = line, .quoted = match[1] == "\"", .file = match[2]});
  }
  return includes;
}

std::vector<Literal> literals_of(const SourceText& source) {
  const std::string& code = source.code;
  std::vector<Literal> literals;
  size_t after_last = 0;
  for (size_t open = code.find('"'); open != std::string::npos;) {
    const size_t close = code.find('"', open + 1);
    if (close == std::string::npos) break;
    const std::string text = source.raw.substr(open + 1, close - open - 1);
    const bool joined = !literals.empty() && code.find_first_not_of(" \n", after_last) == open;
    if (joined)
      literals.back().text += text;
    else
      literals.push_back({.position = open, .text = text});
    after_last = close + 1;
    open = code.find('"', after_last);
  }
  return literals;
}

std::vector<Function> functions_of(const SourceText& source) {
  const std::string& code = source.code;
  std::vector<Function> functions;
  std::string head;
  size_t head_start = 0;
  const auto forget_head = [&head] { head.clear(); };
  for (size_t at = 0; at < code.size(); ++at) {
    const char c = code[at];
    if (c == ';' || c == '}') {
      forget_head();
    } else if (c == '{') {
      const Brace kind = kind_of_brace(head);
      if (kind == Brace::scope) {
        forget_head();
        continue;
      }
      const size_t end = closing_brace(code, at);
      if (kind == Brace::function) {
        const int first = line_of(code, head_start);
        functions.push_back({.name = name_of_function(head),
                             .line = first,
                             .line_count = line_of(code, end) - first + 1});
        forget_head();
      } else {
        head += "{}";  // An initialiser; a constructor's list goes on after it.
      }
      at = end;
    } else if (c == ':' && (head == "public" || head == "protected" || head == "private")) {
      forget_head();
    } else if (!head.empty() || !std::isspace(static_cast<unsigned char>(c))) {
      if (head.empty()) head_start = at;
      head += c;
    }
  }
  return functions;
}

}  // namespace rehearsal::tidy
