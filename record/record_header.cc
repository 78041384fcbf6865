#include "record/record_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json_bounds.h"
#include "record/json_number.h"

namespace rehearsal::record {
namespace {

// LibTorch starts as many threads as it is told to.
constexpr int kTorchThreadsMax = 1024;

using Json = nlohmann::ordered_json;

Json json_of(const PeerLimits& limits) {
  return {{"decoded_bytes", limits.decoded_bytes},
          {"gaps", limits.gaps},
          {"contexts", limits.contexts},
          {"passes", limits.passes},
          {"failed_passes", limits.failed_passes},
          {"sends", limits.sends},
          {"references", limits.references},
          {"awaited_values", limits.awaited_values},
          {"early_cancels", limits.early_cancels},
          {"owed_answers", limits.owed_answers},
          {"served_bytes", limits.served_bytes},
          {"unread_bytes", limits.unread_bytes},
          {"unread_answers", limits.unread_answers},
          {"gatherings", limits.gatherings}};
}

PeerLimits limits_of(const Json& json) {
  const auto number = [&json](const char* key) { return number_of<uint64_t>(json.at(key)); };
  return {.decoded_bytes = number("decoded_bytes"),
          .gaps = number("gaps"),
          .contexts = number("contexts"),
          .passes = number("passes"),
          .failed_passes = number("failed_passes"),
          .sends = number("sends"),
          .references = number("references"),
          .awaited_values = number("awaited_values"),
          .early_cancels = number("early_cancels"),
          .owed_answers = number("owed_answers"),
          .served_bytes = number("served_bytes"),
          .unread_bytes = number("unread_bytes"),
          .unread_answers = number("unread_answers"),
          .gatherings = number("gatherings")};
}

Json json_of(const std::optional<std::vector<WorkerId>>& workers) {
  if (!workers) return nullptr;
  Json ids = Json::array();
  for (const WorkerId worker : *workers) ids.push_back(worker.value);
  return ids;
}

std::optional<std::vector<WorkerId>> workers_of(const Json& json) {
  if (json.is_null()) return std::nullopt;
  std::vector<WorkerId> workers;
  for (const Json& id : json) workers.push_back({number_of<uint32_t>(id)});
  return workers;
}

Json json_of(const NodeOptions& node) {
  return {{"id", node.id.value},
          {"incarnation", node.incarnation.value},
          {"life", node.life},
          {"founds_after", json_of(node.founds_after)},
          {"seed", node.seed.value},
          {"names", node.names},
          {"rpc_timeout_ns", node.rpc_timeout.count()},
          {"peer_timeout_ns", node.peer_timeout.count()},
          {"heartbeat_ns", node.heartbeat.count()},
          {"refusal_limit_ns", node.refusal_limit.count()},
          {"join_timeout_ns", node.join_timeout.count()},
          {"shutdown_timeout_ns", node.shutdown_timeout.count()},
          {"window_bytes", node.window_bytes},
          {"window_frames", node.window_frames},
          {"limits", json_of(node.limits)},
          {"execution_limit", node.execution_limit},
          {"marked_max", node.marked_max},
          {"exception_traces", node.exception_traces},
          {"mutants", node.mutants}};
}

NodeOptions node_of(const Json& json) {
  NodeOptions node;
  const auto duration = [&json](const char* key) {
    return Duration(number_of<Duration::rep>(json.at(key)));
  };
  node.id = {number_of<uint32_t>(json.at("id"))};
  node.incarnation = {number_of<uint64_t>(json.at("incarnation"))};
  node.life = number_of<uint32_t>(json.at("life"));
  node.founds_after = workers_of(json.at("founds_after"));
  node.seed = {number_of<uint64_t>(json.at("seed"))};
  node.names = json.at("names").get<std::vector<std::string>>();
  node.rpc_timeout = duration("rpc_timeout_ns");
  node.peer_timeout = duration("peer_timeout_ns");
  node.heartbeat = duration("heartbeat_ns");
  node.refusal_limit = duration("refusal_limit_ns");
  node.join_timeout = duration("join_timeout_ns");
  node.shutdown_timeout = duration("shutdown_timeout_ns");
  node.window_bytes = number_of<uint64_t>(json.at("window_bytes"));
  node.window_frames = number_of<uint64_t>(json.at("window_frames"));
  node.limits = limits_of(json.at("limits"));
  node.execution_limit = number_of<uint32_t>(json.at("execution_limit"));
  node.marked_max = number_of<uint64_t>(json.at("marked_max"));
  node.exception_traces = json.at("exception_traces").get<bool>();
  node.mutants = json.at("mutants").get<std::vector<std::string>>();
  return node;
}

}  // namespace

std::string text_of(const RecordHeader& header) {
  return Json{{"build", header.build},
              {"greeting", header.greeting},
              {"torch_threads", header.torch_threads},
              {"node", json_of(header.node)},
              {"arguments", header.arguments}}
      .dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

std::optional<RecordHeader> header_of(const std::string& text) {
  try {
    const Json json = parse_bounded<Json>(text);
    RecordHeader header;
    header.build = json.at("build").get<std::string>();
    header.greeting = json.at("greeting").get<std::string>();
    header.torch_threads = number_of<int>(json.at("torch_threads"));
    header.node = node_of(json.at("node"));
    header.arguments = json.at("arguments").get<std::vector<std::string>>();
    const auto after = header.node.founds_after.value_or(std::vector<WorkerId>());
    const bool exist = std::all_of(after.begin(), after.end(), [&](WorkerId worker) {
      return worker.value < header.node.names.size();
    });
    const bool fits = exist && header.node.id.value < header.node.names.size() &&
                      worker_of(header.node.incarnation) == header.node.id &&
                      header.node.incarnation.value != 0 && header.torch_threads > 0 &&
                      header.torch_threads <= kTorchThreadsMax;
    if (!fits) return std::nullopt;
    return header;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace rehearsal::record
