#include "command_line/hunt_result.h"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <set>
#include <sstream>

#include "command_line/named_file.h"
#include "command_line/printed.h"
#include "command_line/wrong_use.h"
#include "core/base/json_bounds.h"
#include "core/base/printable.h"
#include "record/json_number.h"

namespace rehearsal::command_line {
namespace {

std::string shard_text(const HuntIdentity& identity) {
  return std::to_string(identity.shard) + "/" + std::to_string(identity.shard_count);
}

// Everything about a hunt but which part of it.
bool of_one_hunt(const HuntIdentity& one, const HuntIdentity& other) {
  return one.scenarios == other.scenarios && one.arguments == other.arguments &&
         one.first_seed == other.first_seed && one.seed_count == other.seed_count &&
         one.crash_sweep == other.crash_sweep && one.coverage == other.coverage &&
         one.shard_count == other.shard_count;
}

Json spent_json(const HuntResult& result) {
  Json json = Json::object();
  for (const auto& [strategy, spent] : result.spent)
    json[strategy] = {{"runs", spent.runs}, {"decisions", spent.decisions}};
  return json;
}

HuntIdentity identity_from_json(const Json& json) {
  HuntIdentity identity;
  identity.scenarios = json.at("scenarios").get<std::vector<std::string>>();
  identity.arguments = json.at("arguments").get<std::vector<std::string>>();
  identity.first_seed = record::number_of<uint64_t>(json.at("first_seed"));
  if (!json.at("seeds").is_null()) identity.seed_count = record::number_of<uint64_t>(json["seeds"]);
  identity.crash_sweep = json.at("crash_sweep").get<bool>();
  identity.coverage = json.contains("coverage");
  identity.shard = record::number_of<uint64_t>(json.at("shard"));
  identity.shard_count = record::number_of<uint64_t>(json.at("shards"));
  if (identity.shard >= identity.shard_count) throw WrongUse("of a shard that there is not");
  return identity;
}

HuntFailure failure_from_json(const Json& json) {
  const Json& failure = json.at("failure");
  return {
      .scenario = json.at("scenario").get<std::string>(),
      .seed = record::number_of<uint64_t>(json.at("seed")),
      .crash_at = json.at("crash_at").get<std::string>(),
      .failure = {failure.at("oracle").get<std::string>(), failure.at("object").get<std::string>(),
                  failure.at("message").get<std::string>()},
      .replay = failure.at("replay").get<std::string>(),
      .as_found = json.at("as_found").get<std::string>(),
      .others = json.value("other_failures", Json::array())};
}

HuntResult result_from_json(const Json& json) {
  HuntResult result;
  if (json.at("command") != "hunt") throw WrongUse("of another command");
  result.identity = identity_from_json(json);
  for (const auto& [scenario, runs] : json.at("runs_of").items())
    result.runs[scenario] = record::number_of<uint64_t>(runs);
  for (const auto& [strategy, spent] : json.at("strategies").items())
    result.spent[strategy] = {record::number_of<uint64_t>(spent.at("runs")),
                              record::number_of<uint64_t>(spent.at("decisions"))};
  result.wall_seconds = json.at("wall_seconds").get<double>();
  result.shard_seconds = json.at("shard_seconds").get<double>();
  if (result.identity.coverage) result.coverage = coverage_from_json(json["coverage"]);
  if (!json.at("ok").get<bool>()) result.failure = failure_from_json(json);
  return result;
}

HuntResult read_result(const std::string& file) {
  const std::string text = read_named(file, file, "a file that 'hunt --json' wrote");
  try {
    return result_from_json(parse_bounded<Json>(text));
  } catch (const std::exception&) {
    throw WrongUse(file + ": not an output of 'hunt --json'");
  }
}

// A hunt reports the failure with the smallest seed; a crash sweep looks at all its runs without a
// crash first.
bool reported_before(const HuntFailure& one, const HuntFailure& other) {
  return std::pair(!one.crash_at.empty(), one.seed) <
         std::pair(!other.crash_at.empty(), other.seed);
}

void add(HuntResult& whole, const HuntResult& part) {
  for (const auto& [scenario, runs] : part.runs) whole.runs[scenario] += runs;
  for (const auto& [strategy, spent] : part.spent) {
    whole.spent[strategy].runs += spent.runs;
    whole.spent[strategy].decisions += spent.decisions;
  }
  for (const auto& [pair, runs] : part.coverage) whole.coverage[pair] += runs;
  whole.wall_seconds = std::max(whole.wall_seconds, part.wall_seconds);
  whole.shard_seconds += part.shard_seconds;
  if (part.failure && (!whole.failure || reported_before(*part.failure, *whole.failure)))
    whole.failure = part.failure;
}

// "hunt: pct 600 runs, 1234567 decisions; …"
void print_spent(const HuntResult& result) {
  const char* separator = "hunt: ";
  for (const auto& [strategy, spent] : result.spent) {
    std::cout << separator << printable(strategy) << " " << spent.runs << " runs, "
              << spent.decisions << " decisions";
    separator = "; ";
  }
  std::cout << std::endl;
}

// "hunt: 812 runs of storm, 33 of rnn; …"
void print_shares(const HuntResult& result) {
  const char* separator = "hunt: ";
  const char* word = " runs of ";
  for (const auto& [scenario, runs] : result.runs) {
    std::cout << separator << runs << word << printable(scenario);
    separator = ", ";
    word = " of ";
  }
  std::cout << std::endl;
  const auto most = std::ranges::max_element(result.shares, {}, &HuntShare::new_in_a_run);
  if (most->new_in_a_run > 0)
    std::cout << "hunt: most is still new in '" << printable(most->way) << "': " << std::fixed
              << std::setprecision(2) << most->new_in_a_run << " features in a run" << std::endl;
}

void print_none(const HuntResult& result) {
  std::cout << "hunt: " << result.run_count() << " runs hold, in " << std::fixed
            << std::setprecision(1) << result.wall_seconds << " s";
  if (result.identity.shard_count > 1) std::cout << ", shard " << shard_text(result.identity);
  std::cout << std::endl;
  if (!result.shares.empty()) print_shares(result);
  if (result.spent.size() > 1) print_spent(result);
}

Json shares_json(const HuntResult& result) {
  Json json = Json::array();
  for (const HuntShare& share : result.shares)
    json.push_back(
        {{"way", share.way}, {"runs", share.runs}, {"new_in_a_run", share.new_in_a_run}});
  return json;
}

}  // namespace

uint64_t HuntResult::run_count() const {
  uint64_t count = 0;
  for (const auto& [scenario, scenario_runs] : runs) count += scenario_runs;
  return count;
}

HuntIdentity identity_of(const HuntCommand& command) {
  HuntIdentity identity{.scenarios = {},
                        .arguments = {},
                        .first_seed = command.first_seed,
                        .seed_count = command.seed_count,
                        .crash_sweep = command.crash_sweep,
                        .coverage = command.coverage,
                        .shard = command.shard,
                        .shard_count = command.shard_count};
  for (RunSettings settings : command.scenarios) {
    settings.seed = Seed{command.first_seed};
    identity.scenarios.push_back(settings.scenario->name);
    identity.arguments.push_back(replay_command("rehearsal", settings));
  }
  return identity;
}

Json to_json(const HuntResult& result) {
  const HuntIdentity& identity = result.identity;
  Json json{{"command", "hunt"},
            {"scenarios", identity.scenarios},
            {"ok", !result.failure},
            {"runs", result.run_count()},
            {"strategies", spent_json(result)},
            {"wall_seconds", result.wall_seconds},
            {"shard_seconds", result.shard_seconds},
            {"runs_of", result.runs},
            {"arguments", identity.arguments},
            {"first_seed", identity.first_seed},
            {"seeds", identity.seed_count ? Json(*identity.seed_count) : Json(nullptr)},
            {"crash_sweep", identity.crash_sweep},
            {"shard", identity.shard},
            {"shards", identity.shard_count}};
  if (identity.coverage) json["coverage"] = coverage_json(result.coverage);
  if (!result.shares.empty()) json["ways"] = shares_json(result);
  if (!result.failure) return json;
  json["scenario"] = result.failure->scenario;
  json["seed"] = result.failure->seed;
  json["crash_at"] = result.failure->crash_at;
  json["failure"] = to_json(result.failure->failure, result.failure->replay);
  json["as_found"] = result.failure->as_found;
  json["other_failures"] = result.failure->others;
  return json;
}

HuntResult merge_results(const std::vector<std::string>& files) {
  std::map<uint64_t, std::string> file_of;  // by shard
  HuntResult whole;
  for (const std::string& file : files) {
    const HuntResult part = read_result(file);
    if (file_of.empty()) whole.identity = part.identity;
    if (!of_one_hunt(whole.identity, part.identity))
      throw WrongUse(file + ": of another hunt than " + files.front());
    const auto [before, is_new] = file_of.emplace(part.identity.shard, file);
    if (!is_new)
      throw WrongUse(file + ": shard " + shard_text(part.identity) + ", which is also in " +
                     before->second);
    add(whole, part);
  }
  for (uint64_t shard = 0; shard < whole.identity.shard_count; ++shard) {
    if (file_of.contains(shard)) continue;
    whole.identity.shard = shard;
    throw WrongUse("shard " + shard_text(whole.identity) + " is missing: name the files of all");
  }
  whole.identity.shard = 0;
  whole.identity.shard_count = 1;
  return whole;
}

int print_result(const Tool& tool, const HuntResult& result) {
  if (tool.json)
    std::cout << printed(to_json(result)) << std::endl;
  else if (result.identity.coverage)
    std::cout << coverage_text(result.coverage);
  if (!result.failure) {
    if (!tool.json) print_none(result);
    return kHolds;
  }
  const HuntFailure& failure = *result.failure;
  if (failure.as_found != failure.replay)
    (tool.json ? std::cerr : std::cout) << "found by: " << printable(failure.as_found) << "\n";
  print_failed_run(tool, {failure.scenario, failure.seed, failure.replay}, failure.failure);
  return kFailed;
}

std::vector<JunitCase> junit_cases(const HuntResult& result) {
  std::vector<JunitCase> cases;
  std::set<std::string> known;
  for (const std::string& scenario : result.identity.scenarios) {
    if (!known.insert(scenario).second) continue;
    JunitCase& test = cases.emplace_back();
    test.name = scenario;
    test.properties.emplace_back("first_seed", std::to_string(result.identity.first_seed));
    if (result.identity.seed_count)
      test.properties.emplace_back("seeds", std::to_string(*result.identity.seed_count));
    test.properties.emplace_back("shard", shard_text(result.identity));
    const auto runs = result.runs.find(scenario);
    test.properties.emplace_back("runs",
                                 std::to_string(runs == result.runs.end() ? 0 : runs->second));
    if (!result.failure || result.failure->scenario != scenario) continue;
    test.properties.emplace_back("seed", std::to_string(result.failure->seed));
    test.failure = result.failure->failure;
    test.replay = result.failure->replay;
  }
  if (!cases.empty()) cases.front().seconds = result.wall_seconds;
  return cases;
}

}  // namespace rehearsal::command_line
