#include "command_line/outcome.h"

#include <ATen/Version.h>
#include <torch/version.h>

#include <cmath>
#include <iomanip>
#include <sstream>

#include "command_line/named_file.h"
#include "command_line/wrong_use.h"
#include "core/base/json_bounds.h"
#include "record/json_number.h"
#include "sim/hunt/choice_lists.h"
#include "sim/world/fault_words.h"

namespace rehearsal::command_line {
namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json tensors_json(const Results& results) {
  Json tensors = Json::array();
  for (const auto& [name, tensor] : results.tensors()) {
    tensors.push_back({{"name", name},
                       {"type", tensor.type},
                       {"shape", tensor.shape},
                       {"digest", tensor.digest}});
  }
  return tensors;
}

TensorDigest tensor_from_json(const Json& json) {
  TensorDigest tensor{json.at("type").get<std::string>(), {}, json.at("digest").get<std::string>()};
  for (const Json& size : json.at("shape"))
    tensor.shape.push_back(record::number_of<int64_t>(size));
  return tensor;
}

Json numbers_json(const Results& results) {
  Json numbers = Json::object();
  for (const auto& [name, value] : results.numbers()) numbers[name] = value;
  return numbers;
}

Json torch_json(int threads) {
  return {{"version", TORCH_VERSION},
          {"instruction_set", at::get_cpu_capability()},
          {"threads", threads}};
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

std::string describe(const TensorDigest& tensor) {
  return tensor.type + " " + shape_text(tensor.shape) + " " + tensor.digest.substr(0, 12);
}

std::string fault_text(const RunSettings& settings) {
  if (settings.net != Net::sim) return "";
  const ScenarioFaults plan = settings.fault_plan();
  std::string text = ", faults " + std::string(name_of(plan.faults));
  if (plan.crashes > 0) text += ", crashes " + std::to_string(plan.crashes);
  if (plan.mad > 0) text += ", one worker mad";
  if (const int devices = settings.device_count(); devices > 0)
    text += ", devices " + std::to_string(devices);
  if (plan.restarts != sim::Restart::never)
    text += ", restarts " + std::string(name_of(plan.restarts));
  if (plan.long_partitions) text += ", long partitions";
  if (plan.long_pauses) text += ", long pauses";
  return text;
}

}  // namespace

Json to_json(const sim::RunFailure& failure, const std::string& replay) {
  return {{"oracle", failure.oracle},
          {"object", failure.object},
          {"message", failure.message},
          {"replay", replay}};
}

bool ends_process(const sim::RunFailure& failure) {
  return failure.oracle == "process" || failure.oracle == "watchdog";
}

std::string text_to_compare(const sim::RunFailure& failure) {
  const std::string text = to_text(failure);
  return ends_process(failure) ? text.substr(0, text.find('\n')) : text;
}

Json to_json(const RunOutcome& outcome) {
  Json json{{"ok", outcome.ok},
            {"fingerprint", or_null(outcome.fingerprint)},
            {"virtual_seconds", or_null(outcome.virtual_seconds)},
            {"calls", outcome.calls},
            {"messages", outcome.messages},
            {"stacks_left", outcome.stacks_left},
            {"torch_threads", outcome.torch_threads},
            {"faults", outcome.faults},
            {"decisions", outcome.decisions},
            {"choices", sim::texts_of(outcome.choices)},
            {"absent", outcome.absent},
            {"leaks", outcome.leaks},
            {"strategy", outcome.strategy},
            {"steps", outcome.steps},
            {"draws", outcome.draws},
            {"widths", outcome.widths},
            {"features", outcome.features},
            {"coverage", outcome.coverage},
            {"numbers", numbers_json(outcome.results)},
            {"tensors", tensors_json(outcome.results)}};
  if (outcome.failure) json["failure"] = to_json(*outcome.failure, "");
  if (!outcome.unwritten.empty()) json["unwritten"] = outcome.unwritten;
  return json;
}

RunOutcome outcome_from_json(const Json& json) {
  RunOutcome outcome;
  outcome.ok = json.at("ok").get<bool>();
  outcome.unwritten = json.value("unwritten", "");
  if (!json.at("fingerprint").is_null())
    outcome.fingerprint = json["fingerprint"].get<std::string>();
  if (!json.at("virtual_seconds").is_null()) {
    outcome.virtual_seconds = json["virtual_seconds"].get<double>();
  }
  outcome.calls = json.at("calls").get<int64_t>();
  outcome.messages = json.at("messages").get<int64_t>();
  outcome.stacks_left = json.at("stacks_left").get<uint64_t>();
  outcome.torch_threads = json.at("torch_threads").get<int>();
  outcome.faults = json.at("faults").get<std::string>();
  outcome.decisions = json.at("decisions").get<std::map<std::string, uint64_t>>();
  outcome.choices = sim::parse_overrides(json.at("choices").get<std::vector<std::string>>());
  outcome.absent = json.at("absent").get<std::vector<std::string>>();
  outcome.leaks = json.at("leaks").get<std::vector<std::string>>();
  outcome.strategy = json.at("strategy").get<std::string>();
  outcome.steps = json.at("steps").get<uint64_t>();
  outcome.widths = json.at("widths").get<std::vector<uint8_t>>();
  outcome.draws = json.at("draws").get<uint64_t>();
  outcome.features = json.at("features").get<std::vector<uint32_t>>();
  outcome.coverage = json.at("coverage").get<std::vector<uint32_t>>();
  for (const auto& [name, value] : json.at("numbers").items()) {
    outcome.results.number(name, value.is_null() ? std::nan("") : value.get<double>());
  }
  for (const Json& tensor : json.at("tensors")) {
    outcome.results.add(tensor.at("name").get<std::string>(), tensor_from_json(tensor));
  }
  if (json.contains("failure")) {
    const Json& failure = json.at("failure");
    outcome.failure = {failure.at("oracle").get<std::string>(),
                       failure.at("object").get<std::string>(),
                       failure.at("message").get<std::string>()};
  }
  return outcome;
}

Json report_json(const RunSettings& settings, const RunOutcome& outcome, double wall_seconds,
                 const std::string& replay) {
  Json json{{"scenario", settings.scenario->name},
            {"seed", settings.seed.value},
            {"net", name_of(settings.net)},
            {"ok", outcome.ok},
            {"fingerprint", or_null(outcome.fingerprint)},
            {"virtual_seconds", or_null(outcome.virtual_seconds)},
            {"wall_seconds", wall_seconds},
            {"calls", outcome.calls},
            {"messages", outcome.messages},
            {"stacks_left", outcome.stacks_left},
            {"result_digest", outcome.results.digest()},
            {"results", numbers_json(outcome.results)},
            {"tensors", tensors_json(outcome.results)},
            {"options", settings.options.all()}};
  if (settings.net == Net::sim) {
    const ScenarioFaults plan = settings.fault_plan();
    json["faults"] = std::string(name_of(plan.faults));
    json["crashes"] = plan.crashes;
    json["mad"] = plan.mad;
    json["devices"] = settings.device_count();
    json["restarts"] = std::string(name_of(plan.restarts));
    json["long_partitions"] = plan.long_partitions;
    json["long_pauses"] = plan.long_pauses;
    json["network"] = settings.network.empty() ? Json(nullptr) : Json(settings.network);
    json["without"] = settings.without;
    json["drawn_faults"] = outcome.faults;
    json["strategy"] = settings.strategy.empty() ? Json(nullptr) : Json(settings.strategy);
  }
  json["torch"] = torch_json(outcome.torch_threads);
  if (outcome.failure) json["failure"] = to_json(*outcome.failure, replay);
  return json;
}

std::string report_text(const RunSettings& settings, const RunOutcome& outcome,
                        double wall_seconds) {
  std::ostringstream out;
  out << settings.scenario->name << " " << (outcome.ok ? "holds" : "FAILED") << " ("
      << name_of(settings.net) << ", seed " << settings.seed.value << fault_text(settings) << ")\n";
  for (const auto& [name, value] : outcome.results.numbers()) {
    out << "  " << name << "  " << std::setprecision(8) << value << "\n";
  }
  if (!outcome.results.tensors().empty())
    out << "  result digest  " << outcome.results.digest() << "\n";
  if (outcome.fingerprint) out << "  fingerprint    " << *outcome.fingerprint << "\n";
  if (!outcome.faults.empty()) out << "  " << outcome.faults << "\n";
  for (const std::string& leak : outcome.leaks) out << "  leak: " << leak << "\n";
  if (outcome.stacks_left > 0)
    out << "  " << outcome.stacks_left << " stacks left as a crash found them: no exception could "
        << "leave their waits\n";
  out << "  " << outcome.calls << " calls, " << outcome.messages << " messages";
  out << std::fixed << std::setprecision(2);
  if (outcome.virtual_seconds) out << ", " << *outcome.virtual_seconds << " s of virtual time";
  out << ", " << wall_seconds << " s\n";
  if (outcome.failure) out << "  " << to_text(*outcome.failure) << "\n";
  return out.str();
}

Comparison read_comparison(const std::string& file) {
  const std::string text = read_named("--compare " + file, file, "a file that 'run --json' wrote");
  try {
    Comparison comparison{file, {}};
    const Json report = parse_bounded<Json>(text);
    for (const Json& tensor : report.at("tensors")) {
      comparison.tensors.emplace(tensor.at("name").get<std::string>(), tensor_from_json(tensor));
    }
    return comparison;
  } catch (const std::exception&) {
    throw WrongUse("--compare " + file + ": not an output of 'run --json'");
  }
}

std::optional<std::string> first_difference(const Comparison& comparison, const Results& results) {
  std::map<std::string, TensorDigest> names = comparison.tensors;
  names.insert(results.tensors().begin(), results.tensors().end());
  for (const auto& [name, unused] : names) {
    const auto theirs = comparison.tensors.find(name);
    const auto ours = results.tensors().find(name);
    if (ours == results.tensors().end()) return "'" + name + "' is only in " + comparison.file;
    if (theirs == comparison.tensors.end()) return "'" + name + "' is not in " + comparison.file;
    if (!(ours->second == theirs->second)) {
      return "'" + name + "' differs from " + comparison.file + ": " + describe(ours->second) +
             " against " + describe(theirs->second);
    }
  }
  return std::nullopt;
}

}  // namespace rehearsal::command_line
