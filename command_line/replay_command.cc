#include "command_line/replay_command.h"

#include <iostream>
#include <utility>

#include "command_line/arguments.h"
#include "command_line/debugger.h"
#include "command_line/output_files.h"
#include "command_line/printed.h"
#include "command_line/run_stream.h"
#include "command_line/terminal.h"
#include "command_line/wrong_use.h"
#include "core/base/printable.h"
#include "core/base/short_text.h"
#include "sim/hunt/crash_report.h"
#include "sim/replay/replay.h"
#include "sim/world/event_lines.h"

namespace rehearsal::command_line {
namespace {

Reporter reporter_of(const Tool& tool) {
  Reporter reporter;
  reporter.line = [json = tool.json](const std::string& text) {
    (json ? std::cerr : std::cout) << text << std::endl;
  };
  reporter.progress = [](const std::string&) {};
  return reporter;
}

// The command that starts this replay in a debugger, stopping before `entry` if one is named.
std::string debugger_line(const Tool& tool, const std::string& file,
                          std::optional<uint64_t> entry = std::nullopt) {
  std::string stop;
  if (entry)
    stop = " -ex 'break rehearsal::sim::replay_entry' -ex 'ignore 1 " + std::to_string(*entry) +
           "' -ex run";
  return debugger() + stop + " --args " + shell_command(tool.program, {"replay", file});
}

std::string how_it_ended(const sim::ReplayReport& report) {
  if (!report.ended) return "the record stops there, as its worker's process did";
  if (!report.failure) return "the worker ended well";
  return "the worker ended with: " + to_string(*report.failure);
}

std::string to_text(const sim::Divergence& divergence) {
  return "entry " + std::to_string(divergence.entry) + " (" + divergence.input +
         "): " + divergence.text;
}

Json json_of(const ReplayCommand& command, const sim::ReplayReport& report,
             const std::string& worker, const std::string& debugger) {
  Json json{{"command", "replay"},
            {"scenario", command.settings.scenario->name},
            {"seed", command.settings.seed.value},
            {"worker", worker},
            {"ok", !report.divergence},
            {"entries", report.entries},
            {"acts", report.acts},
            {"ended", report.ended},
            {"failure", report.failure ? Json(to_string(*report.failure)) : Json()},
            {"divergence", nullptr},
            {"throws", Json::array()},
            {"debugger", debugger}};
  for (const sim::ReplayedThrow& thrown : report.throws)
    json["throws"].push_back({{"error", thrown.error}, {"place", thrown.place}});
  if (report.divergence)
    json["divergence"] = {{"entry", report.divergence->entry},
                          {"input", report.divergence->input},
                          {"message", report.divergence->text}};
  return json;
}

// Of the run that was recorded. A record may hold anything: a command that is no run, or flags that
// no run is repeated with, are not even parsed.
RunSettings recorded_settings(const std::string& file, const record::RecordHeader& header,
                              const std::vector<Scenario>& scenarios, const Backends& backends) {
  if (header.arguments.empty())
    throw WrongUse(file + ": was recorded by a program that runs no scenario of this tool");
  if (header.arguments.front() != "run")
    throw WrongUse(file + ": says of no run that it was recorded in");
  if (const auto foreign = foreign_argument(header.arguments, Net::tcp))
    throw WrongUse(file + ": says that it was recorded with '" + short_name(*foreign) +
                   "', with which no run is repeated");
  try {
    ParsedCommand parsed = parse_arguments(header.arguments, scenarios, backends);
    return std::get<RunCommand>(std::move(parsed.command)).settings;
  } catch (const WrongUse& wrong) {
    throw WrongUse(file + ": " + wrong.what());
  }
}

// The texts that the process writes if it dies, as the worker may have: with the same signal as
// then.
sim::LastWords last_words(const Tool& tool, const ReplayCommand& command) {
  sim::LastWords words;
  words.standard_error = command.file + ": the process of the replay ended: @object@ @message@\n" +
                         debugger_line(tool, command.file) + "\n";
  return words;
}

}  // namespace

ReplayCommand read_replay(const std::string& file, const std::vector<Scenario>& scenarios,
                          const Backends& backends) {
  Result<std::unique_ptr<record::Record>> record = record::read_record(file);
  if (!record.ok()) throw WrongUse(record.error().text);
  ReplayCommand command{.file = file, .record = std::move(record).value()};
  // Before anything else: another build may not even know the scenario.
  if (const auto why = sim::refusal(*command.record)) throw WrongUse(file + ": " + *why);
  command.settings = recorded_settings(file, command.record->header, scenarios, backends);
  return command;
}

int replay(const Tool& tool, const ReplayCommand& command) {
  const RunSettings& settings = command.settings;
  const record::RecordHeader& header = command.record->header;
  const std::string& worker = header.node.names[header.node.id.value];
  Reporter reporter = reporter_of(tool);
  const Program program = settings.program(reporter);
  if (const auto why = sim::refusal(*command.record, program))
    throw WrongUse(command.file + ": " + *why);
  RunStream trace(command.trace_file);
  trace.require("--trace");
  sim::EventLines lines(trace.any(), header.node.names);
  sim::ReplayReport report;
  {
    const sim::CrashReport crash_report(last_words(tool, command));
    report = sim::replay(*command.record, program, {.lines = trace.stream() ? &lines : nullptr});
  }
  OutputFiles files;
  files.note(trace.close());
  const std::string debugger = report.divergence
                                   ? debugger_line(tool, command.file, report.divergence->entry)
                                   : debugger_line(tool, command.file);
  if (tool.json) std::cout << printed(json_of(command, report, worker, debugger)) << std::endl;
  std::ostream& out = tool.json ? std::cerr : std::cout;
  if (!tool.json)
    for (const sim::ReplayedThrow& thrown : report.throws)
      out << printable_lines(worker + ": " + thrown.error + "\n" + thrown.place);
  if (report.divergence) {
    out << printable_lines(worker + " DIVERGED from its record at " + to_text(*report.divergence))
        << "\n"
        << debugger << std::endl;
    return files.end(tool, "replay", kFailed);
  }
  if (tool.json) return files.end(tool, "replay", kHolds);
  out << printable(worker) << ": " << report.entries << " inputs replayed, and " << report.acts
      << " events were as recorded; " << how_it_ended(report) << "\n"
      << debugger << std::endl;
  return files.end(tool, "replay", kHolds);
}

}  // namespace rehearsal::command_line
