// The house rules that a machine can check: each is shown to fire on a planted sample, then the
// whole repository is held against all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/tidy/rules.h"
#include "tests/tidy/source_text.h"

namespace rehearsal::tidy {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = REHEARSAL_SOURCE_FOLDER;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The files of the lines #include "…".
void append_included(std::vector<std::string>& files, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("#include \"")) files.push_back(line.substr(10, line.rfind('"') - 10));
}

testing::AssertionResult none(const Findings& findings) {
  if (findings.empty()) return testing::AssertionSuccess();
  auto failure = testing::AssertionFailure() << findings.size() << " findings";
  for (const Finding& finding : findings) failure << "\n" << finding;
  return failure;
}

Findings includes_in(const std::string& path, const std::string& text) {
  return check_includes(parse_source(path, text));
}

Findings words_in(const std::string& path, const std::string& text) {
  return check_words(parse_source(path, text));
}

Findings shape_of(const std::string& path, const std::string& text) {
  return check_shape(parse_source(path, text));
}

bool is_source(const fs::path& path) {
  return path.extension() == ".h" || path.extension() == ".cc";
}

// All files of the project, as paths from the root, in order.
std::vector<std::string> repository_files() {
  std::vector<std::string> files;
  const auto take = [&files](const fs::directory_entry& entry) {
    const bool is_input = entry.path().generic_string().find("/fuzz/corpus/") != std::string::npos;
    if (entry.is_regular_file() && !is_input)
      files.push_back(fs::relative(entry.path(), kRoot).generic_string());
  };
  for (const auto& entry : fs::directory_iterator(kRoot)) take(entry);
  for (const char* folder : {"core", "sim", "net_fake", "real_net", "record", "observe",
                             "command_line", "scenarios", "tests", "coverage", ".ci", ".cmake"})
    if (fs::exists(kRoot / folder))
      for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) take(entry);
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<SourceText> repository_sources() {
  std::vector<SourceText> sources;
  for (const std::string& file : repository_files())
    if (is_source(file)) sources.push_back(parse_source(file, read(kRoot / file)));
  return sources;
}

template <typename Check>
Findings check_all_sources(Check check) {
  Findings findings;
  for (const SourceText& source : repository_sources())
    for (const Finding& finding : check(source)) findings.push_back(finding);
  return findings;
}

// --- each rule fires ---

TEST(TidyRules, AnIncludeAgainstTheDirectionOfTheFoldersIsFound) {
  // Goal: every row of the table rejects one planted include. Method: path, include.
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"core/base/a.cc", "core/wire/message.h"},
      {"core/fibers/a.cc", "core/wire/message.h"},
      {"core/values/a.cc", "core/functions/function.h"},
      {"core/functions/a.cc", "core/wire/message.h"},
      {"core/wire/a.cc", "core/functions/function.h"},
      {"core/session/a.cc", "core/calls/deadlines.h"},
      {"core/calls/a.cc", "core/rref/rref_context.h"},
      {"core/api/a.h", "core/session/session.h"},
      {"core/api/a.h", "core/calls/hooks.h"},
      {"core/groups/a.cc", "core/node/node.h"},
      {"core/rref/a.cc", "core/autograd/walk.h"},
      {"core/autograd/a.cc", "core/optim/step.h"},
      {"core/optim/a.cc", "core/node/node.h"},
      {"core/node/a.cc", "core/fibers/fiber.h"},
      {"core/node/a.cc", "real_net/runtime/poller.h"},
      {"net_fake/a.cc", "core/wire/message.h"},
      {"net_fake/a.cc", "sim/cluster.h"},
      {"sim/a.cc", "real_net/runtime/poller.h"},
      {"real_net/a.cc", "net_fake/lane.h"},
      {"real_net/a.cc", "sim/cluster.h"},
      {"real_net/runtime/a.cc", "real_net/tcp/socket.h"},
      {"real_net/tcp/a.cc", "real_net/worker/placement.h"},
      {"command_line/a.cc", "scenarios/storm/storm.h"},
      {"command_line/a.cc", "core/session/session.h"},
      {"scenarios/a.cc", "core/session/session.h"},
      {"scenarios/a.cc", "sim/world/life.h"},
      {"scenarios/a.cc", "real_net/tcp/socket.h"},
      {"record/a.cc", "sim/cluster.h"},
      {"record/a.cc", "real_net/runtime/poller.h"},
      {"record/a.cc", "core/session/session.h"},
      {"core/node/a.cc", "record/item.h"},
      {"scenarios/a.cc", "net_fake/lane.h"},
      {"coverage/a.cc", "core/wire/message.h"},
      {"elsewhere/a.cc", "core/base/ids.h"}};
  for (const auto& [path, include] : wrong)
    EXPECT_EQ(includes_in(path, "#include \"" + include + "\"\n").size(), 1U) << path << include;
}

TEST(TidyRules, AnIncludeAlongTheDirectionOfTheFoldersIsNotFound) {
  // Goal: no false alarm. Method: one allowed include for each folder.
  EXPECT_TRUE(none(includes_in("core/node/a.cc", "#include \"core/optim/step.h\"\n")));
  EXPECT_TRUE(none(includes_in("core/fibers/a.cc", "#include <boost/context/fiber.hpp>\n")));
  EXPECT_TRUE(none(includes_in("sim/a.cc", "#include \"net_fake/lane.h\"\n")));
  EXPECT_TRUE(none(includes_in("sim/a.cc", "#include \"record/item.h\"\n")));
  EXPECT_TRUE(none(includes_in("real_net/a.cc", "#include \"record/recorder.h\"\n")));
  EXPECT_TRUE(none(includes_in("record/a.cc", "#include \"core/node/node.h\"\n")));
  EXPECT_TRUE(none(includes_in("real_net/a.cc", "#include <mutex>\n")));
  EXPECT_TRUE(none(includes_in("scenarios/a.cc", "#include <torch/torch.h>\n")));
  EXPECT_TRUE(none(includes_in("tests/sim/a_test.cc", "#include \"real_net/runtime/poller.h\"\n")));
  EXPECT_TRUE(none(includes_in("core/calls/a.cc", "#include \"core/wire/messages.pb.h\"\n")));
  EXPECT_TRUE(none(includes_in("core/calls/a.cc", "// #include <mutex>\n")));
}

TEST(TidyRules, AnOutsideHeaderInTheWrongFolderIsFound) {
  // Goal: Boost, LibTorch, GoogleTest and everything nondeterministic stay where they belong.
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"sim/a.cc", "boost/context/fiber.hpp"},
      {"core/calls/a.h", "torch/torch.h"},
      {"net_fake/a.cc", "ATen/core/Tensor.h"},
      {"coverage/a.cc", "c10/util/Exception.h"},
      {"core/base/a.cc", "gtest/gtest.h"},
      {"core/base/a.cc", "spdlog/spdlog.h"},
      {"sim/a.cc", "CLI/CLI.hpp"},
      {"core/calls/a.cc", "mutex"},
      {"core/node/a.cc", "atomic"},
      {"core/rref/a.cc", "thread"},
      {"net_fake/a.cc", "random"},
      {"sim/a.cc", "sys/socket.h"},
      {"core/base/a.cc", "ctime"},
      {"scenarios/rnn.cc", "unistd.h"}};
  for (const auto& [path, include] : wrong)
    EXPECT_EQ(includes_in(path, "#include <" + include + ">\n").size(), 1U) << path << include;
  EXPECT_EQ(includes_in("core/calls/a.h", "#include \"core/wire/messages.pb.h\"\n").size(), 1U);
}

TEST(TidyRules, AWordInCoreThatNamesAPlaceIsFound) {
  // Goal: nothing in core can ask where it runs. Method: identifiers, parts of them, strings.
  for (const std::string text :
       {"int sim;", "SimRuntime r;", "bool is_fake_;", "int tcp_port;", "f(\"over tcp\");",
        "TCPStore store;", "Real real_thing;", "#include <netinet/tcp.h>"})
    EXPECT_FALSE(words_in("core/calls/a.cc", text + "\n").empty()) << text;
  for (const std::string text : {"simple(similar);", "fakery();", "realize(reality);", "z.real();",
                                 "// over tcp", "/* a real number */", "int unreal;"})
    EXPECT_TRUE(none(words_in("core/calls/a.cc", text + "\n"))) << text;
  EXPECT_TRUE(none(words_in("sim/a.cc", "int sim; int tcp;\n")));
}

TEST(TidyRules, AWordThatMakesARunDependOnTheMachineIsFound) {
  // Goal: clocks, threads, locks and randomness only where they may be.
  for (const std::string text :
       {"std::chrono::steady_clock::now();", "std::mutex m;", "std::atomic<int> a;",
        "std::random_device d;", "getenv(\"HOME\");", "thread_local int x;"}) {
    EXPECT_EQ(words_in("core/calls/a.cc", text).size(), 1U) << text;
    EXPECT_EQ(words_in("sim/a.cc", text).size(), 1U) << text;
  }
  EXPECT_EQ(words_in("real_net/a.cc", "thread_local int x;").size(), 1U);
  EXPECT_EQ(words_in("record/recorder.cc", "thread_local int x;").size(), 1U);
  EXPECT_TRUE(none(words_in("record/stack_mark.cc", "thread_local int x;")));
  EXPECT_TRUE(none(words_in("real_net/a.cc", "std::mutex m; std::atomic<int> a;")));
  EXPECT_TRUE(none(words_in("core/calls/a.cc", "// no mutex\nf(\"mutex\");")));
  EXPECT_TRUE(none(words_in("core/fibers/thread_state.cc", "thread_local int x;")));
}

std::string repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

TEST(TidyRules, ALongFileIsFound) {
  EXPECT_EQ(shape_of("sim/a.cc", repeated("int x;\n", 501)).size(), 1U);
  EXPECT_TRUE(none(shape_of("sim/a.cc", repeated("int x;\n", 500))));
}

TEST(TidyRules, ALongFunctionIsFoundWhateverItsForm) {
  // Goal: 71 lines are found, 70 are not. Method: forms of a function's head, body of n lines.
  const auto body = [](int lines) {
    return " {\n" + repeated("  f({1, 2});\n", lines - 2) + "}\n";
  };
  for (const std::string head :
       {"void f()", "int A::f(int x) const noexcept", "A::A(int x) : a_{x}, b_(2)",
        "template <class T> auto f(T t) -> std::vector<T>", "TEST(A, B)", "bool operator()(int x)",
        "const auto f = [](int x)", "static std::map<int, int> f() try"}) {
    const auto found =
        shape_of("sim/a.cc", "namespace n {\nclass A {\n public:\n" + head + body(71));
    EXPECT_EQ(found.size(), 1U) << head;
    EXPECT_TRUE(none(shape_of("sim/a.cc", "namespace n {\n" + head + body(70) + "}\n"))) << head;
  }
}

TEST(TidyRules, ALongTableOrClassIsNoLongFunction) {
  const std::string rows = repeated("  {1, 2},\n", 100);
  EXPECT_TRUE(none(shape_of("sim/a.cc", "const std::vector<Row> kRows = {\n" + rows + "};\n")));
  EXPECT_TRUE(none(shape_of("sim/a.cc", "const Table kTable = table({\n" + rows + "});\n")));
  EXPECT_TRUE(none(shape_of(
      "sim/a.cc", "class A : public B {\n" + repeated("  void f() { g(); }\n", 100) + "};\n")));
}

TEST(TidyRules, FunctionsAreFoundWithNameLineAndLength) {
  const auto source = parse_source("sim/a.cc",
                                   "// f() {\nnamespace {\n\nint first(int x) {\n"
                                   "  return x ? '{' : \"}\"[0];\n}\n}\n"
                                   "A::~A() {\n  auto r = R\"(}})\";\n  n = 1'000;\n}\n");
  const auto functions = functions_of(source);
  ASSERT_EQ(functions.size(), 2U);
  EXPECT_EQ(functions[0].name, "first");
  EXPECT_EQ(functions[0].line, 4);
  EXPECT_EQ(functions[0].line_count, 3);
  EXPECT_EQ(functions[1].name, "A::~A");
  EXPECT_EQ(functions[1].line_count, 4);
}

TEST(TidyRules, AHeaderWithoutPragmaOnceIsFound) {
  EXPECT_EQ(shape_of("sim/a.h", "int f();\n").size(), 1U);
  EXPECT_TRUE(none(shape_of("sim/a.h", "// What it is.\n#pragma once\n")));
}

TEST(TidyRules, AnOwnHeaderThatIsNotFirstIsFound) {
  EXPECT_EQ(shape_of("sim/a.cc", "#include <map>\n#include \"sim/a.h\"\n").size(), 1U);
  EXPECT_TRUE(none(shape_of("sim/a.cc", "#include \"sim/a.h\"\n#include <map>\n")));
  // The part of core that users see lies in core/api.
  EXPECT_EQ(shape_of("core/rref/a.cc", "#include <map>\n#include \"core/api/a.h\"\n").size(), 1U);
  EXPECT_TRUE(
      none(shape_of("core/rref/a.cc", "#include \"core/api/a.h\"\n#include \"core/rref/b.h\"\n")));
}

TEST(TidyRules, ACaptureOfEverythingByValueIsFound) {
  EXPECT_EQ(shape_of("sim/a.cc", "auto f = [=] { return x; };\n").size(), 1U);
  EXPECT_EQ(shape_of("sim/a.cc", "auto f = [=, this] { return x; };\n").size(), 1U);
  EXPECT_TRUE(none(shape_of("sim/a.cc", "auto f = [x] { return x; };\n")));
}

TEST(TidyRules, WidthMarksAndMachinePathsAreFoundInAnyText) {
  // Goal: the rules of single lines. The samples are put together here, as this file is checked
  // too.
  const std::string fix_me = std::string("FIX") + "ME";
  const std::string to_do = std::string("TO") + "DO";
  const std::string home = std::string("/ho") + "me/me/x";
  EXPECT_EQ(check_lines("dev", std::string(101, 'x')).size(), 1U);
  EXPECT_EQ(check_lines("dev", "// " + fix_me + " later").size(), 1U);
  EXPECT_EQ(check_lines("dev", "// " + to_do + ": later").size(), 1U);
  EXPECT_EQ(check_lines("README.md", "see " + home).size(), 1U);
  EXPECT_EQ(check_lines("dev", "x = \"" + home + "\"").size(), 1U);
  EXPECT_TRUE(none(check_lines("dev", std::string(100, 'x'))));
  EXPECT_TRUE(none(check_lines("dev", repeated("ä", 100))));
  EXPECT_TRUE(none(check_lines("README.md", std::string(101, 'x'))));
  EXPECT_TRUE(none(check_lines("dev", "// " + to_do + "(perf): a faster way")));
  EXPECT_TRUE(none(check_lines("dev", "https://example.org" + home)));
  EXPECT_TRUE(none(check_lines("dev", "/usr/share/common-licenses/GPL-3")));
}

TEST(TidyRules, AnAssertionAboutWallTimeIsFound) {
  const auto found = [](const std::string& path, const std::string& text) {
    return check_wall_time(parse_source(path, text)).size();
  };
  const std::string path = "tests/sim/a_test.cc";
  EXPECT_EQ(found(path, "EXPECT_LT(Clock::now() - begin,\n  seconds(1));\n"), 1U);
  EXPECT_EQ(found(path, "ASSERT_LT(std::chrono::steady_clock::now() - begin, limit);"), 1U);
  EXPECT_EQ(found(path, std::string("EXPECT_LT(json[\"wall_") + "seconds\"], 20);"), 1U);
  EXPECT_EQ(found(path, "EXPECT_TRUE(ask(Clock::now() + seconds(1)));"), 0U);
  EXPECT_EQ(found(path, "EXPECT_GE(Clock::now() - begin, seconds(1));"), 0U);
  EXPECT_EQ(found(path, "EXPECT_LT(worker.now() - begin, seconds(1));"), 0U);
  EXPECT_EQ(found("sim/a.cc", "EXPECT_LT(Clock::now() - begin, seconds(1));"), 0U);
}

TEST(TidyRules, ATemporaryFileOutsideATemporaryFolderIsFound) {
  // Goal: no test leaves files behind. Method: each other means, in a test and where it may be.
  const auto found = [](const std::string& path, const std::string& text) {
    return check_temporary_files(parse_source(path, text)).size();
  };
  const std::string path = "tests/sim/a_test.cc";
  for (const std::string text : {"const auto a = std::filesystem::temp_directory_path() / \"a\";",
                                 "const std::string a = testing::TempDir() + \"a\";",
                                 "mkdtemp(name.data());", "mkstemp(name.data());"}) {
    EXPECT_EQ(found(path, text), 1U) << text;
    EXPECT_EQ(found("tests/temporary_folder.h", text), 0U) << text;
    EXPECT_EQ(found("command_line/a.cc", text), 0U) << text;
  }
  EXPECT_EQ(found(path, "const TemporaryFolder folder;  // no mkdtemp\nf(\"mkdtemp\");"), 0U);
}

TEST(TidyRules, AMarkThatNoTestAssertsIsFound) {
  // Goal: marks and tests stay together. Method: three marks, one asserted, one used twice.
  const auto product =
      parse_source("core/calls/a.cc",
                   "mailbox.mark(\n    \"a frame \"\n    \"came twice\");\n"
                   "mark(\"never seen\"); mark(\"used twice\"); mark(\"used twice\");"
                   "remark(\"no mark\"); mark(name, \"no mark\");");
  const auto test = parse_source("tests/core/calls/a_test.cc",
                                 "EXPECT_TRUE(marks.reached(\"a frame came twice\"));\n"
                                 "marks.count(\"used twice\"); // never seen\n");
  const Findings findings = check_marks({product, test});
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].text, "another branch has the mark 'used twice'");
  EXPECT_EQ(findings[0].line, 4);
  EXPECT_EQ(findings[1].text, "no test asserts the mark 'never seen'");
  EXPECT_TRUE(none(check_marks({test})));
}

TEST(TidyRules, ASourceInNoTargetIsFound) {
  EXPECT_EQ(check_targets({"sim/a.cc", "sim/b.cc"}, {"sim/b.cc"}).size(), 1U);
  EXPECT_TRUE(none(check_targets({"sim/b.cc"}, {"sim/a.cc", "sim/b.cc"})));
}

TEST(TidyRules, ASentenceWithoutAnActorIsFound) {
  const auto found = [](const std::string& text) {
    return check_sentences(parse_source("sim/a.h", text)).size();
  };
  EXPECT_EQ(found("// What comes late is dropped.\n"), 1U);
  EXPECT_EQ(found("// It waits. Who is late\n// is told.\n"), 1U);
  EXPECT_EQ(found("// It waits.\n// Whoever is late is told.\n"), 1U);
  EXPECT_EQ(found("int a;  // Whose it is\n"), 1U);
  EXPECT_EQ(found("// A frame that is late is dropped, whoever sent it.\n// What is it?\n"), 0U);
  EXPECT_EQ(found("const char* a = \"What\";  // says What\n"), 0U);
}

TEST(TidyRules, ANameOfNothingIsFound) {
  // Goal: what a comment or a README names is there. Method: a file, a member and a word of each
  // kind, and what is nearly one.
  const auto source = parse_source("sim/a.h",
                                   "// See sim/b.h and `tests/gone.cc`; A::run, A::gone, B::run; "
                                   "`run`, `gone`, `not one word`.\n"
                                   "// <outside.h>, https://example.org/x.py, std::gone.\n"
                                   "struct A { void run(); };\n");
  const Page page{"sim/README.md", "`a.h`, `../sim/b.h`, `c.h`, `A::halt`, `gone`\n"};
  const Findings findings = check_names({source}, {page}, {"sim/a.h", "sim/b.h"});
  std::vector<std::string> texts;
  for (const Finding& finding : findings) texts.push_back(finding.text);
  EXPECT_EQ(texts,
            (std::vector<std::string>{"there is no file tests/gone.cc", "nothing is named A::gone",
                                      "nothing is named B::run", "nothing is named gone",
                                      "there is no file c.h", "nothing is named A::halt"}));
}

// --- the repository keeps them ---

TEST(TidyRepository, IncludesFollowTheDirectionOfTheFolders) {
  EXPECT_TRUE(none(check_all_sources(check_includes)));
}

TEST(TidyRepository, NoForbiddenWords) { EXPECT_TRUE(none(check_all_sources(check_words))); }

TEST(TidyRepository, FilesAndFunctionsAreShortAndWellFormed) {
  EXPECT_TRUE(none(check_all_sources(check_shape)));
}

TEST(TidyRepository, EveryMarkNamesOneBranchAndIsAssertedByATest) {
  EXPECT_TRUE(none(check_marks(repository_sources())));
}

TEST(TidyRepository, NoAssertionHangsOnWallTime) {
  EXPECT_TRUE(none(check_all_sources(check_wall_time)));
}

TEST(TidyRepository, FilesOfTestsGoIntoATemporaryFolder) {
  EXPECT_TRUE(none(check_all_sources(check_temporary_files)));
}

TEST(TidyRepository, LinesAreNarrowAndFreeOfMarksAndMachinePaths) {
  Findings findings;
  for (const std::string& file : repository_files())
    for (const Finding& finding : check_lines(file, read(kRoot / file)))
      findings.push_back(finding);
  EXPECT_TRUE(none(findings));
}

TEST(TidyRepository, SentencesHaveAnActor) {
  EXPECT_TRUE(none(check_all_sources(check_sentences)));
}

TEST(TidyRepository, NamesInCommentsAndReadmesExist) {
  const std::vector<std::string> files = repository_files();
  std::vector<Page> pages;
  for (const std::string& file : files)
    if (!is_source(file)) pages.push_back({file, read(kRoot / file)});
  EXPECT_TRUE(none(check_names(repository_sources(), pages, files)));
}

TEST(TidyRepository, EverySourceIsInATarget) {
  // Goal: no dead file. Method: CMake's list of compile commands for this very build, and what
  // those of its files include that it wrote itself, in folders `units`.
  std::vector<std::string> compiled;
  const auto commands = nlohmann::json::parse(read(REHEARSAL_COMPILE_COMMANDS));
  for (const auto& command : commands) {
    const fs::path file = command.at("file").get<std::string>();
    compiled.push_back(fs::relative(file, kRoot).generic_string());
    if (file.parent_path().filename() == "units") append_included(compiled, read(file));
  }
  std::vector<std::string> sources;
  for (const std::string& file : repository_files())
    if (file.ends_with(".cc")) sources.push_back(file);
  ASSERT_FALSE(sources.empty());
  EXPECT_TRUE(none(check_targets(sources, compiled)));
}

}  // namespace
}  // namespace rehearsal::tidy
