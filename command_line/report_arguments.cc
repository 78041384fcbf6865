#include "command_line/report_arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "command_line/run_file.h"
#include "command_line/suggestion.h"
#include "command_line/wrong_use.h"

namespace rehearsal::command_line {
namespace {

constexpr const char* kDescription =
    "Tells the run that FILE says, which 'shrink --out FILE', 'hunt --out DIRECTORY' and 'explore "
    "--out DIRECTORY' write: as text, as a page to click through, as a trace for ui.perfetto.dev. "
    "Or one schedule of 'explore': NAME with the flags that its failure printed.";
constexpr const char* kReportExamples =
    "Examples:\n"
    "  rehearsal report found/failure.run\n"
    "  rehearsal report found/failure.run --html failure.html --perfetto failure.trace.json\n"
    "  rehearsal report rref_fork --schedule cut:0,1@3=1 --html failure.html\n";

struct Words {
  std::string file, html, perfetto;
  bool json = false;
};

std::string describe_extra(const std::vector<std::string>& extras) {
  const std::string extra = extras.empty() ? "" : extras.front();
  if (!extra.starts_with("-"))
    return "'" + extra + "' was not expected; one FILE at a time: type rehearsal report --help";
  const auto near = nearest(extra, {"--html", "--perfetto", "--json", "--help"});
  return "no flag " + extra + "; " +
         (near ? "did you mean " + *near + "?" : "type rehearsal report --help");
}

RunSettings settings_in(const std::string& file, const std::vector<Scenario>& scenarios,
                        const Backends& backends) {
  try {
    ParsedCommand parsed = parse_arguments(read_run_file(file), scenarios, backends);
    if (auto* one = std::get_if<ExploreCommand>(&parsed.command)) return std::move(one->settings);
    auto* run = std::get_if<RunCommand>(&parsed.command);
    if (run == nullptr) throw WrongUse("it holds no run");
    return std::move(run->settings);
  } catch (const WrongUse& wrong) {
    const std::string text = wrong.what();
    throw WrongUse(text.starts_with(file) ? text : file + ": " + text);
  }
}

// `report NAME --schedule …`: the words that the failure's own line has, too.
RunSettings settings_of_schedule(const std::string& name, const std::vector<std::string>& flags,
                                 const std::vector<Scenario>& scenarios, const Backends& backends) {
  std::vector<std::string> words = {"explore", name};
  words.insert(words.end(), flags.begin(), flags.end());
  ParsedCommand parsed = parse_arguments(words, scenarios, backends);
  return std::get<ExploreCommand>(std::move(parsed.command)).settings;
}

}  // namespace

ParsedCommand parse_report(const std::vector<std::string>& words,
                           const std::vector<Scenario>& scenarios, const Backends& backends) {
  CLI::App app(kDescription, "rehearsal report");
  Words given;
  app.footer(kReportExamples);
  app.add_option("FILE", given.file, "A run that was written down, or NAME with --schedule");
  app.add_option("--html", given.html, "File for a page: the run as a diagram to click through");
  app.add_option("--perfetto", given.perfetto,
                 "File for a trace in virtual time, for ui.perfetto.dev or chrome://tracing");
  app.add_flag("--json", given.json, "One JSON object on standard output, nothing else");
  const bool has_schedule = std::find(words.begin(), words.end(), "--schedule") != words.end();
  if (has_schedule) app.allow_extras();
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 takes them
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return {ShowHelp{app.help()}, false};
  } catch (const CLI::ExtrasError&) {
    throw WrongUse(describe_extra(app.remaining()));
  } catch (const CLI::ParseError& error) {
    throw WrongUse(std::string(error.what()) + "; type rehearsal report --help");
  }
  if (given.file.empty())
    throw WrongUse("type rehearsal report FILE, a file that 'shrink --out' or 'hunt --out' wrote");
  if (has_schedule)
    return {ReportCommand{
                .settings = settings_of_schedule(given.file, app.remaining(), scenarios, backends),
                .file = {},
                .html_file = given.html,
                .perfetto_file = given.perfetto},
            given.json};
  return {ReportCommand{.settings = settings_in(given.file, scenarios, backends),
                        .file = given.file,
                        .html_file = given.html,
                        .perfetto_file = given.perfetto},
          given.json};
}

}  // namespace rehearsal::command_line
