// `list`: the scenarios, or the mutants, one line each.
#include <algorithm>
#include <iostream>

#include "command_line/commands.h"
#include "command_line/printed.h"
#include "core/base/mutants.h"

namespace rehearsal::command_line {
namespace {

size_t worker_count(const Scenario& scenario) {
  Reporter unused;
  const Options options = scenario.options.parse({}, "full");
  return scenario.program({options, Seed{1}, unused}).members().size();
}

std::string workers_text(size_t count) {
  return std::to_string(count) + (count == 1 ? " worker" : " workers");
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

Json options_json(const Scenario& scenario) {
  Json options = Json::array();
  for (const OptionTable::Line& line : scenario.options.lines()) {
    options.push_back({{"name", line.name},
                       {"default", line.otherwise},
                       {"allowed", line.allowed},
                       {"meaning", line.meaning}});
  }
  return options;
}

int list_json(const Tool& tool) {
  Json scenarios = Json::array();
  for (const Scenario& scenario : tool.scenarios) {
    scenarios.push_back({{"name", scenario.name},
                         {"workers", worker_count(scenario)},
                         {"summary", scenario.summary},
                         {"options", options_json(scenario)}});
  }
  std::cout << printed(Json{{"scenarios", scenarios}}) << std::endl;
  return kHolds;
}

const char* name_of(MutantKind kind) {
  switch (kind) {
    case MutantKind::ordering:
      return "ordering";
    case MutantKind::fault:
      return "fault";
    case MutantKind::other:
      return "other";
  }
  return "?";
}

int list_mutants(const Tool& tool) {
  Json mutants = Json::array();
  size_t width = 0;
  for (const MutantRow& row : mutant_table()) {
    mutants.push_back({{"name", row.name}, {"kind", name_of(row.kind)}, {"wrong", row.wrong}});
    width = std::max(width, row.name.size());
  }
  if (tool.json) {
    std::cout << printed(Json{{"mutants", mutants}}) << std::endl;
    return kHolds;
  }
  for (const MutantRow& row : mutant_table())
    std::cout << padded(std::string(row.name), width) << "  " << padded(name_of(row.kind), 8)
              << "  " << row.wrong << "\n";
  return kHolds;
}

}  // namespace

int list(const Tool& tool, const ListCommand& command) {
  if (command.mutants) return list_mutants(tool);
  if (tool.json) return list_json(tool);
  size_t width = 0;
  for (const Scenario& scenario : tool.scenarios) width = std::max(width, scenario.name.size());
  for (const Scenario& scenario : tool.scenarios) {
    std::string options;
    for (const OptionTable::Line& line : scenario.options.lines()) {
      options += (options.empty() ? "" : " ") + line.name + "=" + line.otherwise;
    }
    std::cout << padded(scenario.name, width) << "  "
              << padded(workers_text(worker_count(scenario)), 9) << "  " << scenario.summary << "; "
              << options << "\n";
  }
  return kHolds;
}

}  // namespace rehearsal::command_line
