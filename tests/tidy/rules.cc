#include "tests/tidy/rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <regex>

namespace rehearsal::tidy {
namespace {

using std::string_view;

constexpr int kFileLinesMax = 500;
constexpr int kFunctionLinesMax = 70;
constexpr size_t kLineColumnsMax = 100;

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

// The words of which an identifier is made, in lower case: TcpLink_2 is tcp, link and 2.
std::vector<std::string> parts_of(string_view identifier) {
  std::vector<std::string> parts(1);
  for (size_t i = 0; i < identifier.size(); ++i) {
    const char c = identifier[i];
    const bool after_lower = i > 0 && !is_upper(identifier[i - 1]);
    const bool before_lower = i + 1 < identifier.size() && is_word(identifier[i + 1]) &&
                              identifier[i + 1] != '_' && !is_upper(identifier[i + 1]);
    if (c == '_' || (is_upper(c) && (after_lower || before_lower))) parts.emplace_back();
    if (c != '_') parts.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return parts;
}

// Nothing in core can ask where it runs.
void check_place_words(const SourceText& source, Findings& findings) {
  static constexpr std::array<string_view, 4> kPlaces = {"sim", "fake", "real", "tcp"};
  const auto check = [&](string_view text) {
    for_each_word(text, [&](string_view word, size_t position) {
      // z.real() is the real part of a complex number, and real_type() LibTorch's name for the type
      // that a schema's argument is declared with.
      const string_view rest = text.substr(position);
      const bool is_member = position > 0 && text[position - 1] == '.';
      if (is_member && (rest.starts_with("real()") || rest.starts_with("real_type()"))) return;
      for (const std::string& part : parts_of(word))
        if (std::ranges::find(kPlaces, part) != kPlaces.end())
          findings.push_back({source.path, line_of(text, position),
                              "core must not say '" + part + "' (" + std::string(word) + ")"});
    });
  };
  check(source.code);
  // The names of LibTorch's operators are its own: view_as_real.
  if (source.path != "core/functions/pure_operators.cc") check(source.strings);
  for (const Include& include : includes_of(source))
    for_each_word(include.file, [&](string_view word, size_t) {
      if (std::ranges::find(kPlaces, word) != kPlaces.end())
        findings.push_back({source.path, include.line, "core must not include " + include.file});
    });
}

struct WordRow {
  string_view word;
  std::vector<string_view> folders;  // where it is forbidden
  std::vector<string_view> except;   // files and folders where it is not
};

const std::vector<string_view>& deterministic() {
  static const std::vector<string_view> folders = {"core/", "net_fake/", "sim/", "scenarios/",
                                                   "observe/"};
  return folders;
}

const std::vector<WordRow>& word_rows() {
  static const std::vector<WordRow> rows = [] {
    std::vector<WordRow> result;
    const std::vector<string_view> machine = {"core/fibers/",
                                              "sim/hunt/",
                                              "sim/world/clock_guard",
                                              "observe/log/",
                                              "scenarios/shared_state/",
                                              "sim/device/machine",
                                              "sim/device/pinned_memory",
                                              "sim/device/random",
                                              "sim/device/selection"};
    for (const string_view word : {"steady_clock",
                                   "system_clock",
                                   "high_resolution_clock",
                                   "clock_gettime",
                                   "gettimeofday",
                                   "random_device",
                                   "mt19937",
                                   "mt19937_64",
                                   "default_random_engine",
                                   "srand",
                                   "drand48",
                                   "getrandom",
                                   "getenv",
                                   "secure_getenv",
                                   "mutex",
                                   "shared_mutex",
                                   "lock_guard",
                                   "unique_lock",
                                   "scoped_lock",
                                   "condition_variable",
                                   "atomic",
                                   "atomic_flag",
                                   "jthread",
                                   "this_thread",
                                   "sleep_for",
                                   "sleep_until",
                                   "usleep",
                                   "nanosleep",
                                   "pthread_create"})
      result.push_back({word, deterministic(), machine});
    result.push_back({"thread_local",
                      {"core/", "net_fake/", "sim/", "real_net/", "record/", "scenarios/",
                       "coverage/", "observe/"},
                      {"core/fibers/", "sim/world/clock_guard", "sim/world/precision_calls",
                       "sim/explain/throw_watch", "sim/device/selection", "sim/hunt/last_words",
                       "sim/hunt/run_watch", "record/stack_mark"}});
    return result;
  }();
  return rows;
}

bool lies_in(string_view path, const std::vector<string_view>& folders) {
  return std::ranges::any_of(folders, [path](string_view f) { return path.starts_with(f); });
}

size_t columns_of(string_view line) {
  return static_cast<size_t>(std::ranges::count_if(
      line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// The header of what users see lies in core/api, whichever folder of core keeps it.
void check_own_header(const SourceText& source, Findings& findings) {
  const auto includes = includes_of(source);
  const std::string stem = source.path.substr(0, source.path.rfind('.'));
  std::vector<std::string> own = {stem + ".h"};
  if (stem.starts_with("core/")) own.push_back("core/api" + stem.substr(stem.rfind('/')) + ".h");
  for (auto include = includes.begin(); include != includes.end(); ++include)
    if (include != includes.begin() && std::ranges::find(own, include->file) != own.end() &&
        std::ranges::find(own, includes.front().file) == own.end())
      findings.push_back({source.path, include->line, "its own header must be the first include"});
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Finding& finding) {
  return out << finding.path << ":" << finding.line << ": " << finding.text;
}

Findings check_words(const SourceText& source) {
  Findings findings;
  if (source.path.starts_with("core/")) check_place_words(source, findings);
  for_each_word(source.code, [&](string_view word, size_t position) {
    for (const WordRow& row : word_rows())
      if (row.word == word && lies_in(source.path, row.folders) &&
          !lies_in(source.path, row.except))
        findings.push_back({source.path, line_of(source.code, position),
                            "'" + std::string(word) + "' is not for this folder"});
  });
  return findings;
}

Findings check_shape(const SourceText& source) {
  Findings findings;
  const auto lines = static_cast<int>(lines_of(source.raw).size());
  if (lines > kFileLinesMax)
    findings.push_back({source.path, lines, "the file has more than 500 lines"});
  for (const Function& function : functions_of(source))
    if (function.line_count > kFunctionLinesMax)
      findings.push_back({source.path, function.line,
                          function.name + " has " + std::to_string(function.line_count) +
                              " lines; 70 are the most"});
  if (source.path.ends_with(".h") && !source.raw.starts_with("#pragma once") &&
      source.raw.find("\n#pragma once\n") == std::string::npos)
    findings.push_back({source.path, 1, "a header needs #pragma once"});
  if (source.path.ends_with(".cc")) check_own_header(source, findings);
  const size_t capture = source.code.find("[=");
  if (capture != std::string::npos && source.code.find_first_of("],", capture) == capture + 2)
    findings.push_back(
        {source.path, line_of(source.code, capture), "list what the lambda captures"});
  return findings;
}

Findings check_lines(const std::string& path, string_view text) {
  // Split, so that this file does not break its own rules.
  static const std::string fix_me = std::string("FIX") + "ME";
  static const std::regex todo(std::string("\\bTO") +
                               "DO\\b(?!\\((soon|someday|perf|cleanup|test)\\): )");
  static const std::regex machine_path(std::string("(^|[^\\w./])/(ho") + "me|root|wo" +
                                       "rk|Users|mnt)/");
  Findings findings;
  int line_number = 0;
  for (const string_view line : lines_of(text)) {
    ++line_number;
    const auto add = [&](std::string message) {
      findings.push_back({path, line_number, std::move(message)});
    };
    if (!path.ends_with(".md") && columns_of(line) > kLineColumnsMax)
      add("the line is longer than 100 columns");
    if (line.find(fix_me) != string_view::npos) add(fix_me + " never reaches main");
    if (std::regex_search(line.begin(), line.end(), todo))
      add("write TO"
          "DO(kind): with a kind of soon, someday, perf, cleanup, test");
    if (std::regex_search(line.begin(), line.end(), machine_path))
      add("the path exists on one machine only");
  }
  return findings;
}

Findings check_wall_time(const SourceText& source) {
  Findings findings;
  if (!source.path.starts_with("tests/")) return findings;
  static const std::regex measured(R"([Cc]lock::now\(\)\s*-)");
  for_each_word(source.code, [&](string_view word, size_t position) {
    const bool is_assertion = word.starts_with("EXPECT_") || word.starts_with("ASSERT_");
    if (!is_assertion || word.ends_with("_GE") || word.ends_with("_GT")) return;
    const size_t length = source.code.find(';', position) - position;
    if (std::regex_search(source.code.substr(position, length), measured) ||
        source.strings.substr(position, length).find("wall_seconds") != std::string::npos)
      findings.push_back({source.path, line_of(source.code, position),
                          "an assertion hangs on wall time: await an event, count, or use virtual "
                          "time"});
  });
  return findings;
}

Findings check_temporary_files(const SourceText& source) {
  static constexpr std::array<string_view, 4> kOtherMeans = {"temp_directory_path", "TempDir",
                                                             "mkdtemp", "mkstemp"};
  Findings findings;
  if (!source.path.starts_with("tests/") || source.path == "tests/temporary_folder.h")
    return findings;
  for_each_word(source.code, [&](string_view word, size_t position) {
    if (std::ranges::find(kOtherMeans, word) != kOtherMeans.end())
      findings.push_back({source.path, line_of(source.code, position),
                          "use a TemporaryFolder (tests/temporary_folder.h)"});
  });
  return findings;
}

Findings check_marks(const std::vector<SourceText>& sources) {
  static const std::regex call(R"(\bmark\(\s*$)");
  Findings findings;
  std::map<std::string, Finding> marks;
  std::vector<std::string> asserted;
  for (const SourceText& source : sources) {
    const bool is_test = source.path.starts_with("tests/");
    for (const Literal& literal : literals_of(source)) {
      const size_t line = source.code.rfind('\n', source.code.rfind('(', literal.position)) + 1;
      const std::string before = source.code.substr(line, literal.position - line);
      if (is_test)
        asserted.push_back(literal.text);
      else if (std::regex_search(before, call) &&
               !marks
                    .try_emplace(literal.text,
                                 Finding{source.path, line_of(source.code, literal.position),
                                         "no test asserts the mark '" + literal.text + "'"})
                    .second)
        findings.push_back({source.path, line_of(source.code, literal.position),
                            "another branch has the mark '" + literal.text + "'"});
    }
  }
  for (const auto& [name, finding] : marks)
    if (std::ranges::none_of(asserted,
                             [&name](const std::string& text) { return text.starts_with(name); }))
      findings.push_back(finding);
  return findings;
}

Findings check_targets(const std::vector<std::string>& sources,
                       const std::vector<std::string>& compiled) {
  Findings findings;
  for (const std::string& source : sources)
    if (std::ranges::find(compiled, source) == compiled.end())
      findings.push_back({source, 1, "the file is in no target"});
  return findings;
}

}  // namespace rehearsal::tidy
