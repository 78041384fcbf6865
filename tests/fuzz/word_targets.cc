#include <iterator>
#include <sstream>

#include "command_line/arguments.h"
#include "command_line/hunt_result.h"
#include "command_line/run_file.h"
#include "command_line/wrong_use.h"
#include "real_net/auth/auth.h"
#include "tests/command_line/toy.h"
#include "tests/fuzz/target.h"

// Words of people, and files of words: each is a command or gets one line that says why not.
namespace rehearsal::fuzz {
namespace {

void must_be_one_line(const std::string& text) {
  must(!text.empty() && text.find('\n') == std::string::npos, "wrong use is told in one line");
}

command_line::ParsedCommand parse(const std::vector<std::string>& words) {
  static const std::vector<Scenario> scenarios = command_line::toy::scenarios();
  static const command_line::Backends backends = command_line::toy::backends();
  return command_line::parse_arguments(words, scenarios, backends);
}

void read_flags(Bytes bytes) {
  std::istringstream text(Input(bytes).rest());
  std::vector<std::string> words;
  for (std::string word; std::getline(text, word, ' ');) words.push_back(word);
  for (const std::string& word : words)
    if (word.find('/') != std::string::npos || word.starts_with(".")) return;  // Other files.
  try {
    (void)parse(words);
  } catch (const WrongUse& wrong) {
    must_be_one_line(wrong.what());
  }
}

void must_touch_nothing(const command_line::ParsedCommand& parsed) {
  if (const auto* run = std::get_if<command_line::RunCommand>(&parsed.command)) {
    const command_line::RunSettings& settings = run->settings;
    must(run->junit_file.empty() && run->compare_file.empty() && settings.spans_file.empty() &&
             settings.trace_file.empty() && settings.record_folder.empty() &&
             settings.checkpoints.empty(),
         "a run that was written down names no file");
    must(settings.net == command_line::Net::sim, "a run that was written down is simulated");
  }
  if (const auto* one = std::get_if<command_line::ExploreCommand>(&parsed.command))
    must(one->directory.empty() && one->settings.trace_file.empty() &&
             !one->settings.schedule.empty(),
         "a schedule that was written down is run alone and names no file");
}

void read_run(Bytes bytes) {
  static MemoryFile file;
  file.set(Input(bytes).rest());
  try {
    must_touch_nothing(parse({"replay", file.path()}));
  } catch (const WrongUse& wrong) {
    must_be_one_line(wrong.what());
  }
}

void read_results(Bytes bytes) {
  static MemoryFile file;
  file.set(Input(bytes).rest());
  try {
    (void)command_line::merge_results({file.path()});
  } catch (const WrongUse& wrong) {
    must_be_one_line(wrong.what());
  }
}

void read_auth(Bytes bytes) {
  Input input(bytes);
  static const std::string secret = "~~ never told ~~";
  const std::string text = input.rest();
  if (text.find("file=") != std::string::npos || text.find("fd=") != std::string::npos) return;
  const Result<real::Auth> auth = real::parse_auth(text, [](const std::string&) { return secret; });
  if (auth.ok()) return;
  must(
      text.find(secret) != std::string::npos || auth.error().text.find(secret) == std::string::npos,
      "no error tells the secret");
}

std::vector<std::string> first_flags() {
  return {"run toy --seed 3 --set followers=2 --faults hostile --json",
          "hunt toy other --seeds 200 --shard 1/3 --strategy walk:k=3",
          "explore toy --faults-max 2 --limit 60s",
          "run toy --net tcp --peer-timeout 10s --auth none",
          "verify toy --seeds 20",
          "run toy --decide cut:1.0>0.0#7.0=1",
          "worker toy --rank 1 --world-size 2 --rendezvous tcp://a:1",
          "replay --schedule 1"};
}

std::vector<std::string> first_runs() {
  return {"# why\nrun toy\n--seed 3\n--decide cut:1.0>0.0#7.0=1  # words\nend\n",
          "explore toy\n--schedule 1.2\nend\n"};
}

std::vector<std::string> first_results() {
  const command_line::HuntResult result{
      .identity = {.scenarios = {"toy"}, .arguments = {"run"}, .seed_count = 5, .shard_count = 2},
      .runs = {{"toy", 5}},
      .spent = {{"walk", {5, 100}}},
      .failure = command_line::HuntFailure{.scenario = "toy", .seed = 3, .replay = "run toy"}};
  return {command_line::to_json(result).dump()};
}

}  // namespace

std::vector<Target> word_targets() {
  return {
      {"flags", "the words of a command line", &read_flags, &first_flags},
      {"run", "a .run file", &read_run, &first_runs},
      {"results", "what `hunt --json` wrote, as `merge` reads it", &read_results, &first_results},
      {"auth", "the words behind --auth", &read_auth, [] {
         return std::vector<std::string>{"secret:env=A,protection=mac",
                                         "certificates:cert=a,key=b,ca=c,crl=d"};
       }}};
}

}  // namespace rehearsal::fuzz
