#include "command_line/command_line.h"

#include <ATen/Parallel.h>
#include <signal.h>

#include <exception>
#include <iostream>
#include <string>

#include "command_line/arguments.h"
#include "command_line/commands.h"
#include "command_line/program_name.h"
#include "command_line/standard_streams.h"
#include "command_line/surroundings.h"
#include "command_line/version.h"
#include "command_line/wrong_use.h"
#include "core/base/printable.h"

namespace rehearsal::command_line {
namespace {

int dispatch(Tool& tool, const std::vector<std::string>& words, bool& understood) {
  if (words == std::vector<std::string>{kChildCommand}) return serve_requests(tool, false);
  if (words == std::vector<std::string>{kChildCommand, kScatterWord})
    return serve_requests(tool, true);
  if (words.size() == 1 && words[0] == kWorkerChildCommand) return serve_worker_request(tool);
  if (!words.empty() && words.front() == "--version") {
    std::cout << version_text(program_name(tool.program)) << std::flush;
    return kHolds;
  }
  const ParsedCommand parsed = parse_arguments(words, tool.scenarios, tool.backends);
  tool.json = parsed.json;
  understood = true;
  struct Visitor {
    const Tool& tool;
    int operator()(const ShowHelp& help) const {
      std::cout << spoken_by(program_name(tool.program), help.text) << std::flush;
      return kHolds;
    }
    int operator()(const ListCommand& command) const { return list(tool, command); }
    int operator()(const RunCommand& command) const { return run(tool, command); }
    int operator()(const HuntCommand& command) const { return hunt(tool, command); }
    int operator()(const MergeCommand& command) const { return merge(tool, command); }
    int operator()(const ShrinkCommand& command) const { return shrink(tool, command); }
    int operator()(const ExploreCommand& command) const { return explore(tool, command); }
    int operator()(const VerifyCommand& command) const { return verify(tool, command); }
    int operator()(const ReportCommand& command) const { return report(tool, command); }
    int operator()(const ReplayCommand& command) const { return replay(tool, command); }
    int operator()(const CheckCommand& command) const { return check(tool, command); }
    int operator()(const WorkerCommand& command) const { return worker(tool, command); }
  };
  return std::visit(Visitor{tool}, parsed.command);
}

int obey(Tool& tool, const std::vector<std::string>& words) {
  const std::string name = program_name(tool.program);
  bool understood = false;
  try {
    return dispatch(tool, words, understood);
  } catch (const WrongUse& wrong_use) {
    const bool command_known = !words.empty() && is_command(words.front());
    std::cerr << name << (command_known ? " " + words.front() : "") << ": "
              << spoken_by(name, wrong_use.what()) << std::endl;
    if (!understood) refuse_worker(tool, words, wrong_use.what());
    return kWrongUse;
  } catch (const std::exception& error) {
    std::cerr << name << ": " << printable_lines(error.what()) << std::endl;
    return kFailed;
  }
}

}  // namespace

int main(int argc, char** argv, const std::vector<Scenario>& scenarios, const Backends& backends) {
  open_standard_descriptors();
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow (ulimit -f) is an error, which names it
  StandardOutput output;
  Tool tool{argv[0], scenarios, backends, false};
  const int status = obey(tool, std::vector<std::string>(argv + 1, argv + argc));
  return output.end(program_name(tool.program), status);
}

}  // namespace rehearsal::command_line

namespace rehearsal {

int main(int argc, char** argv, const std::vector<Scenario>& scenarios) {
  at::set_num_threads(1);  // Another number gives other bits.
  return command_line::main(argc, argv, scenarios, command_line::shipped_backends());
}

}  // namespace rehearsal
