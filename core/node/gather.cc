#include "core/api/gather.h"

#include <algorithm>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "core/calls/gatherings.h"

namespace rehearsal {
namespace {

// Serves the first member: its answer leaves when the last share has come.
Future<Gatherings::Shares> contribute(CallContext& context, const GatherRound& round,
                                      const GatherShare& share) {
  const Caller& caller = *context.caller();
  const std::shared_ptr<NodeStrand> strand = caller.strand();
  auto gathered = std::make_shared<FutureState<Gatherings::Shares>>(strand, CausalId{});
  strand->post([gatherings = &caller.gatherings(), from = context.caller_info().id, round, share,
                deadline = strand->running().deadline,
                gathered] { gatherings->contribute(from, round, share, deadline, gathered); });
  return Future<Gatherings::Shares>(gathered);
}

std::vector<uint32_t> members_of(const Caller& caller, const std::vector<std::string>& workers) {
  std::vector<uint32_t> members;
  for (const std::string& worker : workers.empty() ? caller.names() : workers)
    members.push_back(caller.find(Target(worker)).value);
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  const uint32_t self = caller.strand()->self().value;
  if (!std::binary_search(members.begin(), members.end(), self))
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "a worker gathers only with others that name it: add '" +
                            caller.names()[self] + "' to the workers",
                    .worker = caller.names()[self]});
  return members;
}

}  // namespace

void register_gatherings(FunctionRegistry& registry) {
  registry.function("rehearsal.gather", &contribute).runs_inline().only_waits();
}

Gathered gather(const Caller& caller, const std::vector<std::string>& workers, GatherShare share,
                Timeout timeout) {
  const std::vector<uint32_t> members = members_of(caller, workers);
  std::optional<Result<GatherRound>> next;
  caller.visit_strand("a gathering's state",
                      [&] { next = caller.gatherings().next_round(members); });
  const GatherRound round = std::move(*next).or_throw();
  const WorkerId first{round.members.front()};
  Draft draft = function_draft(caller, first, &contribute, round, share);
  draft.timeout = timeout;
  draft.call.context.reset();  // The shares of all pass through one worker, in no one's context.
  Result<Gatherings::Shares> shares = caller.wait_typed<Gatherings::Shares>(std::move(draft));
  if (!shares.ok()) {
    Error error = shares.error();
    std::string missing;
    if (error.kind == ErrorKind::peer_lost)
      caller.visit_strand("a gathering's state",
                          [&] { caller.gatherings().loss_is_known(members); });
    // The first member knows who is late.
    if (error.kind == ErrorKind::timeout && first == caller.strand()->self())
      caller.visit_strand("a gathering's state",
                          [&] { missing = caller.gatherings().missing(round); });
    if (!missing.empty()) error.text += "; a gathering waits for:" + missing;
    throw RpcError(std::move(error));
  }
  Gathered gathered{.names = {}, .shares = std::move(shares).value()};
  if (gathered.shares.size() != round.members.size())
    throw RpcError({.kind = ErrorKind::protocol,
                    .text = "it has answered a gathering of " +
                            std::to_string(round.members.size()) + " workers with " +
                            std::to_string(gathered.shares.size()) + " shares",
                    .worker = caller.names()[first.value],
                    .function = "rehearsal.gather"});
  for (const uint32_t member : round.members) gathered.names.push_back(caller.names()[member]);
  return gathered;
}

const std::vector<std::string>& Worker::gathering(const std::vector<std::string>& workers) const {
  if (!caller()->node().is_dynamic() || !workers.empty()) return workers;
  throw RpcError({.kind = ErrorKind::bad_arguments,
                  .text = "the group is dynamic: say which workers gather",
                  .worker = name()});
}

namespace detail {

GatherShare share_of_payload(Payload payload) {
  if (!payload.handles.empty())
    throw BadValue("a remote reference cannot be gathered: send it in a call");
  return {std::move(payload.values), std::move(payload.tensors)};
}

Payload payload_of_share(GatherShare share) {
  Payload payload;
  payload.values = std::move(share.bytes);
  payload.tensors = std::move(share.tensors);
  return payload;
}

void throw_unsendable(const BadValue& bad) {
  throw RpcError({.kind = ErrorKind::bad_arguments, .text = bad.what()});
}

void throw_unlike(const std::string& giver, const BadValue& bad) {
  throw RpcError({.kind = ErrorKind::bad_arguments,
                  .text = "worker '" + giver + "' came to this gathering with something else: " +
                          bad.what() + ". All who gather give values of one type",
                  .worker = giver});
}

}  // namespace detail
}  // namespace rehearsal
