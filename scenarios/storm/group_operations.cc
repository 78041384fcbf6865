#include <chrono>
#include <stdexcept>

#include "scenarios/storm/actor.h"

// An actor's operations on the group itself.
namespace rehearsal::storm {

namespace {

// Such a worker may know less of the group than the workers that have lost it: two halves of a
// group that was cut in two know each other when their links are back.
bool has_lost_any(CallContext& context) {
  for (const std::string& name : context.caller()->names()) {
    const Result<int64_t> called = context.rpc_async(name, &travel, Journey{}).result();
    if (called.ok()) continue;
    const Error& why = called.error();
    if (why.kind == ErrorKind::fenced || why.text.find("was lost") != std::string::npos)
      return true;
  }
  return false;
}

}  // namespace

int64_t call_back(CallContext& context, int64_t known) {
  const WorkerId newcomer{static_cast<uint32_t>(known)};
  const Result<int64_t> called = context.rpc_async(newcomer, &travel, Journey{}).result();
  if (called.ok()) return called.value();
  if (!has_lost_any(context)) throw RpcError(called.error());
  return 0;
}

void make_known(CallContext& context, int64_t known) {
  const std::vector<std::string>& names = context.caller()->names();
  const std::string unknown =
      "worker '" + names.at(static_cast<size_t>(known)) + "' has not joined";
  for (const std::string& name : names) {
    const Result<int64_t> called = context.rpc_async(name, &call_back, known).result();
    if (!called.ok() && called.error().text.find(unknown) != std::string::npos)
      throw std::logic_error("'" + name + "' does not know a member: " + called.error().text);
  }
}

void Actor::be_known() {
  for (const WorkerInfo& other : worker_.members()) {
    const Result<Unit> told =
        worker_.rpc_async(other.id, &make_known, static_cast<int64_t>(worker_.id().value)).result();
    if (told.ok() || told.error().kind != ErrorKind::remote_exception) continue;
    throw WrongResult(told.error().text);
  }
}

// A worker that came back may be too late for it, and then waits in vain.
void Actor::meet_all() {
  std::vector<std::string> names;
  for (const WorkerInfo& worker : worker_.workers()) names.push_back(worker.name);
  try {
    const std::map<std::string, int64_t> met = worker_.all_gather(
        static_cast<int64_t>(worker_.id().value), names, std::chrono::seconds(100));
    if (met.size() != names.size()) throw WrongResult("not all met");
    for (const WorkerInfo& worker : worker_.workers())
      expect("a meeting", worker.id.value, met.at(worker.name));
  } catch (const RpcError& error) {
    if (!is_loss(error.kind()) && error.kind() != ErrorKind::timeout) throw;
    ++lost_;
  }
}

void Actor::see_others_come() {
  if (worker_.id().value != 0) return;
  const Instant end = worker_.now() + std::chrono::seconds(100);
  for (const WorkerInfo& other : worker_.workers()) {
    if (worker_.now() >= end) return;
    try {
      worker_.wait_for_worker(other.name, end - worker_.now());
    } catch (const RpcError& error) {
      if (error.kind() != ErrorKind::timeout) throw;
    }
  }
}

}  // namespace rehearsal::storm
